/* SPDX-License-Identifier: Apache-2.0
 *
 * report_sections.c - what the page shows of the store's own views: kill matrix, timings, findings.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "results/report_page.h"
#include "results/report_text.h"
#include "results/store_internal.h"

#define WORDS_MAX    24
#define ROWS_MAX     60
#define FINDINGS_MAX 50
#define RUNS_SHOWN   20

/* Marks of the kill matrix: the names that caught some fault, each a column. */
struct words {
    char *list[WORDS_MAX];
    size_t n;
};

/* The n-th blank-separated word of a text. */
static bool next_word(const char **at, const char **word, size_t *length)
{
    *word = *at + strspn(*at, " ");
    *length = strcspn(*word, " ");
    *at = *word + *length;
    return *length > 0;
}

static void collect(struct words *words, const char *text)
{
    const char *at = text != NULL ? text : "", *word;
    size_t length;
    while (words->n < WORDS_MAX && next_word(&at, &word, &length)) {
        bool known = false;
        for (size_t i = 0; i < words->n && !known; i++) {
            known = strlen(words->list[i]) == length && strncmp(words->list[i], word, length) == 0;
        }
        if (!known && (words->list[words->n] = strndup(word, length)) != NULL) {
            words->n++;
        }
    }
}

static bool has_word(const char *text, const char *wanted)
{
    const char *at = text != NULL ? text : "", *word;
    size_t length;
    while (next_word(&at, &word, &length)) {
        if (strlen(wanted) == length && strncmp(wanted, word, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Columns of MLA_VIEW_FAULTS. */
enum {
    FAULT,
    ROLE,
    CLASS,
    OP,
    SEARCH,
    OUTCOME,
    TRIALS,
    KILLED,
    EXECUTIONS,
    SECONDS,
    CASE_ID,
    DETECTORS,
    CRITERIA
};

struct matrix {
    struct mla_page *page;
    struct words words[2]; /* checks, published rules */
    size_t rows_n, killed_n, faults_n;
};

static int collect_row(void *context, int n, const char *const *names, const char *const *v)
{
    struct matrix *m = context;
    (void)n;
    (void)names;
    collect(&m->words[0], v[DETECTORS]);
    collect(&m->words[1], v[CRITERIA]);
    bool fault = v[ROLE] != NULL && strcmp(v[ROLE], "fault") == 0;
    m->rows_n++;
    m->faults_n += fault;
    m->killed_n += fault && v[OUTCOME] != NULL && strcmp(v[OUTCOME], "killed") == 0;
    return 0;
}

static void cell(FILE *f, const char *class, const char *text)
{
    fprintf(f, "<td%s%s%s>", class[0] == '\0' ? "" : " class=\"", class,
            class[0] == '\0' ? "" : "\"");
    mla_text_html(f, text);
    fputs("</td>", f);
}

static int write_fault(void *context, int n, const char *const *names, const char *const *v)
{
    struct matrix *m = context;
    FILE *f = m->page->file;
    bool bad = v[OUTCOME] != NULL &&
               ((strcmp(v[ROLE], "fault") == 0 && strcmp(v[OUTCOME], "killed") != 0) ||
                strcmp(v[OUTCOME], "accused") == 0);
    (void)n;
    (void)names;
    fputs("<tr>", f);
    cell(f, "", v[FAULT]);
    cell(f, "", v[ROLE]);
    cell(f, "", v[OP]);
    cell(f, bad ? "bad" : "", v[OUTCOME]);
    fprintf(f, "<td class=\"n\">%s of %s</td>", v[KILLED], v[TRIALS]);
    cell(f, "n", v[EXECUTIONS]);
    fprintf(f, "<td class=\"n\">%.2g</td>", v[SECONDS] != NULL ? strtod(v[SECONDS], NULL) : 0);
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < m->words[k].n; i++) {
            bool marked = has_word(v[k == 0 ? DETECTORS : CRITERIA], m->words[k].list[i]);
            fprintf(f, "<td class=\"mark\">%s</td>", marked ? "&#9679;" : "");
        }
    }
    cell(f, "", v[CASE_ID]);
    fputs("</tr>\n", f);
    return 0;
}

void mla_page_faults(struct mla_page *page)
{
    struct matrix m = {.page = page};
    struct mla_store *store = page->report->store;
    fputs("<section id=\"faults\"><h2>Kill matrix</h2>\n", page->file);
    (void)mla_store_view(store, MLA_VIEW_FAULTS, NULL, collect_row, &m);
    if (m.rows_n == 0) {
        fputs("<p class=\"soft\">No run of mlacheck faults is stored.</p></section>\n", page->file);
        return;
    }
    fprintf(
        page->file,
        "<p>The latest run of mlacheck faults: %zu of %zu planted faults (counted by operation) "
        "were killed. A dot: that check, or after it that published rule, speaks against the "
        "kernel. <code>mlacheck run --id CASE --kernel fault:NAME</code> repeats a kill.</p>\n"
        "<div class=\"scroll\"><table><thead><tr><th>kernel</th><th>role</th><th>operation</th>"
        "<th>outcome</th><th class=\"n\">killed by</th><th class=\"n\">executions</th>"
        "<th class=\"n\">CPU s</th>",
        m.killed_n, m.faults_n);
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < m.words[k].n; i++) {
            fputs("<th>", page->file);
            mla_text_html(page->file, m.words[k].list[i]);
            fputs("</th>", page->file);
        }
    }
    fputs("<th>case</th></tr></thead><tbody>\n", page->file);
    (void)mla_store_view(store, MLA_VIEW_FAULTS, NULL, write_fault, &m);
    fputs("</tbody></table></div></section>\n", page->file);
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < m.words[k].n; i++) {
            free(m.words[k].list[i]);
        }
    }
}

/* Any view as a table. */
struct table {
    struct mla_page *page;
    int rows_n, rows_max;
    const char *wrapped; /* names of columns that are long, blanks between */
};

static int write_row(void *context, int n, const char *const *names, const char *const *values)
{
    struct table *table = context;
    FILE *f = table->page->file;
    for (int i = 0; i < n; i++) {
        if (strcmp(names[i], "kernel") == 0 && values[i] != NULL &&
            (strncmp(values[i], "fault:", strlen("fault:")) == 0 ||
             strncmp(values[i], "adversary:", strlen("adversary:")) == 0)) {
            return 0;
        }
    }
    for (int i = 0; table->rows_n == 0 && i < n; i++) {
        fprintf(f, "%s<th>%s</th>%s", i == 0 ? "<div class=\"scroll\"><table><thead><tr>" : "",
                names[i], i == n - 1 ? "</tr></thead><tbody>\n" : "");
    }
    fputs("<tr>", f);
    for (int i = 0; i < n; i++) {
        bool number = values[i] != NULL && values[i][0] != '\0' &&
                      values[i][strspn(values[i], "0123456789.e+-")] == '\0';
        cell(f, has_word(table->wrapped, names[i]) ? "wrap" : number ? "n" : "", values[i]);
    }
    fputs("</tr>\n", f);
    return ++table->rows_n == table->rows_max;
}

static void write_view(struct mla_page *page, enum mla_store_view view, int rows_max,
                       const char *wrapped, const char *otherwise)
{
    struct table table = {page, 0, rows_max, wrapped};
    (void)mla_store_view(page->report->store, view, NULL, write_row, &table);
    if (table.rows_n > 0) {
        fputs("</tbody></table></div>\n", page->file);
    } else {
        fprintf(page->file, "<p class=\"soft\">%s</p>\n", otherwise);
    }
}

static void write_run_row(struct mla_page *page, size_t rank)
{
    FILE *f = page->file;
    const struct mla_run_row *run = &page->report->runs[rank];
    char *build = mla_report_build(page->report, rank, NULL);
    fprintf(f, "<tr><td class=\"n\">%" PRId64 "</td>", run->id);
    cell(f, "", run->started);
    fprintf(f, "<td class=\"n\">%" PRId64 "</td>", run->cases);
    if (run->seconds >= 1 && run->cases > 0) {
        fprintf(f, "<td class=\"n\">%.0f</td><td class=\"n\">%.3g</td>", run->seconds,
                (double)run->cases / run->seconds);
    } else {
        fprintf(f, "<td>%s</td><td></td>",
                run->seconds < 0   ? "did not end"
                : run->seconds < 1 ? "below 1"
                                   : "");
    }
    cell(f, "", run->cpu);
    cell(f, "", build);
    cell(f, "wrap", run->command);
    free(build);
    fputs("</tr>\n", f);
}

static void write_kernel_times(struct mla_page *page)
{
    fputs(
        "<h3>Time in the kernel</h3>\n<p class=\"soft\">Mean over the cases of the figures above, "
        "which differ by kernel: bench compares.</p><div class=\"scroll\"><table><thead><tr>"
        "<th>kernel</th><th class=\"n\">cases</th><th class=\"n\">ms a case</th>"
        "</tr></thead><tbody>\n",
        page->file);
    for (size_t i = 0; i < page->report->subjects_n; i++) {
        const struct mla_subject *s = &page->report->subjects[i];
        if (s->timed > 0 && !s->planted) {
            fputs("<tr><td class=\"name\">", page->file);
            mla_page_named(page, s);
            fprintf(page->file,
                    "</td><td class=\"n\">%" PRId64 "</td><td class=\"n\">%.3g</td></tr>\n",
                    s->timed, 1000 * s->kernel_seconds / (double)s->timed);
        }
    }
    fputs("</tbody></table></div>\n", page->file);
}

void mla_page_speed(struct mla_page *page)
{
    struct mla_report *report = page->report;
    size_t first = report->runs_n > RUNS_SHOWN ? report->runs_n - RUNS_SHOWN : 0;
    fprintf(page->file,
            "<section id=\"speed\"><h2>Time</h2>\n<h3>The last runs, at most %d</h3>\n<p "
            "class=\"soft\">Results: kernels times cases, or executions of a hunt.</p><div "
            "class=\"scroll\"><table>"
            "<thead><tr><th class=\"n\">run</th><th>started</th><th class=\"n\">results</th>"
            "<th class=\"n\">seconds</th><th class=\"n\">results a second</th><th>CPU</th>"
            "<th>build</th><th>command</th></tr></thead><tbody>\n",
            RUNS_SHOWN);
    for (size_t i = report->runs_n; i-- > first;) {
        write_run_row(page, i);
    }
    fputs("</tbody></table></div>\n", page->file);
    write_kernel_times(page);
    fputs("<h3>Timings of mlacheck bench, newest first</h3>\n", page->file);
    write_view(page, MLA_VIEW_SPEED, ROWS_MAX, "cpu", "No run of mlacheck bench is stored.");
    fputs("</section>\n", page->file);
}

void mla_page_findings(struct mla_page *page)
{
    fprintf(page->file,
            "<section id=\"findings\"><h2>Findings</h2>\n<p>Faults kept over runs, open ones "
            "first, then "
            "the last seen; at most %d, none of planted faults. <code>mlacheck list "
            "findings</code> has all.</p>\n",
            FINDINGS_MAX);
    write_view(page, MLA_VIEW_FINDINGS, FINDINGS_MAX, "reason repro", "There are none.");
    fputs("</section>\n", page->file);
}
