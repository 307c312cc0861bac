/* SPDX-License-Identifier: Apache-2.0
 *
 * blame.c - the order of the experiments, from what the verdict says by itself to what is left over.
 *
 * Rows and columns come first, because the weights of keys are read at a row and in columns; then who
 * takes part, with equal scores; then how much, with the case's scores. Who passes all that computes
 * the right thing, and what is wrong is small.
 */
#include "fuzz/blame.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/blame_internal.h"

/* Calls of the case itself, which must all give the same bits. */
#define REPEATS 4

bool mla_blame_say(struct mla_blame *blame, enum mla_cause cause, const char *format, ...)
{
    va_list list;
    blame->cause = cause;
    va_start(list, format);
    vsnprintf(blame->text, sizeof blame->text, format, list);
    va_end(list);
    return true;
}

void mla_blame_add(struct mla_blame *blame, const char *format, ...)
{
    va_list list;
    size_t n = strlen(blame->text);
    va_start(list, format);
    n += (size_t)snprintf(blame->text + n, sizeof blame->text - n, " ");
    if (n < sizeof blame->text)
        vsnprintf(blame->text + n, sizeof blame->text - n, format, list);
    va_end(list);
}

/* ---- what the verdict says by itself ---- */

static bool by_verdict(const struct mla_verdict *v, struct mla_blame *blame)
{
    if (!mla_verdict_is_failure(v->kind))
        return mla_blame_say(blame, MLA_CAUSE_UNKNOWN, "The verdict is no failure.");
    if (v->kind == MLA_VERDICT_CRASH || v->kind == MLA_VERDICT_TIMEOUT)
        return mla_blame_say(blame, MLA_CAUSE_MEMORY, "The call does not come back: %s.",
                             v->reason);
    if (v->relation[0] != '\0')
        return false;
    if ((v->detected & MLA_DETECTOR_STATUS) != 0)
        return mla_blame_say(blame, MLA_CAUSE_STATUS, "The call's answer is wrong: %s.", v->reason);
    if ((v->detected & MLA_DETECTOR_MEMORY) != 0 && strstr(v->reason, "never written") != NULL)
        return mla_blame_say(blame, MLA_CAUSE_NOT_WRITTEN, "An output keeps its old bytes: %s.",
                             v->reason);
    if ((v->detected & MLA_DETECTOR_MEMORY) != 0)
        return mla_blame_say(blame, MLA_CAUSE_MEMORY,
                             "Something outside the results was touched: %s.", v->reason);
    return false;
}

/* Two calls that must agree do not; which two says what the result depends on. */
static bool by_relation(const struct mla_verdict *v, struct mla_blame *blame)
{
    static const struct {
        const char *relation;
        enum mla_cause cause;
        const char *what;
    } table[] = {
        {"repeat", MLA_CAUSE_UNSTEADY, "The same call again gives other bits"},
        {"threads", MLA_CAUSE_UNSTEADY,
         "The result depends on how many threads, cores or links work"},
        {"dirt", MLA_CAUSE_UNSTEADY, "The result depends on what lay in outputs or scratch before"},
        {"layout", MLA_CAUSE_KEYS_ELSEWHERE,
         "Flat and tiled lists of the same keys give other results"},
        {"hidden", MLA_CAUSE_KEYS_EXTRA, "The result depends on numbers that no row may see"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(v->relation, table[i].relation) == 0)
            return mla_blame_say(blame, table[i].cause, "%s (%s).", table[i].what, v->reason);
    return mla_blame_say(blame, MLA_CAUSE_UNKNOWN, "Relation %s fails: %s.", v->relation,
                         v->reason);
}

/* ---- experiments ---- */

static uint64_t output_hash(const struct mla_tensors *t)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].role == MLA_TENSOR_OUTPUT)
            hash = mla_number_mix(hash ^ mla_tensor_check(&t->list[i]));
    return hash;
}

static bool is_unsteady(struct mla_probe *p, struct mla_blame *blame)
{
    uint64_t first = output_hash(p->tensors);
    for (int i = 1; i < REPEATS; i++)
        if (!mla_probe_call(p) || output_hash(p->tensors) != first)
            return mla_blame_say(blame, MLA_CAUSE_UNSTEADY,
                                 "The same call gives other bits the next time (call %d of %d).",
                                 i + 1, REPEATS);
    return false;
}

/* Hidden keys made NaN, all else equal and finite: does a weight of 0 meet them? */
static bool touches_hidden(struct mla_probe *p, struct mla_blame *blame)
{
    double *flat = calloc((size_t)p->places_n, sizeof *flat);
    bool was_finite, ok = flat != NULL;
    if (ok)
        mla_probe_set_scores(p, flat);
    free(flat);
    mla_probe_set_values(p, 1);
    ok = ok && mla_probe_call(p);
    was_finite = isfinite(p->out[0]);
    for (int64_t i = 0; i < p->places_n; i++)
        for (int64_t c = 0; p->times[i] == 0 && c < p->value_n; c++)
            mla_probe_value(p, i)[c] = MLA_BF16_NAN;
    if (!ok || !was_finite || !mla_probe_call(p) || isfinite(p->out[0]))
        return false;
    return mla_blame_say(blame, MLA_CAUSE_NOT_FINITE,
                         "Keys that the row must not see are read and multiplied by a weight of 0: "
                         "NaN in their values makes the row NaN, numbers there do nothing.");
}

/* Copies hide one another: of 127 entries for one key none is missed. Ask again with distinct ones. */
static bool by_distinct_list(struct mla_probe *p, struct mla_blame *blame)
{
    struct mla_case test = p->tensors->test;
    struct mla_probe other;
    char error[MLA_CASE_ERROR_MAX];
    if (test.op != MLA_OP_SPARSE || test.sparse.dense || test.indices == MLA_INDICES_DISTINCT)
        return false;
    test.indices = MLA_INDICES_DISTINCT;
    test.put_n = 0;
    bool found = mla_probe_begin(&other, &test, p->kernel, p->row, p->call_seconds, error) &&
                 mla_blame_keys(&other, blame);
    if (found)
        mla_blame_add(blame, "That is with a list of distinct rows; the case's own hides it.");
    p->calls_n += other.calls_n;
    mla_probe_end(&other);
    return found;
}

/* Rows, keys and weights are right. */
static bool by_size(const struct mla_probe *p, const struct mla_verdict *v, struct mla_blame *blame)
{
    if (!p->case_finite)
        return mla_blame_say(blame, MLA_CAUSE_NOT_FINITE,
                             "The row is not finite in the case; with values of 0 and 1 it is, and "
                             "every key has its right weight.");
    bool stats = strncmp(v->reason, "stats", 5) == 0;
    bool slight = fabs(p->case_lse_off) < 0x1p-6 * (1 + fabs(p->lse_due));
    if (stats && slight && fabs(p->case_max_off) > 0x1p-6 * (1 + fabs(p->lse_due)))
        return mla_blame_say(
            blame, MLA_CAUSE_WEIGHTS_OFF,
            "The output and log-sum-exp are right, but the maximum is off by %.3g and "
            "the sum goes with it: weights are formed with another shift than the "
            "row's largest score, which cancels here and may overflow elsewhere.",
            p->case_max_off);
    if (stats && slight)
        return mla_blame_say(
            blame, MLA_CAUSE_PRECISION,
            "The output is right, and so are the weights of all keys; log-sum-exp is "
            "off by %.2g only: rounded more coarsely than declared.",
            p->case_lse_off);
    if (stats)
        return mla_blame_say(blame, MLA_CAUSE_STATS_OFF,
                             "The output is right, and so are the weights of all keys; the "
                             "statistics are not: %s.",
                             v->reason);
    if (p->visible_n == 0)
        return mla_blame_say(blame, MLA_CAUSE_VALUES_OFF,
                             "A row without keys is not as it must be: %s.", v->reason);
    if (p->case_error < 0x1p-4)
        return mla_blame_say(
            blame, MLA_CAUSE_PRECISION,
            "Every key has its right weight, and the output is off by %.2g of the sum "
            "of |weight * value| at most: rounded more coarsely than declared.",
            p->case_error);
    return mla_blame_say(
        blame, MLA_CAUSE_VALUES_OFF,
        "Every key has its right weight for values of 0 and 1, but with the case's "
        "values the output is off by %.3g of the sum of |weight * value|.",
        p->case_error);
}

/* Is log-sum-exp right while the output is wrong, or both? */
static void add_statistics(double off, struct mla_blame *blame)
{
    if (!isfinite(off) || blame->cause == MLA_CAUSE_UNSTEADY || blame->cause == MLA_CAUSE_STATS_OFF)
        return;
    if (fabs(off) < 0x1p-4)
        mla_blame_add(blame, "The row's log-sum-exp in the case is right.");
    else
        mla_blame_add(blame, "The row's log-sum-exp in the case is off by %.3g.", off);
}

static void experiment(struct mla_probe *p, const struct mla_verdict *v, struct mla_blame *blame)
{
    if (is_unsteady(p, blame) || mla_blame_rows(p, blame) || mla_blame_columns(p, blame) ||
        mla_blame_keys(p, blame) || mla_blame_scores(p, blame) || touches_hidden(p, blame) ||
        mla_blame_score_columns(p, blame) || by_distinct_list(p, blame))
        return;
    by_size(p, v, blame);
}

void mla_blame_find(const struct mla_case *test, const struct mla_kernel *kernel,
                    const struct mla_verdict *verdict, double call_seconds, struct mla_blame *blame)
{
    struct mla_probe probe;
    char error[MLA_CASE_ERROR_MAX];
    *blame = (struct mla_blame){.cause = MLA_CAUSE_UNKNOWN};
    if (by_verdict(verdict, blame) || (!verdict->has_row && by_relation(verdict, blame)))
        return;
    if (mla_probe_begin(&probe, test, kernel, verdict->row, call_seconds, error)) {
        double off = probe.case_lse_off;
        experiment(&probe, verdict, blame);
        add_statistics(off, blame);
    } else {
        mla_blame_say(blame, MLA_CAUSE_UNKNOWN, "No experiment could be made: %s.", error);
    }
    blame->calls_n = probe.calls_n;
    mla_probe_end(&probe);
}
