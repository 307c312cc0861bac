/* SPDX-License-Identifier: Apache-2.0
 *
 * emulate_test.c - the kernels of fixed arithmetic, bit for bit, against that arithmetic written
 * plainly.
 *
 * What such a kernel claims is not a value within a tolerance but an arithmetic. Here it stands
 * once more, one row and one key at a time, without tiles, lanes, passes or states: scores, weights
 * and sums in the order the kernel's file head gives, with a rounding to bf16 made of frexp and
 * rint. The row's keys and their blocks are written out from the definition. Only the two
 * exponentials are the kernels' own (exp_scalar_test.c, exp_rough_test.c).
 */
#include "impl/exp_rough.h"
#include "impl/exp_scalar.h"
#include "impl/registry.h"
#include "impl/test_data.h"

#include <math.h>
#include <stdbool.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KEYS_MAX     1024
#define VALUE_MAX    512

/* A row: its keys in order, each with the number of its block. */
struct row {
    const uint16_t *query[2];
    const uint16_t *key[KEYS_MAX][2];
    int64_t block[KEYS_MAX];
    int64_t keys_n;
    int64_t part_n[2];
    int64_t value_n;
    float scale;
};

struct result {
    uint16_t out[VALUE_MAX];
    float max, sum;
};

static float value_of(uint16_t bits)
{
    return (float)test_value(bits);
}

/* To nearest, ties to even, 8 significant bits or the spacing of the subnormals. */
static float bf16(float x)
{
    int exponent;
    if (x == 0.0f || !isfinite(x)) {
        return x;
    }
    frexp((double)x, &exponent);
    exponent = exponent - 8 < -133 ? -133 : exponent - 8;
    return (float)ldexp(rint(ldexp((double)x, -exponent)), exponent);
}

static float cut_bf16(float x)
{
    int exponent;
    frexp((double)x, &exponent);
    return (float)ldexp(trunc(ldexp((double)x, 8 - exponent)), exponent - 8);
}

static uint16_t bits_of(float rounded)
{
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    assert_int_equal(bits & 0xffffU, 0);
    return (uint16_t)(bits >> 16);
}

static float score(const struct row *row, int64_t key)
{
    float sum = 0.0f;
    for (int part = 0; part < 2; part++) {
        for (int64_t i = 0; i < row->part_n[part]; i++) {
            sum += value_of(row->query[part][i]) * value_of(row->key[key][part][i]);
        }
    }
    return sum;
}

static float value(const struct row *row, int64_t key, int64_t column)
{
    return value_of(row->key[key][0][column]);
}

static void plain_f32(const struct row *row, struct result *result)
{
    float s[KEYS_MAX];
    float max = -INFINITY;
    float sum = 0.0f;
    for (int64_t j = 0; j < row->keys_n; j++) {
        s[j] = score(row, j);
        max = fmaxf(max, s[j]);
    }
    for (int64_t j = 0; j < row->keys_n; j++) {
        sum += mla_exp_scalar(row->scale * (s[j] - max));
    }
    for (int64_t l = 0; l < row->value_n; l++) {
        float out = 0.0f;
        for (int64_t j = 0; j < row->keys_n; j++) {
            out += mla_exp_scalar(row->scale * (s[j] - max)) * value(row, j, l);
        }
        result->out[l] = bits_of(bf16(out / sum));
    }
    result->max = row->scale * max;
    result->sum = sum;
}

static void emulate_nki(const struct row *row, struct result *result)
{
    float s[KEYS_MAX];
    float p[KEYS_MAX];
    float max = -INFINITY;
    float sum = 0.0f;
    for (int64_t j = 0; j < row->keys_n; j++) {
        s[j] = score(row, j);
        max = fmaxf(max, s[j]);
    }
    for (int64_t j = 0; j < row->keys_n; j++) {
        p[j] = mla_exp_scalar(row->scale * s[j] - row->scale * max);
        sum += p[j];
    }
    for (int64_t l = 0; l < row->value_n; l++) {
        float out = 0.0f;
        for (int64_t j = 0; j < row->keys_n; j++) {
            out += bf16(p[j]) * value(row, j, l);
        }
        result->out[l] = bits_of(bf16(out * (1.0f / sum)));
    }
    result->max = row->scale * max;
    result->sum = sum;
}

static void emulate_ttnn(const struct row *row, struct result *result)
{
    const float cut = row->scale < 0x1p-126f ? row->scale : cut_bf16(row->scale);
    float classes[32] = {0};
    float out[VALUE_MAX] = {0};
    float max = -INFINITY;
    int64_t end;
    for (int64_t first = 0; first < row->keys_n; first = end) {
        float s[KEYS_MAX];
        float share[32] = {0};
        float new_max = max;
        for (end = first; end < row->keys_n && row->block[end] == row->block[first]; end++) {
            s[end] = bf16(score(row, end));
            new_max = fmaxf(new_max, s[end]);
        }
        const float factor = first == 0 ? 1.0f : bf16(mla_exp_rough(cut * (max - new_max)));
        max = new_max;
        for (int64_t j = first; j < end; j++) {
            s[j] = bf16(mla_exp_rough(row->scale * (s[j] - max)));
            share[(j - first) % 32] += s[j];
        }
        for (int i = 0; i < 32; i++) {
            classes[i] = bf16(factor * classes[i] + share[i]);
        }
        for (int64_t l = 0; l < row->value_n; l++) {
            float added = 0.0f;
            for (int64_t j = first; j < end; j++) {
                added += s[j] * value(row, j, l);
            }
            out[l] = bf16(factor * out[l] + added);
        }
    }
    for (int step = 16; step > 0; step /= 2) {
        for (int i = 0; i < step; i++) {
            classes[i] = classes[i] + classes[i + step];
        }
    }
    for (int64_t l = 0; l < row->value_n; l++) {
        result->out[l] = bits_of(bf16(out[l] * (1.0f / classes[0])));
    }
    result->max = row->scale * max;
    result->sum = classes[0];
}

static const struct {
    const char *name;
    void (*row)(const struct row *, struct result *);
} kernels[] = {
    {"plain-f32", plain_f32}, {"emulate-nki", emulate_nki}, {"emulate-ttnn", emulate_ttnn}};

static void expect(const char *name, const struct row *row, const struct result *want,
                   const uint16_t *out, float max, float sum)
{
    for (int64_t l = 0; l < row->value_n; l++) {
        if (out[l] != want->out[l]) {
            fail_msg("%s, %d keys, scale %a, column %d: got %a, want %a", name, (int)row->keys_n,
                     (double)row->scale, (int)l, test_value(out[l]), test_value(want->out[l]));
        }
    }
    assert_memory_equal(&max, &want->max, sizeof max);
    assert_memory_equal(&sum, &want->sum, sizeof sum);
}

/* ---- sparse: lists of 384 with copies, of which an offset drops some --------------------------*/

#define QUERIES 3
#define HEADS   16
#define CACHE   300
#define ROPE    33
#define TOPK    384
#define OFFSET  250

static void sparse_row(const struct mla_sparse_args *args, int64_t line, struct row *row)
{
    const int64_t query = line / HEADS;
    *row = (struct row){.query = {args->q_lift + line * 512, args->q_pe + line * ROPE},
                        .part_n = {512, ROPE},
                        .value_n = 512,
                        .scale = args->softmax_scale};
    for (int64_t j = 0; j < TOPK; j++) {
        const int64_t key = args->topk_indices[query * TOPK + j];
        if (key > OFFSET + query) {
            continue;
        }
        row->key[row->keys_n][0] = args->c_kv + key * 512;
        row->key[row->keys_n][1] = args->k_pe + key * ROPE;
        row->block[row->keys_n] = row->keys_n / 128;
        row->keys_n++;
    }
}

/* Another kernel's arithmetic would be found out: on some line some bit differs. */
static void expect_told_apart(const struct mla_sparse_args *args, size_t other)
{
    struct row *row = test_alloc(sizeof *row);
    struct result *want = test_alloc(sizeof *want);
    int64_t differing = 0;
    for (int64_t line = 0; line < QUERIES * HEADS; line += 3) {
        sparse_row(args, line, row);
        kernels[other].row(row, want);
        differing += memcmp(args->out + line * 512, want->out, 512 * 2) != 0 ? 1 : 0;
    }
    assert_true(differing > 0);
    free(want);
    free(row);
}

static void try_sparse(size_t which, const struct mla_sparse_args *args)
{
    struct row *row = test_alloc(sizeof *row);
    struct result *want = test_alloc(sizeof *want);
    assert_int_equal(mla_registry_find(kernels[which].name)->sparse(args, NULL, 0), MLA_OK);
    for (int64_t line = 0; line < QUERIES * HEADS; line += 3) {
        sparse_row(args, line, row);
        assert_true(row->keys_n > 256 && row->keys_n < TOPK);
        kernels[which].row(row, want);
        expect(kernels[which].name, row, want, args->out + line * 512, args->stats[2 * line],
               args->stats[2 * line + 1]);
    }
    free(want);
    free(row);
}

static void test_sparse(void **state)
{
    static const float scales[] = {0x1.555556p-5f, 0.135234f, 3.0f, 0x1p-125f, 0x1.8p-140f};
    uint16_t *q_lift = test_tensor(QUERIES * HEADS * 512, 1);
    uint16_t *q_pe = test_tensor(QUERIES * HEADS * ROPE, 2);
    uint16_t *c_kv = test_tensor(CACHE * 512, 3);
    uint16_t *k_pe = test_tensor(CACHE * ROPE, 4);
    uint16_t *out = test_alloc(QUERIES * HEADS * 512 * 2);
    float *stats = test_alloc(QUERIES * HEADS * 2 * sizeof *stats);
    int32_t topk[QUERIES * TOPK];
    struct mla_sparse_args args = {.struct_size = sizeof args,
                                   .batch = 1,
                                   .queries = QUERIES,
                                   .keys = CACHE,
                                   .heads = HEADS,
                                   .latent = 512,
                                   .rope = ROPE,
                                   .topk = TOPK,
                                   .has_q_pos_offset = 1,
                                   .q_pos_offset = OFFSET,
                                   .out_order = MLA_OUT_NATURAL,
                                   .cores = 1,
                                   .q_lift = q_lift,
                                   .q_pe = q_pe,
                                   .c_kv = c_kv,
                                   .k_pe = k_pe,
                                   .topk_indices = topk,
                                   .out = out,
                                   .stats = stats};
    (void)state;
    for (size_t i = 0; i < COUNT(topk); i++) {
        topk[i] = (int32_t)(test_mix(5, i) % CACHE);
    }
    for (size_t i = 0; i < COUNT(kernels) * COUNT(scales); i++) {
        args.softmax_scale = scales[i % COUNT(scales)];
        try_sparse(i / COUNT(scales), &args);
        for (size_t other = 0; i % COUNT(scales) == 0 && other < COUNT(kernels); other++) {
            if (other != i / COUNT(scales)) {
                expect_told_apart(&args, other);
            }
        }
    }
    free(stats);
    free(out);
    free(k_pe);
    free(c_kv);
    free(q_pe);
    free(q_lift);
}

/* ---- ring: three ranks, each visits its own shard, the next, the one before -------------------*/

#define RANKS 3
#define ROWS  96
#define WIDTH 64
#define VALID 250 /* of 288 keys */
#define CHUNK 64

static void ring_row(const struct mla_ring_args *args, int64_t rank, int64_t r, struct row *row)
{
    static const int64_t turns[RANKS] = {0, 1, RANKS - 1};
    int64_t block = 0;
    *row = (struct row){.query = {args->q[rank] + r * WIDTH, NULL},
                        .part_n = {WIDTH, 0},
                        .value_n = 32,
                        .scale = args->scale};
    for (int turn = 0; turn < RANKS; turn++) {
        const int64_t source = (rank + turns[turn]) % RANKS;
        for (int64_t t = 0; t < ROWS; t++) {
            const int64_t position = source * ROWS + t;
            block += t % CHUNK == 0 ? 1 : 0;
            if (position > rank * ROWS + r || position >= VALID) {
                continue;
            }
            row->key[row->keys_n][0] = args->kv[source] + t * WIDTH;
            row->block[row->keys_n] = block;
            row->keys_n++;
        }
    }
}

static void try_ring(size_t which, const struct mla_ring_args *args)
{
    struct row *row = test_alloc(sizeof *row);
    struct result *want = test_alloc(sizeof *want);
    assert_int_equal(mla_registry_find(kernels[which].name)->ring(args, NULL, 0), MLA_OK);
    for (int64_t i = 0; i < RANKS * ROWS; i += 2) {
        const float *stats = args->stats[i / ROWS];
        ring_row(args, i / ROWS, i % ROWS, row);
        kernels[which].row(row, want);
        expect(kernels[which].name, row, want, args->out[i / ROWS] + i % ROWS * 32, stats[i % ROWS],
               stats[ROWS + i % ROWS]);
    }
    free(want);
    free(row);
}

static void test_ring(void **state)
{
    static const float scales[] = {0.125f, 0.135234f, 30.0f};
    uint16_t *q[RANKS], *kv[RANKS], *gathered[RANKS], *out[RANKS];
    const uint16_t *q_in[RANKS], *kv_in[RANKS];
    float *stats[RANKS];
    struct mla_ring_args args = {.struct_size = sizeof args,
                                 .ring_size = RANKS,
                                 .batch = 1,
                                 .heads = 1,
                                 .q_rows = ROWS,
                                 .kv_rows = ROWS,
                                 .kv_batch = 1,
                                 .kv_heads = 1,
                                 .kv_head_dim = WIDTH,
                                 .gathered_rows = RANKS * ROWS,
                                 .gathered_batch = 1,
                                 .head_dim = WIDTH,
                                 .head_dim_v = 32,
                                 .logical_n = VALID,
                                 .has_scale = 1,
                                 .num_links = 2,
                                 .q_chunk_size = 64,
                                 .k_chunk_size = CHUNK,
                                 .dim = 2,
                                 .q = q_in,
                                 .kv = kv_in,
                                 .gathered = gathered,
                                 .out = out,
                                 .stats = stats};
    (void)state;
    for (uint64_t i = 0; i < RANKS; i++) {
        q_in[i] = q[i] = test_tensor(ROWS * WIDTH, 10 + i);
        kv_in[i] = kv[i] = test_tensor(ROWS * WIDTH, 20 + i);
        gathered[i] = test_alloc(RANKS * ROWS * WIDTH * 2);
        out[i] = test_alloc(ROWS * 32 * 2);
        stats[i] = test_alloc(2 * ROWS * sizeof *stats[i]);
    }
    for (size_t i = 0; i < COUNT(kernels) * COUNT(scales); i++) {
        args.scale = scales[i % COUNT(scales)];
        try_ring(i / COUNT(scales), &args);
    }
    for (size_t i = 0; i < RANKS; i++) {
        free(q[i]);
        free(kv[i]);
        free(gathered[i]);
        free(out[i]);
        free(stats[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_ring),
    };
    return cmocka_run_group_tests_name("emulate", tests, NULL, NULL);
}
