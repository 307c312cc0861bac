/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_verbs.h - what export, judge and import share.
 */
#ifndef MLA_MLACHECK_EXCHANGE_VERBS_H
#define MLA_MLACHECK_EXCHANGE_VERBS_H

#include "fuzz/case.h"
#include "fuzz/mlacheck/options.h"

/* The one case that the options name by ID or --case. 0, or an exit code after complaining. */
int mla_exchange_case(const struct mla_options *options, const char *verb, struct mla_case *test);

/* What files say of the program that wrote them. */
void mla_exchange_tool(char *text, size_t text_bytes);

#endif
