/* SPDX-License-Identifier: Apache-2.0
 *
 * corpus.c - reading corpus files strictly.
 */
#include "fuzz/corpus.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int32_t mla_corpus_add(struct mla_corpus *corpus, const struct mla_case *test)
{
    if (corpus->n == corpus->room) {
        size_t room = corpus->room == 0 ? 64 : corpus->room * 2;
        struct mla_case *cases = realloc(corpus->cases, room * sizeof *cases);
        if (cases == NULL)
            return MLA_ERR_NOMEM;
        corpus->cases = cases;
        corpus->room = room;
    }
    corpus->cases[corpus->n++] = *test;
    return MLA_OK;
}

/* What must hold of a line beyond its grammar, tensors not made: any size is allowed here. */
static int32_t read_line(struct mla_corpus *corpus, const char *line, size_t n,
                         char reason[MLA_CASE_ERROR_MAX])
{
    struct mla_case test;
    int32_t status = mla_case_parse(line, n, &test, reason);
    if (status != MLA_OK)
        return status;
    if (mla_case_problem(&test, INT64_MAX, reason) != NULL)
        return MLA_ERR_PARAM;
    snprintf(reason, MLA_CASE_ERROR_MAX, "out of memory");
    return mla_corpus_add(corpus, &test);
}

static int32_t read_lines(struct mla_corpus *corpus, FILE *file, const char *path, char *error,
                          size_t error_bytes)
{
    char *line = NULL, reason[MLA_CASE_ERROR_MAX];
    size_t room = 0, number = 0, before = corpus->n;
    int32_t status = MLA_OK;
    ssize_t n;
    errno = 0;
    while (status == MLA_OK && (n = getline(&line, &room, file)) >= 0) {
        number++;
        size_t length = (size_t)n;
        if (length > 0 && line[length - 1] == '\n')
            length--;
        if (length == 0 || line[0] == '#')
            continue;
        status = read_line(corpus, line, length, reason);
        if (status != MLA_OK)
            snprintf(error, error_bytes, "%s:%zu: %s", path, number, reason);
    }
    if (status == MLA_OK && ferror(file)) {
        snprintf(error, error_bytes, "%s: cannot be read: %s", path, strerror(errno));
        status = MLA_ERR_PARAM;
    }
    if (status == MLA_OK && corpus->n == before) {
        snprintf(error, error_bytes, "%s: holds no case", path);
        status = MLA_ERR_PARAM;
    }
    free(line);
    return status;
}

int32_t mla_corpus_read(struct mla_corpus *corpus, const char *path, char *error,
                        size_t error_bytes)
{
    size_t before = corpus->n;
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) { /* a pipe would block */
        snprintf(error, error_bytes, "%s: is no regular file", path);
        return MLA_ERR_PARAM;
    }
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        snprintf(error, error_bytes, "%s: cannot be opened: %s", path, strerror(errno));
        return MLA_ERR_PARAM;
    }
    int32_t status = read_lines(corpus, file, path, error, error_bytes);
    if (status != MLA_OK)
        corpus->n = before;
    fclose(file);
    return status;
}

int32_t mla_corpus_read_matching(struct mla_corpus *corpus, const char *pattern, char *error,
                                 size_t error_bytes)
{
    glob_t files;
    struct stat info;
    int32_t status = MLA_OK;
    if (stat(pattern, &info) == 0) /* a name that exists means itself, brackets and all */
        return mla_corpus_read(corpus, pattern, error, error_bytes);
    if (glob(pattern, 0, NULL, &files) != 0) {
        snprintf(error, error_bytes, "%s: no such file", pattern);
        return MLA_ERR_PARAM;
    }
    for (size_t i = 0; i < files.gl_pathc && status == MLA_OK; i++)
        status = mla_corpus_read(corpus, files.gl_pathv[i], error, error_bytes);
    globfree(&files);
    return status;
}

void mla_corpus_free(struct mla_corpus *corpus)
{
    free(corpus->cases);
    memset(corpus, 0, sizeof *corpus);
}
