/* SPDX-License-Identifier: Apache-2.0
 *
 * guidance_test.c - every group of counters moves when its subject does, and only then.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/case_fields.h"
#include "fuzz/family.h"
#include "fuzz/guidance.h"
#include "fuzz/guidance_internal.h"

struct notes {
    uint8_t counters[MLA_GUIDANCE_COUNTERS];
};

static const struct mla_verdict nothing = {.kind = MLA_VERDICT_PASS,
                                           .relation = "",
                                           .max_value_ratio = -1,
                                           .max_stats_ratio = -1,
                                           .max_energy = -1};

static struct notes note(const struct mla_case *test, const struct mla_verdict *verdict)
{
    static struct notes notes;
    memset(&notes, 0, sizeof notes);
    mla_guidance_note(test, verdict, notes.counters);
    return notes;
}

static struct mla_guidance_group group_of(const char *name)
{
    struct mla_guidance_group group;
    for (size_t i = 0; mla_guidance_group(i, &group); i++)
        if (strcmp(group.name, name) == 0)
            return group;
    fail_msg("no group %s", name);
    return group;
}

/* Counters set in a group. */
static int64_t set_in(const struct notes *notes, const char *name)
{
    struct mla_guidance_group group = group_of(name);
    int64_t n = 0;
    for (int64_t i = group.first; i < group.first + group.n; i++)
        n += notes->counters[i];
    return n;
}

/* The one counter that is set in a group, from its beginning. */
static int64_t one_in(const struct notes *notes, const char *name)
{
    struct mla_guidance_group group = group_of(name);
    assert_int_equal(set_in(notes, name), 1);
    for (int64_t i = group.first; i < group.first + group.n; i++)
        if (notes->counters[i] != 0)
            return i - group.first;
    return -1;
}

static struct mla_case ring(void)
{
    struct mla_case test;
    mla_case_init(&test, MLA_OP_RING);
    test.ring.ring_size = 4;
    test.ring.q_rows = test.ring.kv_rows = 64;
    test.ring.gathered_rows = 256;
    test.ring.logical_n = 256;
    test.ring.k_chunk_size = 32;
    return test;
}

static struct mla_case sparse(void)
{
    struct mla_case test;
    mla_case_init(&test, MLA_OP_SPARSE);
    test.sparse.keys = 300;
    test.sparse.topk = 256;
    return test;
}

/* The layout: groups one behind the other, from 0, inside the array. */
static void test_groups_do_not_overlap(void **state)
{
    static const char *const names[] = {"shape-errors", "data-errors",  "ring-cells",
                                        "ring-steps",   "sparse-cells", "sparse-data"};
    struct mla_guidance_group group;
    int64_t end = 0;
    size_t i = 0;
    (void)state;
    for (; mla_guidance_group(i, &group); i++) {
        assert_int_equal(group.first, end);
        assert_true(group.n > 0);
        assert_string_equal(group.name, names[i]);
        assert_int_equal(group.errors, i < 2);
        end += group.n;
    }
    assert_int_equal(i, sizeof names / sizeof names[0]);
    assert_true(end <= MLA_GUIDANCE_COUNTERS);
    assert_int_equal(MLA_GUIDANCE_COUNTERS % 64, 0);
}

static void test_cells(void **state)
{
    uint8_t counters[12] = {0};
    struct mla_guidance_cell cell = {0, 1}, small = {0, 1};
    (void)state;
    mla_guidance_digit(&cell, 2, 3);
    mla_guidance_digit(&cell, 99, 4); /* kept in its extent */
    mla_guidance_set((struct mla_guidance_slot){counters, 12}, cell);
    assert_int_equal(counters[11], 1);
    memset(counters, 0, sizeof counters);
    mla_guidance_digit(&small, -5, 3);
    assert_int_equal(small.index, 0);
    mla_guidance_set((struct mla_guidance_slot){counters, 12}, small); /* extents do not fit */
    for (int i = 0; i < 12; i++)
        assert_int_equal(counters[i], 0);
}

static void test_buckets(void **state)
{
    double ratios[] = {0, 0x1p-12, 0x1p-3, 0.3, 0.5, 0.9, 1, 3, 1e9, INFINITY};
    (void)state;
    for (size_t i = 1; i < sizeof ratios / sizeof ratios[0]; i++)
        assert_true(mla_guidance_bucket(ratios[i]) > mla_guidance_bucket(ratios[i - 1]));
    assert_int_equal(mla_guidance_bucket(0), 0);
    assert_int_equal(mla_guidance_bucket(0.45), mla_guidance_bucket(0.49));
    assert_int_equal(mla_guidance_bucket(INFINITY), MLA_GUIDANCE_BUCKETS - 1);
    assert_int_equal(mla_guidance_bucket((double)NAN), MLA_GUIDANCE_BUCKETS - 1);
}

/* Worse numbers of each stage move the two groups of errors, by that stage's counters, and no other. */
static void test_errors(void **state)
{
    struct mla_case test = ring();
    struct notes quiet = note(&test, &nothing);
    static const char *const groups[] = {"shape-errors", "data-errors"};
    (void)state;
    for (int g = 0; g < 2; g++) {
        int64_t third = group_of(groups[g]).n / 3, before = -1;
        assert_int_equal(set_in(&quiet, groups[g]), 0);
        for (int stage = 0; stage < 3; stage++) {
            struct mla_verdict verdict = nothing;
            double *ratio = stage == 0   ? &verdict.max_value_ratio
                            : stage == 1 ? &verdict.max_stats_ratio
                                         : &verdict.max_energy;
            *ratio = 0.1;
            struct notes low = note(&test, &verdict);
            *ratio = 0.9;
            struct notes high = note(&test, &verdict);
            assert_int_equal(one_in(&low, groups[g]) / third, stage);
            assert_int_equal(one_in(&high, groups[g]) - one_in(&low, groups[g]),
                             mla_guidance_bucket(0.9) - mla_guidance_bucket(0.1));
            assert_int_not_equal(one_in(&low, groups[g]), before);
            before = one_in(&low, groups[g]);
            assert_int_equal(one_in(&low, "ring-cells"), one_in(&high, "ring-cells"));
        }
    }
}

/* Equal numbers in another class are another counter. */
static void test_error_classes(void **state)
{
    struct mla_verdict verdict = nothing;
    struct mla_case a = ring(), b = ring();
    (void)state;
    verdict.max_value_ratio = 0.5;
    struct notes first = note(&a, &verdict);
    b.ring.is_balanced = 1;
    struct notes other = note(&b, &verdict);
    assert_int_not_equal(one_in(&first, "shape-errors"), one_in(&other, "shape-errors"));
    assert_int_equal(one_in(&first, "data-errors"), one_in(&other, "data-errors"));
    b = a;
    b.ring.k_chunk_size = 64; /* one block instead of two */
    other = note(&b, &verdict);
    assert_int_not_equal(one_in(&first, "shape-errors"), one_in(&other, "shape-errors"));
    b = a;
    b.ring.threads = 7; /* nothing a class asks for */
    b.seed++;
    other = note(&b, &verdict);
    assert_memory_equal(&first, &other, sizeof first);
    b = a;
    b.family = mla_family_find("profile");
    b.region = MLA_REGION_DEEP;
    other = note(&b, &verdict);
    assert_int_equal(one_in(&first, "shape-errors"), one_in(&other, "shape-errors"));
    assert_int_not_equal(one_in(&first, "data-errors"), one_in(&other, "data-errors"));
    struct mla_case c = sparse();
    struct notes third = note(&c, &verdict);
    assert_int_not_equal(one_in(&first, "shape-errors"), one_in(&third, "shape-errors"));
    assert_int_not_equal(one_in(&first, "data-errors"), one_in(&third, "data-errors"));
}

/* Every (family, region) has a number of its own, below the extent. */
static void test_pairs(void **state)
{
    uint8_t seen[MLA_GUIDANCE_PAIRS] = {0};
    size_t families_n;
    const struct mla_family *const *families = mla_families(&families_n);
    struct mla_case test = ring();
    (void)state;
    for (size_t f = 0; f < families_n; f++)
        for (size_t i = 0; i < families[f]->regions_n; i++) {
            test.family = (int32_t)f;
            test.region = (int32_t)families[f]->regions[i];
            int64_t pair = mla_guidance_pair(&test);
            assert_in_range(pair, 0, MLA_GUIDANCE_PAIRS - 1);
            assert_int_equal(seen[pair]++, 0);
        }
}

/* Lengths, and which ranks are left without a key, are cells of their own. */
static void test_ring_cells(void **state)
{
    static const int64_t lengths[] = {256, 225, 255, 250, /* modulo the tile */
                                      192, 128, 64};      /* the last, several last, all but one */
    uint8_t seen[MLA_GUIDANCE_RING_CELLS] = {0};
    struct mla_case test = ring();
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        test.ring.logical_n = lengths[i];
        struct notes notes = note(&test, &nothing);
        assert_int_equal(seen[one_in(&notes, "ring-cells")]++, 0);
        assert_int_equal(set_in(&notes, "sparse-cells") + set_in(&notes, "sparse-data"), 0);
    }
    test = ring();
    struct notes same = note(&test, &nothing);
    test.ring.logical_n = 224;
    struct notes shorter = note(&test, &nothing);
    assert_int_equal(one_in(&same, "ring-cells"), one_in(&shorter, "ring-cells"));
}

/* A ring of one rank takes one step: its own, with a frontier through it. */
static void test_ring_steps(void **state)
{
    struct mla_case one = ring(), four = ring();
    (void)state;
    one.ring.ring_size = 1;
    one.ring.logical_n = one.ring.gathered_rows = 64;
    struct notes first = note(&one, &nothing);
    assert_int_equal(set_in(&first, "ring-steps"), 1);

    /* Four ranks: own diagonal; on the way and at the last hop both the past and the future. */
    struct notes more = note(&four, &nothing);
    assert_int_equal(set_in(&more, "ring-steps"), 5);

    four.ring.logical_n =
        250; /* a short last chunk in rank 3: its own step, and where others see it */
    struct notes cut = note(&four, &nothing);
    assert_true(set_in(&cut, "ring-steps") > 5);

    four = ring();
    four.ring.is_balanced = 1; /* two pieces everywhere */
    struct notes balanced = note(&four, &nothing);
    struct mla_guidance_group group = group_of("ring-steps");
    for (int64_t i = group.first; i < group.first + group.n; i++)
        assert_true((balanced.counters[i] & more.counters[i]) == 0);

    four.ring.k_chunk_size = 64; /* a chunk holds keys of both halves */
    struct notes straddling = note(&four, &nothing);
    assert_memory_not_equal(&balanced, &straddling, sizeof balanced);
}

/* A rotated chunk whose first token is not at its rank's first row splits that rank's queries. */
static void test_rotation(void **state)
{
    struct mla_case test = ring();
    (void)state;
    test.ring.kv_rows = 128;
    test.ring.gathered_rows = 512;
    test.ring.has_prior = 1;
    test.ring.kv_actual_isl = 64;
    test.ring.logical_n = 320;
    struct notes aligned = note(&test, &nothing);
    test.ring.kv_actual_isl = 96;
    test.ring.logical_n = 352;
    struct notes split = note(&test, &nothing);
    assert_memory_not_equal(&aligned, &split, sizeof aligned);
    /* The query digit is the last one: split queries are the odd counters. */
    struct mla_guidance_group group = group_of("ring-steps");
    int64_t odd[2] = {0, 0};
    for (int64_t i = 1; i < group.n; i += 2) {
        odd[0] += aligned.counters[group.first + i];
        odd[1] += split.counters[group.first + i];
    }
    assert_int_equal(odd[0], 0);
    assert_true(odd[1] > 0);
}

static void test_sparse_cells(void **state)
{
    struct mla_case base = sparse(), test = base;
    struct notes first = note(&base, &nothing);
    (void)state;
    assert_int_equal(set_in(&first, "ring-cells") + set_in(&first, "ring-steps"), 0);
#define MOVES(group, change)                                                                       \
    do {                                                                                           \
        test = base;                                                                               \
        change;                                                                                    \
        struct notes other = note(&test, &nothing);                                                \
        assert_int_not_equal(one_in(&first, group), one_in(&other, group));                        \
    } while (0)
    MOVES("sparse-cells", test.sparse.topk = 128);
    MOVES("sparse-cells", test.sparse.topk = 1024);
    MOVES("sparse-cells", test.sparse.dense = 1);
    MOVES("sparse-cells", test.sparse.topk_tiled = !base.sparse.topk_tiled);
    MOVES("sparse-cells", test.sparse.out_order = !base.sparse.out_order);
    MOVES("sparse-cells", test.indices = MLA_INDICES_ODD_ONE);
    MOVES("sparse-cells", (test.sparse.has_q_pos_offset = 1, test.sparse.q_pos_offset = 0));
    MOVES("sparse-cells", (test.sparse.has_q_pos_offset = 1, test.sparse.q_pos_offset = 150));
    MOVES("sparse-cells", (test.sparse.has_q_pos_offset = 1, test.sparse.q_pos_offset = 299));
    MOVES("sparse-data", test.sparse.keys = 1);
    MOVES("sparse-data", test.sparse.keys = 255);
    MOVES("sparse-data", test.sparse.keys = 256);
    MOVES("sparse-data", test.sparse.keys = 65537);
    MOVES("sparse-data", test.region = MLA_REGION_RAMP);
#undef MOVES
}

/* A case that breaks a rule has no numbers, whatever its fields. */
static void test_refusals_show_nothing(void **state)
{
    struct mla_case test = ring();
    struct mla_verdict verdict = nothing;
    static const struct notes none;
    (void)state;
    verdict.max_value_ratio = 0.5;
    test.set_n = 1;
    struct notes notes = note(&test, &verdict);
    assert_memory_equal(&notes, &none, sizeof none);
}

/* Drawn cases: no group's digits outgrow it unseen (it would set nothing), and the same each time. */
static void test_draws_move_every_group(void **state)
{
    static struct notes all;
    struct mla_guidance_group group;
    (void)state;
    for (uint64_t i = 0; i < 600; i++) {
        struct mla_case test;
        struct mla_rng rng = {mla_number_mix(i), 0};
        struct mla_verdict verdict = nothing;
        verdict.max_value_ratio = verdict.max_stats_ratio = verdict.max_energy = 0.5;
        mla_case_draw(&test, (enum mla_op)(i % 2), &rng);
        struct notes once = note(&test, &verdict), twice = note(&test, &verdict);
        assert_memory_equal(&once, &twice, sizeof once);
        assert_int_equal(set_in(&once, "shape-errors"), 3);
        assert_int_equal(set_in(&once, "data-errors"), 3);
        bool is_ring = test.op == MLA_OP_RING;
        assert_int_equal(set_in(&once, "ring-cells"), is_ring);
        assert_int_equal(set_in(&once, "ring-steps") > 0, is_ring);
        assert_int_equal(set_in(&once, "sparse-cells"), !is_ring);
        assert_int_equal(set_in(&once, "sparse-data"), !is_ring);
        for (size_t k = 0; k < MLA_GUIDANCE_COUNTERS; k++)
            all.counters[k] |= once.counters[k];
    }
    for (size_t i = 0; mla_guidance_group(i, &group); i++)
        assert_true(set_in(&all, group.name) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_do_not_overlap),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_error_classes),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_ring_cells),
        cmocka_unit_test(test_ring_steps),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_sparse_cells),
        cmocka_unit_test(test_refusals_show_nothing),
        cmocka_unit_test(test_draws_move_every_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
