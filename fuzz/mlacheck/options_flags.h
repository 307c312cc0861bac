/* SPDX-License-Identifier: Apache-2.0
 *
 * options_flags.h - the table of flags, for options.c alone.
 */
#ifndef MLA_MLACHECK_OPTIONS_FLAGS_H
#define MLA_MLACHECK_OPTIONS_FLAGS_H

#include "fuzz/mlacheck/options.h"

#define MLA_FLAGS_MAX 64

struct mla_flag {
    const char *name; /* NULL after the last */
    int letter;       /* by which verbs allow it */
    /* Read the value into place. false: it is not what rule says. NULL: no value, place is a bool to set. */
    bool (*take)(struct mla_options *options, const struct mla_flag *flag, const char *text);
    size_t place;     /* in struct mla_options */
    const char *rule; /* what the value must be */
    size_t count;     /* of a list: the place of its length */
    bool clears;      /* no value: it sets false */
};

/* A name may stand twice, with a value and without: no verb takes both. */
extern const struct mla_flag mla_flags[];

#endif
