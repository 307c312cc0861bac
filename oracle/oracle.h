/* SPDX-License-Identifier: Apache-2.0
 *
 * oracle.h - the truth about one output row, and the set of results a declared arithmetic may give.
 *
 * The oracle knows the two operations only through their definition (impl/mla.h has the formulas
 * and the one position rule). It takes the types from impl and shares no code, arithmetic or
 * position map with it. Four questions are answered here:
 *
 *   mla_refuse_ring / _sparse   must this call be refused, with which status, naming what?
 *   mla_truth_ring / _sparse    what does the definition say about one (head, query row)?
 *   mla_bound_row / _stats      which outputs may a kernel with this arithmetic model produce?
 *   mla_bound_energy            and which rows of them only by a chance nobody has?
 */
#ifndef MLA_ORACLE_ORACLE_H
#define MLA_ORACLE_ORACLE_H

#include "impl/mla.h"
#include "impl/mla_kernel.h"

/* ---- refusals ---------------------------------------------------------------------------------*/

/*
 * What a call must be answered with. status MLA_OK: it must be accepted. Otherwise the message of a
 * conforming kernel contains `field` (the ABI name of the first violated rule's parameter; for a
 * per-rank pointer "kv[3]") as a whole word and `value` (decimal; "0" for a null pointer).
 */
struct mla_refusal {
    int32_t status;
    char field[32];
    char value[32];
};

/*
 * The refusal tables of the two operations, first true row first. Only what the tables need is
 * read: per-rank pointers when 1 <= ring_size <= 32, top-k indices when every earlier row holds.
 * Never fails; reads no tensor but the indices. Thread-safe.
 */
struct mla_refusal mla_refuse_ring(const struct mla_ring_args *args);
struct mla_refusal mla_refuse_sparse(const struct mla_sparse_args *args);

/* ---- truth ------------------------------------------------------------------------------------*/

/* One output row: ring out[rank][batch, head, row, :]; sparse out[row, head, :] (rank, batch 0). */
struct mla_row {
    int64_t rank;
    int64_t batch;
    int64_t head;
    int64_t row;
};

enum mla_row_state {
    MLA_ROW_OK = 0,        /* the definition gives a value and a bound can be formed */
    MLA_ROW_EMPTY = 1,     /* pad row, or no keys: +0, max -inf, sum +0 by convention */
    MLA_ROW_NONFINITE = 2, /* NaN or Inf takes part: unspecified */
    MLA_ROW_RANGE = 3      /* a sum may exceed FLT_MAX/2: unspecified */
};

/* Everything the definition says about one row, with a certified radius. Opaque. */
struct mla_truth;

/* The part of it that anyone may read. */
struct mla_truth_info {
    int32_t state;      /* enum mla_row_state */
    int64_t keys_n;     /* keys the row sees, copies counted */
    int64_t width;      /* columns of a key: ring head_dim, sparse latent + rope */
    int64_t columns_n;  /* output columns: ring head_dim_v, sparse latent (in natural order) */
    double max;         /* M = max_j scale*s_j, nearest double */
    double log_sum_exp; /* M + ln Z, within 2^-62 (1 + |M + ln Z|) and then rounded to double */
};

/*
 * Evaluate the definition for one row of a call that must be accepted: exact scores, exponentials
 * and sums with a proved error, at most 2^-64 of sum_j w_j|v_j| (or 2^-190) for every output.
 * mla_truth_*: the fast way (oracle/attention.c); mla_definition_*: the plain and slow one
 * (oracle/definition.c), in MPFR with 192 bits. They differ by no more than their radii.
 *
 * visible keys   those of the one position rule (ring), the listed multiset or dense range (sparse)
 * non-finite     state MLA_ROW_NONFINITE, no values
 * errors         MLA_OK with *truth set; else *truth NULL and MLA_ERR_PARAM (a row outside the
 *                call), MLA_ERR_NOMEM, or MLA_ERR_INTERNAL (a sum that must be exact was not: a
 *                fault of the oracle). MPFR itself ends the process when memory is short
 * threads        safe; MPFR state is per thread, mla_oracle_thread_done() frees a thread's caches
 *
 * arithmetic     everything in oracle/ needs the default floating-point environment in the calling
 *                thread: rounding to nearest, subnormals kept (no FTZ, no DAZ)
 *
 * The tensors must outlive the truth (V is read again by the bound).
 */
int32_t mla_truth_ring(const struct mla_ring_args *args, struct mla_row row,
                       struct mla_truth **truth);
int32_t mla_truth_sparse(const struct mla_sparse_args *args, struct mla_row row,
                         struct mla_truth **truth);
int32_t mla_definition_ring(const struct mla_ring_args *args, struct mla_row row,
                            struct mla_truth **truth);
int32_t mla_definition_sparse(const struct mla_sparse_args *args, struct mla_row row,
                              struct mla_truth **truth);
struct mla_truth_info mla_truth_info(const struct mla_truth *truth);

/*
 * Do two truths of the same row agree? The largest difference of an output, of the maximum and of
 * the log-sum-exp over the two radii together: at most 1 unless one of them is wrong. +inf where
 * the states, the exact maxima or the upper bounds a truth holds are incompatible. Thread-safe.
 */
double mla_truth_disagreement(const struct mla_truth *a, const struct mla_truth *b);
void mla_truth_free(struct mla_truth *truth);
void mla_oracle_thread_done(void);

/*
 * The bf16 nearest to o of a column (ties to even), by Ziv's strategy: the truth's own radius mostly
 * decides; where a midpoint of two bf16 lies inside it, the column is evaluated again with 256, 512
 * and 1024 bits. Exact results (equal scores) decide ties; an o that is within 2^-1000 of a midpoint
 * without being known to be it (scores in pairs over values whose mean is one) stays undecided:
 * nearest holds both neighbours then, and otherwise the same value twice.
 *
 * MLA_OK; MLA_ERR_PARAM: a row without values, or no such column; MLA_ERR_NOMEM. Thread-safe.
 */
int32_t mla_truth_nearest(const struct mla_truth *truth, int64_t column, uint16_t nearest[2]);

/* ---- bound ------------------------------------------------------------------------------------*/

enum mla_bound_state {
    MLA_BOUND_OK = 0,
    MLA_BOUND_EMPTY = 1,     /* row without keys: bits exactly +0 */
    MLA_BOUND_NONFINITE = 2, /* not judged, with the reason */
    MLA_BOUND_RANGE = 3,     /* a number in the kernel may leave binary32: a sum, a difference of
                                scores, or a scale so small that its rounding is as large as itself */
    MLA_BOUND_MODEL = 4 /* the declared error is so large that no interval exists: sums off by a
                           factor of 2 (mu >= 1), or weights uncertain by more than e^700 */
};

/* The accepted set of one output element (natural column order). */
struct mla_bound {
    float lo, hi;     /* accept y iff lo <= y <= hi; both are bf16 values, -inf and +inf possible */
    uint16_t nearest; /* bf16 nearest to o; what may be a tie: as o's double says */
    double o;         /* the definition's value, off by at most a double's last place */
    double low, high; /* the interval before output rounding; lo and hi are its rounded ends */
    double radius;    /* B: how far from o the interval reaches, >= 0. Where the rounding of p is
                         known the interval need not contain o, nor o be its middle */
};

/* The accepted statistics of one row. */
struct mla_bound_stats {
    double max_lo, max_hi; /* accept max iff max_lo <= max <= max_hi */
    double lse;            /* the definition's M + ln Z, nearest double */
    double lse_radius;     /* accept iff |max + ln(sum) - lse| <= lse_radius, evaluated in MPFR */
    double sum_lo, sum_hi; /* and iff sum_lo <= sum <= sum_hi; 0 and +inf where the model says
                              nothing of the sum in its own frame */
};

/*
 * The tier-1 set for every column of a row: a conforming kernel never leaves it. bounds holds
 * info.columns_n entries. Returns enum mla_bound_state, or MLA_ERR_NOMEM; entries hold anything
 * unless it is MLA_BOUND_OK. A model that mla_bound_model_error refuses gives MLA_BOUND_MODEL. Everything in
 * B is rounded upward. MLA_ERR_INTERNAL: two certain intervals exclude each other, a fault of the
 * oracle. Derivation: oracle/errors.c, oracle/bound.c and oracle/known.c. Thread-safe.
 */
int32_t mla_bound_row(const struct mla_truth *truth, const struct mla_model *model,
                      struct mla_bound *bounds);

/*
 * Error of an output value against a bound. An output y stands for the real numbers that the
 * model's output rounding maps to it. distance: from o to the nearest of them. ratio: the distance
 * from the middle of [low, high] to the nearest of them, over half the width; y is accepted iff
 * ratio <= 1 (up to the rounding of the ratio itself; lo and hi decide). NaN gives +inf for both;
 * Inf too where the bound is finite.
 */
struct mla_bound_error {
    double distance;
    double ratio;
};
struct mla_bound_error mla_bound_error(const struct mla_bound *bound, const struct mla_model *model,
                                       uint16_t y);

/* Element formats of results that a kernel elsewhere may hand in. */
enum mla_out_format { MLA_FORMAT_BF16 = 0, MLA_FORMAT_F16 = 1, MLA_FORMAT_F32 = 2 };

/*
 * The same for a result whose last rounding is to another format than bf16 (the model's out_round then
 * says how to F16): the accepted values are lo <= y <= hi, and the error of one. With MLA_FORMAT_BF16
 * they are those above; y must be a value of the format. Derivation: oracle/bound_format.c.
 */
struct mla_bound_ends {
    double lo, hi;
};
struct mla_bound_ends mla_bound_ends(const struct mla_bound *bound, const struct mla_model *model,
                                     enum mla_out_format format);
struct mla_bound_error mla_bound_error_in(const struct mla_bound *bound,
                                          const struct mla_model *model, enum mla_out_format format,
                                          double y);

/*
 * The tier-1 set for the row's statistics, and whether (max, sum) lies in it; NaN never does. For
 * MLA_BOUND_EMPTY the only accepted pair is -inf and +0 (sign included). *ratio is the largest of
 * the errors over their radii (0 when exact, +inf when not a number). Returns enum mla_bound_state,
 * or MLA_ERR_NOMEM. Derivation: oracle/bound_stats.c. Thread-safe.
 */
int32_t mla_bound_stats(const struct mla_truth *truth, const struct mla_model *model,
                        struct mla_bound_stats *stats);
bool mla_bound_stats_accepts(const struct mla_truth *truth, const struct mla_model *model,
                             float max, float sum, double *ratio);
#define MLA_BOUND_LSE_ROUNDINGS_MAX 1000
/*
 * The same for a kernel that reports max + ln(sum) as one binary32, formed with `roundings` (0 ..
 * MLA_BOUND_LSE_ROUNDINGS_MAX) roundings of 2^-24 (the sum 1, a logarithm within one last place 2). Where the model says MLA_STATS_OTHER there is
 * no bound: MLA_BOUND_MODEL. Of a row without keys only -inf is accepted. Returns as mla_bound_stats;
 * *accepted and *ratio are set for MLA_BOUND_OK and MLA_BOUND_EMPTY.
 */
int32_t mla_bound_lse_accepts(const struct mla_truth *truth, const struct mla_model *model,
                              int32_t roundings, float lse, bool *accepted, double *ratio);

/* ---- row energy -------------------------------------------------------------------------------*/

/* The row-energy test of one row: the row is accused iff !(energy <= threshold). */
struct mla_energy {
    int64_t columns_n; /* columns whose error chance can shift: the test's degrees of freedom */
    double energy;     /* sum of squared errors in units of what chance can do, lower; +inf: NaN, or
                          an error that no choice of signs allows */
    double threshold;  /* upper */
};

/*
 * Tier 2: errors of weights that were formed without looking at V add up like a random walk if V's
 * signs are fair coins. y: the row's outputs (bf16, natural column order). log_tests: t >= 0; a
 * conforming kernel's row is accused with a chance of at most e^-t over the coins.
 *
 * premises  every value element is a fair coin's sign times a magnitude; coins of different value
 *           rows and columns are independent, equal pointers are copies and share theirs; query,
 *           scores, magnitudes and the choice of keys are independent of the coins. The caller's to
 *           know: nothing of it is checked here
 * non-finite  NaN gives energy +inf; Inf is a rounding like any other (of results from 2^128 on)
 * errors    returns enum mla_bound_state, or MLA_ERR_NOMEM; *energy is written for MLA_BOUND_OK only.
 *           MLA_BOUND_MODEL also for a model without weights_ignore_v
 *
 * Derivation: oracle/energy.c. Thread-safe.
 */
int32_t mla_bound_energy(const struct mla_truth *truth, const struct mla_model *model,
                         const uint16_t *y, double log_tests, struct mla_energy *energy);

/* Is the model well formed (finite, within range, enums known)? NULL, or what is wrong. */
const char *mla_bound_model_error(const struct mla_model *model, bool is_ring);

/* "MPFR 4.2.0 (header 4.2.0), GMP 6.2.1 (header 6.2.1)" into text; false when a header and its
 * library disagree or MPFR has no thread-local state. text may be NULL. */
bool mla_oracle_versions(char *text, size_t text_bytes);

#endif
