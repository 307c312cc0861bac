/* SPDX-License-Identifier: Apache-2.0
 *
 * store_fields.c - the tables behind store_fields.h: offsets into the public structs.
 *
 * The struct may order its members as it likes; the order here is that of the columns.
 */
#include "results/store_fields.h"

#define CASE(field)    offsetof(struct mla_store_case, field)
#define VERDICT(field) offsetof(struct mla_store_verdict, field)

static const size_t case_numbers[MLA_CASE_NUMBERS_N] = {
    CASE(heads),
    CASE(threads),
    CASE(ring_size),
    CASE(batch),
    CASE(q_rows),
    CASE(kv_rows),
    CASE(head_dim),
    CASE(head_dim_v),
    CASE(logical_n),
    CASE(kv_actual_isl),
    CASE(kv_cache_batch_idx),
    CASE(is_balanced),
    CASE(topology),
    CASE(num_links),
    CASE(q_chunk_size),
    CASE(k_chunk_size),
    CASE(queries),
    CASE(keys),
    CASE(rope),
    CASE(topk),
    CASE(topk_tiled),
    CASE(dense),
    CASE(q_pos_offset),
    CASE(out_order),
    CASE(cores),
    CASE(sign_coins),
};

static const size_t case_texts[MLA_CASE_TEXTS_N] = {CASE(line), CASE(op), CASE(family),
                                                    CASE(region)};

static const size_t verdict_texts[MLA_VERDICT_TEXTS_N] = {
    VERDICT(kernel), VERDICT(verdict), VERDICT(relation), VERDICT(reason), VERDICT(element),
    VERDICT(got),    VERDICT(lo),      VERDICT(hi),       VERDICT(repro),
};

int64_t *mla_case_number(struct mla_store_case *testcase, int index)
{
    return (int64_t *)(void *)((char *)testcase + case_numbers[index]);
}

int64_t mla_case_number_of(const struct mla_store_case *testcase, int index)
{
    return *(const int64_t *)(const void *)((const char *)testcase + case_numbers[index]);
}

const char **mla_case_text(struct mla_store_case *testcase, int index)
{
    return (const char **)(void *)((char *)testcase + case_texts[index]);
}

const char *mla_case_text_of(const struct mla_store_case *testcase, int index)
{
    return *(const char *const *)(const void *)((const char *)testcase + case_texts[index]);
}

const char **mla_verdict_text(struct mla_store_verdict *verdict, int index)
{
    return (const char **)(void *)((char *)verdict + verdict_texts[index]);
}

const char *mla_verdict_text_of(const struct mla_store_verdict *verdict, int index)
{
    return *(const char *const *)(const void *)((const char *)verdict + verdict_texts[index]);
}
