/* SPDX-License-Identifier: Apache-2.0
 *
 * table.h - the adversaries of this folder. Private; adversary.h has the public tables.
 *
 * To add one: its model and plan in one of the files (or a new one), its declaration here, a line in
 * table.c.
 */
#ifndef MLA_ADVERSARY_TABLE_H
#define MLA_ADVERSARY_TABLE_H

#include "fuzz/adversary/adversary.h"

extern const struct mla_adversary mla_adversary_two_pass;
extern const struct mla_adversary mla_adversary_online;
extern const struct mla_adversary mla_adversary_pairwise;
extern const struct mla_adversary mla_adversary_restarting;
extern const struct mla_adversary mla_adversary_mixed;
extern const struct mla_adversary mla_adversary_scaled;
extern const struct mla_adversary mla_adversary_merged;
extern const struct mla_adversary mla_adversary_scalar;
extern const struct mla_adversary mla_adversary_p_row;
extern const struct mla_adversary mla_adversary_p_row_rounded;
extern const struct mla_adversary mla_adversary_p_blocks;
extern const struct mla_adversary mla_adversary_p_chunks;
extern const struct mla_adversary mla_adversary_p_own_blocks;
extern const struct mla_adversary mla_adversary_p_free;
extern const struct mla_adversary mla_adversary_p_free_rounded;
extern const struct mla_adversary mla_adversary_p_cut;
extern const struct mla_adversary mla_adversary_p_cut_free;
extern const struct mla_adversary mla_adversary_p_merged;
extern const struct mla_adversary mla_adversary_as_nki;
extern const struct mla_adversary mla_adversary_as_ttnn;
extern const struct mla_adversary mla_adversary_bf16_all;
extern const struct mla_adversary mla_adversary_bf16_sums;
extern const struct mla_adversary mla_adversary_flushing;
extern const struct mla_adversary mla_adversary_flushing_row;
extern const struct mla_adversary mla_adversary_products;
extern const struct mla_adversary mla_adversary_rough_exp;
extern const struct mla_adversary mla_adversary_rough_blocks;
extern const struct mla_adversary mla_adversary_blind_online;
extern const struct mla_adversary mla_adversary_blind_p_row;
extern const struct mla_adversary mla_adversary_blind_own_blocks;
extern const struct mla_adversary mla_adversary_blind_p_free;
extern const struct mla_adversary mla_adversary_blind_p_free_rounded;
extern const struct mla_adversary mla_adversary_blind_merged;
extern const struct mla_adversary mla_adversary_blind_bf16_all;
extern const struct mla_adversary mla_adversary_blind_bf16_sums;
extern const struct mla_adversary mla_adversary_blind_rough;
extern const struct mla_adversary mla_adversary_blind_flushing;

extern const struct mla_adversary mla_adversary_cheat_add;
extern const struct mla_adversary mla_adversary_cheat_p;
extern const struct mla_adversary mla_adversary_cheat_frame;
extern const struct mla_adversary mla_adversary_cheat_blocks;
extern const struct mla_adversary mla_adversary_cheat_most;
extern const struct mla_adversary mla_adversary_cheat_exp;
extern const struct mla_adversary mla_adversary_cheat_sight;

#endif
