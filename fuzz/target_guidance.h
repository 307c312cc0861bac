/* SPDX-License-Identifier: Apache-2.0
 *
 * target_guidance.h - what a fuzz target tells the engine beyond coverage, and its measurement.
 *
 * The environment it obeys is described in target.h.
 */
#ifndef MLA_FUZZ_TARGET_GUIDANCE_H
#define MLA_FUZZ_TARGET_GUIDANCE_H

#include "fuzz/guidance.h"

/* Read the environment. NULL, or what is wrong with which variable. */
const char *mla_target_guidance_start(void);
/* A case is taken up: enough for the engine to see that something happens, whatever is learnt of it. */
void mla_target_guidance_begin(void);
/* The random arm: forget the input, take the next draw. false: use the input. */
bool mla_target_guidance_draw(enum mla_op op, bool reject, struct mla_case *test);
/* In the random arm no input is looked at, and none need be changed. */
bool mla_target_guidance_is_random(void);
/* One execution and its verdict. */
void mla_target_guidance_learn(const struct mla_case *test, const struct mla_verdict *verdict);
/* Is the measurement at its end? Then its line has been printed. */
bool mla_target_guidance_is_over(void);
/* Are faults to be passed over (merging a corpus), or to end a measurement instead of aborting? */
bool mla_target_guidance_excuses(void);

#endif
