/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_test.c - the sparse operation against its definition, and the promises beyond values.
 *
 * The reference walks over a row's listed keys in double, with the index layout and the column
 * order written out below. Cache rows that no index names are NaN in every case, and so are the
 * index slots of query rows that do not exist (there: an impossible index).
 *
 * As in ring_test.c one kernel goes through every test, all through those that an inner step could
 * break.
 */
#include "impl/registry.h"
#include "impl/test_data.h"
#include "impl/test_kernels.h"
#include "impl/test_mode.h"

#include <math.h>
#include <stdbool.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LATENT       512

enum list {
    LIST_RANDOM = 0, /* drawn with repetition from every third cache row */
    LIST_ONE = 1,    /* one row, K times */
    LIST_ENDS = 2,   /* the first and the last cache row in turn */
    LIST_FALLING = 3 /* keys-1, keys-2, .. wrapping round */
};

struct shape {
    int64_t queries, keys, heads, rope, topk, cores;
    int32_t list, dense, has_offset;
    int64_t offset;
    float scale;
};

struct sparse_case {
    const struct mla_kernel *kernel;
    struct mla_sparse_args args;
    uint16_t *q_lift, *q_pe, *c_kv, *k_pe, *out;
    int32_t *flat, *tiled;
    float *stats;
    size_t out_bytes, stats_bytes;
};

static int32_t listed(const struct shape *s, int64_t q, int64_t j)
{
    const int64_t third = (s->keys + 2) / 3;
    switch (s->list) {
    case LIST_ONE:
        return (int32_t)(q % s->keys);
    case LIST_ENDS:
        return (int32_t)(j % 2 != 0 ? s->keys - 1 : 0);
    case LIST_FALLING:
        return (int32_t)((s->keys - 1 - j % s->keys + s->keys) % s->keys);
    default:
        return (int32_t)(test_mix(77, (uint64_t)(q * s->topk + j)) % (uint64_t)third * 3);
    }
}

static bool is_dropped(const struct mla_sparse_args *a, int64_t q, int64_t index)
{
    return a->has_q_pos_offset && index - q > a->q_pos_offset;
}

/* Poison the cache rows that take part nowhere. */
static void poison(struct sparse_case *c)
{
    const struct mla_sparse_args *a = &c->args;
    bool *used = test_alloc((size_t)a->keys * sizeof *used);
    memset(used, 0, (size_t)a->keys * sizeof *used);
    for (int64_t q = 0; q < a->queries; q++) {
        for (int64_t j = 0; a->dense == 0 && j < a->topk; j++) {
            const int32_t index = c->flat[q * a->topk + j];
            used[index] = used[index] || !is_dropped(a, q, index);
        }
        for (int64_t k = 0; a->dense != 0 && k < a->keys; k++) {
            const int64_t offset = a->has_q_pos_offset ? a->q_pos_offset : 0;
            used[k] = used[k] || k - q <= offset;
        }
    }
    for (int64_t k = 0; k < a->keys; k++) {
        if (!used[k]) {
            memset(c->c_kv + k * LATENT, 0xff, LATENT * 2);
            memset(c->k_pe + k * a->rope, 0xff, (size_t)a->rope * 2);
        }
    }
    free(used);
}

static struct sparse_case *make(const struct shape *s)
{
    struct sparse_case *c = test_alloc(sizeof *c);
    const int64_t topk = s->dense ? 128 : s->topk;
    const int64_t tiles = (s->queries + 127) / 128;
    const int64_t lines = s->queries * s->heads;
    memset(c, 0, sizeof *c);
    c->kernel = mla_registry_find("scalar");
    c->q_lift = test_tensor(lines * LATENT, 1);
    c->q_pe = test_tensor(lines * s->rope, 2);
    c->c_kv = test_tensor(s->keys * LATENT, 3);
    c->k_pe = test_tensor(s->keys * s->rope, 4);
    c->flat = test_alloc((size_t)(s->queries * topk) * 4);
    c->tiled = test_alloc((size_t)(tiles * 128 * topk) * 4);
    c->out_bytes = (size_t)(lines * LATENT) * 2;
    c->stats_bytes = (size_t)(lines * 2) * 4;
    c->out = test_alloc(c->out_bytes);
    c->stats = test_alloc(c->stats_bytes);
    memset(c->out, 0xff, c->out_bytes);
    memset(c->stats, 0xff, c->stats_bytes);
    memset(c->tiled, 0x80, (size_t)(tiles * 128 * topk) * 4); /* negative */
    for (int64_t q = 0; q < s->queries; q++) {
        for (int64_t j = 0; j < topk; j++) {
            const int64_t block = (q / 128 * 16 + q % 128 / 8) * 128 + 16 * (q % 8) + j % 16;
            c->flat[q * topk + j] = listed(s, q, j);
            c->tiled[block * (topk / 16) + j / 16] = listed(s, q, j);
        }
    }
    c->args = (struct mla_sparse_args){.struct_size = sizeof c->args,
                                       .batch = 1,
                                       .queries = s->queries,
                                       .keys = s->keys,
                                       .heads = s->heads,
                                       .latent = LATENT,
                                       .rope = s->rope,
                                       .topk = topk,
                                       .dense = s->dense,
                                       .has_q_pos_offset = s->has_offset,
                                       .q_pos_offset = s->offset,
                                       .out_order = MLA_OUT_MX4,
                                       .cores = s->cores > 0 ? s->cores : 1,
                                       .threads = 1,
                                       .softmax_scale = s->scale > 0 ? s->scale : 0.0416667f,
                                       .q_lift = c->q_lift,
                                       .q_pe = c->q_pe,
                                       .c_kv = c->c_kv,
                                       .k_pe = c->k_pe,
                                       .topk_indices = s->dense ? NULL : c->flat,
                                       .out = c->out,
                                       .stats = c->stats};
    poison(c);
    return c;
}

static void destroy(struct sparse_case *c)
{
    free(c->stats);
    free(c->out);
    free(c->tiled);
    free(c->flat);
    free(c->k_pe);
    free(c->c_kv);
    free(c->q_pe);
    free(c->q_lift);
    free(c);
}

static void run(struct sparse_case *c)
{
    char message[300] = "";
    const int32_t status = c->kernel->sparse(&c->args, message, sizeof message);
    if (status != MLA_OK) {
        fail_msg("status %d: %s", (int)status, message);
    }
    assert_string_equal(message, "");
}

/* ---- the definition ---------------------------------------------------------------------------*/

/* The row's keys, copies counted; returns how many. */
static int64_t keys_of(const struct sparse_case *c, int64_t q, int64_t *keys)
{
    const struct mla_sparse_args *a = &c->args;
    const int64_t offset = a->has_q_pos_offset ? a->q_pos_offset : 0;
    int64_t n = 0;
    for (int64_t k = 0; a->dense != 0 && k < a->keys; k++) {
        if (k - q <= offset) {
            keys[n++] = k;
        }
    }
    for (int64_t j = 0; a->dense == 0 && j < a->topk; j++) {
        if (!is_dropped(a, q, c->flat[q * a->topk + j])) {
            keys[n++] = c->flat[q * a->topk + j];
        }
    }
    return n;
}

static double score(const struct sparse_case *c, int64_t line, int64_t key)
{
    const struct mla_sparse_args *a = &c->args;
    double sum = 0;
    for (int64_t i = 0; i < LATENT; i++) {
        sum += test_value(c->q_lift[line * LATENT + i]) * test_value(c->c_kv[key * LATENT + i]);
    }
    for (int64_t i = 0; i < a->rope; i++) {
        sum += test_value(c->q_pe[line * a->rope + i]) * test_value(c->k_pe[key * a->rope + i]);
    }
    return (double)a->softmax_scale * sum;
}

static bool is_near(double got, double want, double tolerance)
{
    return isfinite(got) && fabs(got - want) <= tolerance;
}

/* How much more than float32 the kernel's sum and values may err: see ring_test.c. */
static double sum_slack_of(const struct mla_model *model)
{
    return model->sum_rounded != 0 ? model->p_u / (1 - model->p_u) : 0.0;
}

static double slack_of(const struct mla_model *model)
{
    const double slack = model->sum_rounded != 0 ? 2 * sum_slack_of(model) : model->p_u;
    return model->acc_u > 0 ? (double)INFINITY : slack;
}

static void expect_empty(const struct sparse_case *c, int64_t line)
{
    static const float stats[2] = {-INFINITY, 0.0f};
    static const uint16_t zeros[LATENT];
    assert_memory_equal(c->out + line * LATENT, zeros, sizeof zeros);
    assert_memory_equal(c->stats + 2 * line, stats, sizeof stats);
}

static void expect_head(const struct sparse_case *c, int64_t line, const int64_t *keys,
                        int64_t keys_n, double *weights)
{
    const bool is_natural = c->args.out_order == MLA_OUT_NATURAL;
    const double slack = slack_of(&c->kernel->sparse_model);
    double max = -INFINITY;
    double sum = 0;
    for (int64_t j = 0; j < keys_n; j++) {
        weights[j] = score(c, line, keys[j]);
        max = weights[j] > max ? weights[j] : max;
    }
    for (int64_t j = 0; j < keys_n; j++) {
        weights[j] = exp(weights[j] - max);
        sum += weights[j];
    }
    for (int64_t l = 0; l < LATENT; l++) {
        const int64_t column = is_natural ? l : l % 4 * 128 + l / 4;
        double want = 0;
        double spread = 0;
        for (int64_t j = 0; j < keys_n; j++) {
            const double value = test_value(c->c_kv[keys[j] * LATENT + l]);
            want += weights[j] / sum * value;
            spread += weights[j] / sum * fabs(value);
        }
        const double got = test_value(c->out[line * LATENT + column]);
        if (!is_near(got, want, fabs(want) * 0x1p-8 + (3e-5 + slack) * spread)) {
            fail_msg("line %d latent %d: got %.9g, want %.9g", (int)line, (int)l, got, want);
        }
    }
    if (isfinite(slack)) {
        assert_true(is_near((double)c->stats[2 * line], max, 3e-5 * (1 + fabs(max))));
        assert_true(is_near((double)c->stats[2 * line] + log((double)c->stats[2 * line + 1]),
                            max + log(sum),
                            3e-5 * (1 + fabs(max)) + sum_slack_of(&c->kernel->sparse_model)));
    }
}

static void expect_values(const struct sparse_case *c, int64_t stride)
{
    const struct mla_sparse_args *a = &c->args;
    const size_t most = (size_t)(a->topk > a->keys ? a->topk : a->keys);
    int64_t *keys = test_alloc(most * sizeof *keys);
    double *weights = test_alloc(most * sizeof *weights);
    for (int64_t line = 0; line < a->queries * a->heads; line += stride) {
        const int64_t n = keys_of(c, line / a->heads, keys);
        if (n == 0) {
            expect_empty(c, line);
        } else {
            expect_head(c, line, keys, n, weights);
        }
    }
    free(weights);
    free(keys);
}

/* ---- the cases --------------------------------------------------------------------------------*/

static const struct shape shapes[] = {
    {.queries = 1, .keys = 1, .heads = 16, .rope = 64, .topk = 128},
    {.queries = 2, .keys = 300, .heads = 16, .rope = 64, .topk = 256, .cores = 2},
    {.queries = 3, .keys = 100, .heads = 48, .rope = 1, .topk = 128, .cores = 3},
    {.queries = 2, .keys = 500, .heads = 128, .rope = 128, .topk = 384},
    {.queries = 9, .keys = 150, .heads = 16, .rope = 63, .topk = 128, .cores = 3, .list = LIST_ONE},
    {.queries = 2, .keys = 130, .heads = 16, .rope = 64, .topk = 128, .list = LIST_ENDS},
    {.queries = 2, .keys = 130, .heads = 16, .rope = 17, .topk = 640, .list = LIST_FALLING},
    {.queries = 131, .keys = 40, .heads = 16, .rope = 32, .topk = 128},
    {.queries = 2, .keys = 200, .heads = 16, .rope = 64, .topk = 256, .scale = 30.0f},
    {.queries = 2, .keys = 200, .heads = 16, .rope = 64, .topk = 256, .scale = 0x1p-140f},
    /* q_pos_offset: reaching nothing for early rows, part, all; at its limit */
    {.queries = 6,
     .keys = 200,
     .heads = 16,
     .rope = 64,
     .topk = 256,
     .has_offset = 1,
     .offset = 90},
    {.queries = 6,
     .keys = 200,
     .heads = 16,
     .rope = 64,
     .topk = 128,
     .has_offset = 1,
     .offset = 195,
     .list = LIST_ENDS},
    {.queries = 4,
     .keys = 400,
     .heads = 16,
     .rope = 64,
     .topk = 384,
     .has_offset = 1,
     .offset = 0,
     .list = LIST_FALLING},
    {.queries = 2,
     .keys = 200,
     .heads = 16,
     .rope = 64,
     .topk = 128,
     .has_offset = 1,
     .offset = INT64_MAX},
    /* dense */
    {.queries = 5, .keys = 3, .heads = 16, .rope = 64, .dense = 1},
    {.queries = 4,
     .keys = 300,
     .heads = 16,
     .rope = 64,
     .dense = 1,
     .has_offset = 1,
     .offset = 126,
     .cores = 2},
    {.queries = 2,
     .keys = 300,
     .heads = 16,
     .rope = 64,
     .dense = 1,
     .has_offset = 1,
     .offset = INT64_MAX},
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct sparse_case *c = make(&shapes[i]);
        c->args.threads = (int64_t)i % 3;
        run(c);
        expect_values(c, c->args.queries > 100 ? 61 : 5);
        destroy(c);
    }
}

static void expect_same(const struct sparse_case *a, const struct sparse_case *b)
{
    assert_memory_equal(a->out, b->out, a->out_bytes);
    assert_memory_equal(a->stats, b->stats, a->stats_bytes);
}

/* Every kernel: values. */
static void test_every_kernel(void **state)
{
    size_t kernels_n;
    const struct mla_kernel *const *kernels = test_kernels(&kernels_n);
    (void)state;
    for (size_t i = 0; i < COUNT(shapes) * kernels_n; i++) {
        struct sparse_case *c = make(&shapes[i / kernels_n]);
        c->kernel = kernels[i % kernels_n];
        run(c);
        expect_values(c, c->args.queries > 100 ? 61 : 7);
        destroy(c);
    }
}

/* A row all of whose keys lie beyond the offset is empty, its neighbours are not. */
static void expect_empty_rows(const struct mla_kernel *kernel)
{
    const struct shape shape = {.queries = 4,
                                .keys = 200,
                                .heads = 16,
                                .rope = 64,
                                .topk = 128,
                                .has_offset = 1,
                                .offset = 10};
    struct sparse_case *c = make(&shape);
    c->kernel = kernel;
    for (int64_t j = 0; j < 128; j++) {
        c->flat[0 * 128 + j] = 11; /* just beyond 10 + 0 */
        c->flat[1 * 128 + j] = 11; /* just within 10 + 1 */
        c->flat[2 * 128 + j] = 199;
        c->flat[3 * 128 + j] = j == 77 ? 13 : 14;
    }
    for (int64_t i = 0; i < LATENT; i++) {
        c->c_kv[11 * LATENT + i] = test_bf16(5, (uint64_t)i);
        c->c_kv[13 * LATENT + i] = test_bf16(6, (uint64_t)i);
    }
    memset(c->k_pe, 0, (size_t)(200 * 64) * 2);
    run(c);
    for (int64_t head = 0; head < 16; head++) {
        expect_empty(c, head);
        expect_empty(c, 2 * 16 + head);
        for (int64_t l = 0; l < LATENT; l++) { /* one distinct key: an exact copy */
            const int64_t column = l % 4 * 128 + l / 4;
            assert_int_equal(c->out[(16 + head) * LATENT + column], c->c_kv[11 * LATENT + l]);
            assert_int_equal(c->out[(48 + head) * LATENT + column], c->c_kv[13 * LATENT + l]);
        }
        assert_true(c->stats[2 * (16 + head) + 1] == 128.0f);
        assert_true(c->stats[2 * (48 + head) + 1] == 1.0f);
    }
    destroy(c);
}

static void test_empty_rows(void **state)
{
    size_t kernels_n;
    const struct mla_kernel *const *kernels = test_kernels(&kernels_n);
    (void)state;
    for (size_t k = 0; k < kernels_n; k++) {
        expect_empty_rows(kernels[k]);
    }
}

/* The same bits for every number of threads and cores, for both index layouts, on repetition. */
static void expect_same_bits(const struct shape *shape, const struct mla_kernel *kernel)
{
    static const int64_t threads[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 16, INT64_MAX};
    struct sparse_case *first = make(shape);
    struct sparse_case *other = make(shape);
    first->kernel = other->kernel = kernel;
    run(first);
    for (size_t t = 0; t < COUNT(threads); t++) {
        memset(other->out, 0xff, other->out_bytes);
        memset(other->stats, 0xff, other->stats_bytes);
        other->args.threads = threads[t];
        other->args.cores = t % 2 != 0 ? other->args.queries : 1;
        if (other->args.dense == 0) {
            other->args.topk_tiled = (int32_t)(t / 2 % 2);
            other->args.topk_indices = t / 2 % 2 != 0 ? other->tiled : other->flat;
        }
        run(other);
        expect_same(first, other);
    }
    destroy(other);
    destroy(first);
}

static void test_same_bits(void **state)
{
    size_t kernels_n;
    const struct mla_kernel *const *kernels = test_kernels(&kernels_n);
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        for (size_t k = 0; k < kernels_n; k++) {
            expect_same_bits(&shapes[i], kernels[k]);
        }
    }
}

/* The two column orders hold the same bits; without statistics the output is the same. */
static void expect_orders(const struct mla_kernel *kernel)
{
    struct sparse_case *packed = make(&shapes[1]);
    struct sparse_case *natural = make(&shapes[1]);
    packed->kernel = natural->kernel = kernel;
    natural->args.out_order = MLA_OUT_NATURAL;
    natural->args.stats = NULL;
    run(packed);
    run(natural);
    for (int64_t line = 0; line < 2 * 16; line++) {
        for (int64_t l = 0; l < LATENT; l++) {
            assert_int_equal(natural->out[line * LATENT + l],
                             packed->out[line * LATENT + l % 4 * 128 + l / 4]);
        }
    }
    destroy(natural);
    destroy(packed);
}

static void test_orders(void **state)
{
    size_t kernels_n;
    const struct mla_kernel *const *kernels = test_kernels(&kernels_n);
    (void)state;
    for (size_t k = 0; k < kernels_n; k++) {
        expect_orders(kernels[k]);
    }
}

/* A NaN in one query row, or in a key of one row's list, leaves all other rows as they were. */
static void expect_nan_stays(const struct mla_kernel *kernel)
{
    const struct shape shape = {
        .queries = 4, .keys = 64, .heads = 16, .rope = 64, .topk = 128, .list = LIST_ONE};
    struct sparse_case *clean = make(&shape);
    struct sparse_case *dirty = make(&shape);
    clean->kernel = kernel;
    dirty->kernel = kernel;
    dirty->k_pe[2 * 64 + 5] = TEST_POISON;             /* row 2's only key */
    dirty->q_lift[(1 * 16 + 3) * LATENT + 9] = 0x7f80; /* row 1, head 3 */
    run(clean);
    run(dirty);
    for (int64_t line = 0; line < 4 * 16; line++) {
        const int differs =
            memcmp(clean->out + line * LATENT, dirty->out + line * LATENT, LATENT * 2);
        assert_true((differs != 0) == (line / 16 == 2 || line == 16 + 3));
    }
    destroy(dirty);
    destroy(clean);
}

static void test_nan_stays(void **state)
{
    size_t kernels_n;
    const struct mla_kernel *const *kernels = test_kernels(&kernels_n);
    (void)state;
    for (size_t k = 0; k < kernels_n; k++) {
        expect_nan_stays(kernels[k]);
    }
}

/* The caller's floating-point mode changes no bit and no verdict, and is the caller's again. */
static void expect_modes_ignored(const struct mla_kernel *kernel)
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct sparse_case *want = make(&shapes[i]);
        struct sparse_case *got = make(&shapes[i]);
        want->kernel = got->kernel = kernel;
        run(want);
        for (int mode = 0; mode < TEST_MODES_N; mode++) {
            memset(got->out, 0xff, got->out_bytes);
            memset(got->stats, 0xff, got->stats_bytes);
            got->args.threads = ((int64_t)i + mode) % 4;
            test_mode_set(mode);
            const uint32_t before = test_mode_get();
            const int32_t status = got->kernel->sparse(&got->args, NULL, 0);
            const uint32_t after = test_mode_get();
            test_mode_reset();
            assert_int_equal(status, MLA_OK);
            assert_int_equal(after, before);
            expect_same(want, got);
        }
        destroy(got);
        destroy(want);
    }
}

static void test_modes(void **state)
{
    size_t kernels_n;
    const struct mla_kernel *const *kernels = test_kernels(&kernels_n);
    (void)state;
    for (size_t k = 0; k < kernels_n; k++) {
        expect_modes_ignored(kernels[k]);
    }
}

/* Without its flag q_pos_offset is not looked at, whatever it holds; listed and dense. */
static void test_flag_off(void **state)
{
    static const int64_t offsets[] = {1, 90, -1, INT64_MAX, INT64_MIN};
    const struct shape tried[] = {
        {.queries = 2, .keys = 300, .heads = 16, .rope = 64, .topk = 256},
        {.queries = 5, .keys = 150, .heads = 16, .rope = 64, .dense = 1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(tried); i++) {
        struct sparse_case *want = make(&tried[i]);
        struct sparse_case *got = make(&tried[i]);
        run(want);
        for (size_t k = 0; k < COUNT(offsets); k++) {
            got->args.q_pos_offset = offsets[k];
            run(got);
            expect_same(want, got);
        }
        destroy(got);
        destroy(want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),    cmocka_unit_test(test_empty_rows),
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_orders),
        cmocka_unit_test(test_nan_stays), cmocka_unit_test(test_modes),
        cmocka_unit_test(test_flag_off),  cmocka_unit_test(test_every_kernel),
    };
    return cmocka_run_group_tests_name("sparse", tests, NULL, NULL);
}
