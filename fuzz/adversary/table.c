/* SPDX-License-Identifier: Apache-2.0
 *
 * table.c - the tables of conforming adversaries and of cheats.
 */
#include "fuzz/adversary/table.h"

/* clang-format off */
static const struct mla_adversary *const adversaries[] = {
    &mla_adversary_two_pass,
    &mla_adversary_online,
    &mla_adversary_pairwise,
    &mla_adversary_restarting,
    &mla_adversary_mixed,
    &mla_adversary_scaled,
    &mla_adversary_merged,
    &mla_adversary_scalar,
    &mla_adversary_p_row,
    &mla_adversary_p_row_rounded,
    &mla_adversary_p_blocks,
    &mla_adversary_p_chunks,
    &mla_adversary_p_own_blocks,
    &mla_adversary_p_free,
    &mla_adversary_p_free_rounded,
    &mla_adversary_p_cut,
    &mla_adversary_p_cut_free,
    &mla_adversary_p_merged,
    &mla_adversary_as_nki,
    &mla_adversary_as_ttnn,
    &mla_adversary_bf16_all,
    &mla_adversary_bf16_sums,
    &mla_adversary_flushing,
    &mla_adversary_flushing_row,
    &mla_adversary_products,
    &mla_adversary_rough_exp,
    &mla_adversary_rough_blocks,
    &mla_adversary_blind_online,
    &mla_adversary_blind_p_row,
    &mla_adversary_blind_own_blocks,
    &mla_adversary_blind_p_free,
    &mla_adversary_blind_p_free_rounded,
    &mla_adversary_blind_merged,
    &mla_adversary_blind_bf16_all,
    &mla_adversary_blind_bf16_sums,
    &mla_adversary_blind_rough,
    &mla_adversary_blind_flushing,
};
/* clang-format on */

static const struct mla_adversary *const cheats[] = {
    &mla_adversary_cheat_add,  &mla_adversary_cheat_p,     &mla_adversary_cheat_frame,
    &mla_adversary_cheat_exp,  &mla_adversary_cheat_sight, &mla_adversary_cheat_blocks,
    &mla_adversary_cheat_most,
};

const struct mla_adversary *const *mla_adversaries(size_t *adversaries_n)
{
    *adversaries_n = sizeof adversaries / sizeof adversaries[0];
    return adversaries;
}

const struct mla_adversary *const *mla_adversary_cheats(size_t *cheats_n)
{
    *cheats_n = sizeof cheats / sizeof cheats[0];
    return cheats;
}
