/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_energy.c - rows whose errors are each possible, but together beyond chance.
 *
 * The interval allows every element the worst its arithmetic can do. Where the values' signs are
 * fair coins of the generator, and the kernel promises that its weights never look at V, all
 * elements of a row cannot do their worst at once but by a chance that is known: oracle/energy.c.
 * A row is accused when that chance is below 10^-12 over the row tests of the whole run; their
 * number is fixed before the first case, so that nothing seen on the way can move the threshold.
 *
 * The chance is over the coins, taken as fair because no kernel knows the generator. A kept seed
 * takes it once for all; a hunt that changes shapes under the same seed takes the same coins again
 * and is covered by the count of its tests, as long as what it tries next is not chosen by what
 * these coins did. A search that chooses by errors therefore throws new coins for every case it makes
 * of another one (mla_search_renew): whatever came before, each test's chance is then what it says, and
 * the chances add up.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/family.h"
#include "fuzz/judge_internal.h"

#define FALSE_ALARM 1e-12 /* the chance of one in a whole run, at most */

double mla_judge_row_tests(const struct mla_case *test)
{
    /* Calls that must be refused have no values. */
    return test->set_n == 0 && mla_case_has_sign_coins(test) ? (double)mla_rows_count(test) : 0;
}

static double log_tests(const struct mla_judge_options *options)
{
    double tests = options->row_tests > 0 ? options->row_tests : MLA_JUDGE_ROW_TESTS;
    /* Two logarithms and a sum, each to nearest: a little more is on the kernel's side. */
    return (log(tests < 1 ? 1 : tests) - log(FALSE_ALARM)) * (1 + 0x1p-50);
}

/*
 * -log10 of the chance that a row's energy comes out as large: the bound N + 2 sqrt(N t) + 2 t is
 * solved for t.
 */
static double digits(const struct mla_energy *energy)
{
    double n = (double)energy->columns_n;
    double root = (sqrt(2 * energy->energy - n) - sqrt(n)) / 2;
    return root * root / log(10);
}

static void name_row(const struct mla_tensors *t, struct mla_row row, char text[96])
{
    if (t->test.op == MLA_OP_RING)
        snprintf(text, 96, "d=%" PRId64 ",b=%" PRId64 ",h=%" PRId64 ",r=%" PRId64, row.rank,
                 row.batch, row.head, row.row);
    else
        snprintf(text, 96, "q=%" PRId64 ",h=%" PRId64, row.row, row.head);
}

static void accuse(const struct mla_tensors *t, struct mla_row row, const struct mla_energy *energy,
                   struct mla_verdict *verdict)
{
    char name[96];
    name_row(t, row, name);
    if (verdict->detected == 0) { /* else an earlier check names its row */
        verdict->row = row;
        verdict->has_row = true;
    }
    verdict->detected |= MLA_DETECTOR_TIER2;
    if (isfinite(energy->energy))
        mla_verdict_fail(verdict, MLA_VERDICT_FAIL_IMPROBABLE,
                         "row %s: error energy %.4g over %" PRId64 " columns, threshold %.4g: an "
                         "honest kernel's chance of it is below 10^-%.0f",
                         name, energy->energy, energy->columns_n, energy->threshold,
                         floor(digits(energy)));
    else
        mla_verdict_fail(verdict, MLA_VERDICT_FAIL_IMPROBABLE,
                         "row %s: error energy %g, threshold %.4g: no chance explains it", name,
                         energy->energy, energy->threshold);
}

/* false: accused. */
static bool judge_row(const struct mla_tensors *t, struct mla_row row,
                      const struct mla_truth *truth, const struct mla_model *model, double tests,
                      uint16_t *y, struct mla_verdict *verdict)
{
    const uint16_t *out = t->test.op == MLA_OP_RING ? t->out[row.rank] : t->sparse.out;
    int64_t columns_n = mla_case_value_width(&t->test);
    struct mla_energy energy;
    for (int64_t c = 0; c < columns_n; c++)
        y[c] = out[mla_judge_place(t, row, c)];
    int32_t state = mla_bound_energy(truth, model, y, tests, &energy);
    if (state == MLA_ERR_NOMEM)
        return mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED, "out of memory for a row");
    if (state != MLA_BOUND_OK)
        return true; /* no row to test: empty, or unjudged and counted as that already */
    if (!(energy.energy <= verdict->max_energy * energy.threshold))
        verdict->max_energy = energy.energy / energy.threshold;
    if (energy.energy <= energy.threshold)
        return true;
    accuse(t, row, &energy, verdict);
    return false;
}

/*
 * The test knows bf16 outputs. Binary32 ones of a kernel that keeps to the model, rounded to nearest, are
 * outputs of one that rounds to nearest at the end and keeps to it as well, so the chance is the same;
 * unless storing them was a rounding of its own (finer arithmetic, or no last operation; bound_format.c).
 * A binary16 result was rounded before: a second rounding is not what the test grants.
 */
static bool are_bf16(const struct mla_tensors *t, const struct mla_model *model)
{
    return t->out_format == MLA_FORMAT_BF16 ||
           (t->out_format == MLA_FORMAT_F32 && model->out_round == MLA_OUT_NEAREST &&
            model->add_u >= 0x1p-24 && model->div_roundings >= 1);
}

bool mla_judge_energy(const struct mla_subject *subject, const struct mla_kernel *kernel,
                      const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    const struct mla_tensors *t = subject->tensors;
    const struct mla_model *model =
        t->test.op == MLA_OP_RING ? &kernel->ring_model : &kernel->sparse_model;
    bool ok = true;
    if (!model->weights_ignore_v || !mla_case_has_sign_coins(&t->test) || !are_bf16(t, model))
        return true;
    uint16_t *y = malloc((size_t)mla_case_value_width(&t->test) * sizeof *y);
    if (y == NULL)
        return mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED, "out of memory for a row");
    for (int64_t i = 0; i < subject->rows_n; i++)
        ok = judge_row(t, subject->rows[i], subject->truths[i], model, log_tests(options), y,
                       verdict) &&
             ok;
    free(y);
    return ok;
}
