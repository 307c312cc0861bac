/* SPDX-License-Identifier: Apache-2.0
 *
 * target_guidance.c - the engine's extra counters, the arms of a measurement, and its end.
 *
 * The engine takes every byte of the section __libfuzzer_extra_counters for a counter, clears it before
 * an input and counts what is set afterwards among its features ("ft:"), never as coverage ("cov:").
 * Merging and minimising honour features, so they keep what guidance kept.
 */
#include "fuzz/target_guidance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/watch.h"

/*
 * A section of its own and of whole lines: the engine scans it by words. Behind the counters of guidance
 * comes one that every case sets: guidance may have nothing to say of a case, a kernel from outside
 * need not carry counters of coverage, and an engine that sees no feature in its first inputs gives up.
 */
#define RAN MLA_GUIDANCE_COUNTERS
#ifdef __linux__
__attribute__((used, section("__libfuzzer_extra_counters")))
#endif
_Alignas(64) static uint8_t extra_counters[MLA_GUIDANCE_COUNTERS + 64];
_Static_assert(MLA_GUIDANCE_COUNTERS % 64 == 0, "the engine scans whole lines");

enum arm { ARM_ON, ARM_OFF, ARM_RANDOM };

static struct {
    enum arm arm;
    struct mla_rng rng;    /* of the random arm */
    bool passes_faults;    /* a corpus is being merged: whoever found the fault has said so */
    const char *list_path; /* write the counters that were raised there at exit */
    bool watching;
    struct mla_watch watch;
    uint8_t now[MLA_GUIDANCE_COUNTERS];
} state;

static void list_counters(void)
{
    FILE *file = fopen(state.list_path, "w");
    if (file == NULL) {
        fprintf(stderr, "MLACHECK_COUNTERS: '%s' cannot be written\n", state.list_path);
        _Exit(3);
    }
    for (size_t i = 0; i < MLA_GUIDANCE_COUNTERS; i++)
        if (state.watch.seen[i] != 0)
            fprintf(file, "%zu\n", i);
    if (fclose(file) != 0)
        _Exit(3);
}

/* NULL, or a complaint. */
static const char *choose_arm(const char *text)
{
    static const char *const names[] = {"on", "off", "random"};
    for (int i = 0; text != NULL && i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            state.arm = (enum arm)i;
            return NULL;
        }
    return text == NULL ? NULL : "MLACHECK_GUIDANCE must be on, off or random";
}

const char *mla_target_guidance_start(void)
{
    const char *seconds = getenv("MLACHECK_CPU_SECONDS"), *seed = getenv("MLACHECK_SEED");
    const char *faults = getenv("MLACHECK_FAULTS");
    const char *problem = choose_arm(getenv("MLACHECK_GUIDANCE"));
    double limit = seconds == NULL ? 0 : strtod(seconds, NULL);
    state.list_path = getenv("MLACHECK_COUNTERS");
    state.passes_faults = faults != NULL && strcmp(faults, "pass") == 0;
    if (faults != NULL && !state.passes_faults)
        problem = "MLACHECK_FAULTS must be pass";
    if (seconds != NULL && !(limit > 0))
        problem = "MLACHECK_CPU_SECONDS must be a number above 0";
    state.rng.key = mla_number_mix(seed == NULL ? 1 : strtoull(seed, NULL, 10));
    mla_watch_begin(&state.watch, limit);
    state.watching = limit > 0 || state.list_path != NULL;
    if (problem == NULL && state.list_path != NULL)
        atexit(list_counters);
    return problem;
}

void mla_target_guidance_begin(void)
{
    extra_counters[RAN] = 1;
}

bool mla_target_guidance_draw(enum mla_op op, bool reject, struct mla_case *test)
{
    if (state.arm != ARM_RANDOM)
        return false;
    if (reject)
        op = (enum mla_op)mla_rng_below(&state.rng, MLA_OP_N);
    mla_case_draw(test, op, &state.rng);
    if (reject)
        mla_case_draw_violation(test, &state.rng);
    return true;
}

bool mla_target_guidance_is_random(void)
{
    return state.arm == ARM_RANDOM;
}

void mla_target_guidance_learn(const struct mla_case *test, const struct mla_verdict *verdict)
{
    if (state.arm == ARM_ON)
        mla_guidance_note(test, verdict, extra_counters);
    if (!state.watching)
        return;
    memset(state.now, 0, sizeof state.now);
    mla_guidance_note(test, verdict, state.now);
    mla_watch_learn(&state.watch, verdict, state.now);
}

bool mla_target_guidance_is_over(void)
{
    if (!(state.watch.limit > 0) || !mla_watch_is_over(&state.watch))
        return false;
    mla_watch_print(&state.watch, stdout);
    fflush(stdout);
    return true;
}

bool mla_target_guidance_excuses(void)
{
    return state.passes_faults || state.watch.limit > 0;
}
