/* SPDX-License-Identifier: Apache-2.0
 *
 * refuse_test.c - every refusal of the two operations, one line each: what is changed in an
 * accepted call, and what must be said about it.
 */
#include "oracle/oracle.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- setting fields by name -------------------------------------------------------------------*/

struct member {
    const char *name;
    size_t offset;
    size_t bytes;
};

#define MEMBER(type, name)                                                                         \
    {                                                                                              \
#name, offsetof(struct type, name), sizeof(((struct type *)0)->name)                       \
    }

static const struct member ring_members[] = {
    MEMBER(mla_ring_args, struct_size),
    MEMBER(mla_ring_args, ring_size),
    MEMBER(mla_ring_args, batch),
    MEMBER(mla_ring_args, heads),
    MEMBER(mla_ring_args, q_rows),
    MEMBER(mla_ring_args, kv_rows),
    MEMBER(mla_ring_args, kv_batch),
    MEMBER(mla_ring_args, kv_heads),
    MEMBER(mla_ring_args, kv_head_dim),
    MEMBER(mla_ring_args, gathered_rows),
    MEMBER(mla_ring_args, gathered_batch),
    MEMBER(mla_ring_args, head_dim),
    MEMBER(mla_ring_args, head_dim_v),
    MEMBER(mla_ring_args, logical_n),
    MEMBER(mla_ring_args, has_scale),
    MEMBER(mla_ring_args, is_balanced),
    MEMBER(mla_ring_args, has_slot),
    MEMBER(mla_ring_args, kv_cache_batch_idx),
    MEMBER(mla_ring_args, has_prior),
    MEMBER(mla_ring_args, kv_actual_isl),
    MEMBER(mla_ring_args, topology),
    MEMBER(mla_ring_args, num_links),
    MEMBER(mla_ring_args, q_chunk_size),
    MEMBER(mla_ring_args, k_chunk_size),
    MEMBER(mla_ring_args, dim),
    MEMBER(mla_ring_args, threads),
    MEMBER(mla_ring_args, q),
    MEMBER(mla_ring_args, kv),
    MEMBER(mla_ring_args, gathered),
    MEMBER(mla_ring_args, out),
    MEMBER(mla_ring_args, stats),
    {NULL, 0, 0},
};

static const struct member sparse_members[] = {
    MEMBER(mla_sparse_args, struct_size),
    MEMBER(mla_sparse_args, batch),
    MEMBER(mla_sparse_args, queries),
    MEMBER(mla_sparse_args, keys),
    MEMBER(mla_sparse_args, heads),
    MEMBER(mla_sparse_args, latent),
    MEMBER(mla_sparse_args, rope),
    MEMBER(mla_sparse_args, topk),
    MEMBER(mla_sparse_args, topk_tiled),
    MEMBER(mla_sparse_args, dense),
    MEMBER(mla_sparse_args, has_q_pos_offset),
    MEMBER(mla_sparse_args, q_pos_offset),
    MEMBER(mla_sparse_args, out_order),
    MEMBER(mla_sparse_args, cores),
    MEMBER(mla_sparse_args, threads),
    MEMBER(mla_sparse_args, q_lift),
    MEMBER(mla_sparse_args, q_pe),
    MEMBER(mla_sparse_args, c_kv),
    MEMBER(mla_sparse_args, k_pe),
    MEMBER(mla_sparse_args, topk_indices),
    MEMBER(mla_sparse_args, out),
    MEMBER(mla_sparse_args, stats),
    {NULL, 0, 0},
};

/* Apply "name=value name=value ..." to an argument structure. */
static void apply(void *args, const struct member *members, const char *edits)
{
    char text[256];
    char *rest = text;

    (void)snprintf(text, sizeof text, "%s", edits);
    for (char *edit = strtok_r(text, " ", &rest); edit != NULL; edit = strtok_r(NULL, " ", &rest)) {
        const struct member *m = members;
        char *value = strchr(edit, '=');

        assert_non_null(value);
        *value++ = '\0';
        while (m->name != NULL && strcmp(m->name, edit) != 0) {
            m++;
        }
        assert_non_null(m->name);
        if (m->bytes == 8) {
            const int64_t wide = strtoll(value, NULL, 10);

            memcpy((char *)args + m->offset, &wide, 8);
        } else {
            const int32_t narrow = (int32_t)strtol(value, NULL, 10);

            memcpy((char *)args + m->offset, &narrow, 4);
        }
    }
}

struct line {
    const char *edits;
    int32_t status;
    const char *field;
    const char *value;
};

static void check(const struct line *line, struct mla_refusal got)
{
    if (got.status != line->status || strcmp(got.field, line->field) != 0 ||
        strcmp(got.value, line->value) != 0) {
        print_error("%s: want %d %s=%s, got %d %s=%s\n", line->edits, (int)line->status,
                    line->field, line->value, (int)got.status, got.field, got.value);
        fail();
    }
}

/* ---- accepted calls to start from -------------------------------------------------------------*/

static uint16_t storage[1];
static const uint16_t *inputs[MLA_RING_SIZE_MAX];
static uint16_t *outputs[MLA_RING_SIZE_MAX];
static float stats_storage[1];
static float *stats[MLA_RING_SIZE_MAX];

/* Full prefill, two ranks. */
static struct mla_ring_args ring_base(void)
{
    for (int d = 0; d < MLA_RING_SIZE_MAX; d++) {
        inputs[d] = storage;
        outputs[d] = storage;
        stats[d] = stats_storage;
    }
    return (struct mla_ring_args){.struct_size = sizeof(struct mla_ring_args),
                                  .ring_size = 2,
                                  .batch = 1,
                                  .heads = 2,
                                  .q_rows = 128,
                                  .kv_rows = 128,
                                  .kv_batch = 1,
                                  .kv_heads = 1,
                                  .kv_head_dim = 64,
                                  .gathered_rows = 256,
                                  .gathered_batch = 1,
                                  .head_dim = 64,
                                  .head_dim_v = 32,
                                  .logical_n = 256,
                                  .num_links = 1,
                                  .q_chunk_size = 32,
                                  .k_chunk_size = 32,
                                  .dim = 2,
                                  .q = inputs,
                                  .kv = inputs,
                                  .gathered = outputs,
                                  .out = outputs};
}

static const struct line ring_lines[] = {
    {"", MLA_OK, "", ""},
    /* structure, then pointers */
    {"struct_size=8 q=0", MLA_ERR_PARAM, "struct_size", "8"},
    {"q=0 kv=0 batch=0", MLA_ERR_PARAM, "q", "0"},
    {"kv=0 out=0", MLA_ERR_PARAM, "kv", "0"},
    {"gathered=0", MLA_ERR_PARAM, "gathered", "0"},
    {"out=0 ring_size=0", MLA_ERR_PARAM, "out", "0"},
    {"stats=0", MLA_OK, "", ""},
    /* ranges, in order */
    {"ring_size=0 batch=0", MLA_ERR_PARAM, "ring_size", "0"},
    {"ring_size=33", MLA_ERR_PARAM, "ring_size", "33"},
    {"ring_size=-9223372036854775808", MLA_ERR_PARAM, "ring_size", "-9223372036854775808"},
    {"batch=0 heads=0", MLA_ERR_PARAM, "batch", "0"},
    {"heads=-1 q_rows=0", MLA_ERR_PARAM, "heads", "-1"},
    {"q_rows=0 kv_rows=0", MLA_ERR_PARAM, "q_rows", "0"},
    {"kv_rows=-32 kv_batch=0", MLA_ERR_PARAM, "kv_rows", "-32"},
    {"kv_batch=0 gathered_batch=0", MLA_ERR_PARAM, "kv_batch", "0"},
    {"gathered_batch=0 num_links=0", MLA_ERR_PARAM, "gathered_batch", "0"},
    {"num_links=0 threads=-1", MLA_ERR_PARAM, "num_links", "0"},
    {"threads=-1 topology=2", MLA_ERR_PARAM, "threads", "-1"},
    {"topology=2 has_scale=2", MLA_ERR_PARAM, "topology", "2"},
    {"topology=-1", MLA_ERR_PARAM, "topology", "-1"},
    {"topology=1", MLA_OK, "", ""},
    {"has_scale=2 is_balanced=2", MLA_ERR_PARAM, "has_scale", "2"},
    {"is_balanced=-1 has_slot=3", MLA_ERR_PARAM, "is_balanced", "-1"},
    {"has_slot=3 has_prior=2", MLA_ERR_PARAM, "has_slot", "3"},
    {"has_prior=2 dim=1", MLA_ERR_PARAM, "has_prior", "2"},
    {"dim=1 kv_heads=2", MLA_ERR_PARAM, "dim", "1"},
    /* heads */
    {"kv_heads=2 kv_head_dim=32", MLA_ERR_SHAPE, "kv_heads", "2"},
    {"kv_head_dim=32 q_rows=33", MLA_ERR_SHAPE, "kv_head_dim", "32"},
    /* tiles */
    {"q_rows=48 kv_rows=48", MLA_ERR_SHAPE, "q_rows", "48"},
    {"kv_rows=130 head_dim=65 kv_head_dim=65", MLA_ERR_SHAPE, "kv_rows", "130"},
    {"head_dim=65 kv_head_dim=65 head_dim_v=33", MLA_ERR_SHAPE, "head_dim", "65"},
    {"head_dim_v=33 q_chunk_size=0", MLA_ERR_SHAPE, "head_dim_v", "33"},
    {"head_dim_v=0", MLA_ERR_SHAPE, "head_dim_v", "0"},
    {"head_dim_v=-32", MLA_ERR_SHAPE, "head_dim_v", "-32"},
    {"head_dim_v=64", MLA_ERR_SHAPE, "head_dim_v", "64"},
    {"head_dim=-64 kv_head_dim=-64", MLA_ERR_SHAPE, "head_dim_v", "32"},
    {"q_chunk_size=0 k_chunk_size=0", MLA_ERR_SHAPE, "q_chunk_size", "0"},
    {"q_chunk_size=-32", MLA_ERR_SHAPE, "q_chunk_size", "-32"},
    {"q_chunk_size=40", MLA_ERR_SHAPE, "q_chunk_size", "40"},
    {"k_chunk_size=33 q_rows=160", MLA_ERR_SHAPE, "k_chunk_size", "33"},
    {"q_chunk_size=320 k_chunk_size=9600", MLA_OK, "", ""},
    {"q_rows=160 gathered_rows=1", MLA_ERR_SHAPE, "q_rows", "160"},
    /* batches */
    {"kv_batch=2 gathered_batch=2", MLA_ERR_SHAPE, "kv_batch", "2"},
    {"gathered_batch=2 gathered_rows=255", MLA_ERR_SHAPE, "gathered_batch", "2"},
    {"gathered_rows=255 logical_n=0", MLA_ERR_SHAPE, "gathered_rows", "255"},
    {"gathered_rows=257", MLA_OK, "", ""},
    {"kv_rows=9223372036854775776 gathered_rows=9223372036854775807", MLA_ERR_SHAPE,
     "gathered_rows", "9223372036854775807"},
    /* sizes: 2^62 - 1 bytes is the most a tensor may take */
    {"heads=562949953421312 logical_n=0", MLA_ERR_SHAPE, "q", ""},
    {"heads=281474976710656", MLA_ERR_SHAPE, "q", ""},
    {"heads=281474976710655", MLA_OK, "", ""},
    {"heads=9223372036854775807", MLA_ERR_SHAPE, "q", ""},
    {"batch=4294967296 kv_batch=4294967296 gathered_batch=4294967296 heads=4294967296",
     MLA_ERR_SHAPE, "q", ""},
    {"kv_batch=281474976710656 has_slot=1 batch=2", MLA_ERR_SHAPE, "kv", ""},
    {"gathered_rows=36028797018963968", MLA_ERR_SHAPE, "gathered", ""},
    {"gathered_rows=36028797018963967", MLA_OK, "", ""},
    /* length */
    {"logical_n=0 is_balanced=1", MLA_ERR_PARAM, "logical_n", "0"},
    {"logical_n=-5", MLA_ERR_PARAM, "logical_n", "-5"},
    {"logical_n=257", MLA_ERR_PARAM, "logical_n", "257"},
    {"logical_n=1", MLA_OK, "", ""},
    /* balanced */
    {"is_balanced=1", MLA_OK, "", ""},
    {"is_balanced=1 has_prior=1 kv_actual_isl=7 q_rows=64", MLA_ERR_PARAM, "kv_actual_isl", "7"},
    {"is_balanced=1 q_rows=64 q_chunk_size=320", MLA_ERR_PARAM, "q_rows", "64"},
    {"is_balanced=1 q_chunk_size=96 logical_n=32", MLA_ERR_PARAM, "q_chunk_size", "96"},
    {"is_balanced=1 q_rows=32 kv_rows=32 logical_n=64", MLA_ERR_PARAM, "q_chunk_size", "32"},
    {"is_balanced=1 logical_n=224", MLA_ERR_PARAM, "logical_n", "224"},
    /* slot */
    {"has_slot=1 kv_batch=3", MLA_OK, "", ""},
    {"has_slot=1 kv_batch=3 kv_cache_batch_idx=2 gathered_batch=3", MLA_OK, "", ""},
    {"has_slot=1 kv_batch=3 kv_cache_batch_idx=3 batch=2", MLA_ERR_PARAM, "kv_cache_batch_idx",
     "3"},
    {"has_slot=1 kv_batch=3 kv_cache_batch_idx=-1", MLA_ERR_PARAM, "kv_cache_batch_idx", "-1"},
    {"kv_cache_batch_idx=-1", MLA_OK, "", ""},
    {"has_slot=1 kv_batch=3 batch=2 gathered_batch=2", MLA_ERR_PARAM, "batch", "2"},
    {"has_slot=1 kv_batch=3 gathered_batch=2 has_prior=1", MLA_ERR_PARAM, "gathered_batch", "2"},
    /* prior */
    {"has_prior=1 q_rows=64 kv_actual_isl=96 logical_n=224", MLA_OK, "", ""},
    {"has_prior=1 q_rows=64 kv_actual_isl=-32", MLA_ERR_PARAM, "kv_actual_isl", "-32"},
    {"has_prior=1 kv_actual_isl=0", MLA_ERR_PARAM, "q_rows", "128"},
    {"has_prior=1 q_rows=96 kv_actual_isl=1", MLA_ERR_PARAM, "kv_rows", "128"},
    {"has_prior=1 q_rows=64 kv_actual_isl=1", MLA_ERR_PARAM, "kv_actual_isl", "1"},
    {"has_prior=1 q_rows=64 kv_actual_isl=96 logical_n=200", MLA_ERR_PARAM, "logical_n", "200"},
    {"has_prior=1 q_rows=64 kv_actual_isl=96 logical_n=96", MLA_ERR_PARAM, "logical_n", "96"},
    {"has_prior=1 q_rows=64 kv_actual_isl=96 logical_n=256", MLA_ERR_PARAM, "logical_n", "256"},
    {"has_prior=1 q_rows=64 kv_actual_isl=9223372036854775776", MLA_ERR_PARAM, "logical_n", "256"},
    {"kv_actual_isl=-7", MLA_OK, "", ""},
    /* chunked without a prior */
    {"q_rows=64", MLA_OK, "", ""},
    {"q_rows=64 logical_n=97", MLA_OK, "", ""},
    {"q_rows=96 logical_n=1", MLA_ERR_PARAM, "kv_rows", "128"},
    {"q_rows=64 logical_n=96 has_scale=1", MLA_ERR_PARAM, "logical_n", "96"},
};

static void ring_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ring_lines / sizeof ring_lines[0]; i++) {
        struct mla_ring_args args = ring_base();

        apply(&args, ring_members, ring_lines[i].edits);
        check(&ring_lines[i], mla_refuse_ring(&args));
    }
}

static void ring_entries(void **state)
{
    struct mla_ring_args args = ring_base();

    (void)state;
    check(&(struct line){"null args", MLA_ERR_PARAM, "args", "0"}, mla_refuse_ring(NULL));
    inputs[1] = NULL;
    outputs[0] = NULL;
    check(&(struct line){"q[1]", MLA_ERR_PARAM, "q[1]", "0"}, mla_refuse_ring(&args));
    args.ring_size = 1;
    check(&(struct line){"gathered[0]", MLA_ERR_PARAM, "gathered[0]", "0"}, mla_refuse_ring(&args));
    args.ring_size = 33; /* entries are not looked at */
    check(&(struct line){"33", MLA_ERR_PARAM, "ring_size", "33"}, mla_refuse_ring(&args));
    args = ring_base();
    args.stats = stats;
    check(&(struct line){"stats", MLA_OK, "", ""}, mla_refuse_ring(&args));
    stats[1] = NULL;
    check(&(struct line){"stats[1]", MLA_ERR_PARAM, "stats[1]", "0"}, mla_refuse_ring(&args));
}

static void ring_scales(void **state)
{
    static const struct {
        float scale;
        int32_t status;
        const char *value;
    } scales[] = {
        {0.0f, MLA_ERR_PARAM, ""},      {-0.0f, MLA_ERR_PARAM, ""}, {-2.0f, MLA_ERR_PARAM, "-2"},
        {-0.5f, MLA_ERR_PARAM, ""},     {NAN, MLA_ERR_PARAM, ""},   {INFINITY, MLA_ERR_PARAM, ""},
        {-INFINITY, MLA_ERR_PARAM, ""}, {0x1p-149f, MLA_OK, ""},    {0x1.fffffep127f, MLA_OK, ""}};

    (void)state;
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        struct mla_ring_args args = ring_base();
        const bool refused = scales[i].status != MLA_OK;

        args.scale = scales[i].scale; /* absent: it does not count */
        check(&(struct line){"absent scale", MLA_OK, "", ""}, mla_refuse_ring(&args));
        args.has_scale = 1;
        check(&(struct line){"scale", scales[i].status, refused ? "scale" : "", scales[i].value},
              mla_refuse_ring(&args));
    }
}

/* ---- sparse -----------------------------------------------------------------------------------*/

static int32_t flat[3 * 128];

static struct mla_sparse_args sparse_base(void)
{
    memset(flat, 0, sizeof flat);
    return (struct mla_sparse_args){.struct_size = sizeof(struct mla_sparse_args),
                                    .batch = 1,
                                    .queries = 3,
                                    .keys = 40,
                                    .heads = 16,
                                    .latent = 512,
                                    .rope = 64,
                                    .topk = 128,
                                    .cores = 1,
                                    .softmax_scale = 1.0f,
                                    .q_lift = storage,
                                    .q_pe = storage,
                                    .c_kv = storage,
                                    .k_pe = storage,
                                    .topk_indices = flat,
                                    .out = storage};
}

static const struct line sparse_lines[] = {
    {"", MLA_OK, "", ""},
    {"struct_size=0 q_lift=0", MLA_ERR_PARAM, "struct_size", "0"},
    {"q_lift=0 q_pe=0", MLA_ERR_PARAM, "q_lift", "0"},
    {"q_pe=0 c_kv=0", MLA_ERR_PARAM, "q_pe", "0"},
    {"c_kv=0 k_pe=0", MLA_ERR_PARAM, "c_kv", "0"},
    {"k_pe=0 topk_indices=0", MLA_ERR_PARAM, "k_pe", "0"},
    {"topk_indices=0 out=0", MLA_ERR_PARAM, "topk_indices", "0"},
    {"dense=1 out=0", MLA_ERR_PARAM, "topk_indices", ""},
    {"dense=2 queries=0", MLA_ERR_PARAM, "topk_indices", ""},
    {"dense=1 topk_indices=0", MLA_OK, "", ""},
    {"dense=1 topk_indices=0 topk=-3", MLA_OK, "", ""},
    {"out=0 queries=0", MLA_ERR_PARAM, "out", "0"},
    {"queries=0 keys=0", MLA_ERR_PARAM, "queries", "0"},
    {"keys=0 cores=0", MLA_ERR_PARAM, "keys", "0"},
    {"cores=0 threads=-2", MLA_ERR_PARAM, "cores", "0"},
    {"threads=-2 topk_tiled=2", MLA_ERR_PARAM, "threads", "-2"},
    {"topk_tiled=2 has_q_pos_offset=2", MLA_ERR_PARAM, "topk_tiled", "2"},
    {"dense=2 topk_indices=0 has_q_pos_offset=2", MLA_ERR_PARAM, "dense", "2"},
    {"has_q_pos_offset=2 out_order=2", MLA_ERR_PARAM, "has_q_pos_offset", "2"},
    {"out_order=2 q_pos_offset=-1", MLA_ERR_PARAM, "out_order", "2"},
    {"has_q_pos_offset=1 q_pos_offset=-1 batch=2", MLA_ERR_PARAM, "q_pos_offset", "-1"},
    {"q_pos_offset=-1", MLA_OK, "", ""},
    {"has_q_pos_offset=1 q_pos_offset=9223372036854775807", MLA_OK, "", ""},
    {"batch=2 latent=256", MLA_ERR_SHAPE, "batch", "2"},
    {"batch=0", MLA_ERR_SHAPE, "batch", "0"},
    {"latent=256 heads=8", MLA_ERR_SHAPE, "latent", "256"},
    {"heads=0 rope=0", MLA_ERR_SHAPE, "heads", "0"},
    {"heads=144", MLA_ERR_SHAPE, "heads", "144"},
    {"heads=24", MLA_ERR_SHAPE, "heads", "24"},
    {"rope=0 topk=64", MLA_ERR_SHAPE, "rope", "0"},
    {"rope=129", MLA_ERR_SHAPE, "rope", "129"},
    {"topk=64 cores=2", MLA_ERR_SHAPE, "topk", "64"},
    {"topk=0", MLA_ERR_SHAPE, "topk", "0"},
    {"topk=-128", MLA_ERR_SHAPE, "topk", "-128"},
    {"cores=2", MLA_ERR_SHAPE, "queries", "3"},
    {"cores=3", MLA_OK, "", ""},
    {"cores=9223372036854775807", MLA_ERR_SHAPE, "queries", "3"},
    {"queries=281474976710656", MLA_ERR_SHAPE, "q_lift", ""},
    {"keys=4503599627370496", MLA_ERR_SHAPE, "c_kv", ""},
    {"topk=9223372036854775680", MLA_ERR_SHAPE, "topk_indices", ""},
    {"topk=9007199254740992 topk_tiled=1", MLA_ERR_SHAPE, "topk_indices", ""},
    {"topk=9007199254740992 topk_tiled=1 dense=1 topk_indices=0", MLA_OK, "", ""},
};

static void sparse_table(void **state)
{
    (void)state;
    check(&(struct line){"null args", MLA_ERR_PARAM, "args", "0"}, mla_refuse_sparse(NULL));
    for (size_t i = 0; i < sizeof sparse_lines / sizeof sparse_lines[0]; i++) {
        struct mla_sparse_args args = sparse_base();

        apply(&args, sparse_members, sparse_lines[i].edits);
        check(&sparse_lines[i], mla_refuse_sparse(&args));
    }
}

static void sparse_scale_and_order(void **state)
{
    struct mla_sparse_args args = sparse_base();

    (void)state;
    args.softmax_scale = NAN;
    args.has_q_pos_offset = 1;
    args.q_pos_offset = -1;
    check(&(struct line){"nan", MLA_ERR_PARAM, "softmax_scale", ""}, mla_refuse_sparse(&args));
    args.softmax_scale = -3.0f;
    check(&(struct line){"-3", MLA_ERR_PARAM, "softmax_scale", "-3"}, mla_refuse_sparse(&args));
    args.out_order = -1;
    check(&(struct line){"order", MLA_ERR_PARAM, "out_order", "-1"}, mla_refuse_sparse(&args));
}

static void sparse_indices_flat(void **state)
{
    struct mla_sparse_args args = sparse_base();

    (void)state;
    flat[2 * 128 + 127] = 39;
    check(&(struct line){"39", MLA_OK, "", ""}, mla_refuse_sparse(&args));
    flat[2 * 128 + 127] = 40;
    check(&(struct line){"40", MLA_ERR_INDEX, "topk_indices", "40"}, mla_refuse_sparse(&args));
    args.has_q_pos_offset = 1; /* would drop it: refused all the same */
    check(&(struct line){"drop", MLA_ERR_INDEX, "topk_indices", "40"}, mla_refuse_sparse(&args));
    flat[0] = -1;
    check(&(struct line){"two", MLA_ERR_INDEX, "topk_indices", ""}, mla_refuse_sparse(&args));
    args.queries = 2;
    check(&(struct line){"-1", MLA_ERR_INDEX, "topk_indices", "-1"}, mla_refuse_sparse(&args));
}

/*
 * Tiled with 3 rows and topk 128: row 2 has sub-rows 32..47 of the first block of [16][128][8]; its
 * entry 127 is sub-row 32 + 15, column 7. Row 3's sub-rows 48..63 are garbage.
 */
static void sparse_indices_tiled(void **state)
{
    struct mla_sparse_args args = sparse_base();
    int32_t *tiled = calloc(16 * 128 * 8, sizeof *tiled);

    (void)state;
    assert_non_null(tiled);
    args.topk_tiled = 1;
    args.topk_indices = tiled;
    for (int i = 48 * 8; i < 16 * 128 * 8; i++) {
        tiled[i] = INT32_MIN;
    }
    check(&(struct line){"garbage", MLA_OK, "", ""}, mla_refuse_sparse(&args));
    tiled[47 * 8 + 7] = 77;
    check(&(struct line){"77", MLA_ERR_INDEX, "topk_indices", "77"}, mla_refuse_sparse(&args));
    free(tiled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_table),
        cmocka_unit_test(ring_entries),
        cmocka_unit_test(ring_scales),
        cmocka_unit_test(sparse_table),
        cmocka_unit_test(sparse_scale_and_order),
        cmocka_unit_test(sparse_indices_flat),
        cmocka_unit_test(sparse_indices_tiled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
