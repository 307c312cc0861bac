/* SPDX-License-Identifier: Apache-2.0
 *
 * score.c - scores: without error, and as an adversary sums them.
 *
 * Columns where the query is zero add nothing and round nothing; most queries of the data families
 * are zero almost everywhere. A sum rounds most when its partial sums are large: the greedy
 * sequential sum takes the products of one sign first, largest first, then the others, smallest
 * first.
 */
#include <stdlib.h>

#include "fuzz/adversary/attend.h"

/* Sorting costs more than it is worth for wider rows. */
#define SORT_MAX 160

static uint16_t key_bits(const struct mla_adversary_row *row, int64_t j, int64_t i)
{
    return i < row->part_n[0] ? row->keys[0][j][i] : row->keys[1][j][i - row->part_n[0]];
}

static uint16_t query_bits(const struct mla_adversary_row *row, int64_t i)
{
    return i < row->part_n[0] ? row->query[0][i] : row->query[1][i - row->part_n[0]];
}

void mla_adversary_scores_exact(struct mla_adversary_scores *scores)
{
    const struct mla_adversary_row *row = scores->row;
    struct mla_adversary_work *work = scores->work;
    int64_t n = 0;
    for (int64_t i = 0; i < row->part_n[0] + row->part_n[1]; i++) {
        uint16_t bits = query_bits(row, i);
        work->query[n] = (double)mla_number_from_bf16(bits);
        work->place[n] = i;
        n += (bits & 0x7fffu) != 0;
    }
    scores->nonzero_n = n;
    for (int64_t j = 0; j < row->keys_n; j++) {
        double sum = 0.0;
        for (int64_t i = 0; i < n; i++)
            sum += work->query[i] * (double)mla_number_from_bf16(key_bits(row, j, work->place[i]));
        work->exact[j] = sum;
    }
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static double sequential(struct mla_choice *choice, const double *products, int64_t n, double u,
                         double dir)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        sum = sum == 0.0 ? products[i] : mla_choice_round(choice, sum + products[i], u, dir);
    return sum;
}

static double sorted(struct mla_choice *choice, double *products, int64_t n, double u, double dir)
{
    double total = 0.0;
    qsort(products, (size_t)n, sizeof *products, descending);
    for (int64_t i = 0; i < n; i++)
        total += products[i];
    for (int64_t i = 0; total < 0.0 && i < n / 2; i++) { /* the larger side first */
        double swap = products[i];
        products[i] = products[n - 1 - i];
        products[n - 1 - i] = swap;
    }
    return sequential(choice, products, n, u, dir);
}

/* Neighbours are added until one sum is left. */
static double pairwise(struct mla_choice *choice, double *sums, int64_t n, double u, double dir)
{
    for (; n > 1; n = (n + 1) / 2)
        for (int64_t i = 0; i < n; i += 2) {
            double a = sums[i], b = i + 1 < n ? sums[i + 1] : 0.0;
            sums[i / 2] = a == 0.0 || b == 0.0 ? a + b : mla_choice_round(choice, a + b, u, dir);
        }
    return n == 0 ? 0.0 : sums[0];
}

static double lanes(struct mla_choice *choice, const double *products, int64_t n, double u,
                    double dir)
{
    double lane[MLA_ADVERSARY_LANES] = {0.0};
    for (int64_t i = 0; i < n; i++) {
        double *sum = &lane[i % MLA_ADVERSARY_LANES];
        *sum = *sum == 0.0 ? products[i] : mla_choice_round(choice, *sum + products[i], u, dir);
    }
    return pairwise(choice, lane, MLA_ADVERSARY_LANES, u, dir);
}

static bool is_finite_list(const double *x, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * 0.0;
    return sum == 0.0;
}

double mla_adversary_score(const struct mla_adversary_scores *scores, struct mla_choice *choice,
                           int64_t j, double dir)
{
    const struct mla_adversary_row *row = scores->row;
    const struct mla_model *m = row->model;
    double *products = scores->work->products;
    int64_t n = 0;
    double sum;
    for (int64_t i = 0; i < scores->nonzero_n; i++) {
        uint16_t bits = key_bits(row, j, scores->work->place[i]);
        double k = (double)mla_number_from_bf16(bits);
        double q = mla_choice_input(choice, scores->work->query[i], dir * k);
        k = mla_choice_input(choice, k, dir * q);
        products[n] = mla_choice_round(choice, q * k, m->product_u, dir);
        n += products[n] != 0.0;
    }
    if (row->plan->score == MLA_SCORE_TREE)
        sum = pairwise(choice, products, n, m->add_u, dir);
    else if (row->plan->score == MLA_SCORE_LANES)
        sum = lanes(choice, products, n, m->add_u, dir);
    else if (choice->is_greedy && n <= SORT_MAX && is_finite_list(products, n))
        sum = sorted(choice, products, n, m->add_u, dir);
    else
        sum = sequential(choice, products, n, m->add_u, dir);
    return m->score_u > 0.0 ? mla_choice_round(choice, sum, m->score_u, dir) : sum;
}
