/* SPDX-License-Identifier: Apache-2.0
 *
 * family.h - the families of data: how the rows of queries and keys are made.
 *
 * Both operations look alike from here: a key row of `width` columns whose first `width_v` are also
 * its value, and query rows of the same width (ring: head_dim and head_dim_v; sparse: latent + rope
 * and latent). A family is two functions that fill one row each; it draws the score profile and the
 * geometry of the values, because plain random data is nearly blind to what goes wrong in such
 * kernels. Adding one: a file family_<name>.c and a line in family.c's table.
 */
#ifndef MLA_FUZZ_FAMILY_H
#define MLA_FUZZ_FAMILY_H

#include "fuzz/case.h"

/* What a family may know. */
struct mla_family_view {
    const struct mla_case *test;
    int64_t width;
    int64_t width_v;
    int64_t keys_n;     /* key positions that can be seen: logical_n, or the cache's rows */
    int64_t block_keys; /* keys in one block of the kernel's walk, in positions */
    int64_t shard_keys; /* keys in one shard */
    double scale;
    /* A key position that query row `row` sees, chosen by `bits`; -1 if it sees none. */
    int64_t (*pick_key)(const struct mla_family_view *view, int64_t row, uint64_t bits);
    const void *pick_context;
};

struct mla_family {
    const char *name;
    const char *what; /* one line for `mlacheck list` */
    const enum mla_region *regions;
    size_t regions_n;
    int64_t amount_min, amount_max; /* range of the strength parameter */
    /* Fill row[0 .. width-1]. row_position: global position (ring) or row number (sparse). */
    void (*query)(const struct mla_family_view *view, int64_t batch, int64_t head,
                  int64_t row_position, uint16_t *row);
    void (*key)(const struct mla_family_view *view, int64_t batch, int64_t position, uint16_t *row);
    /*
     * Are the signs of the values independent fair coins that nothing else depends on? A promise
     * the row-energy test rests on: the query is 0 in every column that serves as value; every
     * value is a magnitude, never 0, under a sign drawn from MLA_STREAM_SIGN for its (batch,
     * position, column); magnitudes, scores and queries are made without those coins.
     */
    bool sign_coins;
};

/* families[family] is the family of that number; the order is part of nothing stored. */
const struct mla_family *const *mla_families(size_t *families_n);
const char *mla_family_name(int32_t family); /* NULL beyond the last */
int32_t mla_family_find(const char *name);   /* -1 when unknown */
bool mla_family_knows(int32_t family, int32_t region);
/* Do the value tensors of the case hold such coins? Not if an element was replaced by hand. */
bool mla_case_has_sign_coins(const struct mla_case *test);

extern const struct mla_family mla_family_upstream, mla_family_profile, mla_family_full,
    mla_family_exact, mla_family_coded, mla_family_extreme, mla_family_special, mla_family_bfp8;

/* Streams: which use of the seed a random number belongs to. */
enum mla_stream {
    MLA_STREAM_QUERY = 1,
    MLA_STREAM_KEY,
    MLA_STREAM_SCORE,
    MLA_STREAM_SIGN,
    MLA_STREAM_INDEX,
    MLA_STREAM_POISON,
    MLA_STREAM_PLACE,
    MLA_STREAM_ROWS,
    MLA_STREAM_TARGET
};

/*
 * Rows are made by loops of 64-bit integer arithmetic, the costly part of a small case. Such a loop
 * is written once, as an MLA_FAMILY_INNER function, and compiled twice: plainly, and as
 * MLA_FAMILY_WIDE for AVX-512, to be called where mla_family_is_wide(). The numbers are the same.
 */
#define MLA_FAMILY_INNER static inline __attribute__((always_inline))
#if defined(__x86_64__)
#define MLA_FAMILY_WIDE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#else
#define MLA_FAMILY_WIDE
#endif

static inline bool mla_family_is_wide(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
#else
    return false;
#endif
}

static inline uint64_t mla_stream_key(uint64_t seed, enum mla_stream stream)
{
    return mla_number_mix(seed ^ ((uint64_t)stream << 56));
}

#endif
