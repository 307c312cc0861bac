/* SPDX-License-Identifier: Apache-2.0
 *
 * store_side.h - one side of a comparison: what some of a database's runs say of each case and kernel.
 *
 * Rows come in the order of case id, kernel, sanitizer and instruction set, so that two sides can be walked
 * next to each other and a row of one without its like in the other be seen. Builds of another sanitizer or
 * instruction set compute on other paths: they are rows of their own.
 *
 * Where several runs of a side judged the same, the latest counts, and with it the others of the same clean
 * commit: the gravest of their verdicts, so that who failed once failed. A changed work tree has no name, so of
 * its runs only the latest counts; and of a plug-in only runs of the same file do.
 */
#ifndef MLA_RESULTS_STORE_SIDE_H
#define MLA_RESULTS_STORE_SIDE_H

#include "results/store.h"

struct mla_store_side;

/* Texts live until the next row. */
struct mla_side_row {
    const char *id, *op, *family, *kernel, *sanitizer, *isa;
    const char *verdict;  /* the gravest, and of its latest run: */
    const char *reason;   /* may be "" */
    const char *relation; /* that it is about; "": the plain verdict */
    int64_t run, number;  /* its run; its verdict's number, for mla_store_side_figure */
    double max_ratio;     /* the worst of all that count; inf, NaN; negative: none */
    double output_hash; /* of the outputs; 0: none was stored; -1: not the same in all that count */
    int64_t relations;  /* bits of those that were looked at in any that counts; -1: not stored */
    int64_t runs_n;     /* how many count */
    int64_t judged_n, failed_n; /* verdicts of them that judge; of these, that failed */
    bool is_steady; /* runs gave the same verdict, and all that judge passed, or failed */
};

/* What a side is made of. */
struct mla_side_facts {
    int64_t runs_n, first_run, last_run;
    int64_t commits_n;  /* distinct ones, a changed tree apart */
    const char *commit; /* of the last run, "-dirty" appended; lives as long as the side */
    int64_t cut_off_n;  /* runs without an end: interrupted, killed, or at work still */
    int64_t tallied;    /* cases counted without a row: they cannot be compared */
};

/*
 * Open a side. spec: NULL for everything stored; the number of a run; the beginning of a commit (>= 4 hex
 * digits), its clean runs, or with "-dirty" appended those of its changed trees. A number that is a run is one.
 * NOT_FOUND and AMBIGUOUS as of keys, with a message in the store. The store must outlive the side, and not be
 * written through while there is one. All that a side says is of the moment when it was opened: other processes
 * may write meanwhile, and are not held up.
 */
int32_t mla_store_side_open(struct mla_store *store, const char *spec,
                            struct mla_store_side **side);
void mla_store_side_close(struct mla_store_side *side);
struct mla_side_facts mla_store_side_facts(const struct mla_store_side *side);
/* The next row; NOT_FOUND after the last. */
int32_t mla_store_side_next(struct mla_store_side *side, struct mla_side_row *row);

/* Is it one of the four verdicts that accuse a kernel? */
bool mla_side_is_failure(const char *verdict);

/* A statistic of a row's verdict by name. NOT_FOUND where it was not stored. */
int32_t mla_store_side_figure(struct mla_store_side *side, const struct mla_side_row *row,
                              const char *name, double *value);
/* The line that repeats the fault of a row, as its finding has it; NULL where there is none. To be freed. */
int32_t mla_store_side_repro(struct mla_store_side *side, const struct mla_side_row *row,
                             char **repro);

/*
 * The file of a plug-in kernel, "FILE.so:NAME", by the beginning of its hash, as the latest run of the side had
 * it; "" where it is none, or older runs did not store it.
 */
int32_t mla_store_side_kernel_file(struct mla_store_side *side, const char *kernel,
                                   char hash[MLA_STORE_FILE_BYTES]);

/* The (lower) median of a statistic over the cases of one run of the command `run`. NaN are left out. */
struct mla_side_median {
    const char *op, *kernel, *sanitizer, *isa, *name;
    int64_t run, cases_n;
    double value;
};
/*
 * Those of every run of the side that counts: of each operation, kernel and build, as above, the runs of the
 * commit of the latest. Ordered by the texts, the latest run first; the callback must not call the store.
 */
typedef void mla_side_median_fn(void *context, const struct mla_side_median *median);
int32_t mla_store_side_medians(struct mla_store_side *side, mla_side_median_fn *take,
                               void *context);

#endif
