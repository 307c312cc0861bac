/* SPDX-License-Identifier: Apache-2.0
 *
 * golden.h - a summary of kernels on fixed cases, kept in a file that people review: what it says may only
 * improve.
 *
 * One line a kernel, operation and set of cases. Everything in it is the same on every machine that can run
 * the kernel: counts, figures of output bits that both compilers give alike, and errors against bounds, of
 * which six digits are kept (their last bits are the C library's exponential's).
 */
#ifndef MLA_MLACHECK_GOLDEN_H
#define MLA_MLACHECK_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mla_golden_count {
    MLA_GOLDEN_CASES = 0,
    MLA_GOLDEN_PASSED,
    MLA_GOLDEN_REFUSED,
    MLA_GOLDEN_FAILED, /* of any kind, crashes and hangs too */
    MLA_GOLDEN_UNJUDGED,
    MLA_GOLDEN_UNSUPPORTED,
    MLA_GOLDEN_ROWS, /* judged */
    MLA_GOLDEN_COUNTS_N
};

/* Over the cases that have them. */
enum mla_golden_figure {
    MLA_GOLDEN_ERR = 0, /* worst err/B */
    MLA_GOLDEN_MAX_ULP, /* worst */
    MLA_GOLDEN_P99_ULP, /* worst of the cases' percentiles */
    MLA_GOLDEN_ROUNDED, /* mean percent correctly rounded */
    MLA_GOLDEN_FIGURES_N
};

struct mla_golden_row {
    char kernel[128], op[16], set[64];
    char cases_id
        [13]; /* of the set's cases of the operation: the beginning of a hash of their ids */
    int64_t counts[MLA_GOLDEN_COUNTS_N];
    double figures[MLA_GOLDEN_FIGURES_N]; /* negative: none; may be inf */
    /* A hash of the output hashes of all cases that passed; "-": not known, "unsteady": runs differ. */
    char bits[13];
};

struct mla_golden {
    size_t n, room;
    struct mla_golden_row *rows;
};

enum mla_golden_change {
    MLA_GOLDEN_SAME = 0,
    MLA_GOLDEN_BITS,   /* other output bits, and nothing else */
    MLA_GOLDEN_BETTER, /* something is better and nothing worse */
    MLA_GOLDEN_WORSE,  /* something is worse */
    MLA_GOLDEN_OTHER   /* the set holds other cases now: they cannot be compared */
};

/*
 * Read a file strictly: the header as written below, a row a line, no row twice. false: error says which line
 * is wrong and why, and the rows are not to be used.
 */
bool mla_golden_read(const char *path, struct mla_golden *golden, char *error, size_t error_bytes);
/* Sorted by kernel, operation and set; written beside it and renamed, so that there is an old file or a new
 * one. false: error. */
bool mla_golden_write(const char *path, struct mla_golden *golden, char *error, size_t error_bytes);
void mla_golden_free(struct mla_golden *golden);
/* Is it the row of that kernel, operation and set? Make it that, with nothing in it yet. */
bool mla_golden_is(const struct mla_golden_row *row, const char *kernel, const char *op,
                   const char *set);
void mla_golden_begin(struct mla_golden_row *row, const char *kernel, const char *op,
                      const char *set);
/* The row of that kernel, operation and set; NULL where there is none. */
struct mla_golden_row *mla_golden_find(const struct mla_golden *golden, const char *kernel,
                                       const char *op, const char *set);
/* Add a row (which holds nothing yet) or NULL when memory is missing. */
struct mla_golden_row *mla_golden_add(struct mla_golden *golden, const char *kernel, const char *op,
                                      const char *set);

/*
 * What became of a row. Worse: fewer passed, refused or judged rows, more failed, unjudged or unsupported, a
 * larger error, a smaller share correctly rounded. text: what moved, "passed 90 -> 89, ..".
 */
enum mla_golden_change mla_golden_compare(const struct mla_golden_row *old,
                                          const struct mla_golden_row *now, char *text,
                                          size_t text_bytes);

#endif
