/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors_test.c - index lists and layouts, poison where nothing may be read, overrides, and
 * numbers that are the same on every machine.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/case_fields.h"
#include "fuzz/family.h"
#include "fuzz/indices.h"
#include "fuzz/tensors.h"

static struct mla_tensors *make(const struct mla_case *test)
{
    struct mla_tensors *tensors;
    char error[MLA_CASE_ERROR_MAX];
    if (mla_tensors_make(test, 0, &tensors, error) != MLA_OK)
        fail_msg("%s", error);
    return tensors;
}

static uint16_t at16(struct mla_tensors *t, const char *name, int64_t rank, int64_t element)
{
    uint16_t bits;
    memcpy(&bits, mla_tensors_find(t, name, rank)->guard.data + 2 * element, 2);
    return bits;
}

/* Row 130, list position 37, topk 256: tile 1, row 2 of it, so group 0 of the tile, third row of
   the group; lines 32 .. 47, line 32 + 37 mod 16 = 37, column 37 div 16 = 2. */
static void test_tiled_place(void **state)
{
    struct mla_sparse_args args = {.queries = 200, .topk = 256, .topk_tiled = 1};
    (void)state;
    assert_int_equal(mla_indices_elements(&args), 256 * 256);
    assert_int_equal(mla_indices_place(&args, 130, 37), ((1 * 16 + 0) * 128 + 37) * 16 + 2);
    assert_int_equal(mla_indices_place(&args, 0, 0), 0);
    assert_int_equal(mla_indices_place(&args, 0, 16), 1);
    assert_int_equal(mla_indices_place(&args, 1, 0), 256);
    assert_int_equal(mla_indices_place(&args, 8, 0), 128 * 16);
    assert_int_equal(mla_indices_place(&args, 127, 255), 127 * 256 + 255);
    args.topk_tiled = 0;
    assert_int_equal(mla_indices_place(&args, 130, 37), 130 * 256 + 37);
}

static void test_causal_recipe(void **state)
{
    struct mla_case test;
    int32_t list[128];
    (void)state;
    mla_case_init(&test, MLA_OP_SPARSE);
    test.indices = MLA_INDICES_CAUSAL;
    test.sparse.queries = 400;
    test.sparse.keys = 300;
    mla_indices_fill(&test, 5, list); /* even positions 0, 2, 4, the rest copies of 0 */
    assert_int_equal(list[0], 0);
    assert_int_equal(list[125], 0);
    assert_int_equal(list[126], 2);
    assert_int_equal(list[127], 4);
    mla_indices_fill(&test, 350, list); /* 0 .. 298: the last 128 of 150 */
    assert_int_equal(list[0], 44);
    assert_int_equal(list[127], 298);
}

static void test_lists_are_in_range(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 127, 128, 129, 1000, 65537};
    (void)state;
    for (int kind = 0; kind < MLA_INDICES_N; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct mla_case test;
            int32_t list[256];
            bool seen[65537] = {false};
            mla_case_init(&test, MLA_OP_SPARSE);
            test.indices = kind;
            test.sparse.keys = sizes[i];
            test.sparse.topk = 256;
            mla_indices_fill(&test, 3, list);
            for (int j = 0; j < 256; j++) {
                assert_in_range(list[j], 0, sizes[i] - 1);
                if (kind == MLA_INDICES_DISTINCT && sizes[i] >= 256)
                    assert_false(seen[list[j]]);
                if (kind == MLA_INDICES_SORTED && j > 0)
                    assert_true(list[j - 1] <= list[j]);
                if (kind == MLA_INDICES_REVERSED && j > 0)
                    assert_true(list[j - 1] >= list[j]);
                seen[list[j]] = true;
            }
        }
}

static void test_poison_in_ring(void **state)
{
    struct mla_case test;
    (void)state;
    mla_case_init(&test, MLA_OP_RING);
    test.ring.ring_size = 2;
    test.ring.kv_batch = 2;
    test.ring.gathered_batch = 1;
    test.ring.gathered_rows = 64;
    test.ring.has_slot = 1;
    test.ring.kv_cache_batch_idx = 1;
    test.ring.logical_n = 40;
    struct mla_tensors *t = make(&test);
    int64_t row = test.ring.head_dim, slot = 32 * row;
    assert_int_equal(at16(t, "kv", 0, 0), MLA_BF16_NAN);                  /* another slot */
    assert_int_not_equal(at16(t, "kv", 0, slot), MLA_BF16_NAN);           /* position 0 */
    assert_int_not_equal(at16(t, "kv", 1, slot + 7 * row), MLA_BF16_NAN); /* position 39 */
    assert_int_equal(at16(t, "kv", 1, slot + 8 * row), MLA_BF16_NAN);     /* position 40 */
    assert_int_equal(at16(t, "out", 0, 0), mla_tensors_pattern16(t));
    mla_tensors_free(t);
}

static void test_poison_in_sparse(void **state)
{
    struct mla_case test;
    (void)state;
    mla_case_init(&test, MLA_OP_SPARSE);
    test.sparse.keys = 300;
    test.indices = MLA_INDICES_SORTED; /* 128 distinct of 300 rows */
    struct mla_tensors *t = make(&test);
    int poisoned = 0;
    for (int64_t j = 0; j < 300; j++)
        poisoned += at16(t, "c_kv", 0, j * 512) == MLA_BF16_NAN;
    assert_int_equal(poisoned, 300 - 128);
    mla_tensors_free(t);
}

/* Tokens 32 .. 127 on two ranks of 64 rows: rank 1 is full, rank 0 has 32 rows and 32 pad rows. */
static void test_pad_rows_are_poisoned(void **state)
{
    struct mla_case test;
    (void)state;
    mla_case_init(&test, MLA_OP_RING);
    test.ring.ring_size = 2;
    test.ring.heads = 2;
    test.ring.q_rows = 64;
    test.ring.kv_rows = 128;
    test.ring.gathered_rows = 256;
    test.ring.has_prior = 1;
    test.ring.kv_actual_isl = 32;
    test.ring.logical_n = 128;
    struct mla_tensors *t = make(&test);
    for (int64_t rank = 0; rank < 2; rank++)
        for (int64_t i = 0; i < 2 * 64 * 64; i++) {
            bool pad = rank == 0 && i / 64 % 64 >= 32;
            assert_int_equal(at16(t, "q", rank, i) == MLA_BF16_NAN, pad);
        }
    mla_tensors_free(t);
}

/* Three rows in a tile of 128: 3 * 128 numbers name a cache row, and stand in front (16 lines of
   128/16 a row); all others are no index of any cache. */
static void test_unused_tiled_slots_hold_garbage(void **state)
{
    struct mla_case test;
    (void)state;
    mla_case_init(&test, MLA_OP_SPARSE);
    test.sparse.queries = 3;
    test.sparse.topk_tiled = 1;
    struct mla_tensors *t = make(&test);
    struct mla_tensor *topk = mla_tensors_find(t, "topk_indices", 0);
    assert_int_equal(topk->elements_n, 128 * 128);
    for (int64_t i = 0; i < topk->elements_n; i++) {
        int32_t index;
        memcpy(&index, topk->guard.data + 4 * i, sizeof index);
        assert_int_equal(index >= 0 && index < 100000000, i < 3 * 128);
    }
    mla_tensors_free(t);
}

static void test_overrides(void **state)
{
    struct mla_case test;
    struct mla_tensors *t;
    char error[MLA_CASE_ERROR_MAX];
    (void)state;
    mla_case_init(&test, MLA_OP_RING);
    test.put_n = 1;
    test.put[0] = (struct mla_override){"q", 0, 5, 0x4049};
    t = make(&test);
    assert_int_equal(at16(t, "q", 0, 5), 0x4049);
    mla_tensors_free(t);
    test.put[0].at = 32 * 64;
    assert_int_equal(mla_tensors_make(&test, 0, &t, error), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "0 .. 2047"));
    test.put[0] = (struct mla_override){"out", 0, 0, 0};
    assert_int_equal(mla_tensors_make(&test, 0, &t, error), MLA_ERR_PARAM);
    test.put[0] = (struct mla_override){"q", 1, 0, 0};
    assert_int_equal(mla_tensors_make(&test, 0, &t, error), MLA_ERR_PARAM);
    assert_null(t);
}

/* Every byte counts, in the streams and behind them, and every exchange of two words. */
static void test_check_sees_every_byte(void **state)
{
    static unsigned char bytes[77];
    struct mla_tensor tensor = {.guard = {.data = bytes, .bytes = sizeof bytes}};
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37);
    uint64_t whole = mla_tensor_check(&tensor);
    for (size_t i = 0; i < sizeof bytes; i++)
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (unsigned char)(1 << bit);
            assert_true(mla_tensor_check(&tensor) != whole);
            bytes[i] ^= (unsigned char)(1 << bit);
        }
    for (size_t i = 0; i + 16 <= sizeof bytes; i += 8) {
        unsigned char word[8];
        memcpy(word, bytes + i, 8);
        memcpy(bytes + i, bytes + i + 8, 8);
        memcpy(bytes + i + 8, word, 8);
        assert_true(mla_tensor_check(&tensor) != whole);
        memcpy(bytes + i + 8, bytes + i, 8);
        memcpy(bytes + i, word, 8);
    }
    assert_true(mla_tensor_check(&tensor) == whole);
}

/* A copy has the inputs of its model, overrides and all, and outputs and places of its own. */
static void test_copies(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_case test, varied;
        struct mla_tensors *copy;
        char error[MLA_CASE_ERROR_MAX];
        mla_case_init(&test, (enum mla_op)op);
        test.put_n = 1;
        test.put[0] = (struct mla_override){"kv", 0, 7, 0x4049};
        if (op == MLA_OP_SPARSE)
            memcpy(test.put[0].tensor, "c_kv", sizeof "c_kv");
        varied = test;
        varied.ring.threads = varied.sparse.threads = 3;
        struct mla_tensors *t = make(&test);
        assert_int_equal(mla_tensors_copy(t, &varied, 1, &copy, error), MLA_OK);
        assert_int_equal(copy->ring.threads + copy->sparse.threads, 6);
        assert_int_equal(copy->n, t->n);
        for (size_t i = 0; i < t->n; i++) {
            const struct mla_tensor *a = &t->list[i], *b = &copy->list[i];
            bool same = memcmp(a->guard.data, b->guard.data, a->guard.bytes) == 0;
            assert_ptr_not_equal(a->guard.data, b->guard.data);
            assert_int_equal(same, a->role == MLA_TENSOR_INPUT); /* dirt 1: another pattern */
            if (same)
                assert_int_equal(b->check, mla_tensor_check(b));
        }
        if (op == MLA_OP_RING)
            assert_ptr_equal(copy->ring.kv[0], mla_tensors_find(copy, "kv", 0)->guard.data);
        else
            assert_ptr_equal(copy->sparse.c_kv, mla_tensors_find(copy, "c_kv", 0)->guard.data);
        mla_tensors_free(copy);
        mla_tensors_free(t);
    }
}

/* Mean 0 and variance 1 of the twelve-uniforms normal, and the bf16 rounding at its corners. */
static void test_numbers(void **state)
{
    double sum = 0, square = 0;
    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        double x = mla_number_normal(mla_number_at(1, i, 0, 0));
        sum += x;
        square += x * x;
    }
    /* Four standard errors: 4/sqrt(n) and 4*sqrt(2/n), n = 1e5. */
    assert_true(fabs(sum / 1e5) < 0.0127);
    assert_true(fabs(square / 1e5 - 1) < 0.0179);
    assert_int_equal(mla_number_to_bf16(1.0), 0x3f80);
    assert_int_equal(mla_number_to_bf16(1.00390625), 0x3f80); /* tie, to even */
    assert_int_equal(mla_number_to_bf16(1.01171875), 0x3f82); /* tie, to even */
    assert_int_equal(mla_number_to_bf16(-1.005), 0xbf81);
    assert_int_equal(mla_number_to_bf16(3.4e38), 0x7f80);
    assert_true(isnan(mla_number_from_bf16(MLA_BF16_NAN)));
}

/*
 * Fingerprints of the tensors of a few cases: they must never change, on any machine, or stored
 * cases would silently mean something else. Taken from the first version.
 */
static void test_fingerprints(void **state)
{
    static const uint64_t expected[MLA_OP_N][8] = {
        {0xf7823069db2b499cu, 0xf9dcc75b6119812au, 0xf7823069db2b499cu, 0x72c26bba3c5a223cu,
         0x24aefafdaddc4696u, 0x28f49e37b9b75e7fu},
        {0xea8012fc90855d15u, 0x55909ff953fea879u, 0xea8012fc90855d15u, 0x768420db96e909e6u,
         0xb2fc8ff4cf04e7f2u, 0x78dd4bce86a60c63u}};
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        size_t families_n;
        mla_families(&families_n);
        for (size_t f = 0; f < 6; f++) { /* the first version's; test_region_fingerprints has all */
            struct mla_case test;
            mla_case_init(&test, (enum mla_op)op);
            test.family = (int32_t)f;
            test.region = (int32_t)mla_families(&families_n)[f]->regions[0];
            test.seed = 12345;
            test.poison = MLA_POISON_MIXED;
            test.ring.logical_n = 20; /* so that some of it is poison */
            test.sparse.keys = 300;
            struct mla_tensors *t = make(&test);
            uint64_t hash = 0;
            for (size_t i = 0; i < t->n; i++)
                if (t->list[i].role == MLA_TENSOR_INPUT)
                    hash = mla_number_mix(hash ^ mla_tensor_hash(&t->list[i]));
            if (hash != expected[op][f])
                fail_msg("op %d family %zu: fingerprint 0x%016llxu", op, f,
                         (unsigned long long)hash);
            mla_tensors_free(t);
        }
    }
}

static uint64_t region_hash(enum mla_op op, int32_t family, int32_t region)
{
    struct mla_case test;
    size_t families_n;
    uint64_t hash = 0;
    int64_t most = mla_families(&families_n)[family]->amount_max;
    mla_case_init(&test, op);
    test.family = family;
    test.region = region;
    test.amount = most < 3 ? most : 3;
    test.seed = 777;
    test.poison = MLA_POISON_MIXED;
    test.ring.q_rows = test.ring.kv_rows = test.ring.gathered_rows = 64;
    test.ring.heads = 2;
    test.ring.logical_n = 50;
    test.sparse.keys = 300;
    struct mla_tensors *t = make(&test);
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].role == MLA_TENSOR_INPUT)
            hash = mla_number_mix(hash ^ mla_tensor_hash(&t->list[i]));
    mla_tensors_free(t);
    return hash;
}

/* The same for every region of every family, as first released. */
static void test_region_fingerprints(void **state)
{
    static const struct {
        const char *family, *region;
        uint64_t hash[MLA_OP_N];
    } expected[] = {
        {"upstream", "normal", {0xb29c0d2004563202u, 0x07b808eb5cd57819u}},
        {"upstream", "outlier", {0x0115468c95b87bc1u, 0x76bbfa2e57c74f82u}},
        {"upstream", "ramp", {0x122daee23b7a3af3u, 0x89070cf7cdf8f5efu}},
        {"profile", "flat", {0x075ca35ecd4b0a8cu, 0x30b61144d7f3d8afu}},
        {"profile", "geometric", {0xa5a091f640432b99u, 0xfbf89519c0d466afu}},
        {"profile", "first", {0x53ad573705f99964u, 0xacf46fbc7d0bc0dau}},
        {"profile", "last", {0x0784abb92ea9db57u, 0xacf46fbc7d0bc0dau}},
        {"profile", "edge", {0xaa347811e508a76du, 0xacf46fbc7d0bc0dau}},
        {"profile", "rising", {0xc70ff8c1cd5c44e3u, 0x22ec0d1f99baacdeu}},
        {"profile", "falling", {0x716eeb71bd53225eu, 0x22ec0d1f99baacdeu}},
        {"profile", "half", {0xad1d4a535c26796du, 0x6ae1beb688633cb3u}},
        {"profile", "deep", {0xd4e9a33d58cfb0c0u, 0xdbab3939e30dbd63u}},
        {"profile", "under", {0xdbef318114968d9eu, 0xd95650b55e343c0du}},
        {"profile", "spread", {0xf5666efb2576825cu, 0x59b0856c41e68650u}},
        {"profile", "equal-maxima", {0xe947bb3498dd5032u, 0x82efcd2fc8ced1e5u}},
        {"profile", "clusters", {0x022590345f87dc98u, 0xd7f12456b40af5bbu}},
        {"profile", "one-edge", {0x53ad573705f99964u, 0xacf46fbc7d0bc0dau}},
        {"profile", "lofty", {0xfd7d2c816bd8ffc1u, 0x37a6536dcc540eeau}},
        {"profile", "sunk", {0xcfda788381fb0feeu, 0x81880ba2361ea5c6u}},
        {"profile", "saturated", {0x14c8f250b08904efu, 0x30da4c6e5d85150au}},
        {"profile", "abyss", {0x8c846d741a25025cu, 0x4afa49765ff22502u}},
        {"profile", "raw", {0x3e71d18cf9c452dbu, 0x9786a0e29bb907e5u}},
        {"profile", "heads", {0x8ef5627009d8b928u, 0xe10cbc56c7846815u}},
        {"profile", "chasm", {0xe1a91b75e86edd38u, 0xd424d70686417dcau}},
        {"profile", "creeping", {0x9a6418d11f6e1a09u, 0x09dceac973837dd6u}},
        {"full", "normal", {0xb5111134c7b0068bu, 0x340725c456a35002u}},
        {"exact", "flat", {0x56636fedef074b12u, 0x063a96c01a51abafu}},
        {"exact", "select", {0xf53e706a09d86a0au, 0xcc68d8ada4b58c73u}},
        {"coded", "select", {0x04bac9850ffa706du, 0xea8fd69ebf2e477bu}},
        {"extreme", "tiny", {0x773ebe24283c943du, 0x6dca60c52211318eu}},
        {"extreme", "subnormal", {0xd29c65f8035760e5u, 0xb3e5dbd4bdd9c5deu}},
        {"extreme", "huge", {0x7ee4ad2151285dd0u, 0x8d4196dd6f519172u}},
        {"extreme", "copies", {0x257c1ec5df27eccfu, 0x86a4bf5efc723955u}},
        {"extreme", "binade", {0x1d1be6a51dec4246u, 0xc1db3094d8ce9c25u}},
        {"extreme", "stairs", {0xc67e687c587e14eeu, 0x68be5abda485364au}},
        {"special", "zeros", {0x00e78b43590c5c41u, 0xb3b3d8797d4f9329u}},
        {"special", "ties", {0x840247cf0036f10au, 0x94affbbb96ead1b7u}},
        {"special", "cancel", {0xe48c15306c045fb0u, 0x3fddeeeed2351445u}},
        {"special", "large", {0x2ae99b6af902693eu, 0xb9f9b478ea64a750u}},
        {"special", "largest", {0x5a1ade171308662au, 0x2e5d46abbc9070e9u}},
        {"special", "ones", {0x5c28e85f98197972u, 0xcb87029f7695ad57u}},
        {"special", "faint", {0xc8d80625cec874a2u, 0x11174459e6d39c9bu}},
        {"special", "beneath", {0x6776903bdb9da580u, 0xd1e600e77a88e849u}},
        {"bfp8", "normal", {0x307e85890a9dee62u, 0x795c00088bc16852u}},
        {"bfp8", "outlier", {0xb8fa57398e769bedu, 0x69244977f39bf61du}},
    };
    const size_t expected_n = sizeof expected / sizeof expected[0];
    size_t families_n, i = 0;
    const struct mla_family *const *families = mla_families(&families_n);
    (void)state;
    for (size_t f = 0; f < families_n; f++)
        for (size_t r = 0; r < families[f]->regions_n; r++, i++) {
            int32_t region = (int32_t)families[f]->regions[r];
            assert_true(i < expected_n);
            assert_string_equal(expected[i].family, families[f]->name);
            assert_string_equal(expected[i].region, mla_case_region_name(region));
            for (int op = 0; op < MLA_OP_N; op++) {
                uint64_t hash = region_hash((enum mla_op)op, (int32_t)f, region);
                if (hash != expected[i].hash[op])
                    fail_msg("%s %s, op %d: 0x%016llxu", families[f]->name,
                             mla_case_region_name(region), op, (unsigned long long)hash);
            }
        }
    assert_int_equal(i, expected_n);
}

/* Without guards: the same numbers, and outputs that hold the pattern. */
static void test_plain(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_case test;
        struct mla_tensors *plain;
        char error[MLA_CASE_ERROR_MAX];
        mla_case_init(&test, (enum mla_op)op);
        struct mla_tensors *t = make(&test);
        assert_int_equal(mla_tensors_make_plain(&test, &plain, error), MLA_OK);
        assert_int_equal(plain->n, t->n);
        for (size_t i = 0; i < t->n; i++) {
            assert_int_equal(plain->list[i].guard.bytes, t->list[i].guard.bytes);
            assert_int_equal(mla_tensor_hash(&plain->list[i]), mla_tensor_hash(&t->list[i]));
        }
        mla_tensors_free(plain);
        mla_tensors_free(t);
    }
}

/* What cutting does to one number, said with arithmetic instead of bits. */
static void check_cut(uint16_t from, uint16_t to, int bits)
{
    double x = (double)mla_number_from_bf16(from), y = (double)mla_number_from_bf16(to);
    if ((from & 0x7f80u) == 0x7f80u || x == 0) {
        assert_int_equal(from, to);
        return;
    }
    int exponent;
    double part = frexp(fabs(x), &exponent);
    double kept = floor(ldexp(part, bits)); /* its first `bits` bits, as an integer */
    assert_true(y == copysign(ldexp(kept, exponent - bits), x));
    assert_true(y != 0);
}

static void check_cuts(const struct mla_tensor *a, const struct mla_tensor *b, int64_t skip,
                       int bits)
{
    const uint16_t *x = (const uint16_t *)(const void *)a->guard.data;
    const uint16_t *y = (const uint16_t *)(const void *)b->guard.data;
    for (int64_t e = 0; e < a->elements_n; e++)
        if (e != skip)
            check_cut(x[e], y[e], bits);
}

/* Signs stay, nothing becomes 0 (subnormals too), overrides and lists are not cut. */
static void check_few_bits(struct mla_case test, int bits)
{
    struct mla_tensors *whole = make(&test);
    mla_case_set_bits(&test, bits);
    test.put_n = 1;
    test.put[0] = (struct mla_override){"q", 0, 5, 0x3fff};
    if (test.op == MLA_OP_SPARSE)
        test.put[0] = (struct mla_override){"q_pe", 0, 5, 0x3fff};
    struct mla_tensors *t = make(&test);
    assert_int_equal(at16(t, test.put[0].tensor, 0, 5), 0x3fff);
    for (size_t i = 0; i < t->n; i++) {
        const struct mla_tensor *a = &whole->list[i], *b = &t->list[i];
        bool put = strcmp(a->name, test.put[0].tensor) == 0;
        if (a->role == MLA_TENSOR_INPUT && a->element_bytes == 2)
            check_cuts(a, b, put ? 5 : -1, bits);
        else if (a->role == MLA_TENSOR_INPUT)
            assert_int_equal(mla_tensor_hash(a), mla_tensor_hash(b));
    }
    mla_tensors_free(t);
    mla_tensors_free(whole);
}

static void test_few_bits(void **state)
{
    size_t families_n;
    const struct mla_family *const *families = mla_families(&families_n);
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++)
        for (size_t f = 0; f < families_n; f++)
            for (size_t r = 0; r < families[f]->regions_n; r++) {
                struct mla_case test;
                mla_case_init(&test, (enum mla_op)op);
                test.family = (int32_t)f;
                test.region = (int32_t)families[f]->regions[r];
                test.poison = MLA_POISON_MIXED;
                test.ring.logical_n = 7;
                mla_case_fix(&test);
                check_few_bits(test, 1 + (int)(f + r) % 7);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiled_place),
        cmocka_unit_test(test_causal_recipe),
        cmocka_unit_test(test_lists_are_in_range),
        cmocka_unit_test(test_poison_in_ring),
        cmocka_unit_test(test_poison_in_sparse),
        cmocka_unit_test(test_pad_rows_are_poisoned),
        cmocka_unit_test(test_unused_tiled_slots_hold_garbage),
        cmocka_unit_test(test_overrides),
        cmocka_unit_test(test_check_sees_every_byte),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_fingerprints),
        cmocka_unit_test(test_region_fingerprints),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_few_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
