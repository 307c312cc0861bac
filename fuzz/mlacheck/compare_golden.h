/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_golden.h - what the files of `mlacheck compare --golden` share: the cases of its sets, and what a side
 * says of each kernel on them.
 *
 * What a golden row says is the same on every machine that can run the kernel, so a side of several machines
 * (a merged database) is summed up for each instruction set, and each sum is held against the row.
 */
#ifndef MLA_MLACHECK_COMPARE_GOLDEN_H
#define MLA_MLACHECK_COMPARE_GOLDEN_H

#include "fuzz/case_fields.h"
#include "fuzz/mlacheck/compare.h"
#include "fuzz/mlacheck/golden.h"

/* A case of a set. */
struct mla_set_member {
    char id[MLA_CASE_ID_BYTES];
    int32_t op;
    int set;
};
struct mla_golden_sets {
    int n;
    char names[MLA_OPTIONS_LIST_MAX][64];
    int64_t sizes[MLA_OPTIONS_LIST_MAX][MLA_OP_N];
    char cases_ids[MLA_OPTIONS_LIST_MAX][MLA_OP_N][13];
    size_t members_n;
    struct mla_set_member *members; /* by id */
};

/* A kernel on the cases of a set and operation, by builds for one instruction set. */
struct mla_golden_sum {
    struct mla_golden_row row;
    char *isa;
    bool is_unusable;  /* no case could be run on that CPU */
    bool is_whole;     /* every case of the set was judged */
    int64_t due;       /* cases of the set */
    int64_t unusable;  /* cases that this CPU cannot run */
    int64_t rounded_n; /* cases in the mean */
    uint64_t bits;
    bool no_bits;  /* of some case that passed */
    bool unsteady; /* .. or other ones in each run */
};
struct mla_golden_summary {
    struct mla_compare *c;
    struct mla_golden_sets sets;
    struct mla_golden golden; /* the file */
    size_t n, room;
    struct mla_golden_sum *sums;
    int64_t sanitized; /* verdicts left out */
};

/* compare_golden_sets.c: the cases that the options name; 0, or an exit code after complaining. */
int mla_golden_sets_read(const struct mla_options *options, struct mla_golden_sets *sets);
void mla_golden_sets_free(struct mla_golden_sets *sets);
/* The first member of that case, or members_n; others of it follow. */
size_t mla_golden_sets_find(const struct mla_golden_sets *sets, const char *id);
/* MLA_OP_RING or MLA_OP_SPARSE, by its name. */
int mla_golden_op(const char *name);

/* compare_golden_sum.c: sum up side B; an error is left in c->code. */
void mla_golden_sum_up(struct mla_golden_summary *s);
void mla_golden_sums_free(struct mla_golden_summary *s);
/* Is the kernel one that the options name: by --kernel, or built in, or in the file? */
bool mla_golden_is_wanted(const struct mla_golden_summary *s, const char *kernel);

#endif
