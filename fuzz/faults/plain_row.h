/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_row.h - attention of one (head, query row) over an explicit list of keys.
 *
 * Both plain kernels first write down which keys a row sees, in visiting order and with the tile
 * each belongs to, and then come here. Who sees what and how it is summed are thereby two separate
 * things, and so are the faults planted in them.
 */
#ifndef MLA_FAULTS_PLAIN_ROW_H
#define MLA_FAULTS_PLAIN_ROW_H

#include "fuzz/faults/plain.h"

struct mla_plain_key {
    const uint16_t *value; /* the columns that are key and value */
    const uint16_t *rope;  /* the columns that are key only */
    int64_t tile;          /* neighbours with equal numbers form one tile */
    bool hidden;           /* none of the row's keys: only listed where a fault masks hidden keys
                              instead of leaving them out (plain_mask.c) */
};

/* The state of a row under way. Faults leave things here that an honest row never looks at. */
struct mla_plain_run {
    float scale;      /* in use */
    float last_shift; /* unscaled maximum of the row before */
    float sum_excess; /* what the last rescale took from the sum */
    int64_t tiles_n;  /* tiles done */
};

struct mla_plain_row {
    const struct mla_plain_key *keys;
    int64_t keys_n;
    int64_t value_n; /* columns of value */
    int64_t rope_n;  /* columns of rope */
    float scale;
    int64_t head;           /* 0 first: heads of a row are attended one after the other */
    int64_t parts_n;        /* MERGED: parts that a row is made of, each merged once */
    int64_t tiles_per_part; /* MERGED: tile / tiles_per_part is a key's part */
    float *parts;           /* MERGED: scratch, mla_plain_parts_floats */
    float *scores;          /* scratch, keys_n */
    float *head_factors;    /* scratch, keys_n: rescale factors of head 0, kept from head to head */
    float *o;               /* result, value_n: +0 when there are no keys */
    float max;              /* result: maximum of scale*score; -inf when there are no keys */
    float sum;              /* result: sum of exp(scale*score - max); +0 when there are no keys */
    int64_t seen_n;         /* keys since the row was begun */
    struct mla_plain_run run;
};

/*
 * o[l] = sum_j softmax_j(scale * <q, key_j>) * value_j[l] by the variant's method, in float32.
 * q_value and q_rope are the query's halves. Cannot fail; reads nothing but the query and the
 * listed keys.
 */
void mla_plain_row_attend(struct mla_plain_row *row, const uint16_t *q_value,
                          const uint16_t *q_rope, struct mla_plain_variant variant);

/*
 * The same in steps, for methods that go online: begin, the listed keys as often as some come, end.
 * Keys of one tile come in one list.
 */
void mla_plain_row_begin(struct mla_plain_row *row);
void mla_plain_row_add(struct mla_plain_row *row, const uint16_t *q_value, const uint16_t *q_rope,
                       struct mla_plain_variant variant);
void mla_plain_row_end(struct mla_plain_row *row, struct mla_plain_variant variant);

/*
 * MLA_PLAIN_MERGED (plain_merge.c): every part of a row by itself, from its scores, then merged. On
 * return max is unscaled and o not yet divided by sum.
 */
size_t mla_plain_parts_floats(int64_t parts_n, int64_t columns_n);
void mla_plain_merge(struct mla_plain_row *row, struct mla_plain_variant variant);

/* What a ring call without a scale means: 1/sqrt(head_dim). */
float mla_plain_default_scale(const struct mla_ring_args *args, struct mla_plain_variant variant);

#endif
