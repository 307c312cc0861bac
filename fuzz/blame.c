/* SPDX-License-Identifier: Apache-2.0
 *
 * blame.c - the order of the experiments, from what the verdict says by itself to what is left over.
 *
 * Rows and columns come first, because the weights of keys are read at a row and in columns; then who
 * takes part, with equal scores; then how much, with the case's scores. Who passes all that computes
 * the right thing, and what is wrong is small.
 */
#include "fuzz/blame.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/blame_internal.h"
#include "fuzz/relations.h"

/* Calls of the case itself, which must all give the same bits. */
#define REPEATS 4
/* Values whose products with weights are subnormal, or soon will be. */
#define SMALL 0x1p-100

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

/* A call that must be refused wrote something: was it computed, or refused all the same? */
static bool is_accepted(const struct mla_case *test, const struct mla_kernel *kernel,
                        double call_seconds, struct mla_blame *blame)
{
    struct mla_tensors *tensors;
    struct mla_call call;
    char error[MLA_CASE_ERROR_MAX];
    if (test->set_n == 0 || mla_tensors_make(test, 0, &tensors, error) != MLA_OK)
        return false;
    mla_call_make(kernel, tensors, call_seconds, &call);
    mla_tensors_free(tensors);
    blame->calls_n++;
    return call.end == MLA_CALL_RETURNED && call.status == MLA_OK;
}

static bool by_verdict(const struct mla_case *test, const struct mla_kernel *kernel,
                       const struct mla_verdict *v, double call_seconds, struct mla_blame *blame)
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
    if ((v->detected & MLA_DETECTOR_MEMORY) != 0 && is_accepted(test, kernel, call_seconds, blame))
        return mla_blame_say(blame, MLA_CAUSE_STATUS,
                             "A call that must be refused is accepted and computed: %s is %s.",
                             test->set[0].field, test->set[0].value);
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
        {"cores", MLA_CAUSE_UNSTEADY, "The result depends on the number of cores"},
        {"dirt", MLA_CAUSE_UNSTEADY, "The result depends on what lay in outputs or scratch before"},
        {"layout", MLA_CAUSE_UNSTEADY, "Flat and tiled lists of the same keys give other results"},
        {"hidden", MLA_CAUSE_KEYS_EXTRA, "The result depends on numbers that no row may see"},
        {"later", MLA_CAUSE_KEYS_EXTRA, "Rows depend on keys that come after them"},
        {"heads", MLA_CAUSE_ROWS_MOVED, "A head's result depends on which place it has"},
        {"batch", MLA_CAUSE_ROWS_MOVED, "A batch entry's result depends on which place it has"},
        {"copies", MLA_CAUSE_KEYS_TWICE, "Every key listed twice gives another result"},
        {"shift", MLA_CAUSE_WEIGHTS_OFF, "A constant added to all scores gives another result"},
        {"values", MLA_CAUSE_VALUES_OFF, "V times 2^20 does not give the result times 2^20"},
    };
    size_t relations_n;
    const struct mla_relation *relations = mla_relations(&relations_n);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(v->relation, table[i].relation) == 0)
            return mla_blame_say(blame, table[i].cause, "%s (%s).", table[i].what, v->reason);
    for (size_t i = 0; i < relations_n; i++)
        if (strcmp(v->relation, relations[i].name) == 0)
            return mla_blame_say(
                blame, relations[i].earlier != NULL ? MLA_CAUSE_UNSTEADY : MLA_CAUSE_UNKNOWN,
                relations[i].earlier != NULL
                    ? "The result depends on calls made before in the same process: it is another "
                      "one %s (%s)."
                    : "Two calls that must agree do not: %s (%s).",
                relations[i].what, v->reason);
    return mla_blame_say(blame, MLA_CAUSE_UNKNOWN, "Relation %s fails: %s.", v->relation,
                         v->reason);
}

/* Is it steady in one process, so that experiments on one call may find more than "it depends"? */
static bool may_ask(const struct mla_verdict *v)
{
    static const char *const names[] = {"hidden", "later", "layout", "values"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(v->relation, names[i]) == 0)
            return true;
    return false;
}

/* The row in which the calls of a relation differ, as the verdict has it. false: it names none. */
static bool row_of(const struct mla_case *test, const struct mla_verdict *v, struct mla_row *row)
{
    const struct mla_ring_args *r = &test->ring;
    int64_t rank, element;
    *row = (struct mla_row){0};
    if (test->op == MLA_OP_SPARSE &&
        sscanf(v->element, "%*[a-z][q=%" SCNd64 ",h=%" SCNd64, &row->row, &row->head) == 2)
        return true;
    if (sscanf(v->element, "%*[a-z][d=%" SCNd64 ",b=%" SCNd64 ",h=%" SCNd64 ",r=%" SCNd64,
               &row->rank, &row->batch, &row->head, &row->row) == 4)
        return true;
    if (sscanf(v->element, "out[%" SCNd64 "] element %" SCNd64, &rank, &element) != 2)
        return false;
    int64_t n = element / mla_case_value_width(test);
    *row = test->op == MLA_OP_SPARSE
               ? (struct mla_row){.row = n / test->sparse.heads, .head = n % test->sparse.heads}
               : (struct mla_row){.rank = rank,
                                  .batch = n / r->q_rows / r->heads,
                                  .head = n / r->q_rows % r->heads,
                                  .row = n % r->q_rows};
    return true;
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

/* Keys of equal value: the row has that value, however large. How large until it is not finite? */
static bool overflows(struct mla_probe *p, struct mla_blame *blame)
{
    double *flat = calloc((size_t)p->places_n, sizeof *flat);
    if (flat == NULL)
        return false;
    mla_probe_set_scores(p, flat);
    free(flat);
    for (int power = 8; power <= 104 && p->visible_n > 0; power += 8) {
        mla_probe_set_values(p, ldexpf(1, power));
        if (!mla_probe_call(p))
            return false;
        if (!isfinite(p->out[0]))
            return mla_blame_say(blame, MLA_CAUSE_NOT_FINITE,
                                 "With all scores 0 and every value 2^%d the row is not finite, "
                                 "with 2^%d it is: a sum of values overflows.",
                                 power, power - 8);
    }
    return false;
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
    if (p->case_size < SMALL)
        return mla_blame_say(blame, MLA_CAUSE_PRECISION,
                             "Every key has its right weight for values of 0 and 1; those of the "
                             "case are below %.2g, and the output is off by %.3g of that: small "
                             "numbers are flushed or rounded away.",
                             p->case_size, p->case_error);
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

/* What the row itself shows. false: keys, weights and places are right. */
static bool experiment(struct mla_probe *p, bool may_overflow, struct mla_blame *blame)
{
    if (is_unsteady(p, blame) || mla_blame_rows(p, blame) || mla_blame_columns(p, blame))
        return true;
    if (mla_blame_keys(p, blame)) {
        struct mla_blame distinct = {.cause = MLA_CAUSE_UNKNOWN};
        if (blame->cause == MLA_CAUSE_KEYS_EXTRA && by_distinct_list(p, &distinct) &&
            distinct.cause == MLA_CAUSE_KEYS_ELSEWHERE)
            *blame = distinct;
        return true;
    }
    return mla_blame_scores(p, blame) || touches_hidden(p, blame) ||
           mla_blame_score_columns(p, blame) || by_distinct_list(p, blame) ||
           (may_overflow && overflows(p, blame));
}

void mla_blame_find(const struct mla_case *test, const struct mla_kernel *kernel,
                    const struct mla_verdict *verdict, double call_seconds, struct mla_blame *blame)
{
    struct mla_probe probe;
    struct mla_row row = verdict->row;
    char error[MLA_CASE_ERROR_MAX];
    *blame = (struct mla_blame){.cause = MLA_CAUSE_UNKNOWN};
    if (by_verdict(test, kernel, verdict, call_seconds, blame))
        return;
    bool related = !verdict->has_row && verdict->relation[0] != '\0';
    if (!verdict->has_row && !(related && may_ask(verdict) && row_of(test, verdict, &row))) {
        by_relation(verdict, blame);
        return;
    }
    if (mla_probe_begin(&probe, test, kernel, row, call_seconds, error)) {
        double off = probe.case_lse_off;
        /* An accumulator of less range than declared is a fault only where that range was left. */
        bool may_overflow = !probe.case_finite || strcmp(verdict->relation, "values") == 0;
        if (!experiment(&probe, may_overflow, blame)) {
            if (related)
                by_relation(verdict, blame);
            else
                by_size(&probe, verdict, blame);
        } else if (related) {
            mla_blame_add(blame, "It failed %.200s.", verdict->reason);
        }
        if (!related)
            add_statistics(off, blame);
    } else if (related) {
        by_relation(verdict, blame);
    } else {
        mla_blame_say(blame, MLA_CAUSE_UNKNOWN, "No experiment could be made: %s.", error);
    }
    blame->calls_n += probe.calls_n;
    mla_probe_end(&probe);
}
