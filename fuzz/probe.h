/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.h - a kernel called on numbers chosen to make one row of a case speak.
 *
 * The call is the case's own: same shape, same lists, same options. Its numbers are not: queries are 0
 * in every column that is also value, so scores and values can be chosen apart. Scores stand in the
 * columns that are score only; values are unit vectors or digits that say where they were read. The
 * definition's weights for the chosen scores are known in double, far closer than anything asked here.
 */
#ifndef MLA_FUZZ_PROBE_H
#define MLA_FUZZ_PROBE_H

#include "fuzz/call.h"
#include "oracle/oracle.h"

/* Columns a score is spread over, each holding what the one before has rounded away. */
#define MLA_PROBE_PIECES 3

/*
 * Places are where a key can lie: ring (rank * kv_batch + batch) * kv_rows + row, sparse the cache row.
 * Of a thin cache (mla_case_is_thin) only the rows that are made count, and are numbered without gaps.
 * Arrays have places_n entries.
 */
struct mla_probe {
    const struct mla_kernel *kernel;
    double call_seconds;
    struct mla_tensors *tensors;
    struct mla_row row; /* the row that is looked at */
    int64_t value_n;    /* columns of the value */
    int64_t rope_n;     /* columns that are score only */
    int64_t places_n;
    int64_t *lies;       /* thin: where each place lies, rising; NULL: place i lies at i */
    int64_t visible_n;   /* keys the row attends to, copies counted */
    int64_t *times;      /* how often it attends to the key there; 0: hidden from it */
    double *case_scores; /* scale * score in the case; hidden places: the largest visible one */
    double *scores;      /* as set last */
    double *weights;     /* what the definition makes of them for one copy; 0 for hidden places */
    double *out;         /* the row's result of the last call, natural column order */
    double case_error;   /* of the case itself: max over columns of |out - o| / sum w|v| */
    double case_size;    /* sum w|v| in the column where that is */
    bool case_finite;    /* every column of that was finite */
    bool has_stats;      /* the case asks for statistics, and the kernel promises them */
    double lse_due;      /* log-sum-exp under the scores set last */
    double lse;          /* as reported by the last call; NaN without statistics */
    double max;          /* the maximum as reported by the last call */
    double case_lse_off; /* reported less due in the case */
    double case_max_off;
    int calls_n;
};

/*
 * Make ready, and call the kernel once on the case itself. The row must be one the case has, with
 * finite input. false: no memory, or the kernel did not return (error says so). In either case end it.
 */
bool mla_probe_begin(struct mla_probe *probe, const struct mla_case *test,
                     const struct mla_kernel *kernel, struct mla_row row, double call_seconds,
                     char error[MLA_CASE_ERROR_MAX]);
void mla_probe_end(struct mla_probe *probe);

/* Where a place lies, numbered as if all rows were made. */
int64_t mla_probe_lies(const struct mla_probe *probe, int64_t place);
/* The score-only columns of the key at a place, its value, and those of query row n of all. */
uint16_t *mla_probe_rope(const struct mla_probe *probe, int64_t place);
uint16_t *mla_probe_value(const struct mla_probe *probe, int64_t place);
int64_t mla_probe_queries_n(const struct mla_probe *probe);
uint16_t *mla_probe_query_rope(const struct mla_probe *probe, int64_t query);
uint16_t *mla_probe_query_value(const struct mla_probe *probe, int64_t query);
/* Number n as a row, and back. */
struct mla_row mla_probe_row(const struct mla_probe *probe, int64_t query);
int64_t mla_probe_query_number(const struct mla_probe *probe, struct mla_row row);

/* Set the scaled score of every place, nearly, and what is then exactly there: probe->scores, weights. */
void mla_probe_set_scores(struct mla_probe *probe, const double *scores);
/* Every element of every value to one number. */
void mla_probe_set_values(struct mla_probe *probe, float value);

/* Call; probe->out. false: it did not return MLA_OK. */
bool mla_probe_call(struct mla_probe *probe);
/* An element of the last call's output. */
double mla_probe_read(const struct mla_probe *probe, struct mla_row row, int64_t column);

/*
 * The effective weight of every place in the row's result, by unit vectors: value_n places a call.
 * false: too many places, or a call did not return.
 */
#define MLA_PROBE_CALLS_MAX 256
bool mla_probe_measure(struct mla_probe *probe, double *measured);

#endif
