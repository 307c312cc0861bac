/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_list.c - which cache rows a query row of the sparse operation attends to.
 *
 * The list is the row's multiset in listed order (or 0, 1, ... when dense) without the entries that
 * q_pos_offset drops; tiles are 128 kept entries, so that the number of tiles follows from the
 * number of keys alone, as the declared model needs it.
 */
#include "fuzz/faults/plain_list.h"
#include "fuzz/faults/bf16.h"
#include "fuzz/faults/plain_mask.h"

#include <math.h>

/* Where row `index` begins, in elements, by 31 bits of a byte offset. */
static int64_t short_offset(int64_t index, int64_t width)
{
    return (int64_t)(((uint64_t)index * (uint64_t)width * 2u) & 0x7fffffffu) / 2;
}

struct mla_plain_key mla_plain_cache_row(const struct mla_sparse_args *args, int64_t index,
                                         struct mla_plain_variant variant)
{
    int64_t value_at = index * args->latent;
    int64_t rope_at = index * args->rope;
    int64_t value_short = short_offset(index, args->latent);
    if (value_at != value_short && mla_plain_has(variant, MLA_FAULT_CACHE_OFFSET_INT32)) {
        value_at = value_short;
    }
    int64_t rope_short = short_offset(index, args->rope);
    if (rope_at != rope_short && mla_plain_has(variant, MLA_FAULT_ROPE_OFFSET_INT32)) {
        rope_at = rope_short;
    }
    if (args->rope > 64 && index > 0 && mla_plain_has(variant, MLA_FAULT_KEY_ROPE_STRIDE)) {
        rope_at = index * 64;
    }
    return (struct mla_plain_key){.value = args->c_kv + value_at, .rope = args->k_pe + rope_at};
}

static bool is_finite_row(const uint16_t *row, int64_t columns_n)
{
    for (int64_t c = 0; c < columns_n; c++) {
        if (!isfinite(mla_plain_bf16_value(row[c]))) {
            return false;
        }
    }
    return true;
}

static bool may_stay_hidden(struct mla_plain_variant variant)
{
    return variant.fault == MLA_FAULT_ZERO_TIMES_DROPPED || mla_plain_masks(variant);
}

/* Is a dropped entry listed all the same, as hidden? */
static bool stays_hidden(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                         const struct mla_plain_key *key)
{
    if (variant.fault == MLA_FAULT_ZERO_TIMES_DROPPED) {
        return !is_finite_row(key->value, args->latent) && mla_plain_has(variant, variant.fault);
    }
    return mla_plain_masks(variant);
}

/* One entry in 64, by its place. */
static bool is_lost(int64_t q, int64_t j)
{
    return ((uint64_t)(j + 1) * 2654435761u + (uint64_t)q * 40503u) >> 9 & 63u ? false : true;
}

int64_t mla_plain_list(const struct mla_sparse_args *args, int64_t q,
                       struct mla_plain_variant variant, struct mla_plain_key *keys)
{
    int64_t last = mla_plain_last_allowed(args, q);
    int64_t last_faulty = mla_plain_last_faulty(args, q, variant);
    int64_t listed_n = args->dense ? args->keys : args->topk;
    int64_t keys_n = 0;
    int64_t kept_n = 0;
    for (int64_t j = 0; j < listed_n; j++) {
        int64_t index = args->dense ? j : mla_plain_entry(args, q, j, variant);
        bool is_kept = index <= last;
        if (is_kept != (index <= last_faulty) && mla_plain_has(variant, variant.fault)) {
            is_kept = !is_kept;
        }
        if (is_kept && !args->dense && is_lost(q, j) &&
            mla_plain_has(variant, MLA_FAULT_ENTRIES_LOST)) {
            continue;
        }
        if (!is_kept && !may_stay_hidden(variant)) {
            continue;
        }
        struct mla_plain_key key = mla_plain_cache_row(args, index, variant);
        key.hidden = !is_kept;
        key.tile = kept_n / MLA_PLAIN_SPARSE_TILE;
        if (is_kept || stays_hidden(args, variant, &key)) {
            keys[keys_n++] = key;
        }
        kept_n += is_kept;
    }
    if (kept_n == 0 && variant.fault == MLA_FAULT_ZERO_TIMES_DROPPED) {
        return 0; /* a row without keys is guarded */
    }
    return mla_plain_edit_list(args, q, variant, keys, keys_n);
}
