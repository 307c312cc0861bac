/* SPDX-License-Identifier: Apache-2.0
 *
 * report_words_test.c - what the first sentences say: of what was run last, of what counts, of a crash, of
 * kernels that nobody judged, of one and of many.
 */
#include "results/report_test_util.h"
#include "results/store_test_util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void begin(struct mla_store *store, const char *command, const char *kernels)
{
    struct mla_store_build build = {"aaaa111", false, "cc", "-O2", "", "any"};
    struct mla_store_run run = {command, "a CPU", kernels, 1};
    assert_int_equal(mla_store_begin_run(store, &build, &run, NULL), MLA_STORE_OK);
}

static void says(struct mla_store *store, enum mla_report_format format, const char *part, size_t n)
{
    char *text = test_report_render(store, format);
    if (test_report_count(text, part) != n) {
        fail_msg("format %d: '%s' not %zu times in %s", (int)format, part, n, text);
    }
    free(text);
}

static void last_is(struct mla_store *store, const char *expected)
{
    struct mla_report *report = test_report_read(store);
    char *last = mla_report_last(report);
    assert_string_equal(last, expected);
    free(last);
    mla_report_free(report);
}

/* A hunt that found nothing is told in the answer of every format for people, not in a table alone. */
static void the_last_run_is_named(void **state)
{
    static const enum mla_report_format formats[] = {MLA_REPORT_HTML, MLA_REPORT_MARKDOWN,
                                                     TEST_ANNOTATIONS};
    const char *path = test_path(*state, "last.db");
    struct mla_store *store = test_open(path);
    begin(store, "fuzz --time 60", "scalar");
    assert_int_equal(mla_store_tally(store, "ring", "scalar", "coded", "pass", 23000, 0.5), 0);
    assert_int_equal(mla_store_tally(store, "ring", "scalar", "coded", "unjudged", 438, -1), 0);
    test_report_judge(store, 1, "scalar", "pass", 0.25);
    assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
    test_exec(path, "UPDATE run SET ended = started");
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        char *text = test_report_render(store, formats[i]), *plain = text;
        for (char *c = text; *c != '\0'; c++) { /* Markdown's escapes */
            *plain = *c;
            plain += *c != '\\';
        }
        *plain = '\0';
        assert_non_null(strstr(text, "with scalar: 23439 executions, 438 of them not judged, no "
                                     "fault found."));
        free(text);
    }
    last_is(store,
            "The last run, 1, was a hunt (mlacheck fuzz) with scalar: 23439 executions, 438 of "
            "them not judged, no fault found.");
    says(store, MLA_REPORT_JSON,
         "\"last_run\":{\"run\":1,\"verb\":\"fuzz\",\"kernels\":\"scalar\","
         "\"results\":23439,\"judged\":23001,\"failed\":0,",
         1);
    says(store, MLA_REPORT_HTML,
         "Nothing to compare yet (no case was judged by two runs), and nothing fails.", 1);
    begin(store, "fuzz", "scalar");
    test_report_judge(store, 1, "scalar", "crash", -1);
    last_is(store, "The last run, 2, was a hunt (mlacheck fuzz) with scalar: 1 execution, 1 fault "
                   "found; it did not end.");
    begin(store, "run --set all", "a,b,c,d,e");
    test_report_judge(store, 1, "a", "pass", 0.25);
    test_report_judge(store, 2, "fault:b", "fail-certain", 2);
    assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
    test_exec(path, "UPDATE run SET ended = started");
    last_is(store,
            "The last run, 3, was mlacheck run with a, b, c and 2 more: 2 results, 1 failed (1 "
            "by a kernel that is wrong on purpose, which counts nowhere else).");
    begin(store, "run", "idle");
    test_report_judge(store, 1, "idle", "unsupported", -1);
    assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
    test_exec(path, "UPDATE run SET ended = started");
    last_is(store, "The last run, 4, was mlacheck run with idle: 1 result, none of them judged.");
    begin(store, "bench --op ring", "scalar");
    last_is(store,
            "The last run, 5, was mlacheck bench with scalar: timings, no case; it did not end.");
    mla_store_close(store);
}

/* Who failed at one commit and who passed at another are counted among the same. */
static void counts_are_of_present_states(void **state)
{
    struct mla_store *store = test_open(test_path(*state, "counts.db"));
    test_report_begin(store, "aaaa111", "");
    for (unsigned n = 1; n <= 6; n++) {
        test_report_judge(store, n, "scalar", n <= 4 ? "fail-certain" : "pass", n <= 4 ? 9 : 0.25);
    }
    test_report_begin(store, "bbbb222", "");
    test_report_judge(store, 7, "scalar", "pass", 0.5);
    struct mla_report *report = test_report_read(store);
    struct mla_report_answer a = mla_report_answer(report);
    assert_int_equal(a.failing, 4);
    assert_int_equal(a.judged, 7);
    assert_int_equal(a.cases, 7);
    assert_int_equal(mla_subject_judged(&report->subjects[0]), 7);
    assert_int_equal(mla_subject_failing(&report->subjects[0]), 4);
    assert_int_equal(report->subjects[0].measured, 1); /* figures are of the last commit */
    assert_true(report->subjects[0].worst.y == 0.5);
    assert_true(mla_report_worst(report)->gravest_fails);
    mla_report_free(report);
    says(store, MLA_REPORT_MARKDOWN, "4 of 7 judged results failing now", 1);
    mla_store_close(store);
}

/* A crash has a name and no figure, whatever was measured before it. */
static void a_crash_is_no_figure(void **state)
{
    struct mla_store *store = test_open(test_path(*state, "crash.db"));
    test_report_begin(store, "aaaa111", "");
    test_report_judge(store, 1, "dies", "pass", 0.25);
    test_report_judge(store, 2, "dies", "crash", 0.75); /* a relation's second call died */
    test_report_judge(store, 3, "late", "timeout", -1);
    test_report_judge(store, 4, "lies", "fail-certain", -1); /* a wrong status */
    test_report_judge(store, 5, "ends", "refused", -1);
    struct mla_report *report = test_report_read(store);
    for (size_t i = 0; i < report->subjects_n; i++) {
        const struct mla_subject *s = &report->subjects[i];
        bool first = strcmp(s->kernel, "dies") == 0;
        assert_int_equal(s->worst.n, first);
        assert_int_equal(s->measured, first);
        assert_int_equal(s->max_ulp.n, first);
        assert_true(!first || (s->worst.y == 0.25 && s->max_ulp.y == 0.5));
    }
    mla_report_free(report);
    says(store, MLA_REPORT_HTML, ": it fails, <b class=\"bad\">crash</b> (", 1);
    says(store, MLA_REPORT_HTML, "fails, timeout:</span>", 1);
    says(store, MLA_REPORT_HTML, "err/B inf", 0);
    says(store, MLA_REPORT_HTML, ">inf<", 0);
    says(store, MLA_REPORT_MARKDOWN, ", fails, **crash**: ", 1);
    says(store, MLA_REPORT_MARKDOWN, "inf", 0);
    says(store, TEST_ANNOTATIONS, "title=ring/dies fails, never passed::crash: ", 1);
    says(store, TEST_ANNOTATIONS, "inf", 0);
    says(store, MLA_REPORT_JSON, "\"worst_fails\":true,\"worst_verdict\":\"crash\"", 1);
    says(store, MLA_REPORT_SARIF, ": timeout, ", 1);
    says(store, MLA_REPORT_CSV, ",inf,", 0);
    mla_store_close(store);
}

/* Of what was not judged now, though it was by an earlier commit: not green. */
static void idle_is_of_the_last_commit(void **state)
{
    struct mla_store *store = test_open(test_path(*state, "idle.db"));
    test_report_begin(store, "aaaa111", "");
    test_report_judge(store, 1, "scalar", "pass", 0.25);
    says(store, MLA_REPORT_JUNIT, "<error", 0);
    test_report_begin(store, "bbbb222", "");
    test_report_judge(store, 2, "scalar", "unsupported", -1);
    says(store, MLA_REPORT_JUNIT, "tests=\"2\" failures=\"0\" errors=\"1\" skipped=\"0\"", 2);
    says(store, MLA_REPORT_JUNIT, "none of its 1 case was judged: 1 unsupported, 0 unjudged", 1);
    says(store, TEST_ANNOTATIONS, "::notice", 0);
    says(store, MLA_REPORT_HTML, "class=\"answer good\"", 0);
    says(store, MLA_REPORT_SARIF, "\"ruleId\":\"MLA1005\"", 1);
    test_report_begin(store, "bbbb222", "");
    test_report_judge(store, 3, "scalar", "pass", 0.25);
    says(store, MLA_REPORT_JUNIT, "<error", 0);
    says(store, MLA_REPORT_JUNIT, "<skipped message=\"1 unsupported", 1);
    test_report_begin(store, "cccc333", ""); /* a hunt, all of it unjudged */
    assert_int_equal(mla_store_tally(store, "ring", "scalar", "coded", "unjudged", 5, -1), 0);
    says(store, MLA_REPORT_JUNIT, "none of its 5 cases was judged: 0 unsupported, 5 unjudged\"", 1);
    mla_store_close(store);
}

/* GitHub shows the first ten errors of a step: the answer is one of them, and tells how to run the others. */
static void annotations_begin_with_the_answer(void **state)
{
    struct mla_store *store = test_open(test_path(*state, "github.db"));
    for (int i = 0; i < 2; i++) {
        test_report_begin(store, i == 0 ? "aaaa111" : "bbbb222", "");
        for (unsigned n = 1; n <= 12; n++) {
            test_report_judge(store, n, "scalar", i == 0 ? "pass" : "fail-certain", 0.25);
        }
    }
    assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
    char *text = test_report_render(store, TEST_ANNOTATIONS);
    static const char begin[] =
        "::error title=mlacheck: regressed::12 of 12 results compared with earlier runs regressed; "
        "12 of 12 "
        "judged results failing now.%0AFailing: ring/scalar 12 (12 regressed since run 2).%0AThe "
        "gravest 9 "
        "of 12 cases follow, the report names more.%0AThe last run, 2, was ";
    assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
    assert_int_equal(test_report_count(text, "::error "), 10);
    char *markdown = test_report_render(store, MLA_REPORT_MARKDOWN);
    assert_non_null(strstr(markdown, "gravest first: 12 of 12\n"));
    assert_non_null(strstr(markdown, "Failing: ring/scalar 12 (12 regressed since run 2)."));
    free(markdown);
    assert_int_equal(
        test_report_count(text, "%0Asince run 2, commit bbbb222; last better in run 1, commit "
                                "aaaa111; err/B 0.25%0Arun it: mlacheck run "),
        9);
    free(text);
    mla_store_close(store);
}

static void one_is_no_plural(void **state)
{
    struct mla_store *store = test_open(test_path(*state, "one.db"));
    test_report_begin(store, "aaaa111", "");
    test_report_judge(store, 1, "scalar", "pass", 0.25);
    says(store, MLA_REPORT_HTML, "the database holds 1 verdict and counted case of 1 run.", 1);
    says(store, MLA_REPORT_HTML, "0 of 1 judged result failing now", 1);
    says(store, MLA_REPORT_JUNIT, "\"1 other judged case\"", 1);
    test_report_begin(store, "bbbb222", "");
    test_report_judge(store, 1, "scalar", "fail-certain", 2);
    says(store, MLA_REPORT_HTML,
         "Regressed: 1 of 1 result passed before and fails now, 1 kernel and "
         "operation concerned.",
         1);
    says(store, MLA_REPORT_HTML, "1 now fails;", 1);
    mla_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_run_is_named),
        cmocka_unit_test(counts_are_of_present_states),
        cmocka_unit_test(a_crash_is_no_figure),
        cmocka_unit_test(idle_is_of_the_last_commit),
        cmocka_unit_test(annotations_begin_with_the_answer),
        cmocka_unit_test(one_is_no_plural),
    };
    return cmocka_run_group_tests(tests, test_report_setup, test_report_teardown);
}
