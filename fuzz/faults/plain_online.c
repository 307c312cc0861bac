/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_online.c - the online softmax: tile by tile under a running maximum.
 *
 * Every float operation is counted in the models in plain.h and plain_models.h; change one and
 * change the other.
 */
#include "fuzz/faults/plain_arith.h"

#include <math.h>

static void multiply(float *o, int64_t columns_n, float factor)
{
    for (int64_t c = 0; c < columns_n; c++) {
        o[c] *= factor;
    }
}

/* The factor that a fault takes for `right` at the rescale of one tile of so many keys. */
static float faulty_factor(const struct mla_plain_row *row, float old_max, int64_t tile_keys,
                           float right, struct mla_plain_variant variant)
{
    switch (variant.fault) {
    case MLA_FAULT_RESCALE_OF_HEAD_0:
        return row->head > 0 ? row->head_factors[row->run.tiles_n] : right;
    case MLA_FAULT_RESCALE_DEFAULT_SCALE:
        return expf((old_max - row->max) / sqrtf((float)(row->value_n + row->rope_n)));
    case MLA_FAULT_RESCALE_UNSCALED:
        return expf(old_max - row->max);
    case MLA_FAULT_RESCALE_SKIPPED_SMALL:
        return row->run.tiles_n == 1 && tile_keys <= 32 ? 1.0f : right;
    case MLA_FAULT_RESCALE_ONLY_SECOND:
        return row->run.tiles_n > 1 ? 1.0f : right;
    default:
        return right;
    }
}

/* exp(old - new), by which what is summed so far is carried into the new frame. On the row's first
 * tile old_max is -inf and the factor is 0; sum and o are 0 then anyway. */
static float rescale_factor(struct mla_plain_row *row, float old_max, int64_t tile_keys,
                            struct mla_plain_variant variant)
{
    float right = mla_plain_exp((old_max - row->max) * row->run.scale, variant);
    float wrong = faulty_factor(row, old_max, tile_keys, right, variant);
    if (row->head == 0) {
        row->head_factors[row->run.tiles_n] = right;
    }
    if (row->run.tiles_n > 0 && mla_plain_differs(wrong, right) &&
        mla_plain_has(variant, variant.fault)) {
        return wrong;
    }
    return right;
}

static void add_key(struct mla_plain_row *row, int64_t j, struct mla_plain_variant variant)
{
    const struct mla_plain_key *key = &row->keys[j];
    float p = mla_plain_exp((row->scores[j] - row->max) * row->run.scale, variant);
    if (key->hidden && !mla_plain_mask_adds(p, variant)) {
        return;
    }
    row->sum += p;
    mla_plain_accumulate(row, key->value, p, variant);
}

/* Is the tile that ends there the last of an odd number of several? */
static bool is_odd_last(const struct mla_plain_row *row, int64_t end)
{
    return end == row->keys_n && row->run.tiles_n >= 2 && row->run.tiles_n % 2 == 0;
}

/* One tile [first, end): new maximum, rescale, then add its keys. */
static void tile_step(struct mla_plain_row *row, int64_t first, int64_t end, int64_t step,
                      struct mla_plain_variant variant)
{
    if (is_odd_last(row, end) && mla_plain_has(variant, MLA_FAULT_ODD_TILE_LOST)) {
        return;
    }
    float old_max = row->max;
    float old_sum = row->sum;
    row->max = mla_plain_tile_max(row, first, end, variant);
    float alpha = rescale_factor(row, old_max, end - first, variant);
    if (alpha == 1.0f || row->run.tiles_n == 0 ||
        !mla_plain_has(variant, MLA_FAULT_RESCALE_OF_SUM_FORGOTTEN)) {
        row->sum *= alpha;
    }
    row->run.sum_excess = old_sum - row->sum;
    if (alpha == 1.0f || row->run.tiles_n == 0 ||
        !mla_plain_has(variant, MLA_FAULT_RESCALE_FORGOTTEN)) {
        multiply(row->o, row->value_n, alpha);
    }
    for (int64_t n = end - first, j = step > 0 ? first : end - 1; n > 0; n--, j += step) {
        add_key(row, j, variant);
    }
    mla_plain_store_sums(row, variant);
    row->run.tiles_n++;
}

/* Where the tile that begins with key `first` ends. */
static int64_t tile_end(const struct mla_plain_row *row, int64_t first,
                        struct mla_plain_variant variant)
{
    if (variant.method == MLA_PLAIN_ONE_TILE) {
        return row->keys_n;
    }
    if (variant.method == MLA_PLAIN_TILES_32) {
        return first + 32 < row->keys_n ? first + 32 : row->keys_n;
    }
    int64_t end = first;
    while (end < row->keys_n && row->keys[end].tile == row->keys[first].tile) {
        end++;
    }
    return end;
}

static void online_reversed(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    for (int64_t end = row->keys_n, first = 0; end > 0; end = first) {
        first = end;
        while (first > 0 && row->keys[first - 1].tile == row->keys[end - 1].tile) {
            first--;
        }
        tile_step(row, first, end, -1, variant);
    }
}

void mla_plain_online(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    if (variant.method == MLA_PLAIN_REVERSED) {
        online_reversed(row, variant);
        return;
    }
    for (int64_t first = 0, end = 0; first < row->keys_n; first = end) {
        end = tile_end(row, first, variant);
        tile_step(row, first, end, 1, variant);
    }
}
