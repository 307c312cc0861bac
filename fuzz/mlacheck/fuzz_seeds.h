/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_seeds.h - corpus lines as seed files for the engine.
 */
#ifndef MLA_MLACHECK_FUZZ_SEEDS_H
#define MLA_MLACHECK_FUZZ_SEEDS_H

#include "fuzz/mlacheck/options.h"

/*
 * Write every fast case of the --set files into FOLDER/corpus-ring, -sparse or -reject, one file a
 * case named by its id (FOLDER NULL: only read and check them). 0 or an exit code after complaining.
 */
int mla_fuzz_seeds(const struct mla_options *options, const char *folder);

#endif
