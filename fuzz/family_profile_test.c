/* SPDX-License-Identifier: Apache-2.0
 *
 * family_profile_test.c - the premises of the row-energy test: signs are fair coins, and nothing
 * but signs depends on them.
 *
 * The family is compiled a second time with another stream for its coins. Whatever else changed
 * between the two would have been made from the coins.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fuzz/family.h"
#include "fuzz/tensors.h"
#include "oracle/visible.h"

#define mla_family_profile other_profile
#define MLA_STREAM_SIGN    ((enum mla_stream)77)
#include "fuzz/family_profile.c"
#undef MLA_STREAM_SIGN
#undef mla_family_profile

extern const struct mla_family mla_family_profile;

#define WIDTH   96
#define WIDTH_V 64
#define KEYS    200

static struct mla_family_view view_of(const struct mla_case *test)
{
    return (struct mla_family_view){.test = test,
                                    .width = WIDTH,
                                    .width_v = WIDTH_V,
                                    .keys_n = KEYS,
                                    .block_keys = 32,
                                    .shard_keys = 64,
                                    .scale = 0.125};
}

static bool is_negative(uint16_t bits)
{
    return (bits & 0x8000u) != 0;
}

/* Only signs differ, in half of the values; the query and the score's column do not. */
static void test_only_signs_depend_on_the_coins(void **state)
{
    struct mla_case test;
    int64_t differ = 0, values = 0;
    (void)state;
    assert_true(mla_family_profile.sign_coins);
    mla_case_init(&test, MLA_OP_RING);
    for (size_t i = 0; i < mla_family_profile.regions_n; i++) {
        test.region = (int32_t)mla_family_profile.regions[i];
        test.amount = (int64_t)(i % 9);
        test.seed = 1000 + i;
        struct mla_family_view view = view_of(&test);
        uint16_t q[WIDTH], other_q[WIDTH], k[WIDTH], other_k[WIDTH];
        mla_family_profile.query(&view, 1, 2, 3, q);
        other_profile.query(&view, 1, 2, 3, other_q);
        assert_memory_equal(q, other_q, sizeof q);
        for (int64_t j = 0; j < KEYS; j++) {
            mla_family_profile.key(&view, 1, j, k);
            other_profile.key(&view, 1, j, other_k);
            for (int64_t c = 0; c < WIDTH; c++) {
                assert_int_equal(k[c] & 0x7fff, other_k[c] & 0x7fff);
                if (q[c] != 0) /* here the score stands */
                    assert_int_equal(k[c], other_k[c]);
                if (c < WIDTH_V) {
                    assert_int_equal(q[c], 0);
                    assert_true((k[c] & 0x7fff) != 0 && (k[c] & 0x7f80) != 0x7f80);
                    differ += k[c] != other_k[c];
                    values++;
                }
            }
        }
    }
    assert_true(fabs((double)differ - 0.5 * (double)values) < 2.5 * sqrt((double)values));
}

/* Fair, and without a pattern along keys, columns, batches or seeds: five standard deviations. */
static void test_the_coins_are_fair(void **state)
{
    static uint16_t k[4][KEYS][WIDTH]; /* two batches of each of two seeds */
    struct mla_case test;
    int64_t negative = 0, column[WIDTH_V] = {0}, row[KEYS] = {0};
    int64_t next_key = 0, next_column = 0, next_batch = 0, next_seed = 0, n = KEYS * WIDTH_V;
    (void)state;
    mla_case_init(&test, MLA_OP_RING);
    test.region = MLA_REGION_FLAT;
    for (int b = 0; b < 4; b++) {
        struct mla_family_view view = view_of(&test);
        test.seed = (uint64_t)(b / 2);
        for (int64_t j = 0; j < KEYS; j++)
            mla_family_profile.key(&view, b % 2, j, k[b][j]);
    }
    for (int64_t j = 0; j < KEYS; j++)
        for (int64_t c = 0; c < WIDTH_V; c++) {
            bool sign = is_negative(k[0][j][c]);
            negative += sign;
            column[c] += sign;
            row[j] += sign;
            next_key += sign == is_negative(k[0][(j + 1) % KEYS][c]);
            next_column += sign == is_negative(k[0][j][(c + 1) % WIDTH_V]);
            next_batch += sign == is_negative(k[1][j][c]);
            next_seed += sign == is_negative(k[2][j][c]);
        }
    const int64_t counts[] = {negative, next_key, next_column, next_batch, next_seed};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        assert_true(fabs((double)counts[i] - 0.5 * (double)n) < 2.5 * sqrt((double)n));
    for (int64_t c = 0; c < WIDTH_V; c++)
        assert_true(fabs((double)column[c] - 0.5 * KEYS) < 2.5 * sqrt(KEYS));
    for (int64_t j = 0; j < KEYS; j++)
        assert_true(fabs((double)row[j] - 0.5 * WIDTH_V) < 2.5 * sqrt(WIDTH_V));
}

/* The coin of a place, as the family promises to draw it. */
static bool coin(uint64_t seed, int64_t batch, int64_t position, int64_t column)
{
    return mla_number_at(mla_stream_key(seed, MLA_STREAM_SIGN), (uint64_t)batch, (uint64_t)position,
                         (uint64_t)column) >>
           63;
}

static struct mla_tensors *make(const struct mla_case *test)
{
    struct mla_tensors *tensors = NULL;
    char error[MLA_CASE_ERROR_MAX];
    if (mla_case_problem(test, INT64_MAX, error) != NULL ||
        mla_tensors_make(test, 0, &tensors, error) != MLA_OK)
        fail_msg("%s", error);
    return tensors;
}

/* In the tensors a kernel gets: the query is 0 where values are, every visible key's signs are the
 * coins of its position, and no two value rows share a place. */
static void test_the_ring_holds_them(void **state)
{
    struct mla_case test;
    (void)state;
    mla_case_init(&test, MLA_OP_RING);
    test.family = mla_family_find("profile");
    test.region = MLA_REGION_CLUSTERS;
    test.seed = 5;
    test.ring.ring_size = 2;
    test.ring.logical_n = 60;
    test.ring.gathered_rows = 64;
    struct mla_tensors *t = make(&test);
    const struct mla_ring_args *a = &t->ring;
    int64_t seen = 0;
    for (int64_t d = 0; d < 2; d++)
        for (int64_t r = 0; r < a->kv_rows; r++) {
            int64_t position = mla_oracle_key_position(a, d, r);
            for (int64_t c = 0; c < a->head_dim_v && position < a->logical_n; c++, seen++) {
                assert_int_equal(is_negative(a->kv[d][r * a->head_dim + c]),
                                 coin(test.seed, 0, position, c));
                if (mla_oracle_query_position(a, d, r) >= 0)
                    assert_int_equal(a->q[d][r * a->head_dim + c], 0);
            }
        }
    assert_int_equal(seen, 60 * a->head_dim_v);
    mla_tensors_free(t);
}

static void test_the_sparse_cache_holds_them(void **state)
{
    struct mla_case test;
    (void)state;
    mla_case_init(&test, MLA_OP_SPARSE);
    test.family = mla_family_find("profile");
    test.region = MLA_REGION_GEOMETRIC;
    test.seed = 6;
    test.sparse.queries = 3;
    test.indices = MLA_INDICES_UNIFORM;
    struct mla_tensors *t = make(&test);
    const struct mla_sparse_args *a = &t->sparse;
    for (int64_t i = 0; i < a->queries * a->heads * a->latent; i++)
        assert_int_equal(a->q_lift[i], 0);
    for (int64_t i = 0; i < a->queries * a->topk; i++) {
        int64_t j = a->topk_indices[i];
        for (int64_t c = 0; c < a->latent; c++)
            assert_int_equal(is_negative(a->c_kv[j * a->latent + c]), coin(test.seed, 0, j, c));
    }
    mla_tensors_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_signs_depend_on_the_coins),
        cmocka_unit_test(test_the_coins_are_fair),
        cmocka_unit_test(test_the_ring_holds_them),
        cmocka_unit_test(test_the_sparse_cache_holds_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
