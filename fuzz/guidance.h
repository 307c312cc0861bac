/* SPDX-License-Identifier: Apache-2.0
 *
 * guidance.h - what an execution has shown, as features a search keeps inputs for.
 *
 * Coverage sees branches, not numbers. These counters see the numbers: how near the worst error of
 * each stage came to its bound in each class of shape, which cells of length, rank state and family a
 * case lies in, and which kinds of step its ring walks. A search keeps a case that raises a counter
 * nobody raised before.
 *
 * The counters stand in groups, one behind the other in the order of a table (guidance.c), so that no
 * two groups can share one. A counter is a cell of its group: a number whose digits, each with an
 * extent of its own, are the classes the case falls in. Nothing stored names a counter: a group may
 * change from one build to the next, and within a build the layout never does.
 */
#ifndef MLA_FUZZ_GUIDANCE_H
#define MLA_FUZZ_GUIDANCE_H

#include "fuzz/judge.h"

/* One counter for a feature, 0 or 1; as many as the engine's extra counters need (times 64). */
#define MLA_GUIDANCE_COUNTERS (64 * 512)

/* Buckets of err/B: 0 below 2^-12, the last for what is not finite. See guidance.c. */
#define MLA_GUIDANCE_BUCKETS 28
int32_t mla_guidance_bucket(double ratio);

/*
 * Set the counters of what this case and its verdict show; others keep their value. Cases that break
 * a rule show nothing: they have no numbers. Deterministic, no memory of earlier cases, about a
 * microsecond for a case of the draw. Any thread.
 */
void mla_guidance_note(const struct mla_case *test, const struct mla_verdict *verdict,
                       uint8_t counters[MLA_GUIDANCE_COUNTERS]);

/* The groups in the order of their counters: counters first .. first + n - 1 are its own. */
struct mla_guidance_group {
    const char *name;
    int64_t first, n;
    bool errors; /* moved by the numbers of the verdict, else by the case alone */
};
/* false beyond the last. */
bool mla_guidance_group(size_t i, struct mla_guidance_group *group);

#endif
