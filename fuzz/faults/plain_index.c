/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_index.c - reading the index list: its two layouts, its type, its coordinate space.
 */
#include "fuzz/faults/half.h"
#include "fuzz/faults/plain_list.h"

static int64_t clamped(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

int64_t mla_plain_core(const struct mla_sparse_args *args, int64_t q)
{
    return q / (args->queries / args->cores);
}

/* Tiled: row q sits in block q/128, partition (q%128)/8, lanes 16*(q%8) .. +15. */
static int64_t tiled_place(const struct mla_sparse_args *args, int64_t q, int64_t j,
                           int64_t per_lane)
{
    int64_t in_block = q % 128;
    int64_t partition = (q / 128) * 16 + in_block / 8;
    int64_t lane = 16 * (in_block % 8) + j % 16;
    (void)args;
    return (partition * 128 + lane) * per_lane + j / 16;
}

int64_t mla_plain_entry_place(const struct mla_sparse_args *args, int64_t q, int64_t j)
{
    return args->topk_tiled ? tiled_place(args, q, j, args->topk / 16) : q * args->topk + j;
}

/* The place a fault reads instead. Rows and lists are whole, so none lies outside the tensor but
 * that of per_lane, which is brought back. */
static int64_t faulty_place(const struct mla_sparse_args *args, int64_t q, int64_t j,
                            enum mla_plain_fault fault)
{
    int64_t per_lane = args->topk / 16;
    int64_t rows_n = args->topk_tiled ? (args->queries + 127) / 128 * 128 : args->queries;
    bool is_tiled = args->topk_tiled != 0;
    switch (fault) {
    case MLA_FAULT_TILED_READ_AS_FLAT:
        return q * args->topk + j;
    case MLA_FAULT_FLAT_READ_AS_TILED:
        return tiled_place(args, q, j, per_lane);
    case MLA_FAULT_TILED_ONE_BLOCK:
        return is_tiled ? tiled_place(args, q % 128, j, per_lane) : q * args->topk + j;
    case MLA_FAULT_TILED_ONE_GROUP:
        return is_tiled ? tiled_place(args, q % 8, j, per_lane) : q * args->topk + j;
    case MLA_FAULT_TILED_LANE_FIXED:
        return is_tiled ? tiled_place(args, q, j, 16) % (rows_n * args->topk) : q * args->topk + j;
    case MLA_FAULT_LIST_OF_FIRST_CORE:
        return mla_plain_entry_place(args, q % (args->queries / args->cores), j);
    case MLA_FAULT_LIST_TAIL_STALE:
        return mla_plain_entry_place(args, j >= args->topk - args->topk / 16 && q > 0 ? q - 1 : q,
                                     j);
    default:
        return mla_plain_entry_place(args, q, j);
    }
}

/* What a fault takes the index for. */
static int64_t faulty_index(const struct mla_sparse_args *args, int64_t q, int64_t j, int64_t index,
                            enum mla_plain_fault fault)
{
    int64_t base = mla_plain_core(args, q) * (args->queries / args->cores);
    switch (fault) {
    case MLA_FAULT_INDEX_15_BITS:
        return index & 0x7fff;
    case MLA_FAULT_INDEX_16_BITS:
        return index & 0xffff;
    case MLA_FAULT_INDEX_8_BITS:
        return index & 0xff;
    case MLA_FAULT_INDEX_BF16:
        return (int64_t)mla_plain_round_bf16((float)index);
    case MLA_FAULT_INDEX_PLUS_BASE:
        return index + base;
    case MLA_FAULT_INDEX_RELATIVE:
        return args->keys > 4096 ? index % 4096 : index;
    case MLA_FAULT_FIRST_KEY_ZERO:
        return j == 0 ? 0 : index;
    default:
        return index;
    }
}

/* An index that was not refused although it is none: the nearest row there is. */
static int64_t repaired(const struct mla_sparse_args *args, int64_t index,
                        struct mla_plain_variant variant)
{
    bool to_zero =
        variant.fault == MLA_FAULT_NEGATIVE_TO_ZERO || variant.fault == MLA_FAULT_UPPER_TO_ZERO;
    if (to_zero && (index < 0 || index >= args->keys)) {
        return 0;
    }
    return clamped(index, 0, args->keys - 1);
}

int64_t mla_plain_entry(const struct mla_sparse_args *args, int64_t q, int64_t j,
                        struct mla_plain_variant variant)
{
    int64_t place = mla_plain_entry_place(args, q, j);
    int64_t index = repaired(args, args->topk_indices[place], variant);
    if (variant.fault == MLA_FAULT_NONE) {
        return index;
    }
    place = faulty_place(args, q, j, variant.fault);
    int64_t wrong = repaired(args, args->topk_indices[place], variant);
    wrong = repaired(args, faulty_index(args, q, j, wrong, variant.fault), variant);
    return wrong != index && mla_plain_has(variant, variant.fault) ? wrong : index;
}
