/* SPDX-License-Identifier: Apache-2.0
 *
 * rules.h - what the checks of both operations share: the first broken rule, worded once.
 *
 * A row of a refusal table is a function that states its rules one after the other with expect();
 * as soon as one is broken, the later ones change nothing. Rows that divide or multiply rely on the
 * rows before them, so a row is only entered when nothing has been broken yet.
 */
#ifndef MLA_IMPL_RULES_H
#define MLA_IMPL_RULES_H

#include "impl/mla.h"

#define MLA_RULES_BYTES_MAX (INT64_MAX / 2) /* largest byte size of a tensor */

struct mla_rules {
    int32_t status; /* MLA_OK: nothing broken so far */
    char *message;
    size_t message_bytes;
};

/* One integer parameter and the closed range it must lie in. */
struct mla_rules_range {
    const char *field;
    int64_t value;
    int64_t min;
    int64_t max;
};

/* One tensor: the names and values of its extents (all >= 1; unused ones NULL, 1). */
struct mla_rules_tensor {
    const char *field;
    int64_t element_bytes;
    struct {
        const char *field;
        int64_t value;
    } extents[4];
};

/* The rule `field`, worded by the format, must hold; status if it does not. */
__attribute__((format(printf, 6, 7))) void mla_rules_expect(struct mla_rules *rules, bool holds,
                                                            int32_t status, const char *field,
                                                            int64_t value, const char *format, ...);

/* The same for a value that is not an integer, given as text. */
__attribute__((format(printf, 6, 7))) void
mla_rules_expect_text(struct mla_rules *rules, bool holds, int32_t status, const char *field,
                      const char *value, const char *format, ...);

/* Pointer `field` must not be null. */
void mla_rules_expect_pointer(struct mla_rules *rules, const char *field, const void *pointer);

/* All values within their ranges (MLA_ERR_PARAM). */
void mla_rules_expect_ranges(struct mla_rules *rules, const struct mla_rules_range *ranges,
                             size_t ranges_n);

/* All tensors at most MLA_RULES_BYTES_MAX bytes (MLA_ERR_SHAPE). */
void mla_rules_expect_sizes(struct mla_rules *rules, const struct mla_rules_tensor *tensors,
                            size_t tensors_n);

/* A scale must be finite and above zero (MLA_ERR_PARAM). */
void mla_rules_expect_scale(struct mla_rules *rules, const char *field, float scale);

#endif
