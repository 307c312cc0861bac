/* SPDX-License-Identifier: Apache-2.0
 *
 * test_data.h - tensors for the tests of this folder: reproducible values, poison, byte comparison.
 */
#ifndef MLA_IMPL_TEST_DATA_H
#define MLA_IMPL_TEST_DATA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#define TEST_POISON 0xffffU /* a bf16 NaN */

/* Counter-based, so a tensor's value depends on (seed, element) alone. */
static inline uint64_t test_mix(uint64_t seed, uint64_t element)
{
    uint64_t z = seed * UINT64_C(0x9e3779b97f4a7c15) + element * UINT64_C(0xd1342543de82ef95) + 1;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A bf16 in (-2, 2), 7 random significant bits and 4 binades: every pattern is finite and normal.
 */
static inline uint16_t test_bf16(uint64_t seed, uint64_t element)
{
    const uint64_t bits = test_mix(seed, element);
    return (uint16_t)((bits & 0x807fU) | ((124U + ((bits >> 20) & 3U)) << 7));
}

static inline void *test_alloc(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);
    assert_non_null(memory);
    return memory;
}

static inline uint16_t *test_tensor(int64_t n, uint64_t seed)
{
    uint16_t *tensor = test_alloc((size_t)n * sizeof *tensor);
    for (int64_t i = 0; i < n; i++) {
        tensor[i] = test_bf16(seed, (uint64_t)i);
    }
    return tensor;
}

static inline void *test_copy(const void *from, size_t bytes)
{
    void *copy = test_alloc(bytes);
    memcpy(copy, from, bytes);
    return copy;
}

static inline double test_value(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

#endif
