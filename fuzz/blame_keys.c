/* SPDX-License-Identifier: Apache-2.0
 *
 * blame_keys.c - under equal scores every key weighs the same: which take part, and how often?
 */
#include <math.h>
#include <stdlib.h>

#include "fuzz/blame_internal.h"

/*
 * Some keys count less often than the list has them. All of those that are listed more than once, and
 * just once each: copies are merged. Not all of them: entries are lost. Where there is only one, a list
 * with one key many times and another one once tells: of 128 entries it weighs 1/128, or half.
 */
static bool merges_copies(struct mla_probe *p, const struct mla_blame_weights *w)
{
    int64_t several_n = 0, once_n = 0;
    for (int64_t i = 0; i < p->places_n; i++) {
        double due = w->common * (double)p->times[i] * p->weights[i];
        several_n += p->times[i] > 1;
        once_n += p->times[i] > 1 && fabs(w->measured[i] * (double)p->times[i] / due - 1) < 0.25;
    }
    if (once_n != several_n || several_n > 1)
        return once_n == several_n;
    struct mla_case odd = p->tensors->test;
    struct mla_probe other;
    char error[MLA_CASE_ERROR_MAX];
    bool merged = false;
    double *flat = calloc((size_t)p->places_n, sizeof *flat);
    odd.indices = MLA_INDICES_ODD_ONE;
    odd.put_n = 0;
    if (flat != NULL && mla_probe_begin(&other, &odd, p->kernel, p->row, p->call_seconds, error)) {
        mla_probe_set_scores(&other, flat);
        for (int64_t i = 0; i < other.places_n; i++)
            for (int64_t c = 0; c < other.value_n; c++)
                mla_probe_value(&other, i)[c] = other.times[i] == 1 ? 0x3f80 : 0;
        merged = mla_probe_call(&other) && other.out[0] > 0.25;
    }
    if (flat != NULL) {
        p->calls_n += other.calls_n;
        mla_probe_end(&other);
    }
    free(flat);
    return merged;
}

static bool explain(struct mla_probe *p, const struct mla_blame_weights *w, struct mla_blame *blame)
{
    char missing[256], extra[256], more[256], less[256];
    int64_t missing_n = w->n[MLA_MARK_MISSING], extra_n = w->n[MLA_MARK_EXTRA];
    int64_t more_n = w->n[MLA_MARK_MORE], less_n = w->n[MLA_MARK_LESS];
    mla_blame_name_places(p, w, MLA_MARK_MISSING, missing);
    mla_blame_name_places(p, w, MLA_MARK_EXTRA, extra);
    mla_blame_name_places(p, w, MLA_MARK_MORE, more);
    mla_blame_name_places(p, w, MLA_MARK_LESS, less);
    double lost = w->weight[MLA_MARK_MISSING] + w->weight[MLA_MARK_LESS];
    double won = w->weight[MLA_MARK_EXTRA] + w->weight[MLA_MARK_MORE];
    bool left = p->lies != NULL && won == 0 && w->total < 1 - 0.5 * lost / (1 + lost);
    if (missing_n + less_n > 0 && left)
        return mla_blame_say(blame, MLA_CAUSE_KEYS_ELSEWHERE,
                             "Keys are read from another place than their own, far from all that "
                             "the call may read: %s, though the sum of the weights counts them.",
                             missing_n > 0 ? missing : less);
    if (missing_n > 0 && won == 0)
        return mla_blame_say(blame, MLA_CAUSE_KEYS_MISSING, "Visible keys take no part: %s.",
                             missing);
    if (extra_n > 0 && lost == 0)
        return mla_blame_say(blame, MLA_CAUSE_KEYS_EXTRA,
                             "Keys that the row must not see take part: %s.", extra);
    if (more_n > 0 && lost == 0)
        return mla_blame_say(blame, MLA_CAUSE_KEYS_TWICE,
                             "Visible keys count more often than they are there: %s.", more);
    if (less_n > 0 && won == 0 && merges_copies(p, w))
        return mla_blame_say(blame, MLA_CAUSE_KEYS_TWICE,
                             "Keys that are listed several times count once: %s.", less);
    if (less_n > 0 && won == 0)
        return mla_blame_say(
            blame, MLA_CAUSE_KEYS_MISSING,
            "Entries of the list take no part; keys that count less often than they "
            "are listed: %s.",
            less);
    if (missing_n > 0 && fabs(lost - won) < 0.25 * lost)
        return mla_blame_say(blame, MLA_CAUSE_KEYS_ELSEWHERE,
                             "The weight of %s sits on %s: keys or values are read from another "
                             "place than their own.",
                             missing, extra_n > 0 ? extra : more);
    if (missing_n > 0 && extra_n > 0)
        return mla_blame_say(
            blame, missing_n >= extra_n ? MLA_CAUSE_KEYS_MISSING : MLA_CAUSE_KEYS_EXTRA,
            "Visible keys take no part: %s. Keys that the row must not see do: %s. So it is masked "
            "by the positions of another row or layout.",
            missing, extra);
    return mla_blame_say(blame, MLA_CAUSE_UNKNOWN,
                         "Under equal scores %.3g of the weight is lost by visible keys and %.3g "
                         "won by keys that have it not: no single shift or count explains that.",
                         lost, won);
}

/*
 * All keys weigh the same, but not 1/n. With scores of 0 each adds 1 to the sum, so a whole number that is
 * larger by no more than the hidden keys there are is the sum of that many keys.
 */
static bool wrong_sum(const struct mla_probe *p, double common, struct mla_blame *blame)
{
    double keys = (double)p->visible_n / common, whole = round(keys);
    if (whole > (double)p->visible_n && fabs(keys - whole) <= 0x1p-8 * keys &&
        whole <= (double)(p->visible_n + p->places_n))
        return mla_blame_say(
            blame, MLA_CAUSE_KEYS_EXTRA,
            "Under equal scores the weights are divided by a sum of %.0f keys where the "
            "row sees %.0f: keys it must not see are in the sum, though their values "
            "are not in the output.",
            whole, (double)p->visible_n);
    return mla_blame_say(
        blame, MLA_CAUSE_WEIGHTS_OFF,
        "Under equal scores all keys weigh the same, but %.4g of what is due: the sum "
        "they are divided by is not theirs.",
        common);
}

bool mla_blame_keys(struct mla_probe *p, struct mla_blame *blame)
{
    struct mla_blame_weights w;
    double *flat = calloc((size_t)p->places_n, sizeof *flat);
    bool found = false;
    if (flat == NULL)
        return mla_blame_say(blame, MLA_CAUSE_UNKNOWN, "Out of memory.");
    mla_probe_set_scores(p, flat);
    free(flat);
    if (!mla_blame_weights_measure(p, &w))
        found = mla_blame_say(blame, MLA_CAUSE_UNKNOWN,
                              "The kernel did not return when its weights were measured.");
    else if (!w.finite)
        found = mla_blame_say(blame, MLA_CAUSE_NOT_FINITE,
                              "The row is not finite even with all scores 0 and values 0 or 1.");
    else if (w.n[MLA_MARK_RIGHT] != p->places_n)
        found = explain(p, &w, blame);
    else if (fabs(w.common - 1) > 0x1p-4 && p->visible_n > 0)
        found = wrong_sum(p, w.common, blame);
    mla_blame_weights_free(&w);
    return found;
}
