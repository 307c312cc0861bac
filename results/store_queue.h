/* SPDX-License-Identifier: Apache-2.0
 *
 * store_queue.h - what is buffered between two flushes: deep copies of verdicts, merged tallies.
 *
 * Everything that the schema would refuse is refused before it is queued: one bad row must not keep
 * the good ones of its batch from being written.
 */
#ifndef MLA_RESULTS_STORE_QUEUE_H
#define MLA_RESULTS_STORE_QUEUE_H

#include "results/store.h"

#define MLA_QUEUE_ROWS 256       /* flush at so many rows .. */
#define MLA_QUEUE_NS   500000000 /* .. or so long after the last attempt to write */

/* A tally stops here (2^53): sums of many cannot overflow, and JSON readers keep every digit. */
#define MLA_TALLY_MAX INT64_C(9007199254740992)

struct mla_queued_verdict {
    int64_t run;
    struct mla_store_verdict verdict; /* its pointers lead into the same allocation */
    struct mla_store_case testcase;
    struct mla_store_metric metrics[];
};

struct mla_queued_tally {
    int64_t run;
    char *op, *kernel, *family, *verdict; /* one allocation, op first */
    int64_t n;
    double max_ratio;
};

struct mla_queue {
    struct mla_queued_verdict **verdicts;
    size_t verdicts_n, verdicts_room;
    struct mla_queued_tally *tallies;
    size_t tallies_n, tallies_room;
    size_t fresh_n;   /* rows since the last attempt to write */
    int64_t tried_ns; /* monotonic time of that attempt, or of opening */
};

/* OK when the schema will take the verdict; else ERR_WRITE, the message naming field and value. */
int32_t mla_queue_check_verdict(struct mla_store *store, const struct mla_store_verdict *verdict);
int32_t mla_queue_check_tally(struct mla_store *store, const char *op, const char *kernel,
                              const char *verdict, int64_t n);
/* Does the verdict make a finding? */
bool mla_queue_is_failure(const char *verdict);
void mla_queue_clear(struct mla_queue *queue);
int64_t mla_queue_clock_ns(void);

#endif
