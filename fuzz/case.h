/* SPDX-License-Identifier: Apache-2.0
 *
 * case.h - a test case: parameters of one call, a recipe for its tensors, and the rows to judge.
 *
 * A case is one canonical text line, "op v=1 key=value ...", every field present and in fixed
 * order; its SHA-256 is its id. The same line is the byte form the fuzz engines mutate: any bytes
 * decode to some case (a line to itself, anything else to a draw from those bytes), so corpora stay
 * readable and old lines stay replayable: a field added later comes with a new version and a
 * default for the old.
 */
#ifndef MLA_FUZZ_CASE_H
#define MLA_FUZZ_CASE_H

#include "fuzz/number.h"
#include "impl/mla.h"

#define MLA_CASE_VERSION   3    /* the newest; a case is written in the oldest that can say it */
#define MLA_CASE_LINE_MAX  2048 /* bytes of the longest canonical line, with its terminator */
#define MLA_CASE_ID_BYTES  65   /* SHA-256 in hex, with its terminator */
#define MLA_CASE_SET_MAX   2
#define MLA_CASE_PUT_MAX   8
#define MLA_CASE_ERROR_MAX 512

enum mla_op { MLA_OP_RING = 0, MLA_OP_SPARSE = 1, MLA_OP_N };

/* The score regions a family may be asked for; which family knows which: family.c. */
enum mla_region {
    MLA_REGION_NONE = 0,
    MLA_REGION_NORMAL,       /* N(0,1) */
    MLA_REGION_OUTLIER,      /* N(0,1) + 10*N(0,1)*Bernoulli(0.001) */
    MLA_REGION_RAMP,         /* values rising along rows and columns */
    MLA_REGION_FLAT,         /* all scores equal */
    MLA_REGION_GEOMETRIC,    /* weights falling by a constant factor */
    MLA_REGION_FIRST,        /* one dominant key: the first */
    MLA_REGION_LAST,         /* .. the last */
    MLA_REGION_EDGE,         /* .. at every block edge */
    MLA_REGION_RISING,       /* block maxima rising by `amount` bits a block */
    MLA_REGION_FALLING,      /* falling by more than 88 a block */
    MLA_REGION_HALF,         /* second half 100 above the first */
    MLA_REGION_DEEP,         /* all scores below -1e4 * amount */
    MLA_REGION_UNDER,        /* row maximum in -86 .. -110 */
    MLA_REGION_SPREAD,       /* -88 .. -110 under one dominant key */
    MLA_REGION_EQUAL_MAXIMA, /* equal maxima across shards */
    MLA_REGION_CLUSTERS,     /* clusters of exactly equal scores */
    MLA_REGION_SELECT,       /* one key above all others by > 104/scale, another for each row */
    MLA_REGION_TINY,         /* from here on family extreme, which has them explained */
    MLA_REGION_SUBNORMAL,
    MLA_REGION_HUGE,
    MLA_REGION_COPIES,
    MLA_REGION_BINADE,
    MLA_REGION_STAIRS,
    MLA_REGION_ONE_EDGE,  /* one dominant key: the first or last of some block, or of some shard */
    MLA_REGION_LOFTY,     /* all scores above 1e4 * amount, and near one another */
    MLA_REGION_SUNK,      /* all scores below -1e4 * amount, and near one another */
    MLA_REGION_SATURATED, /* one key in 16 at 1e3 .. 1e5 (or minus that), the rest 120 below */
    MLA_REGION_ABYSS,     /* a key in each shard 9e6 and more above all others */
    MLA_REGION_RAW,       /* products beyond 65504 before scaling: as a whole, or on the way */
    MLA_REGION_HEADS,     /* every head has scores of its own: rising, falling */
    MLA_REGION_ZEROS,     /* from here on family special, which has them explained */
    MLA_REGION_TIES,
    MLA_REGION_CANCEL,
    MLA_REGION_LARGE,
    MLA_REGION_LARGEST,
    MLA_REGION_ONES,
    MLA_REGION_FAINT,
    MLA_REGION_BENEATH,
    MLA_REGION_CHASM,    /* family profile: one key in 16 lies 9e6 and more below the others */
    MLA_REGION_CREEPING, /* family profile: each block raises a large maximum by a 2000th or so */
    MLA_REGION_N
};

/* How the sparse operation's index list is made. */
enum mla_indices {
    MLA_INDICES_UNIFORM = 0, /* any rows, repeats possible */
    MLA_INDICES_DISTINCT,    /* distinct where the cache is large enough */
    MLA_INDICES_SORTED,      /* distinct and increasing */
    MLA_INDICES_REVERSED,    /* distinct and decreasing */
    MLA_INDICES_CAUSAL,  /* the public test's recipe: even positions up to the row, padded with 0 */
    MLA_INDICES_ONE_ROW, /* all the same row */
    MLA_INDICES_FEW_ROWS, /* three rows, many copies */
    MLA_INDICES_REPEAT,   /* the first block again in every block */
    MLA_INDICES_EDGES,    /* first and last cache row */
    MLA_INDICES_ODD_ONE,  /* one row once, another everywhere else */
    MLA_INDICES_LEADING,  /* the first block of 128 from the upper half of the cache, the rest from
                             the lower: with q_pos_offset a whole leading block is dropped */
    MLA_INDICES_INTERIOR, /* likewise every block but the first and last */
    MLA_INDICES_TRAILING, /* likewise the last block */
    MLA_INDICES_ENDS,     /* rows within 64 of either end of the cache */
    MLA_INDICES_N
};

/* What lies where nothing may be read. */
enum mla_poison {
    MLA_POISON_NAN = 0,
    MLA_POISON_INF,
    MLA_POISON_HUGE,  /* +-largest finite */
    MLA_POISON_NOISE, /* ordinary finite values, scaled by 100 */
    MLA_POISON_MIXED,
    MLA_POISON_N
};

/* One rule broken on purpose: an argument field replaced after the tensors were made. */
struct mla_violation {
    char field[32]; /* ABI field, "kv[1]", or "topk_indices" */
    int64_t at;     /* flat list position for topk_indices, else 0 */
    char value[32]; /* decimal, %a, nan, inf, or "null" */
};

/* One element replaced. tensor: "q", "kv", "q_lift", ... */
struct mla_override {
    char tensor[16];
    int64_t rank;
    int64_t at;    /* flat element */
    uint32_t bits; /* bf16 pattern, or a top-k index as two's complement */
};

struct mla_case {
    int32_t op; /* enum mla_op */
    int64_t version;
    struct mla_ring_args ring;     /* op ring: parameters, all pointers NULL */
    struct mla_sparse_args sparse; /* op sparse: likewise */

    int32_t family;  /* index into mla_families() */
    int32_t region;  /* enum mla_region */
    int64_t amount;  /* the family's strength parameter */
    int32_t indices; /* enum mla_indices, sparse only */
    int32_t poison;  /* enum mla_poison */
    int32_t has_future;
    int64_t future; /* keys at positions >= this are poisoned although later rows see them */
    int32_t stats;  /* ask for the statistics output */
    uint64_t seed;  /* of every tensor */
    int64_t rows;   /* rows to judge, drawn by row_seed. n > 0: (head, query row) pairs; n < 0: -n
                       query rows with all their heads; 0: all */
    uint64_t row_seed;
    int32_t slow; /* production size: only run when asked for */

    struct mla_violation set[MLA_CASE_SET_MAX];
    size_t set_n;
    struct mla_override put[MLA_CASE_PUT_MAX];
    size_t put_n;
    int64_t bits; /* significand bits that the recipe's finite inputs keep, 1 .. 8; 8: all of them.
                     Less is what version 2 of the line can say */
    char data[MLA_CASE_ID_BYTES]; /* SHA-256 of a file that holds the inputs (data_file.h), in hex;
                                     "": made by the recipe. Version 3 */
};

#define MLA_CASE_BITS_ALL 8 /* of a bf16, the leading one counted */

/* A valid smallest case of an operation: one tile, one head, family upstream. */
void mla_case_init(struct mla_case *test, enum mla_op op);

/* Canonical line, no newline; returns its length (always < MLA_CASE_LINE_MAX). */
size_t mla_case_format(const struct mla_case *test, char line[MLA_CASE_LINE_MAX]);

/*
 * Parse a canonical line. Only the canonical spelling is accepted (a line that says the same in
 * other words has another id). Returns MLA_OK, or MLA_ERR_PARAM with error naming the field, its
 * text and the rule; *test is then unspecified. Whether the call it describes is valid is another
 * question: mla_case_problem.
 */
int32_t mla_case_parse(const char *line, size_t line_bytes, struct mla_case *test,
                       char error[MLA_CASE_ERROR_MAX]);

/*
 * NULL when the case can be run: the call is accepted by the definition (or, with set=, refused),
 * family and region fit, the tensors fit in max_bytes. Otherwise the reason, in error.
 */
const char *mla_case_problem(const struct mla_case *test, int64_t max_bytes,
                             char error[MLA_CASE_ERROR_MAX]);

/* SHA-256 of the canonical line, in hex. */
void mla_case_id(const struct mla_case *test, char id[MLA_CASE_ID_BYTES]);

/*
 * A cache of more than 2^31 - 1 elements (ring: kv of every rank; sparse: c_kv, and k_pe with it) is
 * thin: only the rows that the call may read, and their neighbours, are made and watched. All others
 * are address space without memory: they read as zeros, and a write to them is not noticed. So
 * offsets that do not fit 32 bits are met at the cost of a small case.
 */
bool mla_case_is_thin(const struct mla_case *test);
/* Address space of the caches of a thin case, the most that is mapped for one, and rows behind
 * and before a row that count as its neighbours (ring: slots beside the slot). */
int64_t mla_case_cache_bytes(const struct mla_case *test);
#define MLA_CASE_CACHE_MAX  ((int64_t)1 << 36)
#define MLA_CASE_NEIGHBOURS 1

/* Bytes of all tensors (thin ones: of the rows that are made), and multiply-adds of one call (an
 * upper bound); saturating. */
int64_t mla_case_bytes(const struct mla_case *test);
/* Bytes of the truths of all judged rows, which are held at once (an upper bound); saturating. */
int64_t mla_case_truth_bytes(const struct mla_case *test);
int64_t mla_case_work(const struct mla_case *test);

/* Set `bits` or `data`, and the version of the line that says it. */
void mla_case_set_bits(struct mla_case *test, int64_t bits);
void mla_case_set_data(struct mla_case *test, const char *data);

/* Columns of a key, columns that serve as value, and the scale in force. */
int64_t mla_case_width(const struct mla_case *test);
int64_t mla_case_value_width(const struct mla_case *test);
float mla_case_scale(const struct mla_case *test);

/*
 * Fuzzing cases are small, but for one seed in 64: long lists, many heads, tall and huge tensors
 * must be met too, at a rate that leaves the small cases their time.
 */
#define MLA_LARGE_SEEDS 64
bool mla_case_may_be_large(const struct mla_case *test);
/* Likewise one seed in 16: sparse lists of up to 640 keys, balanced shards of twice 96 rows. A large
 * case is medium, too. */
#define MLA_MEDIUM_SEEDS 16
bool mla_case_may_be_medium(const struct mla_case *test);
/*
 * Draw a valid case: geometry and data weighted toward the places where such kernels fail, small
 * enough to run in milliseconds. The draw depends on the stream only.
 */
void mla_case_draw(struct mla_case *test, enum mla_op op, struct mla_rng *rng);
/* Break one rule (sometimes two) of a drawn case. */
void mla_case_draw_violation(struct mla_case *test, struct mla_rng *rng);
/* Make a case valid again after fields were changed: nearest legal values, small enough to run. */
void mla_case_fix(struct mla_case *test);
/* Change a few fields, or cross with another case; the result is valid. */
void mla_case_mutate(struct mla_case *test, struct mla_rng *rng);
void mla_case_cross(struct mla_case *test, const struct mla_case *other, struct mla_rng *rng);

/*
 * Total decoding: a canonical, valid, small enough line of this operation is that case, any other
 * bytes seed a draw. reject: the case is one with violations. Never fails.
 */
void mla_case_decode(const uint8_t *bytes, size_t bytes_n, enum mla_op op, bool reject,
                     struct mla_case *test);

#endif
