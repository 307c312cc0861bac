/* SPDX-License-Identifier: Apache-2.0
 *
 * stored.c - what roundings that act on a whole accumulator can do to the sums of one row.
 *
 * errors.c lets every term of a sum meet every rounding of its path in the worst direction: n terms
 * cost nu sum_j w_j |v_jl|. That is what additions inside a block deserve, whose order is unknown.
 * A store is different: it rounds the whole of what the accumulator holds, all terms alike, and
 * what it holds is known (known.c) up to errors that are small themselves. So is a rescale factor,
 * whose error known.c lets every key of a block meet on its own.
 *
 * Notation of known.c: blocks b = 0 .. B in visiting order; P_j the rounded p of key j, R_b the
 * product of the computed factors alpha_(b+1) .. alpha_B, W_j = P_j R_b. The promise (acc_stores):
 * after the keys of block b the kernel has
 *     out_b = ( alpha_b out_(b-1) + S_b )(1+e_b),   S_b the block's own sum of p v,
 * with one rounding |e_b| <= acc_u. Product, additions and products p v have roundings and losses of
 * their own, which acc_depth, pv_product_u and errors.c, section 5, account for.
 *
 * 1. ONE LINEAR RECURSION.  The roundings (1+d) of term j, in its own block and where later blocks
 *    multiply and add, are factors that all which follows is linear in: pulled back to the term they
 *    are one factor 1+a_jl, |a_jl| <= nu_terms = (1+P(add_u, acc_depth))(1+pv_product_u) - 1. What
 *    is left are alpha and e, which act on everything held. Hence R_b out_b = N_b with
 *        N_b = ( N_(b-1) + D_b )(1+e_b),   D_b = sum over block b of W_j (1+a_jl) v_jl.
 *    Losses by underflow (a store that rounds below the normal range is one; flushed operands, a
 *    factor returned as 0) are absolute terms of the same recursion: they are added to its result,
 *    times no more than 1+nu. That is aN, the same as without the promise.
 *
 * 2. IN KNOWN FRAMES.  Let r_b = R_b / c_b, c_b the middle of its interval (known.c, section 4), and
 *    divide by r_b what is held after block b: N_b = r_b N'_b and so on. r_B = 1. Then
 *        N'_b = ( q_b N'_(b-1) + D'_b )(1+e_b),   q_b = r_(b-1)/r_b = alpha_b c_b / c_(b-1),
 *        D'_b = sum over block b of P_j c_b (1+a_jl) v_jl.
 *    alpha_b lies in the interval of one rescale, between the maxima of blocks 0 .. b-1 and 0 .. b:
 *    known.c, section 4, with L_b for L and block b's keys for the later ones. |q_b - 1| <= d_b
 *    follows; 0 where the block cannot raise the maximum and the model says that its factor is 1
 *    then (exp_slope). With C_j the middles of known.h, |P_j c_b - C_j| <= own_j.
 *    T' be N' without stores, T_l the plain sum of C_j v_jl over blocks 0 .. b, t any number, Z the sum
 *    of C_j, Y' = T'_l - t (the sum of W_j likewise divided), Y = T_l - t Z. Then
 *        |T'_b - T_b| =: f_b <= (1+d_b) f_(b-1) + d_b |T_(b-1)| + sum ( own + nu_terms (C+own) ) |v|,
 *        |Y'_b - Y_b| =: y_b <= (1+d_b) y_(b-1) + d_b |Y_(b-1)| + sum own |v-t| + nu_terms (C+own) |v|,
 *    sums over block b. In Y what is common to numerator and denominator cancels: the factors are,
 *    as O and l share them. The row's own is apart <= y_B + |Y_B|. (Y_B is 0 up to rounding for the
 *    t of known.c.) The bound spread + spill of known.c, section 5, holds too.
 *
 * 3. STORES.  X_b = N'_b - T'_b obeys
 *        X_b = q_b X_(b-1) (1+e_b) + e_b T'_b,
 *        |X_b| <= (1+d_b)(1+E) |X_(b-1)| + E ( |T_b| + f_b ),   E = acc_u:
 *    earlier stores' errors are stored again. stored = X_B, W, a and e free to conspire. Every term
 *    meets no more than it did before, so (nu - nu_terms) sum most_j |v_jl| holds as well: this is
 *    never the wider bound.
 *    With acc_extra = k a block, some round alpha_b out_(b-1) before S_b is added, the others the new
 *    sum: for 1+e' and 1+e" their products,
 *        X_b = q_b X_(b-1) (1+e')(1+e") + e' (1+e") q_b T'_(b-1) + e" T'_b,
 *    so the same holds with E = (1+acc_u)^k - 1, as |e'|(1+|e"|) + |e"| <= E, and the greater of
 *    (1+d_b) |T'_(b-1)| and |T'_b| in the place of |T'_b|.
 *
 * 4. THE SUM is kept likewise, in one part or several, each rounded when out is. All its terms are
 *    positive, nothing cancels, and a term's own factors are what there is to say: a key of block b
 *    meets k (B-b+1) stores, not all k (B+1) of them (mla_oracle_sum_factor; share of known.h).
 *
 * Rounding of this file's own arithmetic: T_b and Z_b in double are off by at most (n+8) 2^-52 of
 * the sums of their terms' magnitudes, which grow with b; added to own's sums block by block they
 * are part of f and y, and are multiplied there as |T| and |Y| are. The rest are chains of at most
 * n + 10 (B+1) operations on non-negative upper bounds, raised once at the end.
 */
#include "oracle/stored.h"

#include "oracle/bf16.h"

#include <math.h>
#include <string.h>

/* A d_b at which nothing is known any more; its powers stay finite for any number of blocks. */
#define STEP_MAX 1.0

struct work {
    const struct mla_truth *truth;
    const struct mla_oracle_known *known;
    const double *middle; /* t; NULL: nobody asks for y */
    double loose;         /* nu_terms, and the rounding of T */
    double rounding;      /* of T and Z, relative to their terms */
    double centres;       /* Z */
    double *stored;       /* X */
    double *apart;        /* y */
    double *sums;         /* T */
    double *held;         /* f */
    double *reach;        /* sum most |v| */
    double *fresh;        /* the block's part of f */
    double *fresh_apart;  /* and of y */
    double *before;       /* what a store ahead of the block's keys may act on */
};

/* The keys of one block: T, reach and the two fresh parts. */
static void add_block(struct work *w, int64_t first, int64_t end)
{
    const struct mla_truth *t = w->truth;
    const int64_t n = t->columns_n;

    memset(w->fresh, 0, (size_t)n * sizeof(double));
    memset(w->fresh_apart, 0, (size_t)n * sizeof(double));
    for (int64_t i = first; i < end; i++) {
        const int64_t j = t->visit != NULL ? t->visit[i] : i;
        const uint16_t *restrict row = t->value[j];
        const double *restrict middle = w->middle;
        double *restrict sums = w->sums;
        double *restrict reach = w->reach;
        double *restrict fresh = w->fresh;
        double *restrict fresh_apart = w->fresh_apart;
        const double centre = w->known->centre[j];
        const double own = w->known->own[j];
        const double most = w->known->most[j];
        const double loose = w->loose * (centre + own);

        w->centres += centre;
        if (middle == NULL) {
            for (int64_t l = 0; l < n; l++) {
                const double v = mla_oracle_bf16_value(row[l]);

                sums[l] += centre * v;
                reach[l] += most * fabs(v);
                fresh[l] += (own + loose) * fabs(v);
            }
            continue;
        }
        for (int64_t l = 0; l < n; l++) {
            const double v = mla_oracle_bf16_value(row[l]);

            sums[l] += centre * v;
            reach[l] += most * fabs(v);
            fresh[l] += (own + loose) * fabs(v);
            fresh_apart[l] += own * fabs(v - middle[l]) + loose * fabs(v);
        }
    }
}

/* Carry f, y and X to the block's frame: d_b of section 2, and what its keys add. */
static void carry(struct work *w, double step, double centres)
{
    const int64_t n = w->truth->columns_n;

    /* Exactly 0 steps are common, and leave what is held as it is. */
    for (int64_t l = 0; step > 0.0 && l < n; l++) {
        w->held[l] += step * (w->held[l] + fabs(w->sums[l]));
        w->stored[l] += step * w->stored[l];
    }
    if (w->middle == NULL) {
        return;
    }
    for (int64_t l = 0; step > 0.0 && l < n; l++) {
        w->apart[l] += step * (w->apart[l] + fabs(w->sums[l] - w->middle[l] * centres));
    }
}

/* The block's own parts of f and y, and its stores. */
static void finish_block(struct work *w, const struct mla_oracle_errors *e, double step,
                         double centres)
{
    const int64_t n = w->truth->columns_n;

    for (int64_t l = 0; l < n; l++) {
        w->held[l] += w->fresh[l];
        const double holds = fabs(w->sums[l]) + w->held[l];
        const double acts = e->stores > 1.0 ? fmax(holds, w->before[l] * (1.0 + step)) : holds;

        w->stored[l] += e->store * w->stored[l] + e->store * acts;
        w->before[l] = holds;
    }
    for (int64_t l = 0; w->middle != NULL && l < n; l++) {
        w->apart[l] += w->fresh_apart[l] + w->rounding * centres * fabs(w->middle[l]);
    }
}

/* What always holds (section 3), where it is less or the recursion says nothing. */
static void finish(struct work *w, const struct mla_oracle_errors *e, bool is_known)
{
    const int64_t operations = w->truth->keys_n + 10 * w->known->blocks_n + 16;
    const double any = e->nu - e->nu_terms + 0x1p-50 * e->nu;

    for (int64_t l = 0; l < w->truth->columns_n; l++) {
        const double general = mla_oracle_up(any * w->reach[l], operations);
        const double stored = mla_oracle_up(w->stored[l], operations);

        w->stored[l] = is_known ? fmin(stored, general) : general;
        if (w->middle != NULL) {
            const double left = fabs(w->sums[l] - w->middle[l] * w->centres);

            w->apart[l] = is_known ? mla_oracle_up(w->apart[l] + left, operations) : INFINITY;
        }
    }
}

struct mla_oracle_stored mla_oracle_stored_columns(const struct mla_truth *truth,
                                                   const struct mla_oracle_errors *errors,
                                                   const struct mla_oracle_known *known,
                                                   const double *middle, double *room)
{
    const int64_t n = truth->columns_n;
    struct work w = {.truth = truth, .known = known, .middle = middle};
    double **const arrays[MLA_ORACLE_STORED_ROOM] = {
        &w.stored, &w.apart, &w.sums, &w.held, &w.reach, &w.fresh, &w.fresh_apart, &w.before};
    bool is_known = true;
    int64_t first = 0;

    for (int i = 0; i < MLA_ORACLE_STORED_ROOM; i++) {
        *arrays[i] = room + i * n;
    }
    memset(room, 0, MLA_ORACLE_STORED_ROOM * (size_t)n * sizeof *room);
    w.rounding = (double)(truth->keys_n + 8) * 0x1p-52;
    w.loose = errors->nu_terms + w.rounding;
    for (int64_t b = 0; b < known->blocks_n; b++) {
        const double step = known->step[b] <= STEP_MAX ? known->step[b] : 0.0;
        const double centres = w.centres;

        is_known = is_known && known->step[b] <= STEP_MAX;
        carry(&w, step, centres);
        add_block(&w, first, known->ends[b]);
        finish_block(&w, errors, step, w.centres - centres);
        first = known->ends[b];
    }
    finish(&w, errors, is_known);
    return (struct mla_oracle_stored){w.stored, w.apart};
}
