/* SPDX-License-Identifier: Apache-2.0
 *
 * validate.h - what is refused, in which order, and in which words.
 *
 * A call is checked against the rows of its table from top to bottom; the first row with a broken
 * rule gives the status, and within the row the first broken rule is named. The message is
 *
 *     <field> = <value>: <rule>        logical_n = 300: must lie in 1 .. ring_size*kv_rows = 256
 *
 * with the field's name as in impl/mla.h, its value in decimal, and in the rule every other field
 * it depends on with its value. Nothing is written but the message, and nothing is read but the
 * arguments, the per-rank pointers when 1 <= ring_size <= 32, and, last of all, the top-k indices.
 * No arithmetic wraps, whatever the values.
 */
#ifndef MLA_IMPL_VALIDATE_H
#define MLA_IMPL_VALIDATE_H

#include "impl/mla.h"

/*
 * MLA_OK or the status of the refusal. message may be NULL or message_bytes 0; otherwise it is
 * always terminated, and empty for an accepted call. Thread-safe.
 */
int32_t mla_validate_ring(const struct mla_ring_args *args, char *message, size_t message_bytes);
int32_t mla_validate_sparse(const struct mla_sparse_args *args, char *message,
                            size_t message_bytes);

/*
 * Word what came of an accepted call. For MLA_ERR_NOMEM the message is "threads = <asked>: <reason>
 * (<used> used)", for MLA_OK it stays as it is. reason may be empty.
 */
void mla_validate_outcome(int32_t status, int64_t asked, int64_t used, const char *reason,
                          char *message, size_t message_bytes);

#endif
