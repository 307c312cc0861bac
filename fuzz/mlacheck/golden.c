/* SPDX-License-Identifier: Apache-2.0
 *
 * golden.c - the golden summary's file, and what "worse" means.
 */
#include "fuzz/mlacheck/golden.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/link_end.h"

#define HEADER                                                                                     \
    "kernel,op,set,cases_id,cases,passed,refused,failed,unjudged,unsupported,rows_judged,"         \
    "max_err_over_bound,max_ulp,worst_p99_ulp,mean_rounded_percent,bits"
#define FIELDS_N (4 + MLA_GOLDEN_COUNTS_N + MLA_GOLDEN_FIGURES_N + 1)

/* Which way is better: 1 more, -1 less, 0 must not change (or the sets differ). */
static const struct {
    const char *name;
    int better;
} counts[MLA_GOLDEN_COUNTS_N] = {
    [MLA_GOLDEN_CASES] = {"cases", 0},        [MLA_GOLDEN_PASSED] = {"passed", 1},
    [MLA_GOLDEN_REFUSED] = {"refused", 1},    [MLA_GOLDEN_FAILED] = {"failed", -1},
    [MLA_GOLDEN_UNJUDGED] = {"unjudged", -1}, [MLA_GOLDEN_UNSUPPORTED] = {"unsupported", -1},
    [MLA_GOLDEN_ROWS] = {"rows_judged", 1},
};
static const struct {
    const char *name;
    int better;
} figures[MLA_GOLDEN_FIGURES_N] = {
    [MLA_GOLDEN_ERR] = {"max_err_over_bound", -1},
    [MLA_GOLDEN_MAX_ULP] = {"max_ulp", -1},
    [MLA_GOLDEN_P99_ULP] = {"worst_p99_ulp", -1},
    [MLA_GOLDEN_ROUNDED] = {"mean_rounded_percent", 1},
};

/* ---- rows ---- */

bool mla_golden_is(const struct mla_golden_row *row, const char *kernel, const char *op,
                   const char *set)
{
    return strcmp(row->kernel, kernel) == 0 && strcmp(row->op, op) == 0 &&
           strcmp(row->set, set) == 0;
}

void mla_golden_begin(struct mla_golden_row *row, const char *kernel, const char *op,
                      const char *set)
{
    *row = (struct mla_golden_row){.cases_id = "-", .bits = "-"};
    for (int i = 0; i < MLA_GOLDEN_FIGURES_N; i++)
        row->figures[i] = -1;
    snprintf(row->kernel, sizeof row->kernel, "%s", kernel);
    snprintf(row->op, sizeof row->op, "%s", op);
    snprintf(row->set, sizeof row->set, "%s", set);
}

struct mla_golden_row *mla_golden_find(const struct mla_golden *golden, const char *kernel,
                                       const char *op, const char *set)
{
    for (size_t i = 0; i < golden->n; i++)
        if (mla_golden_is(&golden->rows[i], kernel, op, set))
            return &golden->rows[i];
    return NULL;
}

struct mla_golden_row *mla_golden_add(struct mla_golden *golden, const char *kernel, const char *op,
                                      const char *set)
{
    if (golden->n == golden->room) {
        size_t room = 2 * golden->room + 32;
        struct mla_golden_row *grown = realloc(golden->rows, room * sizeof *grown);
        if (grown == NULL)
            return NULL;
        golden->rows = grown;
        golden->room = room;
    }
    struct mla_golden_row *row = &golden->rows[golden->n++];
    mla_golden_begin(row, kernel, op, set);
    return row;
}

void mla_golden_free(struct mla_golden *golden)
{
    free(golden->rows);
    *golden = (struct mla_golden){0};
}

/* ---- reading ---- */

/* Cut a line at its commas. How many fields there are; at most FIELDS_N are kept. */
static int split(char *line, char *fields[FIELDS_N])
{
    int n = 0;
    for (char *at = line; at != NULL; n++) {
        char *comma = strchr(at, ',');
        if (comma != NULL)
            *comma = '\0';
        if (n < FIELDS_N)
            fields[n] = at;
        at = comma == NULL ? NULL : comma + 1;
    }
    return n;
}

static bool count(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *value >= 0;
}

/* "-": none. NaN is no figure. */
static bool figure(const char *text, double *value)
{
    char *end;
    *value = -1;
    if (strcmp(text, "-") == 0)
        return true;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && *value >= 0;
}

static bool name(const char *text, char *out, size_t bytes)
{
    if (text[0] == '\0' || strlen(text) >= bytes)
        return false;
    memcpy(out, text, strlen(text) + 1);
    return true;
}

/* NULL, or the name of the field that is wrong. */
static const char *parse(char *fields[FIELDS_N], struct mla_golden_row *row)
{
    int f = 0;
    if (!name(fields[f++], row->kernel, sizeof row->kernel))
        return "kernel";
    if (!name(fields[f++], row->op, sizeof row->op))
        return "op";
    if (!name(fields[f++], row->set, sizeof row->set))
        return "set";
    if (!name(fields[f++], row->cases_id, sizeof row->cases_id))
        return "cases_id";
    for (int i = 0; i < MLA_GOLDEN_COUNTS_N; i++)
        if (!count(fields[f++], &row->counts[i]))
            return counts[i].name;
    for (int i = 0; i < MLA_GOLDEN_FIGURES_N; i++)
        if (!figure(fields[f++], &row->figures[i]))
            return figures[i].name;
    return name(fields[f], row->bits, sizeof row->bits) ? NULL : "bits";
}

__attribute__((format(printf, 3, 4))) static bool fail(char *error, size_t error_bytes,
                                                       const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error, error_bytes, format, list);
    va_end(list);
    return false;
}

static bool read_line(struct mla_golden *golden, char *line, char *error, size_t error_bytes)
{
    char *fields[FIELDS_N];
    struct mla_golden_row row = {0};
    int n = split(line, fields);
    if (n != FIELDS_N)
        return fail(error, error_bytes, "%d fields, must be %d", n, FIELDS_N);
    const char *wrong = parse(fields, &row);
    if (wrong != NULL)
        return fail(error, error_bytes, "'%s' is not a value of its kind", wrong);
    if (mla_golden_find(golden, row.kernel, row.op, row.set) != NULL)
        return fail(error, error_bytes, "%s, %s, %s stands there twice", row.kernel, row.op,
                    row.set);
    struct mla_golden_row *added = mla_golden_add(golden, row.kernel, row.op, row.set);
    if (added == NULL)
        return fail(error, error_bytes, "out of memory");
    *added = row;
    return true;
}

bool mla_golden_read(const char *path, struct mla_golden *golden, char *error, size_t error_bytes)
{
    char *line = NULL, what[300] = "";
    size_t room = 0;
    int number = 0;
    FILE *file = fopen(path, "r");
    *golden = (struct mla_golden){0};
    if (file == NULL)
        return fail(error, error_bytes, "%s: %s", path, strerror(errno));
    bool ok = true;
    while (ok && getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (++number == 1)
            ok = strcmp(line, HEADER) == 0 || fail(what, sizeof what, "the header must be " HEADER);
        else
            ok = read_line(golden, line, what, sizeof what);
    }
    if (ok && (ferror(file) || number == 0))
        ok = fail(what, sizeof what, "cannot be read, or is empty");
    fclose(file);
    free(line);
    return ok || fail(error, error_bytes, "%s:%d: %s", path, number, what);
}

/* ---- writing ---- */

static int by_name(const void *a, const void *b)
{
    const struct mla_golden_row *x = a, *y = b;
    int k = strcmp(x->kernel, y->kernel), o = strcmp(x->op, y->op);
    return k != 0 ? k : o != 0 ? o : strcmp(x->set, y->set);
}

static void write_row(FILE *file, const struct mla_golden_row *row)
{
    fprintf(file, "%s,%s,%s,%s", row->kernel, row->op, row->set, row->cases_id);
    for (int i = 0; i < MLA_GOLDEN_COUNTS_N; i++)
        fprintf(file, ",%" PRId64, row->counts[i]);
    for (int i = 0; i < MLA_GOLDEN_FIGURES_N; i++)
        fprintf(file, row->figures[i] < 0 ? ",-" : ",%.6g", row->figures[i]);
    fprintf(file, ",%s\n", row->bits);
}

bool mla_golden_write(const char *path, struct mla_golden *golden, char *error, size_t error_bytes)
{
    char beside[4096], end[4096];
    if (!mla_link_end(path, end, sizeof end))
        return fail(error, error_bytes, "%.80s: %s", path, strerror(errno));
    if (snprintf(beside, sizeof beside, "%s.new", end) >= (int)sizeof beside)
        return fail(error, error_bytes, "%.80s..: too long a path", path);
    for (size_t i = 0; i < golden->n; i++)
        if (strcspn(golden->rows[i].kernel, ",\r\n") != strlen(golden->rows[i].kernel))
            return fail(error, error_bytes, "kernel '%s': a comma in its name",
                        golden->rows[i].kernel);
    FILE *file = fopen(beside, "w");
    if (file == NULL)
        return fail(error, error_bytes, "%s: %s", beside, strerror(errno));
    if (golden->n > 0)
        qsort(golden->rows, golden->n, sizeof *golden->rows, by_name);
    fprintf(file, "%s\n", HEADER);
    for (size_t i = 0; i < golden->n; i++)
        write_row(file, &golden->rows[i]);
    bool ok = !ferror(file);
    ok = fclose(file) == 0 && ok && rename(beside, end) == 0;
    if (ok)
        return true;
    fail(error, error_bytes, "%s: %s", path, strerror(errno));
    (void)unlink(beside);
    return false;
}

/* ---- comparing ---- */

struct tally {
    int better, worse;
    char *text;
    size_t bytes;
};

/* step: above 0 the number grew, below 0 it shrank. */
static void tell(struct tally *t, const char *what, int step, int better, const char *format,
                 const char *a, const char *b)
{
    size_t n = strlen(t->text);
    if (step == 0)
        return;
    t->better += step * better > 0;
    t->worse += step * better < 0;
    snprintf(t->text + n, t->bytes - n, format, n == 0 ? "" : ", ", what, a, b);
}

static const char *figure_text(double value, char text[32])
{
    if (value < 0)
        return "-";
    snprintf(text, 32, "%.6g", value);
    return text;
}

enum mla_golden_change mla_golden_compare(const struct mla_golden_row *old,
                                          const struct mla_golden_row *now, char *text,
                                          size_t text_bytes)
{
    struct tally t = {0, 0, text, text_bytes};
    char a[32], b[32];
    text[0] = '\0';
    if (strcmp(old->cases_id, now->cases_id) != 0) {
        snprintf(text, text_bytes, "the set holds other cases now (%s -> %s)", old->cases_id,
                 now->cases_id);
        return MLA_GOLDEN_OTHER;
    }
    for (int i = 0; i < MLA_GOLDEN_COUNTS_N; i++) {
        int64_t x = old->counts[i], y = now->counts[i];
        snprintf(a, sizeof a, "%" PRId64, x);
        snprintf(b, sizeof b, "%" PRId64, y);
        tell(&t, counts[i].name, (y > x) - (y < x), counts[i].better, "%s%s %s -> %s", a, b);
    }
    for (int i = 0; i < MLA_GOLDEN_FIGURES_N; i++) {
        if (old->figures[i] < 0 || now->figures[i] < 0)
            continue; /* the counts say what became of the cases */
        /* As printed: what stands in the file has been. */
        double x = strtod(figure_text(old->figures[i], a), NULL);
        double y = strtod(figure_text(now->figures[i], b), NULL);
        tell(&t, figures[i].name, (y > x) - (y < x), figures[i].better, "%s%s %s -> %s", a, b);
    }
    if (strcmp(old->bits, now->bits) != 0 && strcmp(now->bits, "-") != 0)
        tell(&t, "bits", 1, 0, "%s%s %s -> %s", old->bits, now->bits);
    return t.worse > 0         ? MLA_GOLDEN_WORSE
           : t.better > 0      ? MLA_GOLDEN_BETTER
           : t.text[0] != '\0' ? MLA_GOLDEN_BITS
                               : MLA_GOLDEN_SAME;
}
