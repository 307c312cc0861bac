/* SPDX-License-Identifier: Apache-2.0
 *
 * chunks.c - the K chunks of a ring's row under a model.
 *
 * A model counts and frames blocks by "K chunks": runs of c local rows of a shard, from its first
 * row, c = shard_block_keys of the model, or the call's k_chunk_size if that is 0. A row sees a
 * prefix of every shard (gather.c sees to it), n_s keys of shard s, the t-th of them at local row t.
 * So its chunk within the shard is t div c, all of 0 .. ceil(n_s/c) - 1 occur, and the chunks before
 * it number ceil(n_r/c) over the shards r visited before. Chunks, and shards, without a visible key
 * change no maximum and are not counted.
 */
#include "oracle/truth.h"

int64_t mla_oracle_chunks(const struct mla_truth *truth, const struct mla_model *model,
                          int64_t *chunk)
{
    const struct mla_oracle_input *input = &truth->input;
    const int64_t keys = model->shard_block_keys > 0 ? model->shard_block_keys : input->chunk_keys;
    int64_t chunks_n = 0;
    int64_t i = 0;

    if (!truth->is_ring) {
        return -1;
    }
    for (int64_t s = 0; s < input->shards_n; s++) {
        const int64_t n = input->shard_n[s];

        for (int64_t t = 0; chunk != NULL && t < n; t++) {
            chunk[i++] = chunks_n + t / keys;
        }
        chunks_n += n / keys + (n % keys != 0);
    }
    return chunks_n;
}
