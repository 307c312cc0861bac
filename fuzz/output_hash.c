/* SPDX-License-Identifier: Apache-2.0
 *
 * output_hash.c - the outputs of a call, element by element, stirred into 48 bits.
 *
 * Stored numbers are compared with those of later commits: nothing here may change what it gives.
 */
#include "fuzz/output_hash.h"

#include <string.h>

#include "fuzz/number.h"

static uint64_t stir(uint64_t hash, uint32_t element)
{
    hash = (hash ^ element) * 0x2127599bf4325c37u;
    return hash ^ hash >> 29;
}

static uint64_t hash_bf16(uint64_t hash, const uint16_t *bits, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        hash = stir(hash, (bits[i] & 0x7fffu) > 0x7f80u ? 0x7fc0u : bits[i]);
    return hash;
}

static uint64_t hash_float(uint64_t hash, const unsigned char *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, data + (size_t)i * sizeof bits, sizeof bits);
        hash = stir(hash, (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits);
    }
    return hash;
}

int64_t mla_output_hash(const struct mla_tensors *tensors)
{
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < tensors->n; i++) {
        const struct mla_tensor *t = &tensors->list[i];
        if (t->role != MLA_TENSOR_OUTPUT)
            continue;
        hash = t->element_bytes == sizeof(uint16_t)
                   ? hash_bf16(hash, (const uint16_t *)(const void *)t->guard.data, t->elements_n)
                   : hash_float(hash, t->guard.data, t->elements_n);
    }
    hash = mla_number_mix(hash) >> 16;
    return hash == 0 ? 1 : (int64_t)hash;
}
