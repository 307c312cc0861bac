/* SPDX-License-Identifier: Apache-2.0
 *
 * report_states_test.c - which runs are the same thing judged again: flaky cases, changed trees, plug-ins,
 * runs of one second; and that what did not pass, was not measured or not drawn in its place says so.
 */
#include "results/report_test_util.h"
#include "results/store_test_util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* One pass takes no failure of the same clean commit back, and one failure is told as that. */
static void flaky_counts_as_failed(void **state)
{
    struct mla_store *store = test_open(test_path(*state, "flaky.db"));
    test_report_begin(store, "aaaa111", "");
    test_report_judge(store, 1, "scalar", "pass", 0.25);
    test_report_judge(store, 2, "scalar", "fail-certain", 3);
    for (int i = 0; i < 3; i++) { /* of the same commit: the one in the middle fails */
        test_report_begin(store, "bbbb222", "");
        test_report_judge(store, 1, "scalar", i == 1 ? "fail-certain" : "pass", i == 1 ? 2 : 0.25);
        test_report_judge(store, 2, "scalar", "pass", 0.25);
    }
    struct mla_report *report = test_report_read(store);
    struct mla_report_answer a = mla_report_answer(report);
    assert_int_equal(a.fails, 1);
    assert_int_equal(a.failing, 1); /* case 2 failed at another commit */
    assert_int_equal(a.flaky, 1);
    assert_int_equal(report->changes[0].failed_n, 1);
    assert_int_equal(report->changes[0].runs_n, 3);
    assert_int_equal(report->runs[report->changes[0].since].id, 3);
    mla_report_free(report);
    static const enum mla_report_format formats[] = {
        MLA_REPORT_HTML, MLA_REPORT_MARKDOWN, MLA_REPORT_JUNIT, MLA_REPORT_SARIF, TEST_ANNOTATIONS};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        char *text = test_report_render(store, formats[i]);
        assert_non_null(strstr(text, "1 of 3 runs"));
        assert_non_null(strstr(text, "flaky"));
        free(text);
    }
    test_report_begin(store, "cccc333", ""); /* another commit that passes it does */
    test_report_judge(store, 1, "scalar", "pass", 0.25);
    report = test_report_read(store);
    assert_int_equal(mla_report_answer(report).failing + mla_report_answer(report).flaky, 0);
    mla_report_free(report);
    mla_store_close(store);
}

/* A changed work tree is nobody's repetition, and no point of the trend with the clean one. */
static void changed_trees_stand_apart(void **state)
{
    const char *path = test_path(*state, "dirty.db");
    struct mla_store *store = test_open(path);
    test_report_begin(store, "aaaa111", "");
    test_report_judge(store, 1, "scalar", "pass", 0.25);
    for (int i = 0; i < 2; i++) {
        struct mla_store_build build = {"aaaa111", true, "cc", "-O2", "", "any"};
        struct mla_store_run run = {"run", "a CPU", "scalar", 1};
        assert_int_equal(mla_store_begin_run(store, &build, &run, NULL), MLA_STORE_OK);
        test_report_judge(store, 1, "scalar", i == 0 ? "fail-certain" : "pass", i == 0 ? 4 : 0.5);
    }
    struct mla_report *report = test_report_read(store);
    assert_int_equal(report->states_n, 2);
    assert_int_equal(mla_report_answer(report).failing, 0);
    assert_true(report->subjects[0].trend[0].y == 0.25 && report->subjects[0].trend[1].y == 4);
    mla_report_free(report);
    test_report_begin(store, "bbbb222", "address");
    test_report_judge(store, 1, "scalar", "fail-certain", 2);
    assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
    static const struct {
        enum mla_report_format format;
        const char *dirty, *sanitizer;
    } said[] = {{MLA_REPORT_HTML, "aaaa111-dirty", "<td>bbbb222 [address]</td>"},
                {MLA_REPORT_MARKDOWN, "aaaa111-dirty", "ring/scalar &#91;address&#93;: "},
                {MLA_REPORT_JUNIT, "", "classname=\"ring.scalar [address]\""},
                {MLA_REPORT_SARIF, "", "ring/scalar/address/"},
                {MLA_REPORT_JSON, "\"dirty\":true", "\"sanitizer\":\"address\""},
                {TEST_ANNOTATIONS, "", "title=ring/scalar [address]"}};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        char *text = test_report_render(store, said[i].format);
        if (strstr(text, said[i].dirty) == NULL || strstr(text, said[i].sanitizer) == NULL) {
            fail_msg("format %d: %s", (int)said[i].format, text);
        }
        free(text);
    }
    mla_store_close(store);
}

/* A plug-in's file changes while the harness's commit stays. */
static void plugins_are_told_apart_by_their_files(void **state)
{
    static const char *const kernels[] = {"scalar,./k.so:k" /* of before */,
                                          "scalar,./k.so:k@0123456789ab",
                                          "scalar,./k.so:k@ba9876543210"};
    struct mla_store *store = test_open(test_path(*state, "plugin.db"));
    for (int i = 0; i < 3; i++) {
        struct mla_store_build build = {"aaaa111", false, "cc", "-O2", "", "any"};
        struct mla_store_run run = {"run", "a CPU", kernels[i], 1};
        assert_int_equal(mla_store_begin_run(store, &build, &run, NULL), MLA_STORE_OK);
        test_report_judge(store, 1, "scalar", "pass", 0.25);
        test_report_judge(store, 1, "./k.so:k", i == 1 ? "fail-certain" : "pass",
                          i == 1 ? 5 : 0.25);
        if (i == 1) {
            struct mla_report *report = test_report_read(store);
            assert_int_equal(mla_report_answer(report).failing, 1);
            mla_report_free(report);
            char *markdown = test_report_render(store, MLA_REPORT_MARKDOWN);
            assert_non_null(strstr(markdown, "aaaa111, file 0123456789ab, "));
            free(markdown);
        }
    }
    struct mla_report *report = test_report_read(store);
    const struct mla_subject *s = &report->subjects[0];
    assert_string_equal(s->kernel, "./k.so:k");
    assert_int_equal(mla_report_answer(report).failing, 0); /* another file, no repetition */
    assert_int_equal(report->states_n, 3);
    assert_true(s->trend[1].y == 5 && s->trend[2].y == 0.25);
    assert_int_equal(report->subjects[1].trend[0].n, 3); /* scalar is of the commit alone */
    mla_report_free(report);
    mla_store_close(store);
}

/* Whatever its path holds: commas, which part kernels, and what looks like another plug-in's. */
static void plugins_are_found_by_any_path(void **state)
{
    static const struct {
        const char *kernels, *kernel;
    } runs[] = {{"scalar,/x/a,b,c/k.so:k@0123456789ab", "/x/a,b,c/k.so:k"},
                {"/lib.so:1/k.so:k@0123456789ab,scalar", "/lib.so:1/k.so:k"},
                {"/lib.so:1/a,b/k.so:k@0123456789ab", "/lib.so:1/a,b/k.so:k"},
                {"/x/y:z,./k.so:k@0123456789ab", "./k.so:k"} /* the first has no ending */};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "path%zu.db", i);
        struct mla_store *store = test_open(test_path(*state, name));
        struct mla_store_build build = {"aaaa111", false, "cc", "-O2", "", "any"};
        struct mla_store_run run = {"run", "a CPU", runs[i].kernels, 1};
        assert_int_equal(mla_store_begin_run(store, &build, &run, NULL), MLA_STORE_OK);
        test_report_judge(store, 1, runs[i].kernel, "pass", 0.25);
        struct mla_report *report = test_report_read(store);
        char *built = mla_report_build(report, 0, &report->subjects[0]);
        assert_string_equal(built, "aaaa111, file 0123456789ab");
        free(built);
        mla_report_free(report);
        mla_store_close(store);
    }
}

/* Runs of the same second, in whatever order they were merged. */
static void ties_are_broken_by_name(void **state)
{
    const char *path = test_path(*state, "tie.db");
    for (int i = 0; i < 2; i++) {
        struct mla_store *store = test_open(path);
        test_report_begin(store, "aaaa111", "");
        test_report_judge(store, 1, "scalar", i == 0 ? "pass" : "fail-certain", 0.25);
        assert_int_equal(mla_store_close(store), MLA_STORE_OK);
    }
    test_exec(path, "UPDATE run SET started = '2026-01-01T10:00:00Z',"
                    " uid = iif(id = 1, 'b', 'a') || substr(uid, 2)");
    struct mla_store *store = test_open(path);
    struct mla_report *report = test_report_read(store);
    assert_int_equal(report->runs[0].id, 2);
    assert_int_equal(report->runs[1].id, 1);
    mla_report_free(report);
    for (int i = 0; i < 50; i++) { /* names made one after the other are in that order */
        test_report_begin(store, "aaaa111", "");
    }
    assert_int_equal(test_number(path, "SELECT count(*) FROM run AS a JOIN run AS b ON b.id > a.id"
                                       " WHERE a.id > 2 AND b.uid <= a.uid"),
                     0);
    mla_store_close(store);
}

/* What never passed is not green, and what was not measured is no 0. */
static void never_green_without_a_pass(void **state)
{
    struct mla_store *store = test_open(test_path(*state, "green.db"));
    test_report_begin(store, "aaaa111", "");
    test_report_judge(store, 1, "idle", "unjudged", -1);
    test_report_judge(store, 2, "idle", "unsupported", -1);
    test_report_judge(store, 1, "dies", "crash", -1);
    test_report_judge(store, 2, "wrong", "fail-certain", 3);
    struct mla_store_case testcase = test_case(3);
    struct mla_store_metric only = {"max_ulp", 0.5};
    struct mla_store_verdict v = test_verdict(&testcase, "pass");
    v.kernel = "plain";
    v.metrics = &only;
    v.metrics_n = 1;
    assert_int_equal(mla_store_verdict(store, &v), MLA_STORE_OK);
    assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
    char *xml = test_report_render(store, MLA_REPORT_JUNIT),
         *sarif = test_report_render(store, MLA_REPORT_SARIF);
    char *html = test_report_render(store, MLA_REPORT_HTML),
         *markdown = test_report_render(store, MLA_REPORT_MARKDOWN);
    char *annotations = test_report_render(store, TEST_ANNOTATIONS);
    assert_non_null(strstr(
        annotations, "::warning title=ring/idle no case judged::none of its 2 cases was judged: 1 "
                     "unsupported, 1 unjudged; one is unsupported: "));
    assert_int_equal(test_report_count(annotations, "no case judged"), 1);
    free(annotations);
    assert_non_null(strstr(xml, "tests=\"4\" failures=\"1\" errors=\"2\" skipped=\"0\">"));
    assert_non_null(strstr(xml, "name=\"no case judged\"><error type=\"nothing-judged\" "
                                "message=\"none of its 2 cases was judged: 1 unsupported, 1 "));
    assert_null(strstr(xml, "<skipped"));
    assert_non_null(strstr(html, "<b class=\"bad\">ring/idle</b> in run 1, "));
    assert_non_null(strstr(html, ": none of its 2 cases was judged: 1 unsupported, 1 unjudged; "));
    assert_non_null(strstr(markdown, "### Not judged at all\n\n- ring/idle, run 1, "));
    assert_non_null(strstr(markdown, "2 of 3 judged results failing now; 2 not judged; of 1 "
                                     "kernel and operation nothing was judged"));
    assert_int_equal(test_report_count(xml, "<error type=\"never-passed\""), 1);
    assert_int_equal(test_report_count(xml, "<failure type=\"never-passed\""), 1);
    assert_int_equal(test_report_count(sarif, "\"ruleId\":\"MLA1003\""), 2);
    assert_int_equal(test_report_count(sarif, "\"ruleId\":\"MLA1005\""), 1);
    assert_int_equal(test_report_count(sarif, "Case/v1\":\"ring/dies//"), 1);
    assert_int_equal(test_report_count(sarif, "\"artifactLocation\":{\"uri\":\"impl/registry.c\"}"),
                     test_report_count(sarif, "\"ruleIndex\":"));
    assert_non_null(strstr(html, "<td class=\"n\">-</td><td class=\"n\">-</td>"
                                 "<td class=\"n\">-</td><td class=\"n\">-</td></tr>"));
    assert_non_null(strstr(markdown, "| ring/plain | 1 | 0.5 | - | "));
    assert_non_null(strstr(html, "<p class=\"answer bad\">Nothing to compare yet (no case was "
                                 "judged by two runs), but 2 failing, and 1 kernel and "
                                 "operation was not judged at all.</p>"));
    free(xml);
    free(sarif);
    free(html);
    free(markdown);
    test_report_begin(store, "aaaa111", "");
    test_report_judge(store, 2, "wrong", "fail-certain", 3);
    assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
    html = test_report_render(store, MLA_REPORT_HTML);
    assert_non_null(strstr(html, "<p class=\"answer bad\">No regression, but 2 failing that"));
    assert_null(strstr(html, "flaky: "));
    free(html);
    mla_store_close(store);
}

/* What a plot cannot hold is drawn at its end, and counted. */
static void plots_say_what_is_beyond(void **state)
{
    struct mla_store *store = test_open(test_path(*state, "beyond.db"));
    test_report_begin(store, "aaaa111", "");
    test_report_judge(store, 1, "scalar", "pass", 0.25);
    test_report_judge(store, 2, "scalar", "fail-certain", 1e9);
    assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
    char *html = test_report_render(store, MLA_REPORT_HTML);
    /* against L and R, the trend; ulp above 2^24 twice */
    assert_int_equal(test_report_count(html, "1 beyond the upper end"), 5);
    free(html);
    mla_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flaky_counts_as_failed),
        cmocka_unit_test(changed_trees_stand_apart),
        cmocka_unit_test(plugins_are_told_apart_by_their_files),
        cmocka_unit_test(plugins_are_found_by_any_path),
        cmocka_unit_test(ties_are_broken_by_name),
        cmocka_unit_test(never_green_without_a_pass),
        cmocka_unit_test(plots_say_what_is_beyond),
    };
    return cmocka_run_group_tests(tests, test_report_setup, test_report_teardown);
}
