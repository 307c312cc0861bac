/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect_decide.c - how many tries make an outcome.
 *
 * A try is good, bad, or says nothing (then the step is skipped at once). T = --tries (3).
 *
 * The ends are asked 5T times. With d = 5T div 7 (2 of 15):
 *
 * Steady fault: the bad end fails in all of them but d at most, the good end in d at most. Then the
 * question is which of the two behaviours a commit has. T tries that agree decide; else it is asked up to
 * 5T times, and 5T - d of one kind are a quorum. Whoever has none behaves like neither end (it is flaky
 * in its own right) and is skipped: taken for bad or good it would lead the search astray. d grants what
 * a busy machine may do, a timeout now and then.
 *   A commit that fails by a fair coin passes for good, or for bad, with a chance of 1/8 each in three
 * tries, and of 121/2^15 = 0.4 % in fifteen (at most two of one kind). So T tries only steer. What the
 * answer rests on, the first bad commit and its good parents, is asked 5T times before it is given, and
 * loses its outcome if it has no quorum then; the search goes on from there. An error while steering
 * shows there too: it puts the boundary beside the commit that was mistaken.
 *
 * Unsteady fault: the bad end fails sometimes. Then every failure is evidence (verdicts of `fail-certain`
 * are proofs) while a pass may be luck: one failure makes a commit bad, and M passes make it good. The bad
 * end is asked until it has failed 5 times, n times in all (200 at most). If p were less than 1.97/n, so
 * many failures in so few tries would have had a chance below 5 % (Poisson: 1.97 is where P(X >= 5) is
 * 5 %, and a binomial's is smaller); so p >= 1.97/n is taken for granted, of all commits with the fault.
 * M = ceil(ln(1000) n / 1.97) passes are then a matter of luck with a chance of (1-p)^M <= 1/1000.
 * A commit that is flaky for reasons of its own counts as bad: the two cannot be told apart.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/call.h"
#include "fuzz/mlacheck/bisect.h"

#define SURE          5 /* times T */
#define DISSENT_SHARE 7
#define FAILURES      5    /* of an unsteady fault at the bad end */
#define RATE_BOUND    1.97 /* expected failures for which 5 have a chance of 5 % */
#define TRIES_MOST    200
#define LUCK          1000.0

static int64_t sure_tries(const struct mla_bisect *b)
{
    return SURE * b->tries;
}

static int64_t dissent(const struct mla_bisect *b)
{
    return sure_tries(b) / DISSENT_SHARE;
}

bool mla_bisect_is_settled(const struct mla_bisect *b, bool sure, const struct mla_store_step *step)
{
    int64_t failed = step->failed, passed = step->tries - failed;
    if (b->passes > 0)
        return failed > 0 || passed >= b->passes;
    if (step->tries >= sure_tries(b) || (failed > dissent(b) && passed > dissent(b)))
        return true;
    return !sure && step->tries >= b->tries && (failed == 0 || passed == 0);
}

static enum mla_store_outcome outcome(const struct mla_bisect *b, const struct mla_store_step *step)
{
    int64_t failed = step->failed, passed = step->tries - failed;
    if (b->passes > 0)
        return failed > 0 ? MLA_STORE_BAD : MLA_STORE_GOOD;
    if (failed == 0 || (failed <= dissent(b) && passed > dissent(b)))
        return MLA_STORE_GOOD;
    if (passed == 0 || (passed <= dissent(b) && failed > dissent(b)))
        return MLA_STORE_BAD;
    return MLA_STORE_SKIP;
}

/* One try more. false: it said nothing, the step is skipped; or *code is set. */
static bool try_once(struct mla_bisect *b, const char *spec, const struct mla_case *test,
                     struct mla_store_step *step, int *code)
{
    struct mla_try answer;
    bool bad;
    *code = mla_interrupted ? MLA_EXIT_INTERRUPTED : 0;
    if (*code != 0)
        return false;
    double began = mla_call_clock();
    mla_bisect_try(b, spec, test, &answer);
    step->seconds += mla_call_clock() - began;
    if (answer.end == MLA_TRY_STOPPED)
        *code = MLA_EXIT_INTERRUPTED;
    if (answer.end == MLA_TRY_FAILED)
        *code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "%s", answer.text);
    if (*code != 0)
        return false;
    bad = answer.end == MLA_TRY_BAD;
    if (answer.end == MLA_TRY_NOTHING || bad || step->failed == 0)
        snprintf(step->text, sizeof step->text, "%s", answer.text);
    if (answer.end == MLA_TRY_NOTHING) {
        step->outcome = MLA_STORE_SKIP;
        return false;
    }
    snprintf(step->bits, sizeof step->bits, "%s", answer.bits);
    step->tries++;
    step->failed += bad;
    return true;
}

int mla_bisect_decide(struct mla_bisect *b, const char *spec, const struct mla_case *test,
                      bool sure, struct mla_store_step *step)
{
    int code = 0;
    bool bits = strcmp(b->question, "bits") == 0;
    while (!mla_bisect_is_settled(b, sure, step)) {
        if (!try_once(b, spec, test, step, &code))
            return code;
        if (bits && b->reference[0] == '\0') /* the good end is the first to be asked */
            snprintf(b->reference, sizeof b->reference, "%s", step->bits);
    }
    step->outcome = outcome(b, step);
    return 0;
}

int mla_bisect_decide_bad(struct mla_bisect *b, const char *spec, const struct mla_case *test,
                          struct mla_store_step *step)
{
    int code = mla_bisect_decide(b, spec, test, true, step);
    if (code != 0 || step->failed == 0 || step->outcome == MLA_STORE_BAD)
        return code;
    while (step->failed < FAILURES && step->tries < TRIES_MOST)
        if (!try_once(b, spec, test, step, &code))
            return code;
    if (step->failed < FAILURES) {
        step->outcome = MLA_STORE_SKIP;
        return 0;
    }
    b->passes = (int64_t)ceil(log(LUCK) * (double)step->tries / RATE_BOUND);
    step->outcome = MLA_STORE_BAD;
    return 0;
}

void mla_bisect_describe(const struct mla_store_step *step, char *text, size_t text_bytes)
{
    bool fails = step->failed > 0;
    if (step->tries == 0)
        snprintf(text, text_bytes, "%s", step->text);
    else
        snprintf(text, text_bytes, "%s%" PRId64 " of %" PRId64 " tries %s%s%s",
                 step->outcome == MLA_STORE_SKIP ? "flaky: " : "",
                 fails ? step->failed : step->tries, step->tries, fails ? "bad" : "good",
                 step->text[0] == '\0' ? "" : ": ", step->text);
}
