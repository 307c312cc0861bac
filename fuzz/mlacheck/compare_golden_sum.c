/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_golden_sum.c - a side's verdicts on the cases of the sets, summed up as golden rows.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/judge.h"
#include "fuzz/mlacheck/compare_golden.h"
#include "fuzz/number.h"
#include "impl/registry.h"

bool mla_golden_is_wanted(const struct mla_golden_summary *s, const char *kernel)
{
    const struct mla_options *o = &s->c->options;
    bool in_file = false;
    for (int i = 0; i < o->kernels_n; i++)
        if (fnmatch(o->kernels[i], kernel, 0) == 0)
            return true;
    for (size_t i = 0; i < s->golden.n && !in_file; i++)
        in_file = strcmp(s->golden.rows[i].kernel, kernel) == 0;
    return o->kernels_n == 0 && (in_file || mla_registry_find(kernel) != NULL);
}

/* NULL: out of memory. */
static struct mla_golden_sum *sum_of(struct mla_golden_summary *s, const struct mla_side_row *row,
                                     int set)
{
    const char *name = s->sets.names[set];
    for (size_t i = 0; i < s->n; i++)
        if (mla_golden_is(&s->sums[i].row, row->kernel, row->op, name) &&
            strcmp(s->sums[i].isa, row->isa) == 0)
            return &s->sums[i];
    if (s->n == s->room) {
        size_t room = 2 * s->room + 32;
        struct mla_golden_sum *grown = realloc(s->sums, room * sizeof *grown);
        if (grown == NULL)
            return NULL;
        s->sums = grown;
        s->room = room;
    }
    struct mla_golden_sum *sum = &s->sums[s->n];
    *sum = (struct mla_golden_sum){.isa = strdup(row->isa)};
    if (sum->isa == NULL)
        return NULL;
    s->n++;
    mla_golden_begin(&sum->row, row->kernel, row->op, name);
    memcpy(sum->row.cases_id, s->sets.cases_ids[set][mla_golden_op(row->op)],
           sizeof sum->row.cases_id);
    return sum;
}

static double figure(struct mla_golden_summary *s, const struct mla_side_row *row, const char *name)
{
    double value = -1;
    int32_t status = mla_store_side_figure(s->c->sides[1], row, name, &value);
    if (status != MLA_STORE_OK && status != MLA_STORE_ERR_NOT_FOUND)
        s->c->code = mla_compare_store_failed(s->c, 1);
    return value;
}

static void keep_most(double *most, double value)
{
    if (!(value <= *most))
        *most = value;
}

static void add_figures(struct mla_golden_summary *s, const struct mla_side_row *row,
                        struct mla_golden_sum *sum)
{
    double rows = figure(s, row, "rows_judged"), *f = sum->row.figures;
    double rounded = figure(s, row, "correctly_rounded_percent");
    sum->row.counts[MLA_GOLDEN_ROWS] += rows > 0 ? (int64_t)rows : 0;
    keep_most(&f[MLA_GOLDEN_ERR], figure(s, row, "max_err_over_bound"));
    keep_most(&f[MLA_GOLDEN_MAX_ULP], figure(s, row, "max_ulp"));
    keep_most(&f[MLA_GOLDEN_P99_ULP], figure(s, row, "p99_ulp"));
    if (rounded < 0)
        return;
    double n = (double)sum->rounded_n++;
    f[MLA_GOLDEN_ROUNDED] = n == 0 ? rounded : (f[MLA_GOLDEN_ROUNDED] * n + rounded) / (n + 1);
}

static void add_row(struct mla_golden_summary *s, const struct mla_side_row *row, int set)
{
    struct mla_golden_sum *sum = sum_of(s, row, set);
    if (sum == NULL) {
        s->c->code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "compare", "out of memory");
        return;
    }
    static const struct {
        const char *verdict;
        enum mla_golden_count count;
    } counts[] = {{"pass", MLA_GOLDEN_PASSED},
                  {"refused", MLA_GOLDEN_REFUSED},
                  {"unjudged", MLA_GOLDEN_UNJUDGED},
                  {"unsupported", MLA_GOLDEN_UNSUPPORTED}};
    enum mla_golden_count count = MLA_GOLDEN_FAILED;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (strcmp(counts[i].verdict, row->verdict) == 0)
            count = counts[i].count;
    sum->row.counts[MLA_GOLDEN_CASES]++;
    sum->row.counts[count]++;
    sum->unusable +=
        count == MLA_GOLDEN_UNSUPPORTED && strcmp(row->reason, MLA_REASON_NOT_USABLE) == 0;
    add_figures(s, row, sum);
    if (count != MLA_GOLDEN_PASSED)
        return;
    sum->no_bits = sum->no_bits || row->output_hash == 0;
    sum->unsteady = sum->unsteady || row->output_hash < 0;
    sum->bits = mla_number_mix(sum->bits ^ (uint64_t)fabs(row->output_hash));
}

/* A row of the side: into every set that has its case. */
static void take_row(struct mla_golden_summary *s, const struct mla_side_row *row)
{
    const struct mla_golden_sets *sets = &s->sets;
    size_t i = mla_golden_sets_find(sets, row->id);
    if (i == sets->members_n || !mla_golden_is_wanted(s, row->kernel))
        return;
    if (row->sanitizer[0] != '\0') {
        s->sanitized++;
        return;
    }
    for (; i < sets->members_n && strcmp(sets->members[i].id, row->id) == 0; i++)
        add_row(s, row, sets->members[i].set);
}

static void finish(const struct mla_golden_sets *sets, struct mla_golden_sum *sum)
{
    struct mla_golden_row *row = &sum->row;
    int64_t cases = row->counts[MLA_GOLDEN_CASES];
    if (sum->unsteady)
        snprintf(row->bits, sizeof row->bits, "unsteady");
    else if (!sum->no_bits && row->counts[MLA_GOLDEN_PASSED] > 0)
        snprintf(row->bits, sizeof row->bits, "%012" PRIx64, sum->bits >> 16);
    sum->is_unusable = sum->unusable == cases;
    for (int set = 0; set < sets->n; set++)
        if (strcmp(sets->names[set], row->set) == 0)
            sum->due = sets->sizes[set][mla_golden_op(row->op)];
    sum->is_whole = cases == sum->due;
}

void mla_golden_sum_up(struct mla_golden_summary *s)
{
    struct mla_side_row row;
    int32_t status = MLA_STORE_OK;
    while (s->c->code == 0 && !mla_interrupted &&
           (status = mla_store_side_next(s->c->sides[1], &row)) == MLA_STORE_OK)
        take_row(s, &row);
    if (status != MLA_STORE_OK && status != MLA_STORE_ERR_NOT_FOUND)
        s->c->code = mla_compare_store_failed(s->c, 1);
    for (size_t i = 0; i < s->n; i++)
        finish(&s->sets, &s->sums[i]);
}

void mla_golden_sums_free(struct mla_golden_summary *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->sums[i].isa);
    free(s->sums);
    s->sums = NULL;
    s->n = s->room = 0;
}
