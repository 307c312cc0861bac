/* SPDX-License-Identifier: Apache-2.0
 *
 * report_test_util.c - runs to report on, and a report as text.
 */
#include "results/report_test_util.h"

#include "results/store_test_util.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A run of a commit; later calls are later runs. */
void test_report_begin(struct mla_store *store, const char *commit, const char *sanitizer)
{
    struct mla_store_build build = {commit, false, "cc", "-O2", sanitizer, "any"};
    struct mla_store_run run = {"run --set all", "a CPU", "scalar", 1};
    int64_t id;
    assert_int_equal(mla_store_begin_run(store, &build, &run, &id), MLA_STORE_OK);
}

void test_report_judge(struct mla_store *store, unsigned n, const char *kernel, const char *verdict,
                       double ratio)
{
    struct mla_store_case testcase = test_case(n);
    testcase.logical_n = 100 * n;
    testcase.ring_size = n;
    struct mla_store_verdict v = test_verdict(&testcase, verdict);
    struct mla_store_metric metrics[] = {{"max_ulp", ratio * 2},
                                         {"p99_ulp", ratio},
                                         {"correctly_rounded_percent", 90},
                                         {"bias_se", -3},
                                         {"bias_outward_se", 2}};
    v.kernel = kernel;
    v.max_ratio = ratio;
    v.reason = TEST_HOSTILE;
    v.metrics = metrics;
    v.metrics_n = ratio >= 0 ? 5 : 0;
    assert_int_equal(mla_store_verdict(store, &v), MLA_STORE_OK);
}

/* Three runs: the second breaks case 1, the third keeps it broken and worsens case 2. */
struct mla_store *test_report_runs(const char *path, const char *kernel)
{
    struct mla_store *store = test_open(path);
    test_report_begin(store, "aaaa111", "");
    test_report_judge(store, 1, kernel, "pass", 0.25);
    test_report_judge(store, 2, kernel, "pass", 0.25);
    test_report_judge(store, 3, kernel, "pass", 0.25);
    test_report_begin(store, "bbbb222", "");
    test_report_judge(store, 1, kernel, "fail-certain", 7);
    test_report_judge(store, 2, kernel, "pass", 0.25);
    test_report_begin(store, "cccc333", "");
    test_report_judge(store, 1, kernel, "fail-certain", 7);
    test_report_judge(store, 2, kernel, "pass", 0.5);
    test_report_judge(store, 4, kernel, "fail-certain", INFINITY);
    test_report_begin(store, "dddd444", "address"); /* another path: no evidence against the last */
    test_report_judge(store, 2, kernel, "pass", 0.125);
    assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
    return store;
}

char *test_report_render(struct mla_store *store, enum mla_report_format format)
{
    char *text = NULL;
    size_t bytes = 0;
    struct mla_report *report;
    assert_int_equal(mla_report_read(store, &report), MLA_STORE_OK);
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    int32_t status = MLA_STORE_OK;
    if (format == TEST_ANNOTATIONS) {
        mla_report_github(report, file);
    } else {
        status = mla_report_write(report, format, file);
    }
    if (status != MLA_STORE_OK) {
        fail_msg("%s", mla_store_message(store));
    }
    assert_int_equal(fclose(file), 0);
    mla_report_free(report);
    return text;
}

size_t test_report_count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        n++;
    }
    return n;
}

struct mla_report *test_report_read(struct mla_store *store)
{
    struct mla_report *report;
    assert_int_equal(mla_store_flush(store), MLA_STORE_OK);
    assert_int_equal(mla_report_read(store, &report), MLA_STORE_OK);
    return report;
}

int test_report_setup(void **state)
{
    *state = test_folder_make();
    return 0;
}

int test_report_teardown(void **state)
{
    test_folder_remove(*state);
    return 0;
}
