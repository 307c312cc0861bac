/* SPDX-License-Identifier: Apache-2.0
 *
 * corpus.h - files of case lines.
 *
 * One canonical line a case; empty lines and lines that begin with '#' are comments. A damaged
 * line, a file that cannot be read or one without cases is an error, never skipped.
 */
#ifndef MLA_FUZZ_CORPUS_H
#define MLA_FUZZ_CORPUS_H

#include "fuzz/case.h"

struct mla_corpus {
    size_t n, room;
    struct mla_case *cases;
};

/*
 * Append the cases of a file. MLA_OK; MLA_ERR_PARAM with "FILE:LINE: reason" (or "FILE: reason"),
 * the corpus then keeps what it held before; MLA_ERR_NOMEM.
 */
int32_t mla_corpus_read(struct mla_corpus *corpus, const char *path, char *error,
                        size_t error_bytes);
/* The same for a file's name or a shell pattern; no match is an error. */
int32_t mla_corpus_read_matching(struct mla_corpus *corpus, const char *pattern, char *error,
                                 size_t error_bytes);
int32_t mla_corpus_add(struct mla_corpus *corpus, const struct mla_case *test);
void mla_corpus_free(struct mla_corpus *corpus);

#endif
