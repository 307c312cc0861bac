/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_edit.c - what faults do to a row's finished list of keys.
 */
#include "fuzz/faults/plain_list.h"

/* Tiles anew, after keys came or went. */
static int64_t tiled(struct mla_plain_key *keys, int64_t keys_n)
{
    for (int64_t j = 0; j < keys_n; j++) {
        keys[j].tile = j / MLA_PLAIN_SPARSE_TILE;
        keys[j].hidden = false;
    }
    return keys_n;
}

/* Without copies of an entry that is already there; `near`: just before. */
static int64_t without_copies(struct mla_plain_variant variant, struct mla_plain_key *keys,
                              int64_t keys_n, bool near)
{
    int64_t kept_n = 0;
    for (int64_t j = 0; j < keys_n; j++) {
        bool is_copy = false;
        for (int64_t i = near && kept_n > 0 ? kept_n - 1 : 0; i < kept_n && !is_copy; i++) {
            is_copy = keys[i].value == keys[j].value;
        }
        if (!is_copy || !mla_plain_has(variant, variant.fault)) {
            keys[kept_n++] = keys[j];
        }
    }
    return tiled(keys, kept_n);
}

/* The first keys_n entries of the list, whether those are the ones kept or not. */
static int64_t by_position(const struct mla_sparse_args *args, int64_t q,
                           struct mla_plain_variant variant, struct mla_plain_key *keys,
                           int64_t keys_n)
{
    for (int64_t j = 0; j < keys_n && !args->dense; j++) {
        int64_t index = args->topk_indices[mla_plain_entry_place(args, q, j)];
        struct mla_plain_key key = mla_plain_cache_row(args, index, variant);
        if (key.value != keys[j].value && mla_plain_has(variant, variant.fault)) {
            keys[j] = key;
        }
    }
    return tiled(keys, keys_n);
}

/* The count goes up to whole tiles of 32; the entries there are what the row before left, or, at
 * first, cache row 0. */
static int64_t up_to_tile(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                          struct mla_plain_key *keys, int64_t keys_n)
{
    int64_t most = args->dense ? args->keys : args->topk;
    int64_t whole = (keys_n + 31) / 32 * 32;
    whole = whole < most ? whole : most;
    if (keys_n == 0 || whole == keys_n || !mla_plain_has(variant, variant.fault)) {
        return keys_n;
    }
    for (int64_t j = keys_n; j < whole; j++) {
        if (keys[j].value == NULL) {
            keys[j] = mla_plain_cache_row(args, 0, variant);
        }
    }
    return tiled(keys, whole);
}

static int64_t backwards(struct mla_plain_key *keys, int64_t keys_n)
{
    for (int64_t j = 0; j < keys_n / 2; j++) {
        struct mla_plain_key key = keys[j];
        keys[j] = keys[keys_n - 1 - j];
        keys[keys_n - 1 - j] = key;
    }
    return tiled(keys, keys_n);
}

/* Were all entries of one tile of the list dropped, the first or, after keys, a later one? */
static bool has_empty_tile(const struct mla_sparse_args *args, int64_t q, bool first)
{
    int64_t last = mla_plain_last_allowed(args, q);
    int64_t seen_n = 0;
    for (int64_t tile = 0; tile < (args->dense ? 0 : args->topk / MLA_PLAIN_SPARSE_TILE); tile++) {
        int64_t kept_n = 0;
        for (int64_t j = 0; j < MLA_PLAIN_SPARSE_TILE; j++) {
            int64_t place = mla_plain_entry_place(args, q, tile * MLA_PLAIN_SPARSE_TILE + j);
            kept_n += args->topk_indices[place] <= last;
        }
        if (kept_n == 0 && (first ? tile == 0 : seen_n > 0)) {
            return true;
        }
        seen_n += kept_n;
    }
    return false;
}

/* A tile of its own that holds nothing but a masked key, before or after the others. */
static int64_t with_empty_tile(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                               struct mla_plain_key *keys, int64_t keys_n, bool first)
{
    struct mla_plain_key empty = mla_plain_cache_row(args, 0, variant);
    empty.hidden = true;
    empty.tile = -1;
    for (int64_t j = keys_n; first && j > 0; j--) {
        keys[j] = keys[j - 1];
    }
    keys[first ? 0 : keys_n] = empty;
    return keys_n + 1;
}

/* Keys beyond whole blocks of 512, where there is more than one. */
static int64_t tail_n(const struct mla_sparse_args *args, int64_t keys_n)
{
    return !args->dense && args->topk > 512 && keys_n > 512 ? keys_n % 512 : 0;
}

int64_t mla_plain_edit_list(const struct mla_sparse_args *args, int64_t q,
                            struct mla_plain_variant variant, struct mla_plain_key *keys,
                            int64_t keys_n)
{
    switch (variant.fault) {
    case MLA_FAULT_LAST_KEY_DROPPED:
        return keys_n > 0 && mla_plain_has(variant, variant.fault) ? keys_n - 1 : keys_n;
    case MLA_FAULT_COPIES_REMOVED:
        return without_copies(variant, keys, keys_n, false);
    case MLA_FAULT_NEIGHBOUR_COPIES_REMOVED:
        return without_copies(variant, keys, keys_n, true);
    case MLA_FAULT_LIST_BY_POSITION:
        return by_position(args, q, variant, keys, keys_n);
    case MLA_FAULT_COUNT_UP_TO_TILE:
        return up_to_tile(args, variant, keys, keys_n);
    case MLA_FAULT_LIST_TAIL_SKIPPED:
        return tail_n(args, keys_n) > 0 && mla_plain_has(variant, variant.fault)
                   ? keys_n - tail_n(args, keys_n)
                   : keys_n;
    case MLA_FAULT_CORES_REVERSE_LISTS:
        return mla_plain_core(args, q) % 2 == 1 && mla_plain_has(variant, variant.fault)
                   ? backwards(keys, keys_n)
                   : keys_n;
    case MLA_FAULT_EMPTY_ROW_DUMMY_KEY:
        keys[0] = keys_n > 0 ? keys[0] : mla_plain_cache_row(args, 0, variant);
        return keys_n == 0 && mla_plain_has(variant, variant.fault) ? 1 : keys_n;
    case MLA_FAULT_EMPTY_TILE_FIRST:
        return has_empty_tile(args, q, true) ? with_empty_tile(args, variant, keys, keys_n, true)
                                             : keys_n;
    case MLA_FAULT_EMPTY_TILE_BEFORE_KEYS:
        return keys_n > 0 && has_empty_tile(args, q, true)
                   ? with_empty_tile(args, variant, keys, keys_n, true)
                   : keys_n;
    case MLA_FAULT_EMPTY_TILE_RESETS_MAX:
        return has_empty_tile(args, q, false) ? with_empty_tile(args, variant, keys, keys_n, false)
                                              : keys_n;
    default:
        return keys_n;
    }
}
