/* SPDX-License-Identifier: Apache-2.0
 *
 * guidance.h - what an execution has shown, as features a search keeps inputs for.
 *
 * Coverage sees branches, not numbers. These counters see the numbers: how near the worst error of
 * each stage came to its bound in each class of shape, which cells of length, rank state and family a
 * case lies in, and which kinds of step its ring walks. A search keeps a case that raises a counter
 * nobody raised before.
 */
#ifndef MLA_FUZZ_GUIDANCE_H
#define MLA_FUZZ_GUIDANCE_H

#include "fuzz/judge.h"

/* One counter for a feature, 0 or 1; as many as the engine's extra counters need (times 64). */
#define MLA_GUIDANCE_COUNTERS (64 * 256)

/*
 * Set the counters of what this case and its verdict show; others keep their value. Deterministic, no
 * memory of earlier cases. Any thread.
 */
void mla_guidance_note(const struct mla_case *test, const struct mla_verdict *verdict,
                       uint8_t counters[MLA_GUIDANCE_COUNTERS]);

#endif
