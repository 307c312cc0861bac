/* SPDX-License-Identifier: Apache-2.0
 *
 * blame_internal.h - what the files of blame share.
 */
#ifndef MLA_FUZZ_BLAME_INTERNAL_H
#define MLA_FUZZ_BLAME_INTERNAL_H

#include "fuzz/blame.h"
#include "fuzz/probe.h"

/* Set cause and text; returns true, for `return mla_blame_say(..)`. */
__attribute__((format(printf, 3, 4))) bool
mla_blame_say(struct mla_blame *blame, enum mla_cause cause, const char *format, ...);
/* Another sentence after those there are. */
__attribute__((format(printf, 2, 3))) void mla_blame_add(struct mla_blame *blame,
                                                         const char *format, ...);

/* What the measured weight of a key says, beside the definition's. */
enum mla_blame_mark {
    MLA_MARK_RIGHT = 0, /* within tolerance of the factor common to most; or too small to say */
    MLA_MARK_MISSING,   /* visible, and less than a quarter of its weight is there */
    MLA_MARK_EXTRA,     /* hidden, and has weight */
    MLA_MARK_MORE,      /* visible, and at least half as much again */
    MLA_MARK_LESS       /* visible, somewhat too light */
};

/* Weights of all places under one choice of scores. */
struct mla_blame_weights {
    bool finite;
    double
        common; /* measured / true, of most keys: not 1 where the sum they are divided by is off */
    double total;     /* sum of all measured, copies counted once as they were read */
    int64_t n[5];     /* places by mark */
    double weight[5]; /* |measured - common * true| of those, as shares of the measured sum */
    uint8_t *marks;   /* enum mla_blame_mark, by place */
    double *measured; /* by place */
};

/* blame_weights.c: measure under the scores set in the probe and mark. false: no memory, or a call did
 * not return. Free what there is in either case. */
bool mla_blame_weights_measure(struct mla_probe *probe, struct mla_blame_weights *weights);
void mla_blame_weights_free(struct mla_blame_weights *weights);

/* blame_words.c: the places of a mark in words: "position 31", "positions 64 to 95", "all of shard 2". */
void mla_blame_name_places(const struct mla_probe *probe, const struct mla_blame_weights *weights,
                           enum mla_blame_mark mark, char text[256]);
/* "rank 1, batch 0, head 2, row 31" or "query 3, head 5". */
void mla_blame_name_row(const struct mla_probe *probe, struct mla_row row, char text[96]);

/* blame_keys.c: with equal scores every key weighs the same: which are missing, extra, twice? false: all
 * keys are right. */
bool mla_blame_keys(struct mla_probe *probe, struct mla_blame *blame);
/* blame_scores.c: with the case's own scores: are the weights right? false: yes. */
bool mla_blame_scores(struct mla_probe *probe, struct mla_blame *blame);
/* blame_scores.c: do all columns of query and key make the scores? false: yes, or that cannot be told. */
bool mla_blame_score_columns(struct mla_probe *probe, struct mla_blame *blame);
/* blame_maps.c: is the row another's, are columns moved? false: no. */
bool mla_blame_rows(struct mla_probe *probe, struct mla_blame *blame);
bool mla_blame_columns(struct mla_probe *probe, struct mla_blame *blame);

#endif
