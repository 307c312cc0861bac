/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor.c - hashing, checking and copying one tensor's contents: all of it, or of a thin cache the rows
 * that were made.
 */
#include <string.h>

#include "fuzz/tensors.h"

static uint64_t stir(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x2127599bf4325c37u;
    return hash ^ hash >> 29;
}

static uint64_t hash_bytes(uint64_t hash, const unsigned char *data, size_t bytes)
{
    uint64_t word;
    for (; bytes >= sizeof word; data += sizeof word, bytes -= sizeof word) {
        memcpy(&word, data, sizeof word);
        hash = stir(hash, word);
    }
    for (; bytes > 0; data++, bytes--)
        hash = (hash ^ *data) * 0x100000001b3u;
    return hash;
}

/* Four streams of words side by side: no word waits for the one before it. */
#define STREAMS 4

static uint64_t check_bytes(uint64_t start, const unsigned char *data, size_t bytes)
{
    uint64_t hash[STREAMS] = {start + 1, 2, 3, 4}, words[STREAMS];
    for (; bytes >= sizeof words; data += sizeof words, bytes -= sizeof words) {
        memcpy(words, data, sizeof words);
        for (int i = 0; i < STREAMS; i++)
            hash[i] = stir(hash[i], words[i]);
    }
    for (; bytes > 0; data++, bytes--)
        hash[0] = stir(hash[0], *data);
    return stir(stir(stir(hash[0], hash[1]), hash[2]), hash[3]);
}

/* The bytes that count: all, or one extent of rows after the other. */
static size_t part(const struct mla_tensor *tensor, size_t i, const unsigned char **data)
{
    size_t row = (size_t)tensor->row_elements * tensor->element_bytes;
    *data = tensor->guard.data;
    if (tensor->made == NULL)
        return tensor->guard.bytes;
    *data += (size_t)tensor->made[i].from * row;
    return (size_t)(tensor->made[i].to - tensor->made[i].from) * row;
}

static size_t parts_n(const struct mla_tensor *tensor)
{
    return tensor->made == NULL ? 1 : tensor->made_n;
}

uint64_t mla_tensor_hash(const struct mla_tensor *tensor)
{
    uint64_t hash = 0x9e3779b97f4a7c15u;
    const unsigned char *data;
    for (size_t i = 0; i < parts_n(tensor); i++) {
        size_t bytes = part(tensor, i, &data);
        hash = hash_bytes(hash, data, bytes);
    }
    return hash;
}

uint64_t mla_tensor_check(const struct mla_tensor *tensor)
{
    uint64_t check = 0;
    const unsigned char *data;
    for (size_t i = 0; i < parts_n(tensor); i++) {
        size_t bytes = part(tensor, i, &data);
        check = check_bytes(check, data, bytes);
    }
    return check;
}

void mla_tensor_copy(const struct mla_tensor *from, struct mla_tensor *to)
{
    const unsigned char *data;
    for (size_t i = 0; i < parts_n(from); i++) {
        size_t bytes = part(from, i, &data);
        memcpy(to->guard.data + (data - from->guard.data), data, bytes);
    }
}
