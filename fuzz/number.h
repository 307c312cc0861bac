/* SPDX-License-Identifier: Apache-2.0
 *
 * number.h - the harness's own bf16 conversions and its counter-based random numbers.
 *
 * Kept apart from impl: a judge that read outputs through the kernel's conversions would share
 * their faults. Random numbers are a pure function of (key, counter), so an element's value depends
 * on nothing but the case's seed, its tensor and its place; integer arithmetic only, so it is the
 * same on every machine.
 */
#ifndef MLA_FUZZ_NUMBER_H
#define MLA_FUZZ_NUMBER_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define MLA_BF16_NAN     0x7fc1u
#define MLA_BF16_INF     0x7f80u
#define MLA_BF16_LARGEST 0x7f7fu

static inline float mla_number_from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Nearest bf16, ties to even; overflow gives Inf. value must not be NaN. */
static inline uint16_t mla_number_to_bf16(double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection that scatters every input bit. */
static inline uint64_t mla_number_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* 64 random bits, a function of the key and up to three coordinates. */
static inline uint64_t mla_number_at(uint64_t key, uint64_t a, uint64_t b, uint64_t c)
{
    return mla_number_mix(mla_number_mix(mla_number_mix(key ^ a) ^ b) ^ c);
}

/* Uniform in [0, 1), 53 bits. */
static inline double mla_number_unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

/*
 * N(0,1) as the sum of twelve 16-bit uniforms less 6 (Irwin-Hall: variance exact up to 2^-32, tails
 * end at +-6): no library function, so the same bits everywhere.
 */
static inline double mla_number_normal(uint64_t bits)
{
    int64_t sum = 0;
    for (int word = 0; word < 3; word++) {
        uint64_t x = mla_number_mix(bits + (uint64_t)word);
        sum += (int64_t)(x & 0xffff) + (int64_t)((x >> 16) & 0xffff) +
               (int64_t)((x >> 32) & 0xffff) + (int64_t)(x >> 48);
    }
    return ((double)sum + 6.0) * 0x1p-16 - 6.0;
}

/* A stream of draws for choosing cases. Copy it to branch. */
struct mla_rng {
    uint64_t key;
    uint64_t counter;
};

static inline uint64_t mla_rng_next(struct mla_rng *rng)
{
    return mla_number_mix(rng->key ^ mla_number_mix(rng->counter++));
}

/* Uniform in 0 .. n-1 (n >= 1); the bias of at most n/2^64 does not matter here. */
static inline int64_t mla_rng_below(struct mla_rng *rng, int64_t n)
{
    return (int64_t)(((__uint128_t)mla_rng_next(rng) * (uint64_t)n) >> 64);
}

/* True with probability numerator/denominator. */
static inline int mla_rng_chance(struct mla_rng *rng, int64_t numerator, int64_t denominator)
{
    return mla_rng_below(rng, denominator) < numerator;
}

#endif
