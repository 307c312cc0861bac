/* SPDX-License-Identifier: Apache-2.0
 *
 * report_test.c - the rule of regression, what a report finds in runs made here, and that no text of
 * the database gets out of its quotes.
 */
#include "results/report.h"

#include "results/report_internal.h"
#include "results/report_test_util.h"
#include "results/report_text.h"
#include "results/store_test_util.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct mla_outcome outcome(size_t rank, enum mla_grade grade, double ratio)
{
    return (struct mla_outcome){.rank = rank, .grade = grade, .ratio = ratio};
}

static void rule_finds_what_got_worse(void **state)
{
    (void)state;
    const struct {
        struct mla_outcome o[4];
        size_t n;
        enum mla_change_kind kind;
        size_t good, since;
    } cases[] = {
        {{outcome(0, MLA_GRADE_PASS, 0.5)}, 1, MLA_SAME, 0, 0},
        {{outcome(0, MLA_GRADE_CERTAIN, 5)}, 1, MLA_BROKEN, 0, 0},
        {{outcome(0, MLA_GRADE_CERTAIN, 5), outcome(1, MLA_GRADE_CERTAIN, 6)}, 2, MLA_BROKEN, 1, 0},
        {{outcome(0, MLA_GRADE_PASS, 0.5), outcome(1, MLA_GRADE_PASS, 0.59)}, 2, MLA_SAME, 1, 1},
        {{outcome(0, MLA_GRADE_PASS, 0.5), outcome(1, MLA_GRADE_PASS, 0.61)}, 2, MLA_GREW, 0, 1},
        {{outcome(0, MLA_GRADE_PASS, 0.9), outcome(1, MLA_GRADE_PASS, 0.1)}, 2, MLA_SAME, 1, 1},
        {{outcome(0, MLA_GRADE_PASS, 0.5), outcome(1, MLA_GRADE_CERTAIN, 2)}, 2, MLA_FAILS, 0, 1},
        {{outcome(0, MLA_GRADE_PASS, 0.5), outcome(1, MLA_GRADE_CRASH, -1)}, 2, MLA_FAILS, 0, 1},
        {{outcome(0, MLA_GRADE_PASS, 0.5), outcome(1, MLA_GRADE_TIMEOUT, -1)}, 2, MLA_FAILS, 0, 1},
        {{outcome(0, MLA_GRADE_PASS, .5), outcome(1, MLA_GRADE_IMPROBABLE, .5)},
         2,
         MLA_FAILS,
         0,
         1},
        {{outcome(0, MLA_GRADE_REFUSED, -1), outcome(1, MLA_GRADE_CERTAIN, -1)},
         2,
         MLA_FAILS,
         0,
         1},
        {{outcome(0, MLA_GRADE_PASS, 0.5), outcome(1, MLA_GRADE_UNJUDGED, -1)}, 2, MLA_LOST, 0, 1},
        {{outcome(0, MLA_GRADE_UNSUPPORTED, -1), outcome(1, MLA_GRADE_PASS, 1)}, 2, MLA_SAME, 1, 1},
        /* since the first run after the last good one, however often it was seen since */
        {{outcome(2, MLA_GRADE_PASS, 0.5), outcome(4, MLA_GRADE_CERTAIN, 2),
          outcome(6, MLA_GRADE_CERTAIN, 2), outcome(8, MLA_GRADE_CERTAIN, 2)},
         4,
         MLA_FAILS,
         2,
         4},
        {{outcome(2, MLA_GRADE_PASS, 0.5), outcome(4, MLA_GRADE_CERTAIN, 2),
          outcome(6, MLA_GRADE_PASS, 0.5), outcome(8, MLA_GRADE_CERTAIN, 2)},
         4,
         MLA_FAILS,
         6,
         8},
        /* fixed */
        {{outcome(0, MLA_GRADE_PASS, 0.5), outcome(1, MLA_GRADE_CERTAIN, 2),
          outcome(2, MLA_GRADE_PASS, 0.5)},
         3,
         MLA_SAME,
         2,
         2},
        /* slow growth adds up */
        {{outcome(0, MLA_GRADE_PASS, 0.5), outcome(1, MLA_GRADE_PASS, 0.56),
          outcome(2, MLA_GRADE_PASS, 0.62)},
         3,
         MLA_GREW,
         0,
         1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mla_change c = mla_report_rule(cases[i].o, cases[i].n);
        if (c.kind != cases[i].kind || c.good != cases[i].good || c.since != cases[i].since) {
            fail_msg("row %zu: kind %d, good %zu, since %zu", i, (int)c.kind, c.good, c.since);
        }
    }
}

static void answer_is_right(void **state)
{
    const char *path = test_path(*state, "answer.db");
    struct mla_store *store = test_report_runs(path, "scalar");
    struct mla_report *report;
    assert_int_equal(mla_report_read(store, &report), MLA_STORE_OK);
    struct mla_report_answer a = mla_report_answer(report);
    assert_int_equal(a.verdicts, 9);
    assert_int_equal(a.fails, 1); /* 1; case 4 never passed */
    assert_int_equal(a.grew, 1);  /* 2 */
    assert_int_equal(a.failing, 2);
    assert_int_equal(a.compared, 2);
    assert_int_equal(a.cases,
                     5); /* 1, 2, 4, and 3 as the first commit left it; 2 with the sanitizer */
    assert_int_equal(a.judged, 5);
    assert_int_equal(report->changes_n, 3);
    assert_int_equal(report->changes[0].kind, MLA_FAILS);
    assert_int_equal(report->changes[1].kind, MLA_BROKEN);
    assert_int_equal(report->runs[report->changes[0].since].id, 2);
    assert_int_equal(report->runs[report->changes[0].good].id, 1);
    assert_int_equal(report->runs[report->changes[2].since].id, 3);
    assert_int_equal(report->runs[report->changes[2].good].id, 2);
    const struct mla_subject *worst = mla_report_worst(report);
    assert_true(isinf(worst->worst.y));
    assert_int_equal(worst->measured, 3);
    assert_true(worst->rounded_sum == 270 && worst->bias_up == -3 && worst->bias_outward == 2);
    mla_report_free(report);
    assert_int_equal(mla_store_close(store), MLA_STORE_OK);
}

/* An error that grew before does not date what fails since. */
static void since_is_the_regressions(void **state)
{
    struct mla_store *store = test_open(test_path(*state, "since.db"));
    struct mla_report *report;
    const double first[] = {0.25, 0.5, 0.5};
    for (int i = 0; i < 3; i++) {
        test_report_begin(store, (const char *[]){"aaaa111", "bbbb222", "cccc333"}[i], "");
        test_report_judge(store, 1, "scalar", "pass", first[i]);
        test_report_judge(store, 2, "scalar", i < 2 ? "pass" : "fail-certain", 0.25);
        assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
        assert_int_equal(mla_report_read(store, &report), MLA_STORE_OK);
        const struct mla_subject *s = &report->subjects[0];
        assert_int_equal(s->grew, i > 0);
        assert_int_equal(s->fails, i > 1);
        assert_true(i == 0 || report->runs[s->since].id == i + 1);
        mla_report_free(report);
    }
    mla_store_close(store);
}

/* Only a run that passes the case takes a failure back: not one of other cases, not one that did not judge. */
static void failures_stay_until_they_pass(void **state)
{
    struct mla_store *store = test_open(test_path(*state, "stay.db"));
    struct mla_report *report;
    static const char *const commits[] = {"aaaa111", "bbbb222", "cccc333", "bbbb222", "dddd444"};
    for (int i = 0; i < 5; i++) {
        test_report_begin(store, commits[i], "");
        if (i != 2)
            test_report_judge(store, 1, "scalar",
                              (const char *[]){"pass", "fail-certain", "", "unjudged", "pass"}[i],
                              i == 3 ? -1 : 0.25);
        test_report_judge(store, 2, "scalar", "pass", 0.25);
        assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
        assert_int_equal(mla_report_read(store, &report), MLA_STORE_OK);
        struct mla_report_answer a = mla_report_answer(report);
        assert_int_equal(a.fails, i >= 1 && i <= 3);
        assert_int_equal(a.failing, i >= 1 && i <= 3);
        mla_report_free(report);
    }
    mla_store_close(store);
}

/* Faults are planted to be found: they are no news. */
static void planted_faults_are_no_regression(void **state)
{
    struct mla_store *store =
        test_report_runs(test_path(*state, "planted.db"), "fault:rope-ignored");
    struct mla_report *report;
    assert_int_equal(mla_report_read(store, &report), MLA_STORE_OK);
    struct mla_report_answer a = mla_report_answer(report);
    assert_int_equal(a.fails + a.grew + a.failing + a.flaky + a.compared + a.cases, 0);
    assert_null(mla_report_worst(report));
    assert_int_equal(report->changes_n, 0);
    mla_report_free(report);
    /* a table of their own, and in no other */
    char *html = test_report_render(store, MLA_REPORT_HTML),
         *xml = test_report_render(store, MLA_REPORT_JUNIT);
    char *markdown = test_report_render(store, MLA_REPORT_MARKDOWN),
         *sarif = test_report_render(store, MLA_REPORT_SARIF);
    assert_int_equal(test_report_count(html, "ring/fault:rope-ignored</td>"), 1);
    assert_true(strstr(html, "ring/fault:rope-ignored</td>") > strstr(html, "id=\"planted\""));
    assert_null(strstr(xml, "rope-ignored"));
    assert_null(strstr(markdown, "rope-ignored"));
    assert_null(strstr(sarif, "rope-ignored"));
    free(html);
    free(xml);
    free(markdown);
    free(sarif);
    mla_store_close(store);
}

static void tallies_and_empty(void **state)
{
    struct mla_store *store = test_open(test_path(*state, "tally.db"));
    struct mla_report *report;
    assert_int_equal(mla_report_read(store, &report), MLA_STORE_OK);
    assert_true(mla_report_is_empty(report));
    mla_report_free(report);
    test_report_begin(store, "aaaa111", "");
    assert_int_equal(mla_store_tally(store, "ring", "scalar", "coded", "pass", 1000, 0.5),
                     MLA_STORE_OK);
    assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
    assert_int_equal(mla_report_read(store, &report), MLA_STORE_OK);
    assert_false(mla_report_is_empty(report));
    assert_int_equal(mla_report_answer(report).verdicts, 1000);
    assert_int_equal(report->subjects[0].tallied, 1000);
    mla_report_free(report);
    free(test_report_render(store, MLA_REPORT_HTML)); /* nothing to plot */
    /* One run: a plot with the names of both axes, of the run and of both ends of the scale. */
    for (int seconds = 1; seconds <= 2; seconds++) {
        char sql[160];
        (void)snprintf(sql, sizeof sql,
                       "UPDATE run SET started = '2026-01-01T10:00:00Z',"
                       " ended = '2026-01-01T10:00:0%dZ'",
                       seconds);
        test_exec(test_path(*state, "tally.db"), sql);
        char *html = test_report_render(store, MLA_REPORT_HTML);
        assert_int_equal(test_report_count(html, "<figure>"), 1);
        assert_int_equal(test_report_count(html, "<text"), 5);
        free(html);
    }
    mla_store_close(store);
}

static void html_is_whole_and_harmless(void **state)
{
    struct mla_store *store = test_report_runs(test_path(*state, "html.db"), TEST_HOSTILE);
    char *html = test_report_render(store, MLA_REPORT_HTML);
    assert_int_equal(strncmp(html, "<!DOCTYPE html>", 15), 0);
    assert_non_null(strstr(html, "</html>\n"));
    assert_null(strstr(html, "<script"));
    assert_null(strstr(html, "http://localhost"));
    assert_null(strchr(html, '\x01'));
    assert_null(strchr(html, '\xff'));
    assert_non_null(strstr(html, "&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_non_null(strstr(html, "Regressed: 1 of 2 results"));
    /* every plot is drawn: ulp twice, L, R, the trend, two heat maps */
    assert_true(test_report_count(html, "<figure>") >= 7);
    assert_int_equal(test_report_count(html, "<figure>"), test_report_count(html, "role=\"img\""));
    assert_true(test_report_count(html, "class=\"dot") > 10);
    /* every link leads somewhere */
    for (const char *at = strstr(html, "href=\"#c-"); at != NULL;
         at = strstr(at + 1, "href=\"#c-")) {
        char anchor[32];
        (void)snprintf(anchor, sizeof anchor, "id=\"c-%.12s\"", at + 9);
        assert_non_null(strstr(html, anchor));
    }
    free(html);
    mla_store_close(store);
}

/* SQLite's own parser reads the JSON; the kernel comes back as one text. */
static void json_is_json(void **state)
{
    const char *path = test_path(*state, "json.db");
    struct mla_store *store = test_report_runs(path, TEST_HOSTILE);
    static const enum mla_report_format formats[] = {MLA_REPORT_JSON, MLA_REPORT_SARIF};
    for (size_t i = 0; i < 2; i++) {
        char *json = test_report_render(store, formats[i]);
        char *sql = malloc(2 * strlen(json) + 100), *to = sql;
        assert_non_null(sql);
        to += sprintf(to, "SELECT json_valid('");
        for (const char *from = json; *from != '\0'; from++) {
            *to++ = *from;
            if (*from == '\'') {
                *to++ = '\'';
            }
        }
        (void)strcpy(to, "')");
        assert_int_equal(test_number(path, sql), 1);
        assert_non_null(strstr(json, i == 0 ? "\"regressed\":1" : "\"ruleId\":\"MLA1001\""));
        free(sql);
        free(json);
    }
    mla_store_close(store);
}

static void other_formats_are_harmless(void **state)
{
    struct mla_store *store = test_report_runs(test_path(*state, "formats.db"), TEST_HOSTILE);
    char *xml = test_report_render(store, MLA_REPORT_JUNIT),
         *csv = test_report_render(store, MLA_REPORT_CSV);
    char *markdown = test_report_render(store, MLA_REPORT_MARKDOWN);
    assert_null(strstr(xml, "<script"));
    assert_null(strstr(xml, "]]>"));
    assert_int_equal(test_report_count(xml, "<failure "), 2);
    assert_non_null(strstr(csv, "\"'=k\"\"'<script>"));  /* no formula, quotes doubled */
    assert_int_equal(test_report_count(csv, "\r\n"), 3); /* head, with and without sanitizer */
    assert_null(strstr(markdown, "| ring/=k\"'<script>"));
    assert_non_null(strstr(markdown, "**Regressed: 1 of 2 results**"));
    /* One command a line: GitHub ends a title at the first "::" and takes the rest as the message, of
     * which it undoes only the escapes of % and line ends: %3A would stay in the line to run. */
    char *annotations = test_report_render(store, TEST_ANNOTATIONS);
    assert_int_equal(test_report_count(annotations, "\n"), 4);
    assert_int_equal(test_report_count(annotations, "\n::"), 3);
    assert_int_equal(strncmp(annotations, "::", 2), 0);
    assert_int_equal(test_report_count(annotations, "%250A%3A%3Aerror%3A%3A"), 3); /* titles */
    assert_int_equal(test_report_count(annotations, "%250A::error::"),
                     6); /* reasons, lines to run, kernels that fail */
    assert_int_equal(test_report_count(annotations, "::error "),
                     3); /* the cases that fail, and the answer */
    assert_int_equal(test_report_count(annotations, "::warning "),
                     1); /* the one whose error grew */
    free(annotations);
    free(xml);
    free(csv);
    free(markdown);
    mla_store_close(store);
}

/* Of the runs without an end only the latest is told: what it did not reach is missing. */
static void a_latest_run_that_was_cut_off(void **state)
{
    static const enum mla_report_format formats[] = {MLA_REPORT_HTML, MLA_REPORT_MARKDOWN};
    const char *path = test_path(*state, "cut_off.db");
    struct mla_store *store = test_report_runs(path, "scalar");
    for (int ended = 0; ended < 2; ended++) {
        for (size_t i = 0; i < 2; i++) {
            char *text = test_report_render(store, formats[i]);
            assert_int_equal(test_report_count(text, "The latest run, 4, did not end"), !ended);
            free(text);
        }
        test_exec(path, "UPDATE run SET ended = started WHERE id = 4");
    }
    mla_store_close(store);
}

/* A case that fails comes before one that is nearer to its bound, with the command that makes it fail. */
static void worst_is_one_that_fails(void **state)
{
    const char *path = test_path(*state, "worst.db");
    struct mla_store *store = test_open(path);
    test_report_begin(store, "aaaa111", "");
    test_report_judge(store, 1, "honest", "pass", 0.9);
    test_report_judge(store, 2, "./my kernel's.so", "fail-certain", 0.25);
    test_report_judge(store, 3, "./my kernel's.so", "fail-improbable", 0.5);
    test_report_judge(store, 4, "./my kernel's.so", "pass", 0.75);
    assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
    test_exec(path, "UPDATE finding SET repro = 'mlacheck run it --relations'");
    struct mla_report *report;
    assert_int_equal(mla_report_read(store, &report), MLA_STORE_OK);
    const struct mla_subject *s = mla_report_worst(report);
    assert_string_equal(s->kernel, "./my kernel's.so");
    assert_true(s->gravest_fails && s->gravest.y == 0.5 && s->worst.y == 0.75);
    struct mla_case_row row = {.num = s->gravest.testcase, .line = (char[]){"ring v=1 $(id)"}};
    char *text = mla_report_repro(report, s, &row);
    assert_string_equal(text, "mlacheck run it --relations");
    free(text);
    test_exec(path, "UPDATE finding SET repro = ''"); /* what the verdict says must do */
    for (int by_relation = 0; by_relation < 2; by_relation++) {
        text = mla_report_repro(report, s, &row);
        assert_int_equal(strstr(text, "--case 'ring v=1 $(id)' --relations") != NULL, by_relation);
        assert_int_equal(strstr(text, "--relations") != NULL, by_relation);
        free(text);
        test_exec(path, "UPDATE verdict SET relation = 'threads'");
    }
    test_exec(path, "UPDATE finding SET repro = 'mlacheck run it --relations'");
    row.num = s->worst.testcase; /* it passes: no finding */
    text = mla_report_repro(report, s, &row);
    assert_string_equal(text,
                        "mlacheck run --kernel './my kernel'\\''s.so' --case 'ring v=1 $(id)'");
    free(text);
    mla_report_free(report);
    char *html = test_report_render(store, MLA_REPORT_HTML),
         *markdown = test_report_render(store, MLA_REPORT_MARKDOWN);
    assert_non_null(strstr(html, "err/B 0.5: it fails, <b class=\"bad\">fail-improbable</b> ("));
    assert_non_null(strstr(html, "). Run it:</p>\n<pre>mlacheck run it --relations</pre>"));
    assert_non_null(strstr(markdown, ", err/B 0.5, fails, **fail-improbable**: "));
    assert_non_null(strstr(markdown, "\n\n  ` mlacheck run it --relations `"));
    assert_non_null(
        strstr(html, "fails, fail-improbable:</span> <code>mlacheck run it --relations</code>"));
    char *csv = test_report_render(store, MLA_REPORT_CSV),
         *json = test_report_render(store, MLA_REPORT_JSON);
    assert_non_null(strstr(csv, "\"mlacheck run it --relations\",000000030000,1,0,0,"));
    assert_non_null(strstr(json, "\"worst\":{\"value\":0.5,"));
    free(csv);
    free(json);
    free(html);
    free(markdown);
    mla_store_close(store);
}

/* No half report without gnuplot. */
static void without_gnuplot(void **state)
{
    struct mla_store *store = test_report_runs(test_path(*state, "gnuplot.db"), "scalar");
    char *path = strdup(getenv("PATH")), *text = NULL;
    size_t bytes = 0;
    struct mla_report *report;
    assert_int_equal(mla_report_read(store, &report), MLA_STORE_OK);
    FILE *file = open_memstream(&text, &bytes);
    assert_int_equal(setenv("PATH", *state, 1), 0);
    assert_int_equal(mla_report_write(report, MLA_REPORT_HTML, file), MLA_STORE_ERR_OPEN);
    assert_non_null(strstr(mla_store_message(store), "gnuplot-nox"));
    /* one that does nothing, and one that complains */
    const char *fake = test_path(*state, "gnuplot");
    test_write_file(fake, "#!/bin/sh\n", 10);
    assert_int_equal(chmod(fake, 0755), 0);
    assert_int_equal(mla_report_write(report, MLA_REPORT_HTML, file), MLA_STORE_ERR_OPEN);
    assert_non_null(strstr(mla_store_message(store), "drew 0 of"));
    test_write_file(fake, "#!/bin/sh\necho oh no >&2; exit 5\n", 33);
    assert_int_equal(mla_report_write(report, MLA_REPORT_HTML, file), MLA_STORE_ERR_OPEN);
    assert_non_null(strstr(mla_store_message(store), "status 5): oh no"));
    assert_int_equal(setenv("PATH", path, 1), 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(bytes, 0);
    free(text);
    free(path);
    mla_report_free(report);
    mla_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_finds_what_got_worse),
        cmocka_unit_test(answer_is_right),
        cmocka_unit_test(since_is_the_regressions),
        cmocka_unit_test(failures_stay_until_they_pass),
        cmocka_unit_test(planted_faults_are_no_regression),
        cmocka_unit_test(tallies_and_empty),
        cmocka_unit_test(html_is_whole_and_harmless),
        cmocka_unit_test(json_is_json),
        cmocka_unit_test(other_formats_are_harmless),
        cmocka_unit_test(a_latest_run_that_was_cut_off),
        cmocka_unit_test(worst_is_one_that_fails),
        cmocka_unit_test(without_gnuplot),
    };
    return cmocka_run_group_tests(tests, test_report_setup, test_report_teardown);
}
