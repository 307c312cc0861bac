/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_golden_sets.c - which cases a golden row is about: those of a corpus file, of one operation.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/corpus.h"
#include "fuzz/mlacheck/compare_golden.h"
#include "fuzz/number.h"

static int by_id(const void *a, const void *b)
{
    const struct mla_set_member *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    return order != 0 ? order : x->set - y->set;
}

/* "corpus/special.txt": special */
static bool name_set(const char *path, char name[64])
{
    const char *slash = strrchr(path, '/'), *base = slash == NULL ? path : slash + 1;
    size_t n = strcspn(base, ".");
    if (n == 0 || n >= 64 || strcspn(base, ",\n\r") < n)
        return false;
    memcpy(name, base, n);
    name[n] = '\0';
    return true;
}

static bool add_members(struct mla_golden_sets *s, const struct mla_corpus *corpus, int set)
{
    struct mla_set_member *grown =
        realloc(s->members, (s->members_n + corpus->n + 1) * sizeof *s->members);
    if (grown == NULL)
        return false;
    s->members = grown;
    for (size_t i = 0; i < corpus->n; i++) {
        if (corpus->cases[i].slow)
            continue; /* whoever ran them took hours */
        struct mla_set_member *m = &s->members[s->members_n++];
        m->op = corpus->cases[i].op;
        m->set = set;
        mla_case_id(&corpus->cases[i], m->id);
        s->sizes[set][m->op]++;
    }
    return true;
}

/* The name of the cases of a set and operation: a hash of their ids in order. */
static void name_cases(struct mla_golden_sets *s, int set)
{
    uint64_t hashes[MLA_OP_N] = {0};
    for (size_t i = 0; i < s->members_n; i++)
        for (int d = 0; s->members[i].set == set && d < 64; d += 8) {
            char digits[9] = {0};
            memcpy(digits, s->members[i].id + d, 8);
            uint64_t *hash = &hashes[s->members[i].op];
            *hash = mla_number_mix(*hash ^ strtoull(digits, NULL, 16));
        }
    for (int op = 0; op < MLA_OP_N; op++)
        snprintf(s->cases_ids[set][op], 13, "%012" PRIx64, hashes[op] >> 16);
}

static int read_set(struct mla_golden_sets *s, const char *path)
{
    char error[MLA_CASE_ERROR_MAX];
    struct mla_corpus corpus = {0};
    int set = s->n;
    if (!name_set(path, s->names[set]))
        return mla_options_fail(MLA_EXIT_USAGE, "compare", "--set '%s': not a file's name", path);
    for (int i = 0; i < set; i++)
        if (strcmp(s->names[i], s->names[set]) == 0)
            return mla_options_fail(MLA_EXIT_USAGE, "compare",
                                    "--set '%s': there is one named %s already, its cases would "
                                    "count twice",
                                    path, s->names[set]);
    if (mla_corpus_read(&corpus, path, error, sizeof error) != MLA_OK)
        return mla_options_fail(MLA_EXIT_USAGE, "compare", "--set: %s", error);
    bool ok = add_members(s, &corpus, set);
    mla_corpus_free(&corpus);
    s->n++;
    return ok ? 0 : mla_options_fail(MLA_EXIT_ENVIRONMENT, "compare", "out of memory");
}

int mla_golden_sets_read(const struct mla_options *options, struct mla_golden_sets *s)
{
    int code = 0;
    for (int i = 0; i < options->sets_n && code == 0; i++)
        code = read_set(s, options->sets[i]);
    if (code != 0)
        return code;
    if (s->members_n == 0)
        return mla_options_fail(MLA_EXIT_USAGE, "compare", "--golden needs cases: give --set");
    qsort(s->members, s->members_n, sizeof *s->members, by_id);
    for (int i = 0; i < s->n; i++)
        name_cases(s, i);
    return 0;
}

void mla_golden_sets_free(struct mla_golden_sets *s)
{
    free(s->members);
    *s = (struct mla_golden_sets){0};
}

size_t mla_golden_sets_find(const struct mla_golden_sets *s, const char *id)
{
    size_t low = 0, high = s->members_n; /* the first that is not less */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(s->members[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < s->members_n && strcmp(s->members[low].id, id) == 0;
    return found ? low : s->members_n;
}

int mla_golden_op(const char *name)
{
    return strcmp(name, "ring") == 0 ? MLA_OP_RING : MLA_OP_SPARSE;
}
