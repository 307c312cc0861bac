/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink.c - proposals, tried and accepted until none is left.
 */
#include "fuzz/shrink.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/call.h"
#include "fuzz/likeness.h"
#include "fuzz/relations.h"
#include "fuzz/shrink_internal.h"
#include "fuzz/shrink_steps.h"

/* Proposals that were refused: not judged again in the next pass. */
#define REFUSED_MAX 8192

struct work {
    const struct mla_kernel *kernel;
    const struct mla_shrink_options *options;
    struct mla_shrunk *shrunk;
    struct mla_likeness like; /* of the failure that is kept */
    double deadline;
    int tries;
    uint32_t relations;
    uint64_t refused[REFUSED_MAX]; /* hashes of lines */
    size_t refused_n;
};

/* ---- judging ---- */

static bool is_over(const struct work *w)
{
    const struct mla_shrink_options *o = w->options;
    return (o->stop != NULL && *o->stop != 0) ||
           (o->judged_max > 0 && w->shrunk->judged >= o->judged_max) ||
           (o->seconds > 0 && mla_call_clock() >= w->deadline);
}

/* A hang shows within what the slowest honest kernel could need on a busy machine: 2 s, and 20 ns for a
 * multiply-add. */
static double call_limit(const struct work *w, const struct mla_case *test)
{
    double enough = 2 + 2e-8 * (double)mla_case_work(test);
    bool hangs = w->like.kind == MLA_VERDICT_TIMEOUT;
    return hangs && enough < w->options->call_seconds ? enough : w->options->call_seconds;
}

static int32_t judge(struct work *w, const struct mla_case *test, struct mla_verdict *verdict,
                     char error[MLA_CASE_ERROR_MAX])
{
    struct mla_subject *subject;
    struct mla_judge_options judge = {.seconds_limit = call_limit(w, test),
                                      .oracle_threads = w->options->oracle_threads,
                                      .plain_oracle = w->options->plain_oracle,
                                      .row_tests = MLA_JUDGE_ROW_TESTS,
                                      .relations = w->relations};
    int32_t status = mla_subject_make(test, &subject, error);
    if (status != MLA_OK)
        return status;
    mla_subject_judge(subject, w->kernel, &judge, verdict);
    mla_subject_free(subject);
    w->shrunk->judged++;
    return MLA_OK;
}

/* Does the kernel fail alike on this case, this once? */
static bool fails_once(struct work *w, const struct mla_case *test, struct mla_verdict *verdict)
{
    char error[MLA_CASE_ERROR_MAX];
    if (is_over(w) || judge(w, test, verdict, error) != MLA_OK)
        return false;
    struct mla_likeness like = mla_likeness_of(verdict);
    return mla_likeness_equal(&like, &w->like);
}

/* In every try. */
static bool fails(struct work *w, const struct mla_case *test, struct mla_verdict *verdict)
{
    for (int i = 0; i < w->tries; i++)
        if (!fails_once(w, test, verdict))
            return false;
    return true;
}

/* ---- proposals ---- */

static uint64_t hash_of(const struct mla_case *test)
{
    char line[MLA_CASE_LINE_MAX];
    uint64_t hash = 0xcbf29ce484222325u;
    size_t n = mla_case_format(test, line);
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)line[i]) * 0x100000001b3u;
    return hash;
}

static bool was_refused(const struct work *w, uint64_t hash)
{
    for (size_t i = 0; i < w->refused_n; i++)
        if (w->refused[i] == hash)
            return true;
    return false;
}

static bool is_candidate(const struct work *w, const struct mla_case *test)
{
    char error[MLA_CASE_ERROR_MAX];
    return mla_shrink_is_simpler(test, &w->shrunk->test) &&
           mla_case_problem(test, w->options->bytes_max, error) == NULL;
}

static void accept(struct work *w, const struct mla_case *test, const struct mla_verdict *verdict,
                   const char *step)
{
    w->shrunk->test = *test;
    w->shrunk->verdict = *verdict;
    w->shrunk->steps++;
    if (w->options->progress != NULL)
        w->options->progress(w->options->context, step, w->shrunk->judged);
}

/* The proposal may fail in another row than the one that is drawn: look at all, then at that one. */
static bool try_other_row(struct work *w, const struct mla_case *test, const char *step)
{
    struct mla_case wide = *test, aimed = *test;
    struct mla_verdict verdict;
    if ((w->like.detector & (MLA_DETECTOR_TIER1 | MLA_DETECTOR_TIER2)) == 0 || test->set_n > 0)
        return false;
    mla_shrink_widen(&wide);
    if (!fails_once(w, &wide, &verdict) || !verdict.has_row ||
        !mla_shrink_aim(&aimed, verdict.row) || !is_candidate(w, &aimed) ||
        !fails(w, &aimed, &verdict))
        return false;
    accept(w, &aimed, &verdict, step);
    return true;
}

static bool try_proposal(struct work *w, const struct mla_case *proposal, const char *step)
{
    struct mla_verdict verdict;
    uint64_t hash = hash_of(proposal);
    if (!is_candidate(w, proposal) || was_refused(w, hash))
        return false;
    if (fails(w, proposal, &verdict)) {
        accept(w, proposal, &verdict, step);
        return true;
    }
    if (try_other_row(w, proposal, step))
        return true;
    if (w->refused_n < REFUSED_MAX && !is_over(w))
        w->refused[w->refused_n++] = hash;
    return false;
}

/* One step of the table as often as it applies. */
static bool exhaust(struct work *w, const struct mla_shrink_step *step)
{
    bool changed = false;
    if ((step->operations >> w->shrunk->test.op & 1u) == 0)
        return false;
    for (int64_t i = 0; !is_over(w); i++) {
        struct mla_case proposal = w->shrunk->test;
        if (!step->propose(&w->shrunk->test, i, &proposal))
            break;
        mla_shrink_settle(&w->shrunk->test, &proposal);
        if (try_proposal(w, &proposal, step->name)) {
            changed = true;
            i = -1; /* again from the boldest */
        }
    }
    return changed;
}

static void shrink(struct work *w)
{
    size_t steps_n;
    const struct mla_shrink_step *steps = mla_shrink_steps(&steps_n);
    bool changed = true;
    while (changed && !is_over(w)) {
        changed = false;
        for (size_t i = 0; i < steps_n; i++)
            changed = exhaust(w, &steps[i]) || changed;
    }
    if (!is_over(w))
        w->shrunk->end = MLA_SHRINK_MINIMAL;
    else if (w->options->stop != NULL && *w->options->stop != 0)
        w->shrunk->end = MLA_SHRINK_STOPPED;
    else
        w->shrunk->end = MLA_SHRINK_OUT_OF_TIME;
}

/* ---- the failure to keep ---- */

/* Relations after the one that fails need not be asked; one before it might fail first. */
static uint32_t relations_up_to(const char *name)
{
    size_t n;
    const struct mla_relation *relations = mla_relations(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(relations[i].name, name) == 0)
            return UINT32_MAX >> (31 - i);
    return name[0] == '\0' ? 0 : UINT32_MAX;
}

/* How steady is it? Three failures alike are believed; anything else is looked at ten times. */
static int32_t begin(struct work *w, const struct mla_case *test, char error[MLA_CASE_ERROR_MAX])
{
    struct mla_shrunk *s = w->shrunk;
    int most = MLA_SHRINK_TRIES;
    for (s->tries_n = 0; s->tries_n < most; s->tries_n++) {
        struct mla_verdict verdict;
        int32_t status = judge(w, test, &verdict, error);
        if (status != MLA_OK)
            return status;
        struct mla_likeness like = mla_likeness_of(&verdict);
        if (s->failed_n == 0)
            s->first = s->verdict = verdict;
        if (s->failed_n == 0 && mla_verdict_is_failure(verdict.kind))
            w->like = like;
        if (verdict.kind == MLA_VERDICT_UNSUPPORTED)
            break;
        bool alike = mla_verdict_is_failure(verdict.kind) && mla_likeness_equal(&like, &w->like);
        s->failed_n += alike;
        if (!alike)
            most = MLA_SHRINK_TRIES_UNSTEADY;
    }
    w->tries = s->failed_n == s->tries_n ? MLA_SHRINK_TRIES : MLA_SHRINK_TRIES_UNSTEADY;
    return MLA_OK;
}

int32_t mla_shrink(const struct mla_case *test, const struct mla_kernel *kernel,
                   const struct mla_shrink_options *options, struct mla_shrunk *shrunk,
                   char error[MLA_CASE_ERROR_MAX])
{
    *shrunk = (struct mla_shrunk){.end = MLA_SHRINK_NO_FAILURE, .test = *test};
    struct work *w = calloc(1, sizeof *w);
    if (w == NULL)
        return MLA_ERR_NOMEM;
    w->kernel = kernel;
    w->options = options;
    w->shrunk = shrunk;
    w->deadline = mla_call_clock() + options->seconds;
    w->relations = options->relations ? UINT32_MAX : 0;
    int32_t status = begin(w, test, error);
    if (status == MLA_OK && shrunk->failed_n > 0) {
        w->relations &= relations_up_to(w->like.relation);
        shrink(w);
    }
    free(w);
    return status;
}
