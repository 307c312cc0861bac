/* SPDX-License-Identifier: Apache-2.0
 *
 * energy_weights.c - the weights of one row, value row by value row. Which of the two ways to bound
 * them is taken, and what each gives: energy.c, sections 2, 3 and 5.
 */
#include "oracle/energy_weights.h"

#include "oracle/stored.h"

#include <stdlib.h>

/* Operations in the longest formula here, generously. */
#define FORMULA 40

static double up(double x)
{
    return mla_oracle_up(x, FORMULA);
}

static double down(double x)
{
    return mla_oracle_down(x, FORMULA);
}

/* A key and where its value stands. */
struct copy {
    const uint16_t *value;
    int64_t key;
};

/* By place, then by key, so that sums do not depend on the sort. */
static int compare_copies(const void *a, const void *b)
{
    const struct copy *x = a;
    const struct copy *y = b;

    if (x->value != y->value) {
        return (uintptr_t)x->value < (uintptr_t)y->value ? -1 : 1;
    }
    return (x->key > y->key) - (x->key < y->key);
}

static bool is_sorted(const struct copy *copies, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        if (compare_copies(&copies[i - 1], &copies[i]) > 0) {
            return false;
        }
    }
    return true;
}

/* One key's part, from errors.h. */
static void add_plain(struct mla_oracle_energy_weights *w, int64_t g, const struct mla_truth *t,
                      const struct mla_oracle_errors *e, int64_t j)
{
    const double weight = t->weight[j];

    w->weight[g] += weight;
    /* A weight at the floor may be anything below it. */
    w->weight_low[g] += weight > MLA_ORACLE_WEIGHT_MIN ? down(weight) : 0.0;
    w->spread[g] += e->spread[j];
    w->loose[g] += e->rho * e->up[j];
    w->most[g] += e->most[j];
}

/* And from known.h, in units of its middle sum. */
static void add_known(struct mla_oracle_energy_weights *w, int64_t g,
                      const struct mla_oracle_known *k, bool sum_rounded, int64_t j)
{
    const double half = up(k->half[j] / k->sum);

    w->centre[g] += k->centre[j] / k->sum;
    w->weight[g] += up(k->centre[j] / k->sum);
    w->weight_low[g] += down(k->centre[j] / k->sum);
    w->spread[g] += sum_rounded ? half : 0.0;
    w->loose[g] += sum_rounded ? 0.0 : half;
    w->most[g] += up(k->most[j] / k->sum);
}

/* The row's own numbers; returns q. */
static double row_plain(struct mla_oracle_energy_weights *w, const struct mla_oracle_errors *e)
{
    const double times = e->is_per_weight ? e->up_sum : 1.0;

    w->key_abs = up(e->key_abs * times);
    w->row_abs = up(e->row_abs * times);
    w->denominator = e->denominator;
    w->nu = e->nu;
    return up(e->mu * e->up_sum + e->abs_d * times);
}

static double row_known(struct mla_oracle_energy_weights *w, const struct mla_oracle_errors *e,
                        const struct mla_oracle_known *k, bool sum_rounded, int64_t keys_n)
{
    /* A rounded sum's middle is the sum of the centres but for its rounding. */
    const double apart = sum_rounded ? (double)(keys_n + 8) * 0x1p-52 * k->sum : k->sum_half;

    w->is_known = true;
    w->key_abs = up(e->key_loss / k->sum);
    w->row_abs = up(e->row_loss / k->sum);
    w->denominator = down(k->denominator / k->sum);
    w->nu = e->nu_terms;
    return up((apart + k->sum_loose + k->abs_d) / k->sum);
}

static void finish(struct mla_oracle_energy_weights *w, int64_t keys_n, double q)
{
    for (int64_t g = 0; g < w->n; g++) {
        w->weight[g] = mla_oracle_up(w->weight[g], keys_n);
        w->weight_low[g] = mla_oracle_down(w->weight_low[g], keys_n);
        w->spread[g] = mla_oracle_up(w->spread[g], keys_n);
        w->loose[g] = up(mla_oracle_up(w->loose[g], keys_n) + w->weight[g] * q);
        w->most[g] = mla_oracle_up(w->most[g], keys_n);
        w->spread_sum += w->spread[g];
    }
    w->spread_sum = mla_oracle_up(w->spread_sum, w->n);
}

/* The stores of every column, in units of the middle sum. */
static bool set_stored(struct mla_oracle_energy_weights *w, const struct mla_truth *t,
                       const struct mla_oracle_errors *e, const struct mla_oracle_known *k)
{
    const size_t n = (size_t)t->columns_n;
    double *room = calloc(MLA_ORACLE_STORED_ROOM * n, sizeof *room);

    if (room == NULL) {
        return false;
    }
    const struct mla_oracle_stored whole = mla_oracle_stored_columns(t, e, k, NULL, room);

    for (size_t l = 0; l < n; l++) {
        w->stored[l] = up(whole.stored[l] / k->sum);
    }
    free(room);
    return true;
}

static bool allocate(struct mla_oracle_energy_weights *w, int64_t keys_n, int64_t columns_n)
{
    double **const arrays[] = {&w->weight, &w->weight_low, &w->spread,
                               &w->loose,  &w->most,       &w->centre};
    const size_t arrays_n = sizeof arrays / sizeof arrays[0];

    w->value = calloc((size_t)keys_n, sizeof w->value[0]);
    w->stored = calloc((size_t)columns_n, sizeof w->stored[0]);
    w->numbers = calloc(arrays_n * (size_t)keys_n, sizeof(double));
    for (size_t i = 0; w->numbers != NULL && i < arrays_n; i++) {
        *arrays[i] = w->numbers + i * (size_t)keys_n;
    }
    return w->value != NULL && w->stored != NULL && w->numbers != NULL;
}

int32_t mla_oracle_energy_weights_make(const struct mla_truth *truth, const struct mla_model *model,
                                       const struct mla_oracle_errors *errors,
                                       struct mla_oracle_energy_weights *weights)
{
    const int64_t n = truth->keys_n;
    const bool sum_rounded = model->sum_rounded != 0;
    struct copy *copies = calloc((size_t)n, sizeof *copies);
    struct mla_oracle_known known = {0};
    int32_t status = MLA_ERR_NOMEM;

    *weights = (struct mla_oracle_energy_weights){0};
    if (copies == NULL || !allocate(weights, n, truth->columns_n) ||
        mla_oracle_known_make(truth, model, errors, &known) != MLA_OK ||
        (known.is_usable && known.is_stored && !set_stored(weights, truth, errors, &known))) {
        goto done;
    }
    for (int64_t j = 0; j < n; j++) {
        copies[j] = (struct copy){truth->value[j], j};
    }
    if (!is_sorted(copies, n)) { /* the ring's keys stand in order */
        qsort(copies, (size_t)n, sizeof copies[0], compare_copies);
    }
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || copies[i].value != copies[i - 1].value) {
            weights->value[weights->n++] = copies[i].value;
        }
        if (known.is_usable) {
            add_known(weights, weights->n - 1, &known, sum_rounded, copies[i].key);
        } else {
            add_plain(weights, weights->n - 1, truth, errors, copies[i].key);
        }
    }
    finish(weights, n,
           known.is_usable ? row_known(weights, errors, &known, sum_rounded, n)
                           : row_plain(weights, errors));
    status = MLA_OK;
done:
    mla_oracle_known_free(&known);
    free(copies);
    return status;
}

void mla_oracle_energy_weights_free(struct mla_oracle_energy_weights *weights)
{
    free(weights->numbers);
    free(weights->stored);
    free(weights->value);
}
