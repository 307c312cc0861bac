/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_shift.c - the medians of runs as samples, one a statistic, kernel and side.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/mlacheck/compare.h"

static bool is_sample(const struct mla_compare_sample *s, const struct mla_side_median *m)
{
    return strcmp(s->name, m->name) == 0 && strcmp(s->kernel, m->kernel) == 0 &&
           strcmp(s->op, m->op) == 0 && strcmp(s->sanitizer, m->sanitizer) == 0 &&
           strcmp(s->isa, m->isa) == 0;
}

static struct mla_compare_sample *add_sample(struct mla_compare_samples *samples,
                                             const struct mla_side_median *m)
{
    if (samples->n == samples->room) {
        size_t room = 2 * samples->room + 64;
        struct mla_compare_sample *grown = realloc(samples->list, room * sizeof *grown);
        if (grown == NULL)
            return NULL;
        samples->list = grown;
        samples->room = room;
    }
    struct mla_compare_sample *s = &samples->list[samples->n++];
    *s = (struct mla_compare_sample){.op = strdup(m->op),
                                     .kernel = strdup(m->kernel),
                                     .sanitizer = strdup(m->sanitizer),
                                     .isa = strdup(m->isa),
                                     .name = strdup(m->name),
                                     .cases_min = m->cases_n};
    bool ok = s->op != NULL && s->kernel != NULL && s->sanitizer != NULL && s->isa != NULL &&
              s->name != NULL;
    return ok ? s : NULL;
}

/* Medians of one sample come one after the other, the newest run first. */
static void take(void *context, const struct mla_side_median *m)
{
    struct mla_compare_samples *samples = context;
    struct mla_compare_sample *s = samples->n == 0 ? NULL : &samples->list[samples->n - 1];
    if (samples->failed)
        return;
    if (s == NULL || !is_sample(s, m))
        s = add_sample(samples, m);
    samples->failed = s == NULL;
    if (s == NULL || s->runs_n == MLA_RANK_TEST_MAX)
        return;
    s->values[s->runs_n++] = m->value;
    s->cases_min = m->cases_n < s->cases_min ? m->cases_n : s->cases_min;
    s->cases_max = m->cases_n > s->cases_max ? m->cases_n : s->cases_max;
}

void mla_compare_collect(struct mla_compare *c)
{
    for (int s = 0; s < 2; s++) /* both or none: half a comparison is none */
        if (mla_store_side_facts(c->sides[s]).runs_n < MLA_COMPARE_RUNS_MIN)
            return;
    for (int s = 0; s < 2 && c->code == 0; s++) {
        if (mla_store_side_medians(c->sides[s], take, &c->samples[s]) != MLA_STORE_OK)
            c->code = mla_compare_store_failed(c, s);
        else if (c->samples[s].failed)
            c->code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "compare", "out of memory");
    }
}

/* The sample of B that belongs to A's, or NULL. */
static const struct mla_compare_sample *partner(const struct mla_compare *c,
                                                const struct mla_compare_sample *sample)
{
    const struct mla_side_median key = {.op = sample->op,
                                        .kernel = sample->kernel,
                                        .sanitizer = sample->sanitizer,
                                        .isa = sample->isa,
                                        .name = sample->name};
    for (size_t i = 0; i < c->samples[1].n; i++)
        if (is_sample(&c->samples[1].list[i], &key))
            return &c->samples[1].list[i];
    return NULL;
}

/* false: too few runs to say anything. */
static bool measure(const struct mla_compare_sample *a, const struct mla_compare_sample *b,
                    struct mla_compare_shift *shift)
{
    double values[2][MLA_RANK_TEST_MAX];
    if (b == NULL || a->runs_n < MLA_COMPARE_RUNS_MIN || b->runs_n < MLA_COMPARE_RUNS_MIN)
        return false;
    memcpy(values[0], a->values, sizeof values[0]);
    memcpy(values[1], b->values, sizeof values[1]);
    shift->samples[0] = a;
    shift->samples[1] = b;
    shift->runs[0] = a->runs_n;
    shift->runs[1] = b->runs_n;
    shift->test = mla_rank_test(values[0], a->runs_n, values[1], b->runs_n);
    shift->is_told = shift->test.p < MLA_COMPARE_LEVEL;
    for (int s = 0; s < 2; s++)
        shift->medians[s] = mla_rank_median(values[s], shift->runs[s]);
    return true;
}

bool mla_compare_next_shift(const struct mla_compare *c, size_t *at,
                            struct mla_compare_shift *shift)
{
    while (*at < c->samples[0].n) {
        const struct mla_compare_sample *a = &c->samples[0].list[(*at)++];
        if (measure(a, partner(c, a), shift))
            return true;
    }
    return false;
}
