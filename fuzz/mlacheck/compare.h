/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.h - what the files of `mlacheck compare` share: two sides, what moved, and who is who.
 */
#ifndef MLA_MLACHECK_COMPARE_H
#define MLA_MLACHECK_COMPARE_H

#include "fuzz/mlacheck/options.h"
#include "fuzz/mlacheck/progress.h"
#include "fuzz/rank_test.h"
#include "results/store_side.h"

#define MLA_COMPARE_SHOWN    20 /* items of one kind, without --verbose */
#define MLA_COMPARE_RUNS_MIN 6  /* of each side, or no distribution is compared */
#define MLA_COMPARE_LEVEL                                                                          \
    0.01 /* below this chance a shift is told: one test in a hundred, if nothing moved */

/* What became of a case and kernel. */
enum mla_moved {
    MLA_MOVED_REGRESSION = 0, /* passed in A, fails in B */
    MLA_MOVED_NEW_FAILURE, /* fails in B; A did not judge it. A regression if the kernel passed some in A and failed none */
    MLA_MOVED_FIXED,    /* failed in A, passes in B */
    MLA_MOVED_LOST,     /* judged in A, in B unjudged or unsupported */
    MLA_MOVED_APART,    /* failed in A by a relation that B did not look at */
    MLA_MOVED_UNSTEADY, /* runs of one clean commit disagree */
    MLA_MOVED_BITS,     /* passed twice, with other output bits */
    MLA_MOVED_N
};

/* One of them; texts are its own. */
struct mla_moved_item {
    enum mla_moved moved;
    char id[13];
    size_t group;
    const char *before, *after;   /* verdicts, static; NULL: not in that side */
    double ratios[2];             /* err/B; negative: none */
    int64_t judged[2], failed[2]; /* how often in each side, and how often it failed */
    const char *unseen; /* a relation that failed in one side and the other did not look at; NULL */
    char *reason, *repro; /* of B; NULL: none */
};

/* A kernel on an operation in one kind of build. [0]: A, [1]: B. */
struct mla_compare_group {
    char *op, *kernel, *sanitizer, *isa;
    char files[2][MLA_STORE_FILE_BYTES]; /* of a plug-in: the hash of its file; "": none known */
    int64_t paired, only[2];
    int64_t passed[2], failed[2]; /* of all, paired or not; passed: refused as due too */
    int64_t same_bits, no_bits;   /* of those that passed twice: equal; unknown or not steady */
    int64_t count[MLA_MOVED_N];   /* items */
    double worst[2];              /* err/B; negative: none */
    char worst_id[2][13];
    double worst_before; /* A's err/B of B's worst case; negative: A has none */
};

/* A statistic of a group in the runs of a side, newest first. */
struct mla_compare_sample {
    char *op, *kernel, *sanitizer, *isa, *name;
    size_t runs_n; /* those kept */
    double values[MLA_RANK_TEST_MAX];
    int64_t cases_min, cases_max; /* of a run */
};
struct mla_compare_samples {
    size_t n, room;
    struct mla_compare_sample *list;
    bool failed; /* out of memory */
};

struct mla_compare {
    struct mla_options options;
    struct mla_progress progress;
    const char *names[2]; /* as given */
    struct mla_store *stores[2];
    struct mla_store_side *sides[2];
    size_t groups_n, groups_room;
    struct mla_compare_group *groups;
    size_t items_n, items_room;
    struct mla_moved_item *items;
    struct mla_compare_samples samples[2];
    int code; /* of an error that ends it */
};

/* compare_walk.c: both sides next to each other; fills groups and items. */
void mla_compare_walk(struct mla_compare *c);
void mla_compare_free(struct mla_compare *c);

/* compare_shift.c: the medians of runs, where a side has runs enough. */
void mla_compare_collect(struct mla_compare *c);
/* A's sample against B's of the same statistic. */
struct mla_compare_shift {
    const struct mla_compare_sample *samples[2];
    size_t runs[2];
    double medians[2];
    struct mla_rank_test test;
    bool is_told; /* below MLA_COMPARE_LEVEL */
};
/* The next pair with runs enough to say anything, from *at (first 0) on; false: there are no more. */
bool mla_compare_next_shift(const struct mla_compare *c, size_t *at,
                            struct mla_compare_shift *shift);

/* compare_count.c */
struct mla_moved_word {
    const char *word, *plural; /* of a line; of a count in JSON */
    const char *what;          /* of the count, for people */
};
extern const struct mla_moved_word mla_moved_words[MLA_MOVED_N];
/* Is the item a reason to exit with 1? After the walk. */
bool mla_compare_is_regression(const struct mla_compare *c, const struct mla_moved_item *item);
int64_t mla_compare_count_regressions(const struct mla_compare *c);
/* Is it a plug-in whose file is another one in B? */
bool mla_compare_is_rebuilt(const struct mla_compare_group *g);
/* Items of all groups. */
int64_t mla_compare_count(const struct mla_compare *c, enum mla_moved moved);
/* Both sides judged it, and B has an error that A never had. NaN is worse than anything. */
bool mla_compare_is_new_worst(const struct mla_compare_group *g);

/* compare_report.c: everything that was found; the exit code. */
int mla_compare_report(const struct mla_compare *c);
/* compare_json.c */
void mla_compare_print_json(const struct mla_compare *c, int64_t paired, int64_t regressions);

/* compare.c: a side's database or run; 0, or an exit code after complaining. */
int mla_compare_open(struct mla_compare *c, int side, const char *word);
/* With the store's message. */
int mla_compare_store_failed(struct mla_compare *c, int side);

/* compare_golden.c: one side against the golden file, or into it. */
int mla_compare_golden(struct mla_compare *c);

#endif
