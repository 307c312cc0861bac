/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_golden.c - `mlacheck compare --golden`: a side's verdicts on fixed cases, summed up and held against
 * the file, or written into it.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/case_fields.h"
#include "fuzz/corpus.h"
#include "fuzz/judge.h"
#include "fuzz/mlacheck/compare.h"
#include "fuzz/mlacheck/golden.h"
#include "fuzz/number.h"
#include "impl/registry.h"
#include "results/report_text.h"

#define TEXT_MAX 1024

/* A case of a set. */
struct member {
    char id[MLA_CASE_ID_BYTES];
    int32_t op;
    int set;
};

/* What a row is made of beside what is written. */
struct extra {
    int64_t unusable;  /* cases that this CPU cannot run */
    int64_t rounded_n; /* cases in the mean */
    uint64_t bits;
    bool no_bits; /* of some case that passed */
};

struct summary {
    struct mla_compare *c;
    size_t members_n;
    struct member *members; /* by id */
    char names[MLA_OPTIONS_LIST_MAX][64];
    int64_t sizes[MLA_OPTIONS_LIST_MAX][MLA_OP_N];
    char cases_ids[MLA_OPTIONS_LIST_MAX][MLA_OP_N][13];
    struct mla_golden golden, now;
    struct extra *extras; /* of the rows of now */
    char isa[256];        /* of the first row: the others are of other machines */
    int64_t left_out;     /* verdicts of sanitizers and of other machines */
    int64_t changes[MLA_GOLDEN_OTHER + 1], missing, unusable, added;
};

/* ---- sets ---- */

static int by_id(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
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

static bool add_members(struct summary *s, const struct mla_corpus *corpus, int set)
{
    struct member *grown = realloc(s->members, (s->members_n + corpus->n + 1) * sizeof *s->members);
    if (grown == NULL)
        return false;
    s->members = grown;
    for (size_t i = 0; i < corpus->n; i++) {
        if (corpus->cases[i].slow)
            continue; /* whoever ran them took hours */
        struct member *m = &s->members[s->members_n++];
        m->op = corpus->cases[i].op;
        m->set = set;
        mla_case_id(&corpus->cases[i], m->id);
        s->sizes[set][m->op]++;
    }
    return true;
}

/* The name of the cases of a set and operation: a hash of their ids in order. */
static void name_cases(struct summary *s, int set)
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

static int read_sets(struct summary *s)
{
    const struct mla_options *o = &s->c->options;
    char error[MLA_CASE_ERROR_MAX];
    for (int i = 0; i < o->sets_n; i++) {
        struct mla_corpus corpus = {0};
        if (!name_set(o->sets[i], s->names[i]))
            return mla_options_fail(MLA_EXIT_USAGE, "compare", "--set '%s': not a file's name",
                                    o->sets[i]);
        if (mla_corpus_read(&corpus, o->sets[i], error, sizeof error) != MLA_OK)
            return mla_options_fail(MLA_EXIT_USAGE, "compare", "--set: %s", error);
        bool ok = add_members(s, &corpus, i);
        mla_corpus_free(&corpus);
        if (!ok)
            return mla_options_fail(MLA_EXIT_ENVIRONMENT, "compare", "out of memory");
    }
    if (s->members_n == 0)
        return mla_options_fail(MLA_EXIT_USAGE, "compare", "--golden needs cases: give --set");
    qsort(s->members, s->members_n, sizeof *s->members, by_id);
    for (int i = 0; i < o->sets_n; i++)
        name_cases(s, i);
    return 0;
}

/* Built-in kernels, or those that --kernel names. */
static bool is_wanted(const struct summary *s, const char *kernel)
{
    const struct mla_options *o = &s->c->options;
    for (int i = 0; i < o->kernels_n; i++)
        if (fnmatch(o->kernels[i], kernel, 0) == 0)
            return true;
    return o->kernels_n == 0 && mla_registry_find(kernel) != NULL;
}

/* ---- summing up ---- */

static struct mla_golden_row *row_of(struct summary *s, const struct mla_side_row *row, int set)
{
    struct mla_golden_row *found = mla_golden_find(&s->now, row->kernel, row->op, s->names[set]);
    if (found != NULL)
        return found;
    size_t n = s->now.n;
    struct extra *grown = realloc(s->extras, (n + 1) * sizeof *grown);
    if (grown == NULL)
        return NULL;
    s->extras = grown;
    s->extras[n] = (struct extra){0};
    found = mla_golden_add(&s->now, row->kernel, row->op, s->names[set]);
    if (found != NULL)
        memcpy(found->cases_id,
               s->cases_ids[set][strcmp(row->op, "ring") == 0 ? MLA_OP_RING : MLA_OP_SPARSE],
               sizeof found->cases_id);
    return found;
}

static double figure(struct summary *s, const struct mla_side_row *row, const char *name)
{
    double value = -1;
    int32_t status = mla_store_side_figure(s->c->sides[1], row, name, &value);
    if (status != MLA_STORE_OK && status != MLA_STORE_ERR_NOT_FOUND)
        s->c->code = mla_compare_store_failed(s->c, 1);
    return value;
}

static void keep_most(double *most, double value)
{
    if (!(value <= *most))
        *most = value;
}

static void add_figures(struct summary *s, const struct mla_side_row *row,
                        struct mla_golden_row *sum, struct extra *extra)
{
    double rows = figure(s, row, "rows_judged"), *f = sum->figures;
    double rounded = figure(s, row, "correctly_rounded_percent");
    sum->counts[MLA_GOLDEN_ROWS] += rows > 0 ? (int64_t)rows : 0;
    keep_most(&f[MLA_GOLDEN_ERR], figure(s, row, "max_err_over_bound"));
    keep_most(&f[MLA_GOLDEN_MAX_ULP], figure(s, row, "max_ulp"));
    keep_most(&f[MLA_GOLDEN_P99_ULP], figure(s, row, "p99_ulp"));
    if (rounded < 0)
        return;
    double n = (double)extra->rounded_n++;
    f[MLA_GOLDEN_ROUNDED] = n == 0 ? rounded : (f[MLA_GOLDEN_ROUNDED] * n + rounded) / (n + 1);
}

static void add_row(struct summary *s, const struct mla_side_row *row, int set)
{
    struct mla_golden_row *sum = row_of(s, row, set);
    if (sum == NULL) {
        s->c->code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "compare", "out of memory");
        return;
    }
    struct extra *extra = &s->extras[sum - s->now.rows];
    static const struct {
        const char *verdict;
        enum mla_golden_count count;
    } counts[] = {{"pass", MLA_GOLDEN_PASSED},
                  {"refused", MLA_GOLDEN_REFUSED},
                  {"unjudged", MLA_GOLDEN_UNJUDGED},
                  {"unsupported", MLA_GOLDEN_UNSUPPORTED}};
    enum mla_golden_count count = MLA_GOLDEN_FAILED;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (strcmp(counts[i].verdict, row->verdict) == 0)
            count = counts[i].count;
    sum->counts[MLA_GOLDEN_CASES]++;
    sum->counts[count]++;
    extra->unusable +=
        count == MLA_GOLDEN_UNSUPPORTED && strcmp(row->reason, MLA_REASON_NOT_USABLE) == 0;
    add_figures(s, row, sum, extra);
    if (count != MLA_GOLDEN_PASSED)
        return;
    extra->no_bits = extra->no_bits || row->output_hash <= 0;
    extra->bits = mla_number_mix(extra->bits ^ (uint64_t)fabs(row->output_hash));
}

/* A row of the side: into every set that has its case. */
static void take_row(struct summary *s, const struct mla_side_row *row)
{
    struct member key = {.set = 0};
    snprintf(key.id, sizeof key.id, "%s", row->id);
    size_t low = 0, high = s->members_n; /* the first that is not less */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (by_id(&s->members[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == s->members_n || strcmp(s->members[low].id, row->id) != 0 ||
        !is_wanted(s, row->kernel))
        return;
    if (s->isa[0] == '\0' && row->sanitizer[0] == '\0')
        snprintf(s->isa, sizeof s->isa, "%s", row->isa);
    if (row->sanitizer[0] != '\0' || strcmp(row->isa, s->isa) != 0) {
        s->left_out++;
        return;
    }
    for (; low < s->members_n && strcmp(s->members[low].id, row->id) == 0; low++)
        add_row(s, row, s->members[low].set);
}

static void sum_up(struct summary *s)
{
    struct mla_side_row row;
    int32_t status = MLA_STORE_OK;
    while (s->c->code == 0 && !mla_interrupted &&
           (status = mla_store_side_next(s->c->sides[1], &row)) == MLA_STORE_OK)
        take_row(s, &row);
    if (status != MLA_STORE_OK && status != MLA_STORE_ERR_NOT_FOUND)
        s->c->code = mla_compare_store_failed(s->c, 1);
    for (size_t i = 0; i < s->now.n; i++)
        if (!s->extras[i].no_bits && s->now.rows[i].counts[MLA_GOLDEN_PASSED] > 0)
            snprintf(s->now.rows[i].bits, sizeof s->now.rows[i].bits, "%012" PRIx64,
                     s->extras[i].bits >> 16);
}

/* ---- against the file ---- */

static void say(const char *word, const struct mla_golden_row *row, const char *text)
{
    printf("%s %s/", word, row->op);
    mla_text_plain(stdout, row->kernel);
    fputs(" on ", stdout);
    mla_text_plain(stdout, row->set);
    printf("%s%s\n", text[0] == '\0' ? "" : ": ", text);
}

static bool is_unusable(const struct summary *s, size_t i)
{
    return s->extras[i].unusable > 0 &&
           s->extras[i].unusable == s->now.rows[i].counts[MLA_GOLDEN_CASES];
}

static void compare_row(struct summary *s, const struct mla_golden_row *old)
{
    static const char *const words[] = {
        [MLA_GOLDEN_SAME] = "same",   [MLA_GOLDEN_BITS] = "BITS",   [MLA_GOLDEN_BETTER] = "BETTER",
        [MLA_GOLDEN_WORSE] = "WORSE", [MLA_GOLDEN_OTHER] = "OTHER",
    };
    char text[TEXT_MAX];
    struct mla_golden_row *now = mla_golden_find(&s->now, old->kernel, old->op, old->set);
    if (now == NULL) {
        s->missing++;
        say("MISSING", old, "not judged");
    } else if (is_unusable(s, (size_t)(now - s->now.rows))) {
        s->unusable++;
        say("skipped", old, MLA_REASON_NOT_USABLE);
    } else {
        enum mla_golden_change change = mla_golden_compare(old, now, text, sizeof text);
        s->changes[change]++;
        if (change != MLA_GOLDEN_SAME || s->c->options.verbose)
            say(words[change], old, text);
    }
}

static bool is_a_set(const struct summary *s, const char *set)
{
    for (int i = 0; i < s->c->options.sets_n; i++)
        if (strcmp(s->names[i], set) == 0)
            return true;
    return false;
}

static int report(struct summary *s)
{
    int64_t *n = s->changes;
    for (size_t i = 0; i < s->golden.n; i++) {
        const struct mla_golden_row *old = &s->golden.rows[i];
        if (is_a_set(s, old->set) && is_wanted(s, old->kernel))
            compare_row(s, old);
    }
    for (size_t i = 0; i < s->now.n; i++) {
        const struct mla_golden_row *now = &s->now.rows[i];
        if (is_unusable(s, i) ||
            mla_golden_find(&s->golden, now->kernel, now->op, now->set) != NULL)
            continue;
        s->added++;
        say("NEW", now, "not in the golden file");
    }
    if (s->left_out > 0)
        printf("%" PRId64 " verdicts of sanitizer builds or other machines are kept apart\n",
               s->left_out);
    int64_t compared = n[MLA_GOLDEN_SAME] + n[MLA_GOLDEN_BITS] + n[MLA_GOLDEN_BETTER] +
                       n[MLA_GOLDEN_WORSE] + n[MLA_GOLDEN_OTHER];
    printf("golden: %" PRId64 " rows compared: %" PRId64 " the same, %" PRId64
           " with other bits only, %" PRId64 " better, %" PRId64 " worse, %" PRId64
           " of other cases; %" PRId64 " not judged, %" PRId64 " not usable on this CPU, %" PRId64
           " new\n",
           compared, n[MLA_GOLDEN_SAME], n[MLA_GOLDEN_BITS], n[MLA_GOLDEN_BETTER],
           n[MLA_GOLDEN_WORSE], n[MLA_GOLDEN_OTHER], s->missing, s->unusable, s->added);
    if (compared + s->missing + s->added > n[MLA_GOLDEN_SAME])
        printf("if that is meant: the same command with --update writes the new figures into %s\n",
               s->c->options.golden);
    if (s->c->options.json)
        printf("{\"same\":%" PRId64 ",\"bits\":%" PRId64 ",\"better\":%" PRId64
               ",\"worse\":%" PRId64 ",\"other_cases\":%" PRId64 ",\"missing\":%" PRId64
               ",\"unusable\":%" PRId64 ",\"new\":%" PRId64 "}\n",
               n[MLA_GOLDEN_SAME], n[MLA_GOLDEN_BITS], n[MLA_GOLDEN_BETTER], n[MLA_GOLDEN_WORSE],
               n[MLA_GOLDEN_OTHER], s->missing, s->unusable, s->added);
    if (n[MLA_GOLDEN_WORSE] + s->missing > 0)
        return MLA_EXIT_FAULT;
    if (n[MLA_GOLDEN_OTHER] > 0)
        return mla_options_fail(MLA_EXIT_USAGE, "compare",
                                "--golden: the file is about other cases");
    return compared == 0 ? MLA_EXIT_NOTHING : MLA_EXIT_PASSED;
}

/* A summary of half a set would pass for one of all. */
static int check_whole(const struct summary *s)
{
    for (size_t i = 0; i < s->now.n; i++) {
        const struct mla_golden_row *row = &s->now.rows[i];
        for (int set = 0; set < s->c->options.sets_n; set++) {
            int64_t due = s->sizes[set][strcmp(row->op, "ring") == 0 ? MLA_OP_RING : MLA_OP_SPARSE];
            if (strcmp(s->names[set], row->set) == 0 && row->counts[MLA_GOLDEN_CASES] != due)
                return mla_options_fail(MLA_EXIT_USAGE, "compare",
                                        "--update: %s/%s was judged on %" PRId64 " of %" PRId64
                                        " cases of %s: all are needed",
                                        row->op, row->kernel, row->counts[MLA_GOLDEN_CASES], due,
                                        row->set);
        }
    }
    return 0;
}

static int update(struct summary *s)
{
    char error[1024];
    int64_t n = 0;
    int code = check_whole(s);
    for (size_t i = 0; i < s->now.n && code == 0; i++) {
        const struct mla_golden_row *now = &s->now.rows[i];
        if (is_unusable(s, i))
            continue;
        struct mla_golden_row *old = mla_golden_find(&s->golden, now->kernel, now->op, now->set);
        if (old == NULL)
            old = mla_golden_add(&s->golden, now->kernel, now->op, now->set);
        if (old == NULL)
            return mla_options_fail(MLA_EXIT_ENVIRONMENT, "compare", "out of memory");
        *old = *now;
        n++;
    }
    if (code != 0)
        return code;
    if (n == 0)
        return mla_options_fail(MLA_EXIT_NOTHING, "compare",
                                "--update: nothing of these sets is stored");
    if (!mla_golden_write(s->c->options.golden, &s->golden, error, sizeof error))
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "compare", "--golden: %s", error);
    printf("%s: %" PRId64 " rows written, %zu in all\n", s->c->options.golden, n, s->golden.n);
    return 0;
}

/* --- the whole --- */

/* A file that is not there yet is one without rows, for who updates it. */
static int read_golden(struct summary *s)
{
    char error[1024];
    const struct mla_options *o = &s->c->options;
    FILE *file = fopen(o->golden, "r");
    if (file == NULL && o->update)
        return 0;
    if (file != NULL)
        fclose(file);
    if (mla_golden_read(o->golden, &s->golden, error, sizeof error))
        return 0;
    return mla_options_fail(file == NULL ? MLA_EXIT_ENVIRONMENT : MLA_EXIT_USAGE, "compare",
                            "--golden: %s", error);
}

int mla_compare_golden(struct mla_compare *c)
{
    struct summary s = {.c = c};
    int code = 0;
    if (c->options.words_n != 1)
        code = mla_options_fail(MLA_EXIT_USAGE, "compare",
                                "--golden: give one run, commit or database");
    code = code != 0 ? code : read_golden(&s);
    code = code != 0 ? code : read_sets(&s);
    code = code != 0 ? code : mla_compare_open(c, 1, c->options.words[0]);
    if (code == 0) {
        sum_up(&s);
        code = c->code != 0 ? c->code : mla_interrupted ? MLA_EXIT_INTERRUPTED : 0;
    }
    if (code == 0)
        code = c->options.update ? update(&s) : report(&s);
    mla_golden_free(&s.golden);
    mla_golden_free(&s.now);
    free(s.members);
    free(s.extras);
    return code;
}
