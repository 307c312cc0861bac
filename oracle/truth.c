/* SPDX-License-Identifier: Apache-2.0
 *
 * truth.c - memory of a truth, what anyone may read of it, and the thread's MPFR state.
 */
#include "oracle/truth.h"

#include <math.h>
#include <stdlib.h>

/* ---- the thread's MPFR state ------------------------------------------------------------------*/

struct mla_oracle_mpfr_state mla_oracle_mpfr_enter(void)
{
    const struct mla_oracle_mpfr_state state = {mpfr_get_emin(), mpfr_get_emax(),
                                                mpfr_flags_save()};

    (void)mpfr_set_emin(mpfr_get_emin_min());
    (void)mpfr_set_emax(mpfr_get_emax_max());
    return state;
}

void mla_oracle_mpfr_leave(const struct mla_oracle_mpfr_state *state)
{
    (void)mpfr_set_emin(state->emin);
    (void)mpfr_set_emax(state->emax);
    mpfr_flags_restore(state->flags, MPFR_FLAGS_ALL);
}

void mla_oracle_thread_done(void)
{
    mpfr_free_cache();
}

/* ---- memory -----------------------------------------------------------------------------------*/

void mla_oracle_truth_begin(const struct mla_oracle_input *input, struct mla_truth *truth)
{
    truth->keys_n = input->keys_n;
    truth->width = input->part_n[0] + input->part_n[1];
    truth->columns_n = input->columns_n;
    truth->is_ring = input->chunk_keys > 0;
    truth->scale = (double)input->scale;
    truth->value = input->keys[0];
}

bool mla_oracle_truth_allocate(struct mla_truth *truth)
{
    double **const per_key[] = {&truth->magnitude, &truth->lost, &truth->score, &truth->gap,
                                &truth->weight};
    double **const per_column[] = {&truth->out, &truth->out_radius, &truth->out_low,
                                   &truth->out_low_radius, &truth->abs_value};
    bool ok = true;

    for (size_t i = 0; i < sizeof per_key / sizeof per_key[0]; i++) {
        *per_key[i] = calloc((size_t)truth->keys_n + 1, sizeof(double));
        ok = ok && *per_key[i] != NULL;
    }
    for (size_t i = 0; i < sizeof per_column / sizeof per_column[0]; i++) {
        *per_column[i] = calloc((size_t)truth->columns_n, sizeof(double));
        ok = ok && *per_column[i] != NULL;
    }
    return ok;
}

void mla_truth_free(struct mla_truth *truth)
{
    if (truth == NULL) {
        return;
    }
    if (truth->has_exact) {
        mpfr_clear(truth->exact_lse);
        mpfr_clear(truth->exact_max);
    }
    free(truth->abs_value);
    free(truth->out_low_radius);
    free(truth->out_low);
    free(truth->out_radius);
    free(truth->out);
    free(truth->visit);
    free(truth->weight);
    free(truth->gap);
    free(truth->score);
    free(truth->lost);
    free(truth->magnitude);
    free(truth->input.keys[1]);
    free(truth->input.keys[0]);
    free(truth);
}

struct mla_truth_info mla_truth_info(const struct mla_truth *truth)
{
    struct mla_truth_info info = {.state = truth->state,
                                  .keys_n = truth->keys_n,
                                  .width = truth->width,
                                  .columns_n = truth->columns_n};

    info.max = truth->state == MLA_ROW_OK      ? truth->max
               : truth->state == MLA_ROW_EMPTY ? -INFINITY
                                               : NAN;
    info.log_sum_exp = truth->state == MLA_ROW_OK ? truth->log_sum_exp : info.max;
    return info;
}
