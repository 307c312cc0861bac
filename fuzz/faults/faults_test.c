/* SPDX-License-Identifier: Apache-2.0
 *
 * faults_test.c - the plain kernels are right, every fault is really there, the tables are in
 * order.
 *
 * Right: against the naive reference in double on every layout. There: on hand-made calls each
 * fault changes exactly the rows that its description says, and no others.
 */
#include "fuzz/call.h"
#include "fuzz/faults/bf16.h"
#include "fuzz/faults/faults.h"
#include "fuzz/faults/naive.h"
#include "fuzz/faults/plain.h"
#include "fuzz/faults/tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- tables -----------------------------------------------------------------------------------*/

static bool name_is_well_formed(const char *name)
{
    return name[0] != '\0' && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(name);
}

static void check_row(const struct mla_fault *fault)
{
    const struct mla_kernel *kernel = fault->kernel;
    assert_non_null(kernel);
    assert_string_equal(fault->name, kernel->name);
    assert_true(name_is_well_formed(fault->name));
    assert_int_equal(kernel->abi, MLA_KERNEL_ABI);
    assert_int_equal(kernel->struct_size, sizeof(struct mla_kernel));
    assert_int_equal(kernel->promises, MLA_PLAIN_PROMISES);
    assert_int_equal(kernel->ring != NULL, (fault->operations & MLA_FAULT_ON_RING) != 0);
    assert_int_equal(kernel->sparse != NULL, (fault->operations & MLA_FAULT_ON_SPARSE) != 0);
    assert_true(fault->operations == 1 || fault->operations == 2 || fault->operations == 3);
    assert_true(strlen(fault->what) > 10 && fault->what[strlen(fault->what) - 1] == '.');
    if (kernel->ring) {
        assert_true(kernel->ring_model.add_u > 0.0);
    }
    if (kernel->sparse) {
        assert_true(kernel->sparse_model.add_u > 0.0);
    }
}

static void test_tables_are_well_formed(void **state)
{
    (void)state;
    const struct mla_fault *tables[3];
    size_t n[3];
    tables[0] = mla_faults(&n[0]);
    tables[1] = mla_fault_controls(&n[1]);
    tables[2] = mla_fault_canaries(&n[2]);
    assert_true(n[0] >= 6);
    assert_true(n[1] >= 2);
    assert_true(n[2] >= 1);
    const char *names[512] = {0};
    size_t names_n = 0;
    for (size_t t = 0; t < 3; t++) {
        uint32_t covered = 0;
        for (size_t i = 0; i < n[t]; i++) {
            check_row(&tables[t][i]);
            assert_int_equal(tables[t][i].class[0] != '\0', t == 0);
            covered |= tables[t][i].operations;
            for (size_t k = 0; k < names_n; k++) {
                assert_string_not_equal(names[k], tables[t][i].name);
            }
            assert_true(names_n < 512);
            names[names_n++] = tables[t][i].name;
        }
        assert_int_equal(covered, MLA_FAULT_ON_RING | MLA_FAULT_ON_SPARSE);
    }
}

/* Field `at` of a line of reports.csv into text; the first four fields are never quoted. */
static void csv_field(const char *line, int at, char *text, size_t text_bytes)
{
    for (; at > 0; at--) {
        line = strchr(line, ',');
        assert_non_null(line);
        line++;
    }
    size_t length = strcspn(line, ",\r\n");
    assert_true(length < text_bytes);
    memcpy(text, line, length);
    text[length] = '\0';
}

/* The class of a report in reports.csv, "" if there is no such report. */
static void class_of_report(const char *id, char *class, size_t class_bytes)
{
    FILE *file = fopen(MLA_FAULTS_REPORTS, "r");
    assert_non_null(file);
    char line[4096];
    char field[64];
    class[0] = '\0';
    while (fgets(line, sizeof line, file)) {
        csv_field(line, 0, field, sizeof field);
        if (strcmp(field, id) == 0) {
            csv_field(line, 3, class, class_bytes);
        }
    }
    fclose(file);
}

static void test_reports_exist_in_the_class(void **state)
{
    (void)state;
    char class[64];
    class_of_report("B0", class, sizeof class);
    assert_string_equal(class, "");
    size_t n = 0;
    const struct mla_fault *faults = mla_faults(&n);
    for (size_t i = 0; i < n; i++) {
        char ids[64];
        assert_true(strlen(faults[i].reports) < sizeof ids);
        snprintf(ids, sizeof ids, "%s", faults[i].reports);
        for (char *rest = ids, *id = strtok_r(ids, " ", &rest); id;
             id = strtok_r(NULL, " ", &rest)) {
            class_of_report(id, class, sizeof class);
            assert_string_equal(class, faults[i].class);
        }
    }
}

/* ---- right ------------------------------------------------------------------------------------*/

/*
 * Values are at most 2. float32 sums: far below 2e-5. bf16 probabilities: 2^-8 of each term, 2 * 2^-8.
 * bf16 accumulators: 2^-8 of each of the two for every tile, of which there are at most 12:
 * 2 * 2 * 12 * 2^-8.
 */
static double slack_of(const struct mla_kernel *kernel)
{
    if (kernel->ring_model.acc_u > 0.0) {
        return 48 * 0x1p-8;
    }
    return kernel->ring_model.p_u > 0.0 ? 0x1p-7 : 2e-5;
}

/* Can statistics be compared with the true maximum and log-sum-exp to four digits? */
static bool has_fine_stats(const struct mla_kernel *kernel)
{
    const struct mla_model *model = &kernel->ring_model;
    bool sums_bf16 = model->acc_u > 0.0 || (model->p_u > 0.0 && model->sum_rounded);
    return !sums_bf16 && model->stats_max != MLA_STATS_OTHER;
}

static void run_ring(const struct mla_kernel *kernel, struct mla_tiny_ring *tiny)
{
    char message[64] = "unset";
    mla_tiny_ring_clear(tiny);
    int32_t status = kernel->ring(&tiny->args, message, sizeof message);
    assert_int_equal(status, MLA_OK);
    assert_string_equal(message, "");
}

static void run_sparse(const struct mla_kernel *kernel, struct mla_tiny_sparse *tiny)
{
    mla_tiny_sparse_clear(tiny);
    int32_t status = kernel->sparse(&tiny->args, NULL, 0);
    assert_int_equal(status, MLA_OK);
}

static void test_controls_are_right_on_the_ring(void **state)
{
    (void)state;
    size_t shapes_n = 0;
    size_t controls_n = 0;
    const struct mla_tiny_ring_shape *shapes = mla_tiny_ring_shapes(&shapes_n);
    const struct mla_fault *controls = mla_fault_controls(&controls_n);
    for (size_t i = 0; i < shapes_n * controls_n; i++) {
        const struct mla_kernel *kernel = controls[i % controls_n].kernel;
        struct mla_tiny_ring *tiny = mla_tiny_ring_new(&shapes[i / controls_n].args);
        run_ring(kernel, tiny);
        if (mla_tiny_ring_wrong(tiny, slack_of(kernel), has_fine_stats(kernel)) != 0) {
            fail_msg("%s on %s", kernel->name, shapes[i / controls_n].name);
        }
        assert_true(mla_tiny_ring_scratch_allowed(tiny));
        mla_tiny_ring_free(tiny);
    }
}

static void test_controls_are_right_on_sparse(void **state)
{
    (void)state;
    size_t shapes_n = 0;
    size_t controls_n = 0;
    const struct mla_tiny_sparse_shape *shapes = mla_tiny_sparse_shapes(&shapes_n);
    const struct mla_fault *controls = mla_fault_controls(&controls_n);
    for (size_t i = 0; i < shapes_n * controls_n; i++) {
        const struct mla_kernel *kernel = controls[i % controls_n].kernel;
        struct mla_sparse_args shape = shapes[i / controls_n].args;
        if (i % controls_n > 0 && shape.queries > 2) {
            shape.queries = 2; /* who sees what is the same code: the first control is enough */
        }
        struct mla_tiny_sparse *tiny = mla_tiny_sparse_new(&shape);
        run_sparse(kernel, tiny);
        if (mla_tiny_sparse_wrong(tiny, slack_of(kernel), has_fine_stats(kernel), 43) != 0) {
            fail_msg("%s on %s", kernel->name, shapes[i / controls_n].name);
        }
        mla_tiny_sparse_free(tiny);
    }
}

/* Worked by hand, in tiles of 32: ring size, q_rows, prior, length, rank, then its query tiles. */
static void test_positions_match_worked_examples(void **state)
{
    (void)state;
    static const int64_t examples[][9] = {
        {2, 4, 6, 13, 0, 8, 9, 10, 11}, {2, 4, 6, 13, 1, 6, 7, 12, -1},
        {2, 4, 6, 14, 1, 6, 7, 12, 13}, {4, 2, 5, 11, 1, 10, -1, 0, 0},
        {4, 2, 5, 11, 2, 5, -1, 0, 0},  {4, 2, 5, 13, 2, 5, 12, 0, 0},
        {4, 2, 3, 5, 0, -1, -1, 0, 0},  {4, 2, 15, 17, 0, 16, -1, 0, 0},
        {4, 2, 15, 17, 3, 15, -1, 0, 0}};
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const int64_t *e = examples[i];
        struct mla_ring_args args = {.ring_size = e[0],
                                     .q_rows = e[1] * 32,
                                     .kv_rows = e[1] * 96,
                                     .has_prior = 1,
                                     .kv_actual_isl = e[2] * 32,
                                     .logical_n = e[3] * 32};
        for (int64_t tile = 0; tile < e[1]; tile++) {
            int64_t expected = e[5 + tile] < 0 ? -1 : e[5 + tile] * 32 + 7;
            int64_t got = mla_naive_query_position(&args, e[4], tile * 32 + 7);
            assert_int_equal(got, expected);
        }
    }
    struct mla_ring_args zigzag = {
        .ring_size = 4, .q_rows = 64, .kv_rows = 64, .is_balanced = 1, .logical_n = 256};
    assert_int_equal(mla_naive_query_position(&zigzag, 1, 31), 63);
    assert_int_equal(mla_naive_query_position(&zigzag, 1, 32), 6 * 32);
    assert_int_equal(mla_naive_query_position(&zigzag, 0, 63), 255);
}

static void test_future_nan_reaches_only_rows_that_see_it(void **state)
{
    (void)state;
    size_t n = 0;
    struct mla_tiny_ring *tiny = mla_tiny_ring_new(&mla_tiny_ring_shapes(&n)[0].args);
    for (int64_t c = 0; c < 64; c++) {
        tiny->kv[0][50 * 64 + c] = 0x7fc0; /* contiguous: position 50 */
    }
    run_ring(mla_fault_controls(&n)[0].kernel, tiny);
    for (int64_t i = 0; i < 2 * 64 * 32; i++) {
        int64_t position = i / 32 % 64;
        assert_int_equal(isnan(mla_naive_bf16(tiny->out[0][i])) != 0, position >= 50);
        assert_true(isnan(mla_naive_bf16(tiny->out[1][i])));
    }
    mla_tiny_ring_free(tiny);
}

static void test_index_layout_does_not_change_bits(void **state)
{
    (void)state;
    size_t n = 0;
    struct mla_sparse_args shape = mla_tiny_sparse_shapes(&n)[0].args;
    struct mla_tiny_sparse *flat = mla_tiny_sparse_new(&shape);
    shape.topk_tiled = 1;
    struct mla_tiny_sparse *tiled = mla_tiny_sparse_new(&shape);
    run_sparse(mla_fault_controls(&n)[0].kernel, flat);
    run_sparse(mla_fault_controls(&n)[0].kernel, tiled);
    assert_memory_equal(flat->out, tiled->out, flat->out_n * sizeof *flat->out);
    assert_memory_equal(flat->stats, tiled->stats, flat->stats_n * sizeof *flat->stats);
    mla_tiny_sparse_free(tiled);
    mla_tiny_sparse_free(flat);
}

static void test_visit_order_matches_worked_examples(void **state)
{
    (void)state;
    static const struct {
        int64_t ring_size;
        int32_t topology;
        int64_t rank;
        int64_t order[8];
    } cases[] = {
        {1, MLA_TOPOLOGY_RING, 0, {0}},
        {2, MLA_TOPOLOGY_RING, 1, {1, 0}},
        {4, MLA_TOPOLOGY_RING, 0, {0, 1, 3, 2}},
        {4, MLA_TOPOLOGY_RING, 3, {3, 0, 2, 1}},
        {5, MLA_TOPOLOGY_RING, 2, {2, 3, 1, 4, 0}},
        {8, MLA_TOPOLOGY_RING, 0, {0, 1, 7, 2, 6, 3, 5, 4}},
        {4, MLA_TOPOLOGY_LINEAR, 0, {0, 1, 2, 3}},
        {4, MLA_TOPOLOGY_LINEAR, 1, {1, 2, 0, 3}},
        {4, MLA_TOPOLOGY_LINEAR, 2, {2, 3, 1, 0}},
        {4, MLA_TOPOLOGY_LINEAR, 3, {3, 2, 1, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t order[8] = {0};
        mla_plain_visit_order(cases[i].ring_size, cases[i].topology, cases[i].rank, order);
        assert_memory_equal(order, cases[i].order, sizeof order);
    }
}

static void test_bf16_rounding(void **state)
{
    (void)state;
    static const struct {
        float value;
        uint16_t bits;
    } cases[] = {
        {0.0f, 0x0000},
        {-0.0f, 0x8000},
        {1.0f, 0x3f80},
        {0x1.01p0f, 0x3f80},
        {0x1.03p0f, 0x3f82},
        {0x1.010002p0f, 0x3f81},
        {-0x1.03p0f, 0xbf82},
        {0x1.ffp0f, 0x4000},
        {0x1p-133f, 0x0001},
        {0x1p-134f, 0x0000},
        {0x1.8p-133f, 0x0002},
        {0x1.fep127f, 0x7f7f},
        {0x1.fefffep127f, 0x7f7f},
        {0x1.ffp127f, 0x7f80},
        {-INFINITY, 0xff80},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(mla_plain_bf16_bits(cases[i].value), cases[i].bits);
    }
    uint32_t low_nan = 0x7f800001u; /* its upper half alone would read as infinity */
    float nan = 0.0f;
    memcpy(&nan, &low_nan, sizeof nan);
    assert_int_equal(mla_plain_bf16_bits(nan) & 0x7fc0, 0x7fc0);
}

/* One key: the output is its value, bit for bit. */
static void test_one_key_is_copied(void **state)
{
    (void)state;
    size_t controls_n = 0;
    const struct mla_fault *controls = mla_fault_controls(&controls_n);
    for (size_t i = 0; i < controls_n; i++) {
        struct mla_tiny_ring *tiny = mla_tiny_ring_one_key();
        run_ring(controls[i].kernel, tiny);
        assert_true(mla_tiny_ring_is_copy(tiny));
        mla_tiny_ring_free(tiny);
    }
}

/* ---- wrong ------------------------------------------------------------------------------------*/

static const struct mla_kernel *fault_named(const char *name)
{
    size_t n = 0;
    const struct mla_fault *faults = mla_faults(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(faults[i].name, name) == 0) {
            return faults[i].kernel;
        }
    }
    fail_msg("no fault %s", name);
    return NULL;
}

enum rows_hit {
    HIT_NONE,
    HIT_ALL,
    HIT_FROM_END,         /* rows that see the last key */
    HIT_AFTER_END,        /* rows at or beyond logical_n */
    HIT_BEFORE_LAST,      /* rows with a valid key right after them */
    HIT_BEFORE_END,       /* rows whose own key is valid */
    HIT_AFTER_FIRST,      /* rows that see more than one key */
    HIT_SOME_AFTER_TILE_0 /* none of the rows that see one tile, some of the others */
};

static bool is_hit(enum rows_hit hit, int64_t position, int64_t logical_n)
{
    switch (hit) {
    case HIT_NONE:
        return false;
    case HIT_ALL:
        return true;
    case HIT_FROM_END:
        return position >= logical_n - 1;
    case HIT_AFTER_END:
        return position >= logical_n;
    case HIT_BEFORE_LAST:
        return position + 1 < logical_n;
    case HIT_BEFORE_END:
        return position < logical_n;
    case HIT_AFTER_FIRST:
        return position > 0;
    case HIT_SOME_AFTER_TILE_0:
        return position >= 32;
    }
    return false;
}

/* Do the two calls differ in any head of a row? */
static bool row_differs(const struct mla_tiny_ring *a, const struct mla_tiny_ring *b, int64_t rank,
                        int64_t r)
{
    int64_t width = a->args.head_dim_v;
    for (int64_t plane = 0; plane < a->args.batch * a->args.heads; plane++) {
        int64_t at = (plane * a->args.q_rows + r) * width;
        if (memcmp(a->out[rank] + at, b->out[rank] + at, (size_t)width * sizeof(uint16_t)) != 0) {
            return true;
        }
    }
    return false;
}

static void check_ring_fault(const struct mla_kernel *kernel, const char *shape_name,
                             enum rows_hit hit)
{
    size_t n = 0;
    const struct mla_tiny_ring_shape *shape = mla_tiny_ring_shapes(&n);
    while (strcmp(shape->name, shape_name) != 0) {
        shape++;
    }
    struct mla_tiny_ring *right = mla_tiny_ring_new(&shape->args);
    struct mla_tiny_ring *faulty = mla_tiny_ring_new(&shape->args);
    run_ring(mla_fault_controls(&n)[0].kernel, right);
    run_ring(kernel, faulty);
    int64_t hits_n = 0;
    int64_t expected_n = 0;
    int64_t strangers_n = 0;
    for (int64_t i = 0; i < shape->args.ring_size * shape->args.q_rows; i++) {
        int64_t rank = i / shape->args.q_rows;
        int64_t r = i % shape->args.q_rows;
        int64_t position = mla_naive_query_position(&shape->args, rank, r);
        bool expected = position >= 0 && is_hit(hit, position, shape->args.logical_n);
        bool differs = row_differs(right, faulty, rank, r);
        expected_n += expected;
        hits_n += expected && differs;
        strangers_n += !expected && differs;
    }
    bool all = hit != HIT_SOME_AFTER_TILE_0;
    if (strangers_n != 0 || (all && hits_n != expected_n) || (!all && hits_n == 0)) {
        fail_msg("%s on %s: %d of %d rows hit, %d others", kernel->name, shape_name, (int)hits_n,
                 (int)expected_n, (int)strangers_n);
    }
    mla_tiny_ring_free(faulty);
    mla_tiny_ring_free(right);
}

static void test_ring_faults_hit_their_rows(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        const char *shape;
        enum rows_hit hit;
    } cases[] = {
        {"last-key-dropped", "contiguous", HIT_FROM_END},
        {"last-key-dropped", "padded", HIT_FROM_END},
        {"last-key-dropped", "rotation", HIT_FROM_END},
        {"rescale-forgotten", "contiguous", HIT_SOME_AFTER_TILE_0},
        {"rescale-forgotten", "one-rank", HIT_NONE},
        {"rope-ignored", "contiguous", HIT_AFTER_FIRST},
        {"rope-ignored", "slot", HIT_ALL},
        {"rope-ignored", "one-rank", HIT_NONE},
        {"keys-past-end", "padded", HIT_AFTER_END},
        {"keys-past-end", "chunked", HIT_AFTER_END},
        {"keys-past-end", "contiguous", HIT_NONE},
        {"keys-past-end", "rotation", HIT_NONE},
        {"causal-one-more", "padded", HIT_BEFORE_LAST},
        {"causal-one-more", "balanced", HIT_BEFORE_LAST},
        {"causal-one-more", "rotation-zero", HIT_BEFORE_LAST}, /* and no pad row */
        {"causal-one-less", "padded", HIT_BEFORE_END},
        {"causal-one-less", "chunked", HIT_BEFORE_END},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_ring_fault(fault_named(cases[i].fault), cases[i].shape, cases[i].hit);
    }
}

/* How many queries differ in any head. */
static int64_t queries_hit(const struct mla_kernel *kernel, const char *shape_name)
{
    size_t n = 0;
    const struct mla_tiny_sparse_shape *shape = mla_tiny_sparse_shapes(&n);
    while (strcmp(shape->name, shape_name) != 0) {
        shape++;
    }
    struct mla_tiny_sparse *right = mla_tiny_sparse_new(&shape->args);
    struct mla_tiny_sparse *faulty = mla_tiny_sparse_new(&shape->args);
    run_sparse(mla_fault_controls(&n)[0].kernel, right);
    run_sparse(kernel, faulty);
    int64_t hits_n = 0;
    size_t query_n = right->out_n / (size_t)shape->args.queries;
    for (size_t q = 0; q < (size_t)shape->args.queries; q++) {
        hits_n += memcmp(right->out + q * query_n, faulty->out + q * query_n,
                         query_n * sizeof(uint16_t)) != 0;
    }
    mla_tiny_sparse_free(faulty);
    mla_tiny_sparse_free(right);
    return hits_n;
}

static void test_sparse_faults_hit_their_queries(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        const char *shape;
        int64_t hit_n;
    } cases[] = {
        {"last-key-dropped", "flat", 3},
        {"rescale-forgotten", "flat", 3},
        {"rescale-forgotten", "natural", 0}, /* 128 keys are one tile */
        {"rope-ignored", "flat", 3},
        {"natural-order", "flat", 3},
        {"natural-order", "natural", 0},
        {"causal-one-more", "dense-offset", 4},
        {"causal-one-more", "dense", 2}, /* 3 keys: queries 0 and 1 gain one, 2 .. 4 do not */
        {"causal-one-more", "flat", 0},
        {"causal-one-more", "offset-huge", 0},
        {"causal-one-less", "dense-offset", 4},
        {"causal-one-less", "dense", 3},
        {"causal-one-less", "flat", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t hit_n = queries_hit(fault_named(cases[i].fault), cases[i].shape);
        if (hit_n != cases[i].hit_n) {
            fail_msg("%s on %s: %d queries hit, not %d", cases[i].fault, cases[i].shape, (int)hit_n,
                     (int)cases[i].hit_n);
        }
    }
}

/*
 * Faults of memory may crash, and faults of threads are races, which the sanitizer of threads rightly
 * reports.
 */
static bool runs_here(const struct mla_fault *fault)
{
    return fault->cause != MLA_CAUSE_MEMORY && !(fault->race && MLA_THREADS_ARE_WATCHED);
}

/* No call that must be accepted may crash any other fault; the sanitizers look on. */
static void test_every_fault_survives_every_shape(void **state)
{
    (void)state;
    size_t faults_n = 0;
    size_t shapes_n = 0;
    const struct mla_fault *faults = mla_faults(&faults_n);
    for (size_t f = 0; f < faults_n; f++) {
        const struct mla_tiny_ring_shape *ring = mla_tiny_ring_shapes(&shapes_n);
        for (size_t s = 0; runs_here(&faults[f]) && faults[f].kernel->ring && s < shapes_n; s++) {
            struct mla_tiny_ring *tiny = mla_tiny_ring_new(&ring[s].args);
            mla_tiny_ring_clear(tiny);
            int32_t status = faults[f].kernel->ring(&tiny->args, NULL, 0);
            if (status != MLA_OK && faults[f].cause != MLA_CAUSE_STATUS) {
                fail_msg("%s on %s: status %d", faults[f].name, ring[s].name, (int)status);
            }
            assert_true(mla_tiny_ring_scratch_allowed(tiny));
            mla_tiny_ring_free(tiny);
        }
        const struct mla_tiny_sparse_shape *sparse = mla_tiny_sparse_shapes(&shapes_n);
        for (size_t s = 0; faults[f].kernel->sparse && s < shapes_n; s++) {
            struct mla_sparse_args shape = sparse[s].args;
            shape.queries = 1;
            struct mla_tiny_sparse *tiny = mla_tiny_sparse_new(&shape);
            mla_tiny_sparse_clear(tiny);
            int32_t status = faults[f].kernel->sparse(&tiny->args, NULL, 0);
            assert_true(status == MLA_OK || faults[f].cause == MLA_CAUSE_STATUS);
            mla_tiny_sparse_free(tiny);
        }
    }
}

static void test_canaries_are_wrong_everywhere(void **state)
{
    (void)state;
    size_t canaries_n = 0;
    size_t shapes_n = 0;
    const struct mla_fault *canaries = mla_fault_canaries(&canaries_n);
    for (size_t i = 0; i < canaries_n; i++) {
        const struct mla_tiny_ring_shape *ring = mla_tiny_ring_shapes(&shapes_n);
        for (size_t s = 0; s < shapes_n; s++) {
            struct mla_tiny_ring *tiny = mla_tiny_ring_new(&ring[s].args);
            run_ring(canaries[i].kernel, tiny);
            int64_t all = ring[s].args.ring_size * (int64_t)tiny->out_n;
            assert_int_equal(mla_tiny_ring_wrong(tiny, 4.0, false), all);
            mla_tiny_ring_free(tiny);
        }
        struct mla_tiny_sparse *tiny =
            mla_tiny_sparse_new(&mla_tiny_sparse_shapes(&shapes_n)[0].args);
        run_sparse(canaries[i].kernel, tiny);
        assert_int_equal(mla_tiny_sparse_wrong(tiny, 4.0, false, 1), (int64_t)tiny->out_n);
        mla_tiny_sparse_free(tiny);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_are_well_formed),
        cmocka_unit_test(test_reports_exist_in_the_class),
        cmocka_unit_test(test_positions_match_worked_examples),
        cmocka_unit_test(test_visit_order_matches_worked_examples),
        cmocka_unit_test(test_bf16_rounding),
        cmocka_unit_test(test_one_key_is_copied),
        cmocka_unit_test(test_controls_are_right_on_the_ring),
        cmocka_unit_test(test_controls_are_right_on_sparse),
        cmocka_unit_test(test_future_nan_reaches_only_rows_that_see_it),
        cmocka_unit_test(test_index_layout_does_not_change_bits),
        cmocka_unit_test(test_ring_faults_hit_their_rows),
        cmocka_unit_test(test_sparse_faults_hit_their_queries),
        cmocka_unit_test(test_every_fault_survives_every_shape),
        cmocka_unit_test(test_canaries_are_wrong_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
