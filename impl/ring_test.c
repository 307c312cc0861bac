/* SPDX-License-Identifier: Apache-2.0
 *
 * ring_test.c - the ring operation against its definition, and the promises that go beyond values.
 *
 * The reference is naive on purpose: for every query row it walks over all keys of all ranks,
 * places both by the position formulas written out below (none of layout.c's), and evaluates the
 * softmax in double. Everything the call must not look at is a NaN in every case: keys at positions
 * >= logical_n, other cache slots, pad rows of q, the gathered buffers.
 *
 * The kernels share everything but their inner step: one goes through every test, all through those
 * that an inner step could break. How they round is emulate_test.c's business.
 */
#include "impl/registry.h"
#include "impl/test_data.h"
#include "impl/test_kernels.h"
#include "impl/test_mode.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define DV_MAX       512

/* A NaN other than the one laid in kv, so that a row copied from there shows. */
#define GATHERED_POISON 0xffc1U

/* A case in few numbers; 0 means the usual value. */
struct shape {
    int64_t ring_size, batch, heads, q_rows, kv_rows, logical_n;
    int32_t is_balanced;
    int64_t slots, slot, gathered_batch, gathered_extra; /* slots > 0: has_slot */
    int32_t has_prior;
    int64_t prior;
    int32_t topology;
    int64_t q_chunk, k_chunk;
    float scale;                  /* 0: absent */
    int64_t head_dim, head_dim_v; /* 64 and 32 */
};

struct ring_case {
    const struct mla_kernel *kernel;
    struct mla_ring_args args;
    uint16_t *q[MLA_RING_SIZE_MAX];
    uint16_t *kv[MLA_RING_SIZE_MAX];
    uint16_t *gathered[MLA_RING_SIZE_MAX];
    uint16_t *out[MLA_RING_SIZE_MAX];
    float *stats[MLA_RING_SIZE_MAX];
    const uint16_t *q_in[MLA_RING_SIZE_MAX];
    const uint16_t *kv_in[MLA_RING_SIZE_MAX];
    int64_t q_n, kv_n, gathered_n, out_n, stats_n;
};

/* ---- positions, from the definition -----------------------------------------------------------*/

static int64_t balanced(const struct mla_ring_args *a, int64_t rank, int64_t row)
{
    const int64_t h = a->q_rows / 2;
    return row < h ? rank * h + row : (2 * a->ring_size - 1 - rank) * h + row - h;
}

static int64_t key_position(const struct mla_ring_args *a, int64_t rank, int64_t row)
{
    if (a->is_balanced) {
        return balanced(a, rank, row);
    }
    if (a->q_rows == a->kv_rows) {
        return rank * a->kv_rows + row;
    }
    return row / a->q_rows * a->ring_size * a->q_rows + rank * a->q_rows + row % a->q_rows;
}

/* Hand the new positions out one by one: the owner packs them from row 0. -1: none is left. */
static int64_t rotated(const struct mla_ring_args *a, int64_t rank, int64_t row)
{
    int64_t used = 0;
    for (int64_t g = a->kv_actual_isl; g < a->logical_n; g++) {
        if (g / a->q_rows % a->ring_size == rank) {
            if (used == row) {
                return g;
            }
            used++;
        }
    }
    return -1;
}

static int64_t query_position(const struct mla_ring_args *a, int64_t rank, int64_t row)
{
    if (a->is_balanced) {
        return balanced(a, rank, row);
    }
    if (a->has_prior) {
        return rotated(a, rank, row);
    }
    if (a->q_rows == a->kv_rows) {
        return rank * a->q_rows + row;
    }
    return (a->logical_n + 31) / 32 * 32 - a->ring_size * a->q_rows + rank * a->q_rows + row;
}

/* ---- making a case ----------------------------------------------------------------------------*/

static int64_t or_usual(int64_t value, int64_t usual)
{
    return value != 0 ? value : usual;
}

static int64_t slot_of(const struct mla_ring_args *a, int64_t batch)
{
    return a->has_slot ? a->kv_cache_batch_idx : batch;
}

static void fill_rank(struct ring_case *c, int64_t rank)
{
    const struct mla_ring_args *a = &c->args;
    c->q[rank] = test_tensor(c->q_n, 100 + (uint64_t)rank);
    c->kv[rank] = test_tensor(c->kv_n, 200 + (uint64_t)rank);
    c->gathered[rank] = test_alloc((size_t)c->gathered_n * 2);
    c->out[rank] = test_alloc((size_t)c->out_n * 2);
    c->stats[rank] = test_alloc((size_t)c->stats_n * 4);
    for (int64_t i = 0; i < c->gathered_n; i++) {
        c->gathered[rank][i] = GATHERED_POISON;
    }
    memset(c->out[rank], 0xff, (size_t)c->out_n * 2);
    memset(c->stats[rank], 0xff, (size_t)c->stats_n * 4);
    for (int64_t row = 0; row < a->q_rows; row++) {
        for (int64_t line = 0; query_position(a, rank, row) < 0 && line < a->batch * a->heads;
             line++) {
            memset(c->q[rank] + (line * a->q_rows + row) * a->head_dim, 0xff,
                   (size_t)a->head_dim * 2);
        }
    }
    for (int64_t slot = 0; slot < a->kv_batch; slot++) {
        for (int64_t row = 0; row < a->kv_rows; row++) {
            if (key_position(a, rank, row) >= a->logical_n ||
                (a->has_slot && slot != a->kv_cache_batch_idx)) {
                memset(c->kv[rank] + (slot * a->kv_rows + row) * a->head_dim, 0xff,
                       (size_t)a->head_dim * 2);
            }
        }
    }
    c->q_in[rank] = c->q[rank];
    c->kv_in[rank] = c->kv[rank];
}

static struct ring_case *make(const struct shape *s)
{
    struct ring_case *c = test_alloc(sizeof *c);
    memset(c, 0, sizeof *c);
    c->kernel = mla_registry_find("scalar");
    struct mla_ring_args *a = &c->args;
    *a = (struct mla_ring_args){.struct_size = sizeof *a,
                                .ring_size = s->ring_size,
                                .batch = or_usual(s->batch, 1),
                                .heads = or_usual(s->heads, 2),
                                .q_rows = s->q_rows,
                                .kv_rows = s->kv_rows,
                                .kv_heads = 1,
                                .kv_head_dim = or_usual(s->head_dim, 64),
                                .gathered_rows = s->ring_size * s->kv_rows + s->gathered_extra,
                                .head_dim = or_usual(s->head_dim, 64),
                                .head_dim_v = or_usual(s->head_dim_v, 32),
                                .logical_n = s->logical_n,
                                .has_scale = s->scale > 0,
                                .scale = s->scale,
                                .is_balanced = s->is_balanced,
                                .has_slot = s->slots > 0,
                                .kv_cache_batch_idx = s->slot,
                                .has_prior = s->has_prior,
                                .kv_actual_isl = s->prior,
                                .topology = s->topology,
                                .num_links = 1,
                                .q_chunk_size = or_usual(s->q_chunk, 32),
                                .k_chunk_size = or_usual(s->k_chunk, 32),
                                .dim = 2,
                                .threads = 1,
                                .q = c->q_in,
                                .kv = c->kv_in,
                                .gathered = c->gathered,
                                .out = c->out,
                                .stats = c->stats};
    a->kv_batch = or_usual(s->slots, a->batch);
    a->gathered_batch = or_usual(s->gathered_batch, a->kv_batch);
    c->q_n = a->batch * a->heads * a->q_rows * a->head_dim;
    c->kv_n = a->kv_batch * a->kv_rows * a->head_dim;
    c->gathered_n = a->gathered_batch * a->gathered_rows * a->head_dim;
    c->out_n = a->batch * a->heads * a->q_rows * a->head_dim_v;
    c->stats_n = a->batch * a->heads * a->q_rows * 2;
    for (int64_t rank = 0; rank < a->ring_size; rank++) {
        fill_rank(c, rank);
    }
    return c;
}

static void destroy(struct ring_case *c)
{
    for (int64_t rank = 0; rank < c->args.ring_size; rank++) {
        free(c->q[rank]);
        free(c->kv[rank]);
        free(c->gathered[rank]);
        free(c->out[rank]);
        free(c->stats[rank]);
    }
    free(c);
}

static void run(struct ring_case *c)
{
    char message[300] = "";
    const int32_t status = c->kernel->ring(&c->args, message, sizeof message);
    if (status != MLA_OK) {
        fail_msg("status %d: %s", (int)status, message);
    }
    assert_string_equal(message, "");
}

/* ---- the definition ---------------------------------------------------------------------------*/

struct row {
    double max;
    double log_sum_exp;
    double out[DV_MAX];
    double spread[DV_MAX]; /* sum of weight times |value| */
    int64_t keys_n;
};

static double dot(const uint16_t *a, const uint16_t *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += test_value(a[i]) * test_value(b[i]);
    }
    return sum;
}

static void define(const struct ring_case *c, int64_t rank, int64_t line, int64_t row,
                   struct row *want)
{
    const struct mla_ring_args *a = &c->args;
    const double scale =
        a->has_scale ? (double)a->scale : (double)(float)(1 / sqrt((double)a->head_dim));
    const uint16_t *query = c->q[rank] + (line * a->q_rows + row) * a->head_dim;
    const int64_t slot = slot_of(a, line / a->heads);
    const int64_t position = query_position(a, rank, row);
    double sum = 0;
    memset(want, 0, sizeof *want);
    want->max = -INFINITY;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t source = 0; source < a->ring_size; source++) {
            for (int64_t t = 0; t < a->kv_rows; t++) {
                const int64_t at = key_position(a, source, t);
                if (at > position || at >= a->logical_n) {
                    continue;
                }
                const uint16_t *key = c->kv[source] + (slot * a->kv_rows + t) * a->head_dim;
                const double score = scale * dot(query, key, a->head_dim);
                if (pass == 0) {
                    want->max = score > want->max ? score : want->max;
                    want->keys_n++;
                    continue;
                }
                const double weight = exp(score - want->max);
                sum += weight;
                for (int i = 0; i < a->head_dim_v; i++) {
                    want->out[i] += weight * test_value(key[i]);
                    want->spread[i] += weight * fabs(test_value(key[i]));
                }
            }
        }
    }
    want->log_sum_exp = want->max + log(sum);
    for (int i = 0; i < a->head_dim_v && want->keys_n > 0; i++) {
        want->out[i] /= sum;
        want->spread[i] /= sum;
    }
}

static bool is_near(double got, double want, double tolerance)
{
    return isfinite(got) && fabs(got - want) <= tolerance;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/*
 * How much more than float32 the sum may err, relatively: where it adds rounded p, their rounding,
 * and in the logarithm -log(1 - p_u).
 */
static double sum_slack_of(const struct mla_model *model)
{
    return model->sum_rounded != 0 ? model->p_u / (1 - model->p_u) : 0.0;
}

/*
 * How much more than float32 the kernel may err, relative to the weighted absolute values: the
 * rounding of p, (1 + p_u) / (1 - p_u) - 1 where the sum is off the other way, or anything where
 * states are rounded too.
 */
static double slack_of(const struct mla_model *model)
{
    const double slack = model->sum_rounded != 0 ? 2 * sum_slack_of(model) : model->p_u;
    return model->acc_u > 0 ? (double)INFINITY : slack;
}

/*
 * Half a bf16 ulp, and 2e-5 of the weighted absolute values: float32 over at most 1000 keys. Of a
 * row without keys the exact bits, whatever the kernel.
 */
static void expect_row(const struct ring_case *c, int64_t rank, int64_t line, int64_t row)
{
    const struct mla_ring_args *a = &c->args;
    const uint16_t *out = c->out[rank] + (line * a->q_rows + row) * a->head_dim_v;
    const float max = c->stats[rank][line * 2 * a->q_rows + row];
    const float sum = c->stats[rank][line * 2 * a->q_rows + a->q_rows + row];
    const double slack = slack_of(&c->kernel->ring_model);
    struct row want;
    define(c, rank, line, row, &want);
    for (int i = 0; i < a->head_dim_v; i++) {
        if (want.keys_n == 0) {
            assert_int_equal(out[i], 0);
        } else if (!is_near(test_value(out[i]), want.out[i],
                            fabs(want.out[i]) * 0x1p-8 + (2e-5 + slack) * want.spread[i])) {
            fail_msg("rank %d line %d row %d column %d: got %.9g, want %.9g", (int)rank, (int)line,
                     (int)row, i, test_value(out[i]), want.out[i]);
        }
    }
    if (want.keys_n == 0) {
        assert_int_equal(bits_of(max), 0xff800000U);
        assert_int_equal(bits_of(sum), 0);
        return;
    }
    assert_true(sum >= 1.0f);
    if (isfinite(slack)) { /* the maximum does not see the rounding of p */
        assert_true(is_near((double)max, want.max, 2e-5 * (1 + fabs(want.max))));
        assert_true(
            is_near((double)max + log((double)sum), want.log_sum_exp,
                    2e-5 * (1 + fabs(want.log_sum_exp)) + sum_slack_of(&c->kernel->ring_model)));
    }
}

static int64_t expect_values(const struct ring_case *c, int64_t stride)
{
    int64_t rows_n = 0;
    for (int64_t rank = 0; rank < c->args.ring_size; rank++) {
        for (int64_t i = rank % stride; i < c->args.batch * c->args.heads * c->args.q_rows;
             i += stride) {
            expect_row(c, rank, i / c->args.q_rows, i % c->args.q_rows);
            rows_n++;
        }
    }
    return rows_n;
}

/* Rows of gathered: source rows only where a shard may be put, and there old bytes or the source's.
 */
static void expect_gathered(const struct ring_case *c)
{
    const struct mla_ring_args *a = &c->args;
    const int64_t round = a->ring_size * a->q_rows;
    const int64_t moved =
        a->has_prior ? (a->logical_n + round - 1) / round * a->q_rows : a->kv_rows;
    const int64_t width = a->head_dim;
    uint16_t *old = test_alloc((size_t)width * 2);
    for (int64_t i = 0; i < width; i++) {
        old[i] = GATHERED_POISON;
    }
    for (int64_t rank = 0; rank < a->ring_size; rank++) {
        for (int64_t entry = 0; entry < a->gathered_batch; entry++) {
            for (int64_t line = 0; line < a->gathered_rows; line++) {
                const uint16_t *row =
                    c->gathered[rank] + (entry * a->gathered_rows + line) * a->head_dim;
                const int64_t source = line / a->kv_rows;
                const int64_t t = line % a->kv_rows;
                bool may = source < a->ring_size && t < moved;
                int64_t slot = entry;
                if (a->has_slot && a->gathered_batch == a->kv_batch) {
                    may = may && entry == a->kv_cache_batch_idx;
                } else if (a->has_slot) {
                    may = may && entry == 0;
                    slot = a->kv_cache_batch_idx;
                }
                if (memcmp(row, old, (size_t)width * 2) == 0) {
                    continue;
                }
                assert_true(may);
                assert_memory_equal(row, c->kv[source] + (slot * a->kv_rows + t) * width,
                                    (size_t)width * 2);
            }
        }
    }
    free(old);
}

/* ---- the cases --------------------------------------------------------------------------------*/

static const struct shape shapes[] = {
    /* contiguous: L full, short, odd, one, whole last ranks empty; chunks that do not divide */
    {.ring_size = 1, .q_rows = 64, .kv_rows = 64, .logical_n = 64},
    {.ring_size = 1, .q_rows = 96, .kv_rows = 96, .logical_n = 33, .k_chunk = 64},
    {.ring_size = 2, .q_rows = 64, .kv_rows = 64, .logical_n = 128, .q_chunk = 64},
    {.ring_size = 3, .q_rows = 64, .kv_rows = 64, .logical_n = 101, .k_chunk = 96},
    {.ring_size = 4, .q_rows = 32, .kv_rows = 32, .logical_n = 1},
    {.ring_size = 4, .q_rows = 64, .kv_rows = 64, .logical_n = 256, .topology = 1},
    {.ring_size = 5, .q_rows = 32, .kv_rows = 32, .logical_n = 97, .topology = 1},
    {.ring_size = 2, .batch = 3, .heads = 3, .q_rows = 32, .kv_rows = 32, .logical_n = 63},
    {.ring_size = 8, .q_rows = 64, .kv_rows = 64, .logical_n = 512, .heads = 1, .q_chunk = 1024},
    {.ring_size = 3, .q_rows = 160, .kv_rows = 160, .logical_n = 450, .q_chunk = 96, .k_chunk = 64},
    /* large scores: weights underflow, maxima far apart */
    {.ring_size = 2, .q_rows = 64, .kv_rows = 64, .logical_n = 128, .scale = 40.0f},
    {.ring_size = 2, .q_rows = 64, .kv_rows = 64, .logical_n = 128, .scale = 0x1p-140f},
    /* balanced, also with chunks that straddle the half and halves of 1.5 tiles */
    {.ring_size = 1, .q_rows = 64, .kv_rows = 64, .logical_n = 64, .is_balanced = 1},
    {.ring_size = 2, .q_rows = 64, .kv_rows = 64, .logical_n = 128, .is_balanced = 1},
    {.ring_size = 4,
     .q_rows = 128,
     .kv_rows = 128,
     .logical_n = 512,
     .is_balanced = 1,
     .k_chunk = 96,
     .q_chunk = 64,
     .heads = 1},
    {.ring_size = 3,
     .q_rows = 192,
     .kv_rows = 192,
     .logical_n = 576,
     .is_balanced = 1,
     .k_chunk = 128,
     .heads = 1,
     .topology = 1},
    {.ring_size = 2,
     .q_rows = 64,
     .kv_rows = 64,
     .logical_n = 128,
     .is_balanced = 1,
     .slots = 3,
     .slot = 2,
     .gathered_batch = 1},
    /* chunked without a prior */
    {.ring_size = 2, .q_rows = 64, .kv_rows = 128, .logical_n = 256},
    {.ring_size = 4, .q_rows = 32, .kv_rows = 128, .logical_n = 205, .k_chunk = 96},
    {.ring_size = 4, .q_rows = 32, .kv_rows = 96, .logical_n = 97, .slots = 2, .slot = 0},
    {.ring_size = 1, .q_rows = 32, .kv_rows = 160, .logical_n = 100, .batch = 2},
    {.ring_size = 3, .q_rows = 32, .kv_rows = 96, .logical_n = 281, .topology = 1},
    /* rotation: from nothing, inside a slab, wrapping, a full chunk, oversized gathered */
    {.ring_size = 2, .q_rows = 64, .kv_rows = 256, .logical_n = 64, .has_prior = 1, .prior = 0},
    {.ring_size = 2, .q_rows = 64, .kv_rows = 256, .logical_n = 96, .has_prior = 1, .prior = 32},
    {.ring_size = 4, .q_rows = 64, .kv_rows = 256, .logical_n = 320, .has_prior = 1, .prior = 64},
    {.ring_size = 4, .q_rows = 64, .kv_rows = 128, .logical_n = 512, .has_prior = 1, .prior = 320},
    {.ring_size = 2,
     .q_rows = 128,
     .kv_rows = 256,
     .logical_n = 416,
     .has_prior = 1,
     .prior = 192,
     .k_chunk = 96},
    {.ring_size = 4,
     .q_rows = 32,
     .kv_rows = 128,
     .logical_n = 192,
     .has_prior = 1,
     .prior = 96,
     .slots = 2,
     .slot = 1,
     .gathered_extra = 64},
    {.ring_size = 4,
     .q_rows = 32,
     .kv_rows = 128,
     .logical_n = 480,
     .has_prior = 1,
     .prior = 448,
     .slots = 3,
     .slot = 1,
     .gathered_batch = 1,
     .gathered_extra = 7,
     .topology = 1},
    {.ring_size = 3, .q_rows = 32, .kv_rows = 96, .logical_n = 96, .has_prior = 1, .prior = 64},
    /* other widths, whose default scales are not powers of two */
    {.ring_size = 3,
     .q_rows = 64,
     .kv_rows = 64,
     .logical_n = 150,
     .head_dim = 96,
     .head_dim_v = 32},
    {.ring_size = 2,
     .q_rows = 32,
     .kv_rows = 64,
     .logical_n = 120,
     .head_dim = 576,
     .head_dim_v = 512},
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct ring_case *c = make(&shapes[i]);
        c->args.num_links = 1 + (int64_t)i % 3;
        c->args.threads = (int64_t)i % 4;
        run(c);
        assert_true(expect_values(c, 3) > 0);
        expect_gathered(c);
        destroy(c);
    }
}

static void expect_same_outputs(const struct ring_case *a, const struct ring_case *b)
{
    for (int64_t rank = 0; rank < a->args.ring_size; rank++) {
        assert_memory_equal(a->out[rank], b->out[rank], (size_t)a->out_n * 2);
        assert_memory_equal(a->stats[rank], b->stats[rank], (size_t)a->stats_n * 4);
    }
}

/* A query chunk that the layout allows, another one each time. */
static int64_t some_q_chunk(const struct shape *shape, size_t turn)
{
    static const int64_t chunks[] = {32, 64, 96, 1024};
    const int64_t half = shape->q_rows / 2;
    if (shape->is_balanced != 0) {
        return turn % 2 != 0 && half % 32 == 0 ? half : or_usual(shape->q_chunk, 32);
    }
    return chunks[turn % COUNT(chunks)];
}

/*
 * The same bits for every number of threads and links, query chunk, and on repetition; for both
 * topologies where two ranks at most leave but one order.
 */
static void expect_same_bits(const struct shape *shape, const struct mla_kernel *kernel,
                             size_t salt)
{
    static const int64_t threads[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 16};
    struct ring_case *first = make(shape);
    first->kernel = kernel;
    run(first);
    for (size_t t = 0; t < COUNT(threads); t++) {
        for (int64_t links = 1; links <= 4; links++) {
            if ((t + salt) % 3 != 0 && links != 1 + (int64_t)(t % 4)) {
                continue; /* all links for a third of the thread counts, one for the others */
            }
            struct ring_case *other = make(shape);
            other->kernel = first->kernel;
            other->args.threads = threads[t];
            other->args.num_links = links;
            other->args.q_chunk_size = some_q_chunk(shape, t + (size_t)links);
            if (shape->ring_size <= 2) {
                other->args.topology = (int32_t)(t % 2);
            }
            run(other);
            expect_same_outputs(first, other);
            expect_gathered(other);
            destroy(other);
        }
    }
    run(first); /* over its own results and a gathered buffer that is no longer fresh */
    struct ring_case *again = make(shape);
    again->kernel = first->kernel;
    again->args.stats = NULL;
    again->args.num_links = INT64_MAX;
    again->args.threads = INT64_MAX;
    run(again);
    for (int64_t rank = 0; rank < first->args.ring_size; rank++) {
        assert_memory_equal(first->out[rank], again->out[rank], (size_t)first->out_n * 2);
        assert_int_equal(bits_of(again->stats[rank][0]), 0xffffffffU);
    }
    destroy(again);
    destroy(first);
}

static void test_same_bits(void **state)
{
    size_t kernels_n;
    const struct mla_kernel *const *kernels = test_kernels(&kernels_n);
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        for (size_t k = 0; k < kernels_n; k++) {
            expect_same_bits(&shapes[i], kernels[k], i + k);
        }
    }
}

/* Every ring size with every number of links, so that all hop patterns occur. */
static void test_ring_sizes(void **state)
{
    static const int64_t threads[] = {0, 1, 2, 3, 5, 8, 16};
    (void)state;
    for (int64_t size = 1; size <= 8; size++) {
        for (int32_t topology = 0; topology <= 1; topology++) {
            const struct shape shape = {.ring_size = size,
                                        .heads = 1,
                                        .q_rows = 32,
                                        .kv_rows = 64,
                                        .logical_n = size * 64 - 7,
                                        .topology = topology};
            struct ring_case *first = make(&shape);
            run(first);
            expect_values(first, 7);
            for (size_t i = 0; i < 4 * COUNT(threads); i++) {
                struct ring_case *other = make(&shape);
                other->args.threads = threads[i / 4];
                other->args.num_links = 1 + (int64_t)i % 4;
                run(other);
                expect_same_outputs(first, other);
                destroy(other);
            }
            destroy(first);
        }
    }
}

static void expect_future_unseen(size_t shape, const struct mla_kernel *kernel)
{
    struct ring_case *clean = make(&shapes[shape]);
    struct ring_case *dirty = make(&shapes[shape]);
    const struct mla_ring_args *a = &clean->args;
    const int64_t source = (int64_t)shape % a->ring_size;
    const int64_t t = (int64_t)(shape * 13) % a->kv_rows;
    int64_t seen_n = 0;
    clean->kernel = kernel;
    dirty->kernel = kernel;
    for (int64_t slot = 0; slot < a->kv_batch; slot++) {
        memset(dirty->kv[source] + (slot * a->kv_rows + t) * a->head_dim, 0xff,
               (size_t)a->head_dim * 2);
    }
    run(clean);
    run(dirty);
    for (int64_t rank = 0; rank < a->ring_size; rank++) {
        for (int64_t n = 0; n < a->batch * a->heads * a->q_rows; n++) {
            const bool sees = key_position(a, source, t) < a->logical_n &&
                              key_position(a, source, t) <= query_position(a, rank, n % a->q_rows);
            const int differs =
                memcmp(clean->out[rank] + n * a->head_dim_v, dirty->out[rank] + n * a->head_dim_v,
                       (size_t)a->head_dim_v * 2);
            assert_true(sees || differs == 0);
            seen_n += sees && differs != 0 ? 1 : 0;
        }
    }
    assert_true(seen_n > 0 || key_position(a, source, t) >= a->logical_n || a->has_prior ||
                a->q_rows < a->kv_rows || a->ring_size == 1);
    destroy(dirty);
    destroy(clean);
}

/* A NaN in one key changes no row at a lower position, not even by a bit; the others may be NaN. */
static void test_future_keys(void **state)
{
    size_t kernels_n;
    const struct mla_kernel *const *kernels = test_kernels(&kernels_n);
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        for (size_t k = 0; k < kernels_n; k++) {
            expect_future_unseen(i, kernels[k]);
        }
    }
}

/* Every kernel: values, the scratch. */
static void test_every_kernel(void **state)
{
    size_t kernels_n;
    const struct mla_kernel *const *kernels = test_kernels(&kernels_n);
    (void)state;
    for (size_t i = 0; i < COUNT(shapes) * kernels_n; i++) {
        const struct shape *shape = &shapes[i / kernels_n];
        struct ring_case *c = make(shape);
        c->kernel = kernels[i % kernels_n];
        run(c);
        expect_values(c, 11);
        expect_gathered(c);
        destroy(c);
    }
}

/* Equal scores and small integers: the mean is exact, whatever the order of the sums. */
static void expect_exact_mean(const struct mla_kernel *kernel)
{
    const struct shape shape = {.ring_size = 4, .q_rows = 32, .kv_rows = 32, .logical_n = 128};
    struct ring_case *c = make(&shape);
    c->kernel = kernel;
    for (int64_t rank = 0; rank < 4; rank++) {
        memset(c->q[rank], 0, (size_t)c->q_n * 2);
        for (int64_t t = 0; t < 32; t++) {
            for (int64_t i = 0; i < 64; i++) { /* position mod 2, as 0 or 4 */
                c->kv[rank][t * 64 + i] = t % 2 != 0 ? 0x4080 : 0;
            }
        }
    }
    run(c);
    for (int64_t rank = 0; rank < 4; rank++) {
        for (int64_t r = 1; r < 32; r += 2) { /* an even number of keys: half of them are 4 */
            assert_int_equal(c->out[rank][r * 32 + 5], 0x4000);
            assert_true(c->stats[rank][r] == 0.0f);
            assert_true(c->stats[rank][32 + r] == (float)(rank * 32 + r + 1));
        }
    }
    destroy(c);
}

static void test_exact_mean(void **state)
{
    size_t kernels_n;
    const struct mla_kernel *const *kernels = test_kernels(&kernels_n);
    (void)state;
    for (size_t k = 0; k < kernels_n; k++) {
        expect_exact_mean(kernels[k]);
    }
}

/* Chunks beyond any memory are as long as the rows there are. */
static void test_huge_chunks(void **state)
{
    const struct shape whole = {
        .ring_size = 2, .q_rows = 96, .kv_rows = 96, .logical_n = 170, .k_chunk = 96};
    struct ring_case *want = make(&whole);
    struct ring_case *got = make(&whole);
    (void)state;
    got->args.q_chunk_size = INT64_MAX - 31;
    got->args.k_chunk_size = INT64_MAX - 31;
    run(want);
    run(got);
    expect_same_outputs(want, got);
    destroy(got);
    destroy(want);
}

/* The caller's floating-point mode changes no bit and no verdict, and is the caller's again. */
static void expect_modes_ignored(const struct mla_kernel *kernel)
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct ring_case *want = make(&shapes[i]);
        struct ring_case *got = make(&shapes[i]);
        want->kernel = got->kernel = kernel;
        run(want);
        for (int mode = 0; mode < TEST_MODES_N; mode++) {
            got->args.threads = ((int64_t)i + mode) % 4;
            test_mode_set(mode);
            const uint32_t before = test_mode_get();
            const int32_t status = got->kernel->ring(&got->args, NULL, 0);
            const uint32_t after = test_mode_get();
            test_mode_reset();
            assert_int_equal(status, MLA_OK);
            assert_int_equal(after, before);
            expect_same_outputs(want, got);
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

/* Without their flags scale, kv_cache_batch_idx and kv_actual_isl are not looked at. */
static void test_flags_off(void **state)
{
    static const int64_t values[] = {1, 32, 64, -1, INT64_MAX, INT64_MIN};
    static const float scales[] = {3.0f, -1.0f, NAN, INFINITY};
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct ring_case *want = make(&shapes[i]);
        struct ring_case *got = make(&shapes[i]);
        struct mla_ring_args *a = &got->args;
        run(want);
        for (size_t k = 0; k < COUNT(values); k++) {
            a->scale = a->has_scale != 0 ? a->scale : scales[k % COUNT(scales)];
            a->kv_cache_batch_idx = a->has_slot != 0 ? a->kv_cache_batch_idx : values[k];
            a->kv_actual_isl = a->has_prior != 0 ? a->kv_actual_isl : values[k];
            run(got);
            expect_same_outputs(want, got);
        }
        destroy(got);
        destroy(want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),       cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_ring_sizes),   cmocka_unit_test(test_future_keys),
        cmocka_unit_test(test_exact_mean),   cmocka_unit_test(test_huge_chunks),
        cmocka_unit_test(test_modes),        cmocka_unit_test(test_flags_off),
        cmocka_unit_test(test_every_kernel),
    };
    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
