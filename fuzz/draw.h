/* SPDX-License-Identifier: Apache-2.0
 *
 * draw.h - what drawing and mutating cases share: the weights, and the lengths at which things change.
 */
#ifndef MLA_FUZZ_DRAW_H
#define MLA_FUZZ_DRAW_H

#include "fuzz/case.h"
#include "fuzz/family.h"

/* ---- weights: draw_weights.c ---- */

/* Every weighted choice among fixed values; what the values are is said in the table. */
enum mla_choice {
    MLA_CHOICE_RING_SIZE,
    MLA_CHOICE_RING_SIZE_WIDE,
    MLA_CHOICE_RING_LARGE,
    MLA_CHOICE_RING_BATCH,
    MLA_CHOICE_RING_HEADS,
    MLA_CHOICE_RING_WIDTHS,
    MLA_CHOICE_RING_WIDTHS_LARGE,
    MLA_CHOICE_RING_Q_TILES,
    MLA_CHOICE_RING_Q_CHUNK_TILES,
    MLA_CHOICE_RING_K_CHUNK_TILES,
    MLA_CHOICE_RING_MODE,
    MLA_CHOICE_RING_SLABS,
    MLA_CHOICE_RING_SLABS_LONG,
    MLA_CHOICE_RING_TOPOLOGY,
    MLA_CHOICE_RING_LINKS,
    MLA_CHOICE_RING_THREADS,
    MLA_CHOICE_RING_SPARE_ROWS,
    MLA_CHOICE_RING_SLOT,
    MLA_CHOICE_RING_SLOTS,
    MLA_CHOICE_RING_LENGTH,
    MLA_CHOICE_RING_LENGTH_CHUNKED,
    MLA_CHOICE_RING_PRIOR,
    MLA_CHOICE_RING_FRESH,
    MLA_CHOICE_SPARSE_QUERIES,
    MLA_CHOICE_SPARSE_QUERIES_FEW,
    MLA_CHOICE_SPARSE_QUERIES_DROPPED,
    MLA_CHOICE_SPARSE_TOPK,
    MLA_CHOICE_SPARSE_HEADS,
    MLA_CHOICE_SPARSE_ROPE,
    MLA_CHOICE_SPARSE_KEYS,
    MLA_CHOICE_SPARSE_KEYS_HUGE,
    MLA_CHOICE_SPARSE_OFFSET,
    MLA_CHOICE_SPARSE_ORDER,
    MLA_CHOICE_SPARSE_THREADS,
    MLA_CHOICE_SPARSE_LARGE,
    MLA_CHOICE_SPARSE_MEDIUM,
    MLA_CHOICE_INDICES,
    MLA_CHOICE_ROWS,
    MLA_CHOICE_NEAR,
    MLA_CHOICE_MUTATION,
    MLA_CHOICE_N
};

enum mla_ring_mode {
    MLA_MODE_CONTIGUOUS,
    MLA_MODE_BALANCED,
    MLA_MODE_CHUNKED,
    MLA_MODE_ROTATED,
    MLA_MODE_SPLIT /* rotated, P inside a rank's rows */
};
enum mla_ring_large {
    MLA_RING_WIDE,
    MLA_RING_MANY_HEADS,
    MLA_RING_FULL_WIDTH,
    MLA_RING_STRADDLING
};
#define MLA_DEEP_KEYS ((int64_t)4224)
enum mla_ring_slot { MLA_SLOT_NONE, MLA_SLOT_FEW, MLA_SLOT_HUGE };
#define MLA_THREADS_MAX 65 /* more than most kernels have places for */
enum mla_ring_threads { MLA_THREADS_RANKS = -1, MLA_THREADS_ONE_MORE = -2, MLA_THREADS_TWICE = -3 };
enum mla_sparse_large {
    MLA_SPARSE_LONG,
    MLA_SPARSE_MANY_HEADS,
    MLA_SPARSE_DEEP, /* one row of more than 4096 keys */
    MLA_SPARSE_TALL,
    MLA_SPARSE_STAIRS, /* dense, each row one key more than the last */
    MLA_SPARSE_WIDE_CACHE,
    MLA_SPARSE_PAIR /* two rows of two blocks, on a core each */
};

/* One value of a choice, by its weights. */
int64_t mla_draw_choice(struct mla_rng *rng, enum mla_choice choice);

/* Sets family, region and amount. */
void mla_draw_recipe(struct mla_case *test, struct mla_rng *rng);

/* With what probability, of 1024, the rarer things happen. */
extern const struct mla_draw_chances {
    int32_t ring_long;     /* more than 512 keys a row */
    int32_t future;        /* keys a row must not see are NaN */
    int32_t default_scale; /* scale absent */
    int32_t extreme_scale; /* of 2^-149 to 2^128 */
    int32_t extreme_chunk; /* a chunk of more than 2^31 rows */
    int32_t aim;           /* a row at an edge is judged, where not all are */
    int32_t sparse_huge;   /* a cache beyond 2^31 elements */
    int32_t sparse_dense;
    int32_t long_is_flat;   /* weights of a long row are equal */
    int32_t long_creeps;    /* .. or creeping, of those that are not flat */
    int32_t second_rule;    /* a refused call breaks two rules */
    int32_t tall_list;      /* .. or one of a list of more than 128 rows */
    int32_t sparse_dropped; /* q_pos_offset leaves a row few keys, and room for many rows */
} mla_draw_chances;

bool mla_draw_chance(struct mla_rng *rng, int32_t of_1024);

/* ---- edges: draw_edges.c ---- */

/* The lengths at which a case's geometry changes. */
enum mla_edge {
    MLA_EDGE_ONE,
    MLA_EDGE_TILE,
    MLA_EDGE_TWO_TILES,
    MLA_EDGE_Q_CHUNK,
    MLA_EDGE_K_CHUNK,
    MLA_EDGE_RING_TILES,     /* ring_size * 32 */
    MLA_EDGE_TWO_RING_TILES, /* 2 * ring_size * 32 */
    MLA_EDGE_SHARD,          /* kv_rows */
    MLA_EDGE_TWO_SHARDS,
    MLA_EDGE_LAST_SHARD, /* where the last rank's keys begin */
    MLA_EDGE_RANK,       /* q_rows */
    MLA_EDGE_SLAB,       /* ring_size * q_rows */
    MLA_EDGE_SOME_SLAB,  /* some multiple of it */
    MLA_EDGE_SOME_RANK,  /* some multiple of q_rows */
    MLA_EDGE_SOME_CHUNK, /* some multiple of k_chunk_size */
    MLA_EDGE_CAPACITY,   /* ring_size * kv_rows */
    MLA_EDGE_ANY,        /* anything up to that */
    /* sparse */
    MLA_EDGE_TWO,
    MLA_EDGE_LIST,    /* topk */
    MLA_EDGE_BLOCK,   /* 128 */
    MLA_EDGE_KEYS,    /* keys, the last legal offset that drops nothing, and one less */
    MLA_EDGE_HALF,    /* half of keys */
    MLA_EDGE_QUERIES, /* queries */
    MLA_EDGE_ZERO,
    MLA_EDGE_FOREVER, /* INT64_MAX */
    MLA_EDGE_INT      /* the last of an int and the first beyond, of an unsigned one, too */
};

int64_t mla_edge_ring(const struct mla_ring_args *args, enum mla_edge edge, struct mla_rng *rng);
int64_t mla_edge_sparse(const struct mla_sparse_args *args, enum mla_edge edge,
                        struct mla_rng *rng);

/* ---- the parts of a draw ---- */

void mla_draw_ring(struct mla_case *test, struct mla_rng *rng);
void mla_draw_sparse(struct mla_case *test, struct mla_rng *rng);
/* kv_actual_isl and logical_n of a call with rotation, from ring_size, q_rows, kv_rows and chunks. */
void mla_draw_rotation(struct mla_ring_args *args, struct mla_rng *rng);
/* A factor as models have it, or any of 24 bits from 2^-10 to 2^5. */
float mla_draw_scale(struct mla_rng *rng);
/* The ends of what a factor may be, with data that give scores under it. */
float mla_draw_extreme_scale(struct mla_case *test, struct mla_rng *rng);
/* Another row_seed that draws, mostly, a row at which something changes. */
void mla_draw_aim(struct mla_case *test, struct mla_rng *rng);
/* A row that sees a future key has no value: let the future begin behind one of the rows that are
 * judged at least, or the case would judge nothing. */
void mla_draw_leave_a_row(struct mla_case *test);

/* ---- broken rules: draw_rules.c, draw_violation.c ---- */

/* A field and values of it that may break a rule of a call: a text of words separated by spaces, or
 * (NULL) one number. */
struct mla_breakage {
    int32_t weight;
    const char *field; /* "q[0]" stands for any rank */
    const char *values;
    int64_t value;
};
#define MLA_BREAKAGES_MAX  96
#define MLA_BREAKAGE_INDEX "index" /* for values: an entry of the list that is no cache row */

/* All that drawing knows for a call; returns how many. */
size_t mla_draw_breakages(const struct mla_case *test, struct mla_breakage list[MLA_BREAKAGES_MAX]);

/* Does this alone make the call, otherwise valid, one that must be refused? */
bool mla_draw_breaks_a_rule(const struct mla_case *test, const struct mla_violation *v);
/* One that by itself makes the call, otherwise valid, one to refuse. */
void mla_draw_broken_rule(const struct mla_case *test, struct mla_violation *v,
                          struct mla_rng *rng);
/* The same field with another value, or at another place (rank, list position). false: v is as it
 * was, because the change found would break nothing. */
bool mla_draw_other_value(const struct mla_case *test, struct mla_violation *v,
                          struct mla_rng *rng);
bool mla_draw_other_place(const struct mla_case *test, struct mla_violation *v,
                          struct mla_rng *rng);

/* ---- the parts of a mutation ---- */

/* Add, change, move or drop one replaced element. */
void mla_mutate_put(struct mla_case *test, struct mla_rng *rng);
/* The replaced elements of `from` for the shape of *test: those that have a place in it. */
void mla_carry_put(struct mla_case *test, const struct mla_case *from);
/* Change a broken rule's value or place, or break another one beside it or instead. */
void mla_mutate_set(struct mla_case *test, struct mla_rng *rng);

#endif
