/* SPDX-License-Identifier: Apache-2.0
 *
 * validate_test.c - every rule of both refusal tables: alone, in pairs, at the limits.
 *
 * A violation is a list of assignments to an accepted call, with the status and the start of the
 * message it must lead to, both written out. The list is in the binding order of the rules, so of
 * any two violations that touch different fields the first must win. Every violation is also sent
 * through the kernel itself, and no byte of its outputs or scratch may change.
 */
#include "impl/test_kernels.h"
#include "impl/validate.h"

#include "impl/registry.h"
#include "impl/test_data.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SETS_MAX     6
#define RANKS        32

enum kind {
    I64,
    I32,
    U32,
    F32,
    PTR /* a pointer set to null, or for a value other than 0 to something */
};

struct field {
    const char *name;
    size_t offset;
    enum kind kind;
};

struct set {
    const char *field;
    double real; /* for a float field */
    int64_t value;
};

struct violation {
    int32_t status;
    const char *message; /* how it starts */
    struct set sets[SETS_MAX];
};

#define R(member, kind)                                                                            \
    {                                                                                              \
#member, offsetof(struct mla_ring_args, member), kind                                      \
    }
static const struct field ring_fields[] = {
    R(struct_size, U32),
    R(ring_size, I64),
    R(batch, I64),
    R(heads, I64),
    R(q_rows, I64),
    R(kv_rows, I64),
    R(kv_batch, I64),
    R(kv_heads, I64),
    R(kv_head_dim, I64),
    R(gathered_rows, I64),
    R(gathered_batch, I64),
    R(head_dim, I64),
    R(head_dim_v, I64),
    R(logical_n, I64),
    R(has_scale, I32),
    R(scale, F32),
    R(is_balanced, I32),
    R(has_slot, I32),
    R(kv_cache_batch_idx, I64),
    R(has_prior, I32),
    R(kv_actual_isl, I64),
    R(topology, I32),
    R(num_links, I64),
    R(q_chunk_size, I64),
    R(k_chunk_size, I64),
    R(dim, I64),
    R(threads, I64),
    R(q, PTR),
    R(kv, PTR),
    R(gathered, PTR),
    R(out, PTR),
    R(stats, PTR),
};
#undef R

#define S(member, kind)                                                                            \
    {                                                                                              \
#member, offsetof(struct mla_sparse_args, member), kind                                    \
    }
static const struct field sparse_fields[] = {
    S(struct_size, U32),
    S(batch, I64),
    S(queries, I64),
    S(keys, I64),
    S(heads, I64),
    S(latent, I64),
    S(rope, I64),
    S(topk, I64),
    S(topk_tiled, I32),
    S(dense, I32),
    S(has_q_pos_offset, I32),
    S(q_pos_offset, I64),
    S(out_order, I32),
    S(cores, I64),
    S(threads, I64),
    S(softmax_scale, F32),
    S(q_lift, PTR),
    S(q_pe, PTR),
    S(c_kv, PTR),
    S(k_pe, PTR),
    S(topk_indices, PTR),
    S(out, PTR),
    S(stats, PTR),
};
#undef S

static int32_t something[4]; /* what a pointer is set to that must not be there */

static void assign(void *args, const struct field *fields, size_t fields_n, const struct set *set)
{
    for (size_t i = 0; i < fields_n; i++) {
        if (strcmp(fields[i].name, set->field) != 0) {
            continue;
        }
        unsigned char *at = (unsigned char *)args + fields[i].offset;
        const int32_t narrow = (int32_t)set->value;
        const uint32_t size = (uint32_t)set->value;
        const float real = (float)set->real;
        const void *pointer = set->value == 0 ? NULL : something;
        switch (fields[i].kind) {
        case I64:
            memcpy(at, &set->value, sizeof set->value);
            return;
        case I32:
            memcpy(at, &narrow, sizeof narrow);
            return;
        case U32:
            memcpy(at, &size, sizeof size);
            return;
        case F32:
            memcpy(at, &real, sizeof real);
            return;
        default:
            memcpy(at, &pointer, sizeof pointer);
            return;
        }
    }
    fail_msg("no field %s", set->field);
}

static bool share_a_field(const struct violation *a, const struct violation *b)
{
    for (int i = 0; i < SETS_MAX && a->sets[i].field != NULL; i++) {
        for (int j = 0; j < SETS_MAX && b->sets[j].field != NULL; j++) {
            if (strcmp(a->sets[i].field, b->sets[j].field) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void expect_start(const char *message, const char *start)
{
    if (strncmp(message, start, strlen(start)) != 0) {
        fail_msg("got \"%s\", wanted \"%s...\"", message, start);
    }
}

/* ---- ring -------------------------------------------------------------------------------------*/

/*
 * An accepted call that uses everything but is_balanced: rotation in slot 1 of 2, R = 2, Nq = 64,
 * Nk = 128, P = 64, L = 160. The buffers are one block, to be compared byte for byte.
 */
struct ring_fixture {
    struct mla_ring_args args;
    const uint16_t *q[RANKS];
    const uint16_t *kv[RANKS];
    uint16_t *gathered[RANKS];
    uint16_t *out[RANKS];
    float *stats[RANKS];
    uint16_t inputs[2][2][128 * 64];
    struct {
        uint16_t gathered[2][2][256 * 64];
        uint16_t out[2][64 * 32];
        float stats[2][2 * 64];
    } written;
};

static struct ring_fixture *ring_begin(void)
{
    struct ring_fixture *f = test_alloc(sizeof *f);
    memset(f, 0x5a, sizeof *f);
    f->args = (struct mla_ring_args){.struct_size = sizeof(struct mla_ring_args),
                                     .ring_size = 2,
                                     .batch = 1,
                                     .heads = 1,
                                     .q_rows = 64,
                                     .kv_rows = 128,
                                     .kv_batch = 2,
                                     .kv_heads = 1,
                                     .kv_head_dim = 64,
                                     .gathered_rows = 256,
                                     .gathered_batch = 2,
                                     .head_dim = 64,
                                     .head_dim_v = 32,
                                     .logical_n = 160,
                                     .has_scale = 1,
                                     .scale = 0.125f,
                                     .has_slot = 1,
                                     .kv_cache_batch_idx = 1,
                                     .has_prior = 1,
                                     .kv_actual_isl = 64,
                                     .num_links = 1,
                                     .q_chunk_size = 32,
                                     .k_chunk_size = 32,
                                     .dim = 2,
                                     .threads = 1,
                                     .q = f->q,
                                     .kv = f->kv,
                                     .gathered = f->gathered,
                                     .out = f->out,
                                     .stats = f->stats};
    memset(f->inputs, 0, sizeof f->inputs);
    for (int i = 0; i < RANKS; i++) {
        f->q[i] = &f->inputs[i % 2][0][0];
        f->kv[i] = &f->inputs[i % 2][0][0];
        f->gathered[i] = &f->written.gathered[i % 2][0][0];
        f->out[i] = f->written.out[i % 2];
        f->stats[i] = f->written.stats[i % 2];
    }
    return f;
}

#define BIG INT64_C(0x4000000000000000)

/*
 * In binding order; the numbers of the base call are in ring_begin(). A violation also sets the
 * fields its rule depends on when a later one would change them and so mend it: pairs with a common
 * field are not formed.
 */
static const struct violation ring_violations[] = {
    {MLA_ERR_PARAM, "struct_size = 7: ", {{"struct_size", .value = 7}}},
    {MLA_ERR_PARAM, "q = 0: ", {{"q", .value = 0}}},
    {MLA_ERR_PARAM, "kv = 0: ", {{"kv", .value = 0}}},
    {MLA_ERR_PARAM, "gathered = 0: ", {{"gathered", .value = 0}}},
    {MLA_ERR_PARAM, "out = 0: ", {{"out", .value = 0}}},
    {MLA_ERR_PARAM, "ring_size = 0: ", {{"ring_size", .value = 0}}},
    {MLA_ERR_PARAM, "ring_size = 33: ", {{"ring_size", .value = 33}}},
    {MLA_ERR_PARAM, "batch = 0: ", {{"batch", .value = 0}}},
    {MLA_ERR_PARAM, "heads = -3: ", {{"heads", .value = -3}}},
    {MLA_ERR_PARAM, "q_rows = 0: ", {{"q_rows", .value = 0}}},
    {MLA_ERR_PARAM, "kv_rows = -128: ", {{"kv_rows", .value = -128}}},
    {MLA_ERR_PARAM, "kv_batch = 0: ", {{"kv_batch", .value = 0}}},
    {MLA_ERR_PARAM, "gathered_batch = 0: ", {{"gathered_batch", .value = 0}}},
    {MLA_ERR_PARAM, "num_links = 0: ", {{"num_links", .value = 0}}},
    {MLA_ERR_PARAM, "threads = -1: ", {{"threads", .value = -1}}},
    {MLA_ERR_PARAM, "topology = 2: ", {{"topology", .value = 2}}},
    {MLA_ERR_PARAM, "topology = -1: ", {{"topology", .value = -1}}},
    {MLA_ERR_PARAM, "has_scale = 2: ", {{"has_scale", .value = 2}}},
    {MLA_ERR_PARAM, "is_balanced = -1: ", {{"is_balanced", .value = -1}}},
    {MLA_ERR_PARAM, "has_slot = 2: ", {{"has_slot", .value = 2}}},
    {MLA_ERR_PARAM, "has_prior = 3: ", {{"has_prior", .value = 3}}},
    {MLA_ERR_PARAM, "dim = 1: must be 2", {{"dim", .value = 1}}},
    {MLA_ERR_SHAPE, "kv_heads = 2: ", {{"kv_heads", .value = 2}}},
    {MLA_ERR_SHAPE, "kv_head_dim = 96: must equal head_dim = 64", {{"kv_head_dim", .value = 96}}},
    {MLA_ERR_SHAPE, "q_rows = 48: ", {{"q_rows", .value = 48}}},
    {MLA_ERR_SHAPE, "kv_rows = 127: ", {{"kv_rows", .value = 127}}},
    {MLA_ERR_SHAPE, "head_dim = 72: ", {{"head_dim", .value = 72}, {"kv_head_dim", .value = 72}}},
    {MLA_ERR_SHAPE, "head_dim_v = 33: ", {{"head_dim_v", .value = 33}}},
    {MLA_ERR_SHAPE, "head_dim_v = 0: ", {{"head_dim_v", .value = 0}}},
    {MLA_ERR_SHAPE, "head_dim_v = -32: ", {{"head_dim_v", .value = -32}}},
    {MLA_ERR_SHAPE, "head_dim_v = 64: ", {{"head_dim_v", .value = 64}}},
    {MLA_ERR_SHAPE, "head_dim_v = 32: ", {{"head_dim", .value = 0}, {"kv_head_dim", .value = 0}}},
    {MLA_ERR_SHAPE, "q_chunk_size = 0: ", {{"q_chunk_size", .value = 0}}},
    {MLA_ERR_SHAPE, "q_chunk_size = 40: ", {{"q_chunk_size", .value = 40}}},
    {MLA_ERR_SHAPE, "k_chunk_size = -32: ", {{"k_chunk_size", .value = -32}}},
    {MLA_ERR_SHAPE, "k_chunk_size = 31: ", {{"k_chunk_size", .value = 31}}},
    {MLA_ERR_SHAPE,
     "q_rows = 160: must not exceed kv_rows = 128",
     {{"q_rows", .value = 160}, {"kv_rows", .value = 128}}},
    {MLA_ERR_SHAPE,
     "kv_batch = 2: must equal batch = 1",
     {{"has_slot", .value = 0}, {"batch", .value = 1}}},
    {MLA_ERR_SHAPE,
     "gathered_batch = 2: must equal batch = 1",
     {{"has_slot", .value = 0}, {"kv_batch", .value = 1}, {"batch", .value = 1}}},
    {MLA_ERR_SHAPE, "gathered_rows = 255: ", {{"gathered_rows", .value = 255}}},
    {MLA_ERR_SHAPE,
     "gathered_rows = 9223372036854775807: ",
     {{"gathered_rows", .value = INT64_MAX}, {"kv_rows", .value = INT64_MAX - 31}}},
    {MLA_ERR_SHAPE, "q = 1*4611686018427387904*64*64: ", {{"heads", .value = BIG}}},
    {MLA_ERR_SHAPE, "kv = 4611686018427387904*128*64: ", {{"kv_batch", .value = BIG}}},
    {MLA_ERR_SHAPE, "gathered = 2*4611686018427387904*64: ", {{"gathered_rows", .value = BIG}}},
    {MLA_ERR_PARAM, "logical_n = 0: ", {{"logical_n", .value = 0}}},
    {MLA_ERR_PARAM,
     "logical_n = 257: must lie in 1 .. ring_size*kv_rows = 256",
     {{"logical_n", .value = 257}}},
    {MLA_ERR_PARAM, "logical_n = 9223372036854775807: ", {{"logical_n", .value = INT64_MAX}}},
    {MLA_ERR_PARAM,
     "kv_actual_isl = 64: ",
     {{"is_balanced", .value = 1}, {"has_prior", .value = 1}}},
    {MLA_ERR_PARAM,
     "q_rows = 64: must equal kv_rows = 128",
     {{"is_balanced", .value = 1}, {"has_prior", .value = 0}, {"q_rows", .value = 64}}},
    {MLA_ERR_PARAM,
     "q_chunk_size = 32: must divide q_rows/2 = 48",
     {{"is_balanced", .value = 1},
      {"has_prior", .value = 0},
      {"q_rows", .value = 96},
      {"kv_rows", .value = 96},
      {"gathered_rows", .value = 256}}},
    {MLA_ERR_PARAM,
     "logical_n = 160: must equal ring_size*kv_rows = 256",
     {{"is_balanced", .value = 1},
      {"has_prior", .value = 0},
      {"q_rows", .value = 128},
      {"logical_n", .value = 160}}},
    {MLA_ERR_PARAM, "kv_cache_batch_idx = -1: ", {{"kv_cache_batch_idx", .value = -1}}},
    {MLA_ERR_PARAM,
     "kv_cache_batch_idx = 2: must lie in 0 .. kv_batch-1 = 1",
     {{"kv_cache_batch_idx", .value = 2}}},
    {MLA_ERR_PARAM, "batch = 2: ", {{"batch", .value = 2}}},
    {MLA_ERR_PARAM, "gathered_batch = 3: ", {{"gathered_batch", .value = 3}}},
    {MLA_ERR_PARAM,
     "kv_actual_isl = -32: ",
     {{"kv_actual_isl", .value = -32}, {"has_prior", .value = 1}}},
    {MLA_ERR_PARAM,
     "kv_actual_isl = -9223372036854775808: ",
     {{"kv_actual_isl", .value = INT64_MIN}, {"has_prior", .value = 1}}},
    {MLA_ERR_PARAM,
     "q_rows = 128: must be below kv_rows = 128",
     {{"q_rows", .value = 128}, {"has_prior", .value = 1}}},
    {MLA_ERR_PARAM,
     "kv_rows = 128: must be a multiple of q_rows = 96",
     {{"q_rows", .value = 96}, {"has_prior", .value = 1}}},
    {MLA_ERR_PARAM,
     "kv_actual_isl = 33: ",
     {{"kv_actual_isl", .value = 33}, {"has_prior", .value = 1}}},
    {MLA_ERR_PARAM, "logical_n = 159: ", {{"logical_n", .value = 159}, {"has_prior", .value = 1}}},
    {MLA_ERR_PARAM, "logical_n = 64: ", {{"logical_n", .value = 64}, {"has_prior", .value = 1}}},
    {MLA_ERR_PARAM, "logical_n = 32: ", {{"logical_n", .value = 32}, {"has_prior", .value = 1}}},
    {MLA_ERR_PARAM, "logical_n = 224: ", {{"logical_n", .value = 224}, {"has_prior", .value = 1}}},
    {MLA_ERR_PARAM,
     "logical_n = 160: ",
     {{"kv_actual_isl", .value = INT64_MAX - 31}, {"has_prior", .value = 1}}},
    {MLA_ERR_PARAM,
     "kv_rows = 128: must be a multiple of q_rows = 96",
     {{"has_prior", .value = 0}, {"q_rows", .value = 96}}},
    {MLA_ERR_PARAM,
     "logical_n = 96: rounded up",
     {{"has_prior", .value = 0}, {"logical_n", .value = 96}}},
    {MLA_ERR_PARAM, "scale = 0: ", {{"scale", .real = 0}}},
    {MLA_ERR_PARAM, "scale = -1: ", {{"scale", .real = -1}}},
    {MLA_ERR_PARAM, "scale = inf: ", {{"scale", .real = INFINITY}}},
    {MLA_ERR_PARAM, "scale = -inf: ", {{"scale", .real = -INFINITY}}},
    {MLA_ERR_PARAM, "scale = ", {{"scale", .real = NAN}}},
};

static void violate_ring(struct mla_ring_args *args, const struct violation *violation)
{
    for (int i = 0; i < SETS_MAX && violation->sets[i].field != NULL; i++) {
        assign(args, ring_fields, COUNT(ring_fields), &violation->sets[i]);
    }
}

static void test_ring_accepts(void **state)
{
    struct ring_fixture *f = ring_begin();
    char message[200] = "old";
    (void)state;
    assert_int_equal(mla_validate_ring(&f->args, message, sizeof message), MLA_OK);
    assert_string_equal(message, "");
    f->args.stats = NULL;
    f->args.threads = INT64_MAX;
    f->args.num_links = INT64_MAX;
    f->args.q_chunk_size = INT64_MAX - 31;
    f->args.k_chunk_size = INT64_MAX - 31;
    f->args.has_scale = 0; /* then scale is not looked at */
    f->args.scale = NAN;
    f->args.topology = MLA_TOPOLOGY_LINEAR;
    f->args.gathered_batch = 1;
    assert_int_equal(mla_validate_ring(&f->args, message, sizeof message), MLA_OK);
    f->args.has_prior = 0; /* then kv_actual_isl is not looked at */
    f->args.kv_actual_isl = -5;
    f->args.logical_n = 97; /* rounds up to 128 = R*Nq */
    assert_int_equal(mla_validate_ring(&f->args, message, sizeof message), MLA_OK);
    f->args.has_slot = 0; /* then kv_cache_batch_idx is not looked at */
    f->args.kv_cache_batch_idx = -5;
    f->args.kv_batch = 1;
    f->args.is_balanced = 1;
    f->args.q_rows = 128;
    f->args.q_chunk_size = 64;
    f->args.logical_n = 256;
    assert_int_equal(mla_validate_ring(&f->args, message, sizeof message), MLA_OK);
    free(f);
}

static void expect_ring_singly(const struct mla_kernel *kernel)
{
    for (size_t i = 0; i < COUNT(ring_violations); i++) {
        struct ring_fixture *f = ring_begin();
        struct ring_fixture *before = test_copy(f, sizeof *f);
        char message[400];
        violate_ring(&f->args, &ring_violations[i]);
        const int32_t status = kernel->ring(&f->args, message, sizeof message);
        expect_start(message, ring_violations[i].message);
        assert_int_equal(status, ring_violations[i].status);
        assert_memory_equal(&f->written, &before->written, sizeof f->written);
        assert_int_equal(kernel->ring(&f->args, NULL, 0), status);
        free(before);
        free(f);
    }
}

static void test_ring_singly(void **state)
{
    size_t n;
    const struct mla_kernel *const *kernels = test_kernels(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        expect_ring_singly(kernels[i]);
    }
}

static void test_ring_pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ring_violations); i++) {
        for (size_t j = i + 1; j < COUNT(ring_violations); j++) {
            struct ring_fixture *f;
            char message[400];
            if (share_a_field(&ring_violations[i], &ring_violations[j])) {
                continue;
            }
            f = ring_begin();
            violate_ring(&f->args, &ring_violations[i]);
            violate_ring(&f->args, &ring_violations[j]);
            const int32_t status = mla_validate_ring(&f->args, message, sizeof message);
            /* Where the second changes a number of the first one's rule, the name still stands. */
            const char *start = ring_violations[i].message;
            const size_t name_n = (size_t)(strchr(start, ' ') - start) + 1;
            if (status != ring_violations[i].status || strncmp(message, start, name_n) != 0) {
                fail_msg("\"%s\" with \"%s\" gave %d \"%s\"", start, ring_violations[j].message,
                         (int)status, message);
            }
            free(f);
        }
    }
}

static void test_ring_null_entries(void **state)
{
    static const char *const names[] = {"q", "kv", "gathered", "out", "stats"};
    (void)state;
    for (int array = 0; array < 5; array++) {
        for (int entry = 0; entry < RANKS; entry++) {
            struct ring_fixture *f = ring_begin();
            char message[200];
            char want[64];
            const void **arrays[] = {(const void **)f->q, (const void **)f->kv,
                                     (const void **)f->gathered, (const void **)f->out,
                                     (const void **)f->stats};
            snprintf(want, sizeof want, "%s[%d] = 0: must not be a null pointer", names[array],
                     entry);
            arrays[array][entry] = NULL;
            f->args.ring_size = entry; /* one short of it: not looked at */
            if (entry > 0) {
                mla_validate_ring(&f->args, message, sizeof message);
                assert_null(strstr(message, "null pointer"));
            }
            f->args.ring_size = entry + 1;
            f->args.heads = 0; /* a later rule */
            assert_int_equal(mla_validate_ring(&f->args, message, sizeof message), MLA_ERR_PARAM);
            assert_string_equal(message, want);
            f->args.ring_size = 33; /* not in range: entries are not looked at */
            assert_int_equal(mla_validate_ring(&f->args, message, sizeof message), MLA_ERR_PARAM);
            expect_start(message, "ring_size = 33: ");
            free(f);
        }
    }
}

/* ---- sparse -----------------------------------------------------------------------------------*/

/* An accepted call: S = 4, S_kv = 300, H = 16, Rr = 64, K = 128, n = 2, with q_pos_offset. */
struct sparse_fixture {
    struct mla_sparse_args args;
    int32_t indices[2048 * 8]; /* room for the tiled form, K = 128 */
    uint16_t inputs[4 * 16 * 512];
    uint16_t cache[300 * 512];
    struct {
        uint16_t out[4 * 16 * 512];
        float stats[4 * 16 * 2];
    } written;
};

static struct sparse_fixture *sparse_begin(void)
{
    struct sparse_fixture *f = test_alloc(sizeof *f);
    memset(f, 0, sizeof *f);
    memset(&f->written, 0x5a, sizeof f->written);
    f->args = (struct mla_sparse_args){.struct_size = sizeof(struct mla_sparse_args),
                                       .batch = 1,
                                       .queries = 4,
                                       .keys = 300,
                                       .heads = 16,
                                       .latent = 512,
                                       .rope = 64,
                                       .topk = 128,
                                       .has_q_pos_offset = 1,
                                       .q_pos_offset = 7,
                                       .cores = 2,
                                       .threads = 1,
                                       .softmax_scale = 0.125f,
                                       .q_lift = f->inputs,
                                       .q_pe = f->inputs,
                                       .c_kv = f->cache,
                                       .k_pe = f->cache,
                                       .topk_indices = f->indices,
                                       .out = f->written.out,
                                       .stats = f->written.stats};
    return f;
}

static const struct violation sparse_violations[] = {
    {MLA_ERR_PARAM, "struct_size = 0: ", {{"struct_size", .value = 0}}},
    {MLA_ERR_PARAM, "q_lift = 0: ", {{"q_lift", .value = 0}}},
    {MLA_ERR_PARAM, "q_pe = 0: ", {{"q_pe", .value = 0}}},
    {MLA_ERR_PARAM, "c_kv = 0: ", {{"c_kv", .value = 0}}},
    {MLA_ERR_PARAM, "k_pe = 0: ", {{"k_pe", .value = 0}}},
    {MLA_ERR_PARAM, "topk_indices = 0: ", {{"topk_indices", .value = 0}}},
    {MLA_ERR_PARAM,
     "topk_indices = non-null: ",
     {{"dense", .value = 1}, {"topk_indices", .value = 1}}},
    {MLA_ERR_PARAM, "out = 0: ", {{"out", .value = 0}}},
    {MLA_ERR_PARAM, "queries = 0: ", {{"queries", .value = 0}}},
    {MLA_ERR_PARAM, "queries = -9223372036854775808: ", {{"queries", .value = INT64_MIN}}},
    {MLA_ERR_PARAM, "keys = -1: ", {{"keys", .value = -1}}},
    {MLA_ERR_PARAM, "cores = 0: ", {{"cores", .value = 0}}},
    {MLA_ERR_PARAM, "threads = -2: ", {{"threads", .value = -2}}},
    {MLA_ERR_PARAM, "topk_tiled = 2: ", {{"topk_tiled", .value = 2}}},
    {MLA_ERR_PARAM, "dense = 2: ", {{"dense", .value = 2}, {"topk_indices", .value = 0}}},
    {MLA_ERR_PARAM, "has_q_pos_offset = -1: ", {{"has_q_pos_offset", .value = -1}}},
    {MLA_ERR_PARAM, "out_order = 2: ", {{"out_order", .value = 2}}},
    {MLA_ERR_PARAM, "softmax_scale = 0: ", {{"softmax_scale", .real = 0}}},
    {MLA_ERR_PARAM, "softmax_scale = -2: ", {{"softmax_scale", .real = -2}}},
    {MLA_ERR_PARAM, "softmax_scale = inf: ", {{"softmax_scale", .real = INFINITY}}},
    {MLA_ERR_PARAM, "softmax_scale = ", {{"softmax_scale", .real = NAN}}},
    {MLA_ERR_PARAM, "q_pos_offset = -1: ", {{"q_pos_offset", .value = -1}}},
    {MLA_ERR_SHAPE, "batch = 2: must be 1", {{"batch", .value = 2}}},
    {MLA_ERR_SHAPE, "latent = 511: must be 512", {{"latent", .value = 511}}},
    {MLA_ERR_SHAPE, "heads = 0: ", {{"heads", .value = 0}}},
    {MLA_ERR_SHAPE, "heads = 144: ", {{"heads", .value = 144}}},
    {MLA_ERR_SHAPE, "heads = 24: ", {{"heads", .value = 24}}},
    {MLA_ERR_SHAPE, "rope = 0: ", {{"rope", .value = 0}}},
    {MLA_ERR_SHAPE, "rope = 129: ", {{"rope", .value = 129}}},
    {MLA_ERR_SHAPE, "topk = 0: ", {{"topk", .value = 0}}},
    {MLA_ERR_SHAPE, "topk = -128: ", {{"topk", .value = -128}}},
    {MLA_ERR_SHAPE, "topk = 192: ", {{"topk", .value = 192}}},
    {MLA_ERR_SHAPE, "queries = 4: must be a multiple of cores = 3", {{"cores", .value = 3}}},
    {MLA_ERR_SHAPE, "q_lift = 4611686018427387904*16*512: ", {{"queries", .value = BIG}}},
    {MLA_ERR_SHAPE, "c_kv = 9223372036854775807*512: ", {{"keys", .value = INT64_MAX}}},
    {MLA_ERR_SHAPE, "topk_indices = 4*9223372036854775680: ", {{"topk", .value = INT64_MAX - 127}}},
    {MLA_ERR_SHAPE,
     "topk_indices = 1*2048*18014398509481984: ",
     {{"topk", .value = INT64_C(1) << 58}, {"topk_tiled", .value = 1}}},
};

static void violate_sparse(struct mla_sparse_args *args, const struct violation *violation)
{
    for (int i = 0; i < SETS_MAX && violation->sets[i].field != NULL; i++) {
        assign(args, sparse_fields, COUNT(sparse_fields), &violation->sets[i]);
    }
}

static void test_sparse_accepts(void **state)
{
    struct sparse_fixture *f = sparse_begin();
    char message[200] = "old";
    (void)state;
    assert_int_equal(mla_validate_sparse(&f->args, message, sizeof message), MLA_OK);
    assert_string_equal(message, "");
    f->args.threads = INT64_MAX;
    f->args.q_pos_offset = INT64_MAX;
    f->args.stats = NULL;
    f->args.topk_tiled = 1;
    f->args.out_order = MLA_OUT_NATURAL;
    assert_int_equal(mla_validate_sparse(&f->args, message, sizeof message), MLA_OK);
    f->args.dense = 1;
    f->args.topk_indices = NULL;
    f->args.topk = -7; /* not looked at when dense */
    f->args.has_q_pos_offset = 0;
    f->args.q_pos_offset = -1; /* not looked at */
    assert_int_equal(mla_validate_sparse(&f->args, message, sizeof message), MLA_OK);
    free(f);
}

static void expect_sparse_singly(const struct mla_kernel *kernel)
{
    for (size_t i = 0; i < COUNT(sparse_violations); i++) {
        struct sparse_fixture *f = sparse_begin();
        struct sparse_fixture *before = test_copy(f, sizeof *f);
        char message[400];
        violate_sparse(&f->args, &sparse_violations[i]);
        const int32_t status = kernel->sparse(&f->args, message, sizeof message);
        expect_start(message, sparse_violations[i].message);
        assert_int_equal(status, sparse_violations[i].status);
        assert_memory_equal(&f->written, &before->written, sizeof f->written);
        assert_int_equal(kernel->sparse(&f->args, NULL, 0), status);
        free(before);
        free(f);
    }
}

static void test_sparse_singly(void **state)
{
    size_t n;
    const struct mla_kernel *const *kernels = test_kernels(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        expect_sparse_singly(kernels[i]);
    }
}

static void test_sparse_pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sparse_violations); i++) {
        for (size_t j = i + 1; j < COUNT(sparse_violations); j++) {
            struct sparse_fixture *f;
            char message[400];
            if (share_a_field(&sparse_violations[i], &sparse_violations[j])) {
                continue;
            }
            f = sparse_begin();
            f->indices[5] = -1; /* and a bad index besides, the last of all rules */
            violate_sparse(&f->args, &sparse_violations[i]);
            violate_sparse(&f->args, &sparse_violations[j]);
            const int32_t status = mla_validate_sparse(&f->args, message, sizeof message);
            const char *start = sparse_violations[i].message;
            const size_t name_n = (size_t)(strchr(start, ' ') - start) + 1;
            if (status != sparse_violations[i].status || strncmp(message, start, name_n) != 0) {
                fail_msg("\"%s\" with \"%s\" gave %d \"%s\"", start, sparse_violations[j].message,
                         (int)status, message);
            }
            free(f);
        }
    }
}

/* Where entry (row, position) lies, by the definition of the two layouts (K = 128: 8 a line). */
static size_t index_at(bool is_tiled, size_t row, size_t position)
{
    if (!is_tiled) {
        return row * 128 + position;
    }
    return ((row / 8) * 128 + 16 * (row % 8) + position % 16) * 8 + position / 16;
}

static void test_sparse_indices(void **state)
{
    size_t n;
    const struct mla_kernel *const *kernels = test_kernels(&n);
    static const int32_t bad[] = {INT32_MIN, -123456, -1, 300, 301, 2143289344, INT32_MAX};
    static const size_t places[][2] = {{0, 0}, {1, 64}, {3, 5}, {3, 127}};
    (void)state;
    for (size_t p = 0; p < COUNT(places); p++) {
        for (size_t i = 0; i < 2 * COUNT(bad); i++) {
            const struct mla_kernel *kernel = kernels[(p + i / 2) % n];
            struct sparse_fixture *f = sparse_begin();
            char message[200];
            char want[200];
            f->args.topk_tiled = (int32_t)(i % 2);
            f->indices[index_at(i % 2 != 0, places[p][0], places[p][1])] = bad[i / 2];
            struct sparse_fixture *before = test_copy(f, sizeof *f);
            assert_int_equal(kernel->sparse(&f->args, message, sizeof message), MLA_ERR_INDEX);
            snprintf(want, sizeof want,
                     "topk_indices = %" PRId32
                     ": must lie in 0 .. keys-1 = 299 (row %zu, position %zu)",
                     bad[i / 2], places[p][0], places[p][1]);
            assert_string_equal(message, want);
            assert_memory_equal(&f->written, &before->written, sizeof f->written);
            free(before);
            free(f);
        }
    }
}

/* The first in row order, then position order, is named; slots of rows that do not exist are not.
 */
static void test_sparse_index_order(void **state)
{
    struct sparse_fixture *f = sparse_begin();
    char message[200];
    (void)state;
    for (int is_tiled = 0; is_tiled <= 1; is_tiled++) {
        f->args.topk_tiled = is_tiled;
        memset(f->indices, 0, sizeof f->indices);
        f->indices[index_at(is_tiled != 0, 4, 0)] = -9; /* row 4 of 4 */
        assert_int_equal(mla_validate_sparse(&f->args, message, sizeof message), MLA_OK);
        f->indices[index_at(is_tiled != 0, 2, 1)] = 999;
        f->indices[index_at(is_tiled != 0, 1, 17)] = -2;
        f->indices[index_at(is_tiled != 0, 1, 2)] = -3;
        assert_int_equal(mla_validate_sparse(&f->args, message, sizeof message), MLA_ERR_INDEX);
        assert_string_equal(message, "topk_indices = -3: must lie in 0 .. keys-1 = 299 (row 1, "
                                     "position 2)");
    }
    free(f);
}

/* ---- both -------------------------------------------------------------------------------------*/

/*
 * Every integer field at its extremes, alone and in pairs: the check must come to an end with a
 * status it documents, and with a message exactly when it refuses. (The sanitizers watch the sums.)
 */
static void test_extremes(void **state)
{
    static const int64_t values[] = {INT64_MIN, INT64_MIN + 1, -32,           -1, 0, 1, 32,
                                     BIG,       INT64_MAX,     INT64_MAX - 31};
    const size_t combinations_n = COUNT(ring_fields) * COUNT(values);
    struct ring_fixture *ring = ring_begin();
    struct sparse_fixture *sparse = sparse_begin();
    const struct mla_ring_args ring_args = ring->args;
    const struct mla_sparse_args sparse_args = sparse->args;
    char message[300];
    (void)state;
    for (size_t i = 0; i < combinations_n; i++) {
        for (size_t j = i; j < combinations_n; j++) {
            const size_t fields[2] = {i / COUNT(values), j / COUNT(values)};
            const int64_t chosen[2] = {values[i % COUNT(values)], values[j % COUNT(values)]};
            ring->args = ring_args;
            sparse->args = sparse_args;
            for (int k = 0; k < 2; k++) {
                const struct field *field = &ring_fields[fields[k]];
                if (field->kind == I64) {
                    const struct set set = {.field = field->name, .value = chosen[k]};
                    assign(&ring->args, ring_fields, COUNT(ring_fields), &set);
                }
                field = fields[k] < COUNT(sparse_fields) ? &sparse_fields[fields[k]] : NULL;
                if (field != NULL && field->kind == I64) {
                    const struct set set = {.field = field->name, .value = chosen[k]};
                    assign(&sparse->args, sparse_fields, COUNT(sparse_fields), &set);
                }
            }
            int32_t status = mla_validate_ring(&ring->args, message, sizeof message);
            assert_true(status == MLA_OK || status == MLA_ERR_PARAM || status == MLA_ERR_SHAPE);
            assert_true((status == MLA_OK) == (message[0] == '\0'));
            if (sparse->args.topk > 128 || sparse->args.queries > 4) {
                sparse->args.topk_indices = NULL; /* the list is not that long */
                sparse->args.dense = 1;
            }
            status = mla_validate_sparse(&sparse->args, message, sizeof message);
            assert_true(status <= MLA_OK && status >= MLA_ERR_INDEX);
            assert_true((status == MLA_OK) == (message[0] == '\0'));
        }
    }
    free(sparse);
    free(ring);
}

static void test_no_structure(void **state)
{
    char message[100];
    (void)state;
    assert_int_equal(mla_validate_ring(NULL, message, sizeof message), MLA_ERR_PARAM);
    assert_string_equal(message, "args = 0: must not be a null pointer");
    assert_int_equal(mla_validate_sparse(NULL, message, sizeof message), MLA_ERR_PARAM);
    assert_string_equal(message, "args = 0: must not be a null pointer");
    assert_int_equal(mla_validate_ring(NULL, NULL, 100), MLA_ERR_PARAM);
}

/* However short the buffer, the message is cut, terminated, and never beyond it. */
static void test_short_message(void **state)
{
    static const char whole[] = "args = 0: must not be a null pointer";
    (void)state;
    for (size_t bytes = 0; bytes <= sizeof whole; bytes++) {
        char message[sizeof whole + 1];
        memset(message, '#', sizeof message);
        mla_validate_ring(NULL, message, bytes);
        for (size_t i = bytes; i < sizeof message; i++) {
            assert_int_equal(message[i], '#');
        }
        if (bytes > 0) {
            const size_t length = bytes - 1 < sizeof whole - 1 ? bytes - 1 : sizeof whole - 1;
            assert_int_equal(strlen(message), length);
            assert_memory_equal(message, whole, length);
        }
    }
}

static void test_registry(void **state)
{
    size_t n = 0;
    (void)state;
    const struct mla_kernel *const *kernels = mla_registry_kernels(&n);
    assert_true(n >= 1);
    for (size_t i = 0; i < n; i++) {
        assert_ptr_equal(mla_registry_find(kernels[i]->name), kernels[i]);
        assert_int_equal(kernels[i]->abi, MLA_KERNEL_ABI);
        assert_int_equal(kernels[i]->struct_size, sizeof(struct mla_kernel));
        assert_int_equal(kernels[i]->promises, MLA_PROMISE_ALL);
    }
    assert_string_equal(mla_registry_find("scalar")->name, "scalar");
    assert_null(mla_registry_find("Scalar"));
    assert_null(mla_registry_find("scala"));
    assert_null(mla_registry_find(""));
    assert_null(mla_registry_find(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_accepts),       cmocka_unit_test(test_ring_singly),
        cmocka_unit_test(test_ring_pairs),         cmocka_unit_test(test_ring_null_entries),
        cmocka_unit_test(test_sparse_accepts),     cmocka_unit_test(test_sparse_singly),
        cmocka_unit_test(test_sparse_pairs),       cmocka_unit_test(test_sparse_indices),
        cmocka_unit_test(test_sparse_index_order), cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_no_structure),       cmocka_unit_test(test_short_message),
        cmocka_unit_test(test_registry),
    };
    return cmocka_run_group_tests_name("validate", tests, NULL, NULL);
}
