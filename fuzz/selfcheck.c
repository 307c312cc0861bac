/* SPDX-License-Identifier: Apache-2.0
 *
 * selfcheck.c - cases for adversaries, and one evaluation of the truth against the other.
 *
 * An adversary chooses every rounding of every row, judged or not, which costs some ten times what a
 * kernel's own arithmetic does. So shapes are as small as the operations allow: what is hard about a
 * row is in its data and in its number of keys.
 */
#include "fuzz/selfcheck.h"

#include "fuzz/family.h"
#include "fuzz/judge_internal.h"

/* The least shape of each operation, with so many keys at most. */
static void small_ring(struct mla_case *test, int64_t ring_size, int64_t q_rows, int64_t kv_rows)
{
    struct mla_ring_args *r = &test->ring;
    r->ring_size = ring_size;
    r->heads = 1;
    r->q_rows = q_rows;
    r->kv_rows = kv_rows;
    r->q_chunk_size = 32;
    if (r->head_dim > 96) {
        r->head_dim = 96;
        r->head_dim_v = 32;
    }
}

static void shrink_ring(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_ring_args *r = &test->ring;
    int64_t slabs = r->kv_rows / r->q_rows, size = 1 + mla_rng_below(rng, 3);
    int64_t rows = r->is_balanced ? 64 : 32;
    int64_t part = r->logical_n * 64 / (r->ring_size * r->kv_rows); /* of 64: keep the proportion */
    small_ring(test, size < r->ring_size ? size : r->ring_size, rows,
               rows * (slabs < 3 ? slabs : 3));
    r->logical_n = r->ring_size * r->kv_rows * (part < 1 ? 1 : part) / 64;
    r->kv_actual_isl = r->kv_actual_isl % (r->ring_size * r->kv_rows);
}

static void shrink_sparse(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_sparse_args *s = &test->sparse;
    s->queries = 1;
    s->heads = 16;
    s->topk = 128;
    s->dense = mla_rng_chance(rng, 3, 4); /* lists have 128 entries at least */
    s->keys = 1 + s->keys % (s->dense ? 40 : 200);
    if (s->dense)
        s->q_pos_offset = s->has_q_pos_offset ? s->keys - 1 : 0;
    if (s->dense && !s->has_q_pos_offset) { /* row 0 would see one key */
        s->has_q_pos_offset = 1;
        s->q_pos_offset = s->keys;
    }
}

/*
 * So many keys: ring, for the last of 32 rows, which are the end of a sequence in one shard (or, up to
 * 32 keys, all of it); sparse, for the only row. Legal as it stands; mla_case_fix would cut it.
 */
static void set_keys(struct mla_case *test, int64_t keys_n)
{
    struct mla_ring_args *r = &test->ring;
    struct mla_sparse_args *s = &test->sparse;
    s->dense = s->has_q_pos_offset = 1;
    s->keys = s->q_pos_offset = keys_n;
    r->is_balanced = r->has_prior = r->has_slot = 0;
    r->kv_actual_isl = r->kv_cache_batch_idx = 0;
    r->batch = r->kv_batch = r->gathered_batch = 1;
    small_ring(test, 1, 32, (keys_n + 31) / 32 * 32);
    r->head_dim = 64;
    r->head_dim_v = 32;
    r->gathered_rows = r->kv_rows;
    r->logical_n = keys_n;
    test->rows = 4;
}

/* Any region of the families in which arithmetic is at its ends. */
static void draw_extreme(struct mla_case *test, struct mla_rng *rng)
{
    size_t families_n;
    test->family = mla_family_find(mla_rng_chance(rng, 1, 2) ? "extreme" : "special");
    const struct mla_family *family = mla_families(&families_n)[test->family];
    test->region = (int32_t)family->regions[mla_rng_below(rng, (int64_t)family->regions_n)];
    test->amount = mla_rng_below(rng, family->amount_max + 1);
}

void mla_selfcheck_draw(struct mla_case *test, enum mla_op op, struct mla_rng *rng)
{
    mla_case_draw(test, op, rng);
    shrink_ring(test, rng);
    shrink_sparse(test, rng);
    int64_t kind = mla_rng_below(rng, 256);
    if (kind >= 128 || kind == 0)
        draw_extreme(test, rng);
    test->has_future = 0;
    mla_case_fix(test);
    if (kind == 0) { /* 2^-amount over many tiny values */
        test->family = mla_family_find("extreme");
        test->region = MLA_REGION_TINY;
        set_keys(test, op == MLA_OP_RING ? 2048 : 512);
    } else if (kind == 3) { /* equal weights of many keys, signs by coins: the row-energy test's */
        test->family = mla_family_find("profile");
        test->region = MLA_REGION_FLAT;
        test->amount = 0;
        set_keys(test, 512);
    } else if (kind % 8 == 1) {
        set_keys(test, 1 + mla_rng_below(rng, 3));
    } else if (kind % 16 == 2) {
        set_keys(test,
                 op == MLA_OP_RING ? 64 + mla_rng_below(rng, 256) : 40 + mla_rng_below(rng, 60));
    }
}

int32_t mla_selfcheck_compare(struct mla_subject *subject, int64_t rows_n, double *worst,
                              int64_t *rows)
{
    int32_t status = mla_rows_truths(subject, 1, false);
    *worst = 0;
    *rows = 0;
    for (int64_t i = 0; i < rows_n && i < subject->rows_n && status == MLA_OK; i++) {
        struct mla_truth *plain;
        status = mla_rows_truth(subject->tensors, subject->rows[i], true, &plain);
        if (status != MLA_OK)
            break;
        double ratio = mla_truth_disagreement(subject->truths[i], plain);
        *worst = !(ratio <= *worst) ? ratio : *worst;
        ++*rows;
        mla_truth_free(plain);
    }
    return status;
}
