/* SPDX-License-Identifier: Apache-2.0
 *
 * import.h - tensors from outside become a case.
 *
 * What a file may hold (leading axes of 1 or not; every element must be a bf16 exactly: BF16, or F32 and
 * F16 that are, as dequantised caches are):
 *
 *   ring    q.D [batch, heads, q_rows, head_dim], kv.D [kv_batch, 1, kv_rows, head_dim] of each rank
 *   sparse  queries: q_lift [S, H, 512] and q_pe [S, H, Rr], or q [S, H, 512+Rr]
 *           cache: c_kv [S_kv, 512] and k_pe [S_kv, Rr], or kv [.., 512+Rr]: all axes before the last
 *           count its rows
 *           lists: topk_indices or indices, I32, [S, K] or [S, 1, K], or tiled as in impl/mla.h
 *           (metadata topk_tiled 1); none if dense
 *           masked only: topk_length, I32, [S]: entries from there on are padding
 *
 * Parameters are numbers under their names in impl/mla.h: the file's metadata, and before them what the
 * caller adds. Shapes come from the tensors. The sparse operation needs softmax_scale, and its out_order is
 * natural unless given; the ring needs head_dim_v, its logical_n is all keys unless given.
 */
#ifndef MLA_FUZZ_IMPORT_H
#define MLA_FUZZ_IMPORT_H

#include "fuzz/safetensors.h"
#include "fuzz/tensors.h"

#define MLA_IMPORT_ERROR_MAX 1024

struct mla_import_options {
    const char *const *params; /* "NAME=VALUE", before the metadata's */
    int params_n;
    /*
     * An index of -1 or beyond the cache, and one from the row's topk_length on, means no key. The
     * operation knows no such index; it is put in other words. With q_pos_offset = S_kv - 1 no row of
     * the cache is dropped from any list; S rows are added to the cache, and the last of them, row
     * S_kv + S - 1, is beyond q_pos_offset + q for every q < S: dropped from every list. Padding becomes
     * that index. Lists are filled up with it to a multiple of 128. An index that the file's own
     * q_pos_offset drops becomes one too. The added rows hold NaN, as what must not be read does.
     */
    bool masked;
};

/*
 * Make a case of a file and store its tensors (mla_data_store). MLA_OK; MLA_ERR_PARAM with tensor or
 * parameter and what is wrong with it in error, MLA_ERR_NOMEM, MLA_SAFETENSORS_DISK.
 */
int32_t mla_import(const struct mla_safetensors *file, const struct mla_import_options *options,
                   struct mla_case *test, char error[MLA_IMPORT_ERROR_MAX]);

#endif
