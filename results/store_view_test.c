/* SPDX-License-Identifier: Apache-2.0
 *
 * store_view_test.c - the tables people read, as rows, as JSON and in the sqlite3 shell.
 *
 * Rows are joined to "a|b|c\n" lines and compared whole, so that a column too many, another order
 * or a missing row shows.
 */
#include "results/store_test_util.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

static char *folder;
static char path[256];
static struct mla_store *store;

static int setup(void **state)
{
    (void)state;
    folder = test_folder_make();
    (void)snprintf(path, sizeof path, "%s/x.db", folder);
    store = test_open(path);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)mla_store_close(store);
    test_folder_remove(folder);
    return 0;
}

#define OK(call) assert_int_equal((call), MLA_STORE_OK)

static void begin(const char *command, const char *commit, bool dirty, const char *sanitizer)
{
    const struct mla_store_build build = {commit, dirty, "clang 14", "-O2", sanitizer, "avx2"};
    const struct mla_store_run run = {command, "a CPU", "scalar,avx2", 7};
    OK(mla_store_begin_run(store, &build, &run, NULL));
}

static void put(unsigned n, const char *kernel, const char *verdict, const char *relation,
                double ratio)
{
    struct mla_store_case c = test_case(n);
    c.family = n < 10 ? "profile" : "exact";
    struct mla_store_verdict v = test_verdict(&c, verdict);
    v.kernel = kernel;
    v.relation = relation;
    v.max_ratio = ratio;
    v.element = "out[d=0]";
    OK(mla_store_verdict(store, &v));
}

struct text {
    char bytes[8192];
    size_t used;
    int rows_left; /* stop after so many; negative: never */
};

static void append(struct text *text, const char *more)
{
    int n = snprintf(text->bytes + text->used, sizeof text->bytes - text->used, "%s", more);
    assert_true(n >= 0 && (size_t)n < sizeof text->bytes - text->used);
    text->used += (size_t)n;
}

static int take_row(void *context, int columns_n, const char *const *names,
                    const char *const *values)
{
    struct text *text = context;
    if (text->used == 0) {
        for (int i = 0; i < columns_n; i++) {
            append(text, names[i]);
            append(text, i + 1 < columns_n ? "|" : "\n");
        }
    }
    for (int i = 0; i < columns_n; i++) {
        append(text, values[i] == NULL ? "~" : values[i]);
        append(text, i + 1 < columns_n ? "|" : "\n");
    }
    return --text->rows_left == 0;
}

static void expect_view(enum mla_store_view view, const char *key, const char *expected)
{
    struct text text = {"", 0, -1};
    OK(mla_store_view(store, view, key, take_row, &text));
    assert_string_equal(text.bytes, expected);
}

static void expect_json(enum mla_store_view view, const char *key, const char *expected)
{
    char *json = NULL;
    OK(mla_store_view_json(store, view, key, &json));
    assert_string_equal(json, expected);
    free(json);
}

#define SUMMARY_HEAD                                                                               \
    "op|kernel|family|cases|passed|failed|improbable|unjudged|unsupported|refused|crashed|"        \
    "worst_err_over_bound\n"

/* One run with everything. By hand: what each line of the summary counts. */
static void fill(void)
{
    begin("run one", "aaa", false, "");
    put(1, "k", "pass", "", 0.25);
    put(2, "k", "fail-certain", "", 3.5);
    put(3, "k", "fail-improbable", "", 0.875);
    put(4, "k", "unjudged", "", -1);
    put(5, "k", "unsupported", "", -1);
    put(6, "k", "refused", "", -1);
    put(7, "k", "crash", "", -1);
    put(8, "k", "timeout", "", -1);
    put(11, "k", "pass", "", 0.5);
    /* Several verdicts of one case: it counts once, by the gravest. */
    put(1, "k", "unsupported", "threads", -1);
    put(9, "k", "pass", "", 0.125);
    put(9, "k", "fail-certain", "heads", 8.0);
    put(9, "k", "crash", "repeat", -1);
    put(12, "k", "pass", "", 0.0625);
    put(12, "k", "unjudged", "heads", -1);
    put(1, "j", "pass", "", 0.75);
    OK(mla_store_tally(store, "ring", "k", "profile", "pass", 100, 0.375));
    OK(mla_store_tally(store, "ring", "k", "profile", "timeout", 10, -1));
    OK(mla_store_tally(store, "sparse", "k", "full", "refused", 5, -1));
    OK(mla_store_end_run(store));
}

static void test_summary(void **state)
{
    (void)state;
    expect_view(MLA_VIEW_SUMMARY, NULL, "");
    expect_json(MLA_VIEW_SUMMARY, NULL, "[]");
    fill();
    const char *first = SUMMARY_HEAD "ring|j|profile|1|1|0|0|0|0|0|0|0.75\n"
                                     "ring|k|exact|2|1|0|0|1|0|0|0|0.5\n"
                                     "ring|k|profile|119|101|2|1|1|1|1|12|8\n"
                                     "sparse|k|full|5|0|0|0|0|0|5|0|~\n";
    expect_view(MLA_VIEW_SUMMARY, NULL, first);
    /* The view of the sqlite3 shell says the same. */
    assert_string_equal(
        test_text(path, "SELECT group_concat(op || '|' || kernel || '|' || family || '|' || cases"
                        " || '|' || passed || '|' || failed || '|' || improbable || '|' || unjudged"
                        " || '|' || unsupported || '|' || refused || '|' || crashed || '|' ||"
                        " coalesce(worst_err_over_bound, '~'), char(10)) || char(10) FROM summary"),
        "ring|j|profile|1|1|0|0|0|0|0|0|0.75\n"
        "ring|k|exact|2|1|0|0|1|0|0|0|0.5\n"
        "ring|k|profile|119|101|2|1|1|1|1|12|8.0\n"
        "sparse|k|full|5|0|0|0|0|0|5|0|~\n");
    begin("run two", "bbb", false, "");
    expect_view(MLA_VIEW_SUMMARY, NULL, "");
    put(1, "k", "pass", "", 0.1); /* still queued: a view flushes first */
    expect_view(MLA_VIEW_SUMMARY, NULL, SUMMARY_HEAD "ring|k|profile|1|1|0|0|0|0|0|0|0.1\n");
    expect_view(MLA_VIEW_SUMMARY, "1", first);
    expect_json(MLA_VIEW_SUMMARY, "2",
                "[{\"op\":\"ring\",\"kernel\":\"k\",\"family\":\"profile\",\"cases\":1,"
                "\"passed\":1,\"failed\":0,\"improbable\":0,\"unjudged\":0,\"unsupported\":0,"
                "\"refused\":0,\"crashed\":0,\"worst_err_over_bound\":0.1}]");
}

static void test_summary_of_not_finite(void **state)
{
    (void)state;
    begin("run", "aaa", false, "");
    put(1, "k", "fail-certain", "", 1e300);
    put(2, "k", "fail-certain", "", (double)INFINITY);
    expect_view(MLA_VIEW_SUMMARY, NULL, SUMMARY_HEAD "ring|k|profile|2|0|2|0|0|0|0|0|inf\n");
    put(3, "k", "fail-certain", "", (double)NAN);
    put(4, "k", "fail-certain", "", (double)INFINITY);
    expect_view(MLA_VIEW_SUMMARY, NULL, SUMMARY_HEAD "ring|k|profile|4|0|4|0|0|0|0|0|nan\n");
}

static void test_runs(void **state)
{
    (void)state;
    expect_json(MLA_VIEW_RUNS, NULL, "[]");
    fill();
    begin("run 'two'\n\"x\\\" \xc3\xa4", "bbb", true, "");
    test_exec(path, "UPDATE run SET started = '2001-02-03T04:05:0' || id || 'Z'");
    /* failed: 2 certain, 1 improbable, 2 + 10 crashed */
    expect_view(MLA_VIEW_RUNS, NULL,
                "run|started|command|kernels|commit|cases|failed\n"
                "2|2001-02-03T04:05:02Z|run 'two'\n\"x\\\" \xc3\xa4|scalar,avx2|bbb-dirty|0|0\n"
                "1|2001-02-03T04:05:01Z|run one|scalar,avx2|aaa|127|15\n");
    expect_json(MLA_VIEW_RUNS, NULL,
                "[{\"run\":2,\"started\":\"2001-02-03T04:05:02Z\","
                "\"command\":\"run 'two'\\n\\\"x\\\\\\\" \xc3\xa4\",\"kernels\":\"scalar,avx2\","
                "\"commit\":\"bbb-dirty\",\"cases\":0,\"failed\":0},"
                "{\"run\":1,\"started\":\"2001-02-03T04:05:01Z\",\"command\":\"run one\","
                "\"kernels\":\"scalar,avx2\",\"commit\":\"aaa\",\"cases\":127,\"failed\":15}]");
    expect_view(MLA_VIEW_RUNS, "1",
                "run|started|command|kernels|commit|cases|failed\n"
                "1|2001-02-03T04:05:01Z|run one|scalar,avx2|aaa|127|15\n");
}

#define WORST_HEAD "id|op|kernel|verdict|err_over_bound|element|line\n"

static void test_worst(void **state)
{
    (void)state;
    begin("run one", "aaa", false, "");
    put(1, "k", "pass", "", 0.25);
    put(2, "k", "fail-certain", "", 3.5);
    put(2, "k", "pass", "heads", 0.5);
    put(3, "k", "timeout", "", -1);
    begin("run two", "aaa", false, "");
    put(1, "k", "fail-improbable", "", 0.875);
    put(1, "j", "fail-certain", "", (double)NAN);
    expect_view(MLA_VIEW_WORST, "1",
                WORST_HEAD "000000020000|ring|k|fail-certain|3.5|out[d=0]|ring v=1 heads=2\n"
                           "000000010000|ring|k|pass|0.25|out[d=0]|ring v=1 heads=1\n");
    expect_view(MLA_VIEW_WORST, NULL,
                WORST_HEAD "000000010000|ring|j|fail-certain|nan|out[d=0]|ring v=1 heads=1\n"
                           "000000020000|ring|k|fail-certain|3.5|out[d=0]|ring v=1 heads=2\n"
                           "000000010000|ring|k|fail-improbable|0.875|out[d=0]|ring v=1 heads=1\n");
    expect_json(MLA_VIEW_WORST, "2",
                "[{\"id\":\"000000010000\",\"op\":\"ring\",\"kernel\":\"j\","
                "\"verdict\":\"fail-certain\",\"err_over_bound\":\"nan\",\"element\":\"out[d=0]\","
                "\"line\":\"ring v=1 heads=1\"},{\"id\":\"000000010000\",\"op\":\"ring\","
                "\"kernel\":\"k\",\"verdict\":\"fail-improbable\",\"err_over_bound\":0.875,"
                "\"element\":\"out[d=0]\",\"line\":\"ring v=1 heads=1\"}]");
    struct text text = {"", 0, 1};
    OK(mla_store_view(store, MLA_VIEW_WORST, NULL, take_row, &text)); /* stopped after one row */
    assert_string_equal(text.bytes, WORST_HEAD "000000010000|ring|j|fail-certain|nan|out[d=0]|"
                                               "ring v=1 heads=1\n");
    expect_view(MLA_VIEW_RUNS, "1",
                test_text(path, "SELECT 'run|started|command|kernels|commit|cases|failed' ||"
                                " char(10) || '1|' || started || '|run one|scalar,avx2|aaa|3|2'"
                                " || char(10) FROM run"));
}

static void test_findings(void **state)
{
    (void)state;
    begin("run", "aaa", false, "");
    struct mla_store_case c = test_case(2);
    struct mla_store_verdict v = test_verdict(&c, "crash");
    v.reason = "signal 11 \"SEGV\"\nin the kernel";
    v.repro = "mlacheck run --case 'ring v=1'";
    OK(mla_store_verdict(store, &v));
    put(1, "k", "fail-certain", "", 2.0);
    put(3, "k", "pass", "", 0.5);
    OK(mla_store_flush(store));
    test_exec(path, "UPDATE finding SET first_seen = 't1', last_seen = 't2'");
    const char *head = "id|kernel|verdict|state|first_seen|last_seen|reason|repro\n";
    char expected[1024];
    const char *one = "000000010000|k|fail-certain|open|t1|t2|~|~\n";
    const char *two = "000000020000|scalar|crash|open|t1|t2|signal 11 \"SEGV\"\nin the kernel|"
                      "mlacheck run --case 'ring v=1'\n";
    (void)snprintf(expected, sizeof expected, "%s%s%s", head, one, two);
    expect_view(MLA_VIEW_FINDINGS, NULL, expected);
    (void)snprintf(expected, sizeof expected, "%s%s", head, two);
    expect_view(MLA_VIEW_FINDINGS, "00000002", expected);
    expect_view(MLA_VIEW_FINDINGS, "00000003", "");
    expect_json(MLA_VIEW_FINDINGS, "00000002",
                "[{\"id\":\"000000020000\",\"kernel\":\"scalar\",\"verdict\":\"crash\","
                "\"state\":\"open\",\"first_seen\":\"t1\",\"last_seen\":\"t2\","
                "\"reason\":\"signal 11 \\\"SEGV\\\"\\nin the kernel\","
                "\"repro\":\"mlacheck run --case 'ring v=1'\"}]");
    test_exec(path, "UPDATE finding SET state = 'fixed' WHERE kernel = 'k'");
    test_exec(path, "UPDATE finding SET last_seen = 't0' WHERE kernel <> 'k'");
    (void)snprintf(expected, sizeof expected, "%s%s%s", head,
                   "000000020000|scalar|crash|open|t1|t0|signal 11 \"SEGV\"\nin the kernel|"
                   "mlacheck run --case 'ring v=1'\n",
                   "000000010000|k|fail-certain|fixed|t1|t2|~|~\n");
    expect_view(MLA_VIEW_FINDINGS, NULL, expected);
}

static void test_case_view(void **state)
{
    (void)state;
    begin("run", "aaa", false, "");
    put(1, "k", "pass", "", 0.25);
    struct mla_store_case c = test_case(1);
    const struct mla_store_metric metrics[] = {{"max_ulp", (double)INFINITY}, {"bias", 0.125}};
    struct mla_store_verdict v = {&c,         "j", "fail-certain", "heads", "why", 3.0,  64,
                                  "out[d=1]", "g", "low",          "high",  0.5,   0.25, metrics,
                                  2,          "r"};
    OK(mla_store_verdict(store, &v));
    put(2, "k", "pass", "", 0.25);
    const char *expected =
        "run|kernel|verdict|relation|err_over_bound|elements|element|got|lo|hi|reason|"
        "kernel_seconds|oracle_seconds|metrics\n"
        "1|j|fail-certain|heads|3|64|out[d=1]|g|low|high|why|0.5|0.25|bias=0.125 max_ulp=inf\n"
        "1|k|pass||0.25|64|out[d=0]|~|~|~|~|0|0|~\n";
    expect_view(MLA_VIEW_CASE, "00000001", expected);
    expect_json(MLA_VIEW_CASE, "00000002",
                "[{\"run\":1,\"kernel\":\"k\",\"verdict\":\"pass\",\"relation\":\"\","
                "\"err_over_bound\":0.25,\"elements\":64,\"element\":\"out[d=0]\",\"got\":null,"
                "\"lo\":null,\"hi\":null,\"reason\":null,\"kernel_seconds\":0.0,"
                "\"oracle_seconds\":0.0,\"metrics\":null}]");
}

static void test_run_view(void **state)
{
    (void)state;
    expect_view(MLA_VIEW_RUN, NULL, "");
    begin("run one", "aaa", false, "");
    begin("run two", "bbb", true, "address");
    OK(mla_store_end_run(store));
    test_exec(path, "UPDATE run SET started = 's' || id, ended = CASE id WHEN 2 THEN 'e2' END");
    expect_view(MLA_VIEW_RUN, NULL,
                "field|value\nrun|2\ncommand|run two\nkernels|scalar,avx2\nseed|7\nstarted|s2\n"
                "ended|e2\nhost_cpu|a CPU\ncommit|bbb\ndirty|1\ncompiler|clang 14\nflags|-O2\n"
                "sanitizer|address\nisa|avx2\n");
    expect_view(MLA_VIEW_RUN, "1",
                "field|value\nrun|1\ncommand|run one\nkernels|scalar,avx2\nseed|7\nstarted|s1\n"
                "ended|~\nhost_cpu|a CPU\ncommit|aaa\ndirty|0\ncompiler|clang 14\nflags|-O2\n"
                "sanitizer|\nisa|avx2\n");
    expect_json(
        MLA_VIEW_RUN, "1",
        "[{\"field\":\"run\",\"value\":1},{\"field\":\"command\",\"value\":\"run one\"},"
        "{\"field\":\"kernels\",\"value\":\"scalar,avx2\"},{\"field\":\"seed\",\"value\":7},"
        "{\"field\":\"started\",\"value\":\"s1\"},{\"field\":\"ended\",\"value\":null},"
        "{\"field\":\"host_cpu\",\"value\":\"a CPU\"},"
        "{\"field\":\"commit\",\"value\":\"aaa\"},{\"field\":\"dirty\",\"value\":0},"
        "{\"field\":\"compiler\",\"value\":\"clang 14\"},"
        "{\"field\":\"flags\",\"value\":\"-O2\"},{\"field\":\"sanitizer\",\"value\":\"\"},"
        "{\"field\":\"isa\",\"value\":\"avx2\"}]");
}

/* A verdict on case n with these figures, the first so many. */
static void put_figures(unsigned n, const char *kernel, const char *verdict, const char *relation,
                        const struct mla_store_metric *metrics, size_t metrics_n)
{
    struct mla_store_case c = test_case(n);
    c.family = n < 10 ? "profile" : "exact";
    struct mla_store_verdict v = test_verdict(&c, verdict);
    v.kernel = kernel;
    v.relation = relation;
    v.metrics = metrics;
    v.metrics_n = metrics_n;
    OK(mla_store_verdict(store, &v));
}

#define ACCURACY_HEAD                                                                              \
    "op|kernel|family|cases|worst_err_over_bound|worst_p50_ulp|worst_p99_ulp|max_ulp|"             \
    "min_rounded_percent|mean_rounded_percent|worst_rms_relative|worst_bias_se|"                   \
    "worst_bias_outward_se|worst_chi_square\n"

static void put_accuracy(unsigned n, double figure, double rounded, double bias)
{
    const struct mla_store_metric metrics[] = {{"max_err_over_bound", figure},
                                               {"p50_ulp", figure / 8},
                                               {"p99_ulp", figure / 2},
                                               {"max_ulp", figure * 2},
                                               {"correctly_rounded_percent", rounded},
                                               {"rms_relative", figure / 4},
                                               {"bias_se", bias},
                                               {"bias_outward_se", -bias / 2},
                                               {"chi_square_ratio", figure * 4},
                                               {"rows_judged", 1e9}};
    put_figures(n, "k", "pass", "", metrics, 10);
}

static void test_accuracy(void **state)
{
    (void)state;
    expect_view(MLA_VIEW_ACCURACY, NULL, "");
    expect_json(MLA_VIEW_ACCURACY, NULL, "[]");
    begin("run one", "aaa", false, "");
    put_accuracy(1, 0.25, 100, 1);
    put_accuracy(2, 0.5, 50, -3);
    put_accuracy(3, 0.125, 99, 2);
    put_accuracy(11, (double)INFINITY, 25, (double)NAN);
    put_accuracy(12, 0.5, 75, 8);
    put(4, "k", "unjudged", "", -1); /* no figures: not a case of these */
    put(5, "j", "crash", "", -1);
    const char *expected = ACCURACY_HEAD "ring|k|exact|2|inf|inf|inf|inf|25|50|inf|nan|nan|inf\n"
                                         "ring|k|profile|3|0.5|0.0625|0.25|1|50|83|0.125|3|1.5|2\n";
    expect_view(MLA_VIEW_ACCURACY, NULL, expected);
    begin("run two", "aaa", false, "");
    const struct mla_store_metric one[] = {{"max_ulp", 0.5}};
    put_figures(1, "j", "fail-certain", "heads", one, 1);
    expect_view(MLA_VIEW_ACCURACY, NULL, ACCURACY_HEAD "ring|j|profile|1|~|~|~|0.5|~|~|~|~|~|~\n");
    expect_view(MLA_VIEW_ACCURACY, "1", expected);
    expect_json(MLA_VIEW_ACCURACY, "2",
                "[{\"op\":\"ring\",\"kernel\":\"j\",\"family\":\"profile\",\"cases\":1,"
                "\"worst_err_over_bound\":null,\"worst_p50_ulp\":null,\"worst_p99_ulp\":null,"
                "\"max_ulp\":0.5,\"min_rounded_percent\":null,\"mean_rounded_percent\":null,"
                "\"worst_rms_relative\":null,\"worst_bias_se\":null,"
                "\"worst_bias_outward_se\":null,\"worst_chi_square\":null}]");
}

/* Two rules over two families: every pairing of what the verdict and what a rule said. */
static void test_criteria(void **state)
{
    (void)state;
    const struct mla_store_metric blind[] = {{"would_pass_a", 1}, {"would_pass_b", 0}};
    const struct mla_store_metric sharp[] = {{"would_pass_a", 0}, {"would_pass_b", 0}};
    const char *head = "op|kernel|criterion|cases|passed|failed|missed|alarms\n";
    char expected[512];
    expect_view(MLA_VIEW_CRITERIA, NULL, "");
    begin("run one", "aaa", false, "");
    put_figures(1, "k", "pass", "", blind, 2);
    put_figures(2, "k", "fail-certain", "", blind, 2);
    put_figures(3, "k", "fail-improbable", "", blind, 2);
    put_figures(11, "k", "fail-certain", "", sharp, 2);
    put_figures(4, "k", "fail-certain", "repeat", blind, 2); /* not what a rule looks at */
    put_figures(12, "k", "pass", "", sharp, 2);
    put_figures(5, "j", "pass", "", blind, 1);
    put(6, "k", "crash", "", -1);
    (void)snprintf(expected, sizeof expected, "%sring|j|a|1|1|0|0|0\n%s%s", head,
                   "ring|k|a|6|4|3|2|1\n", "ring|k|b|6|0|3|0|2\n");
    expect_view(MLA_VIEW_CRITERIA, NULL, expected);
    /* The shell's view keeps the families apart. */
    assert_string_equal(test_text(path, "SELECT group_concat(family || ' ' || cases || ' ' ||"
                                        " missed || ' ' || alarms, ',') FROM (SELECT * FROM"
                                        " criteria WHERE kernel = 'k' AND criterion = 'a'"
                                        " ORDER BY family)"),
                        "exact 2 0 1,profile 4 2 0");
    begin("run two", "aaa", false, "");
    expect_view(MLA_VIEW_CRITERIA, NULL, "");
    expect_json(MLA_VIEW_CRITERIA, NULL, "[]");
    expect_view(MLA_VIEW_CRITERIA, "1", expected);
}

static void expect_bad_key(enum mla_store_view view, const char *key, int32_t status,
                           const char *said)
{
    struct text text = {"", 0, -1};
    char *json = path;
    assert_int_equal(mla_store_view(store, view, key, take_row, &text), status);
    assert_string_equal(text.bytes, "");
    if (strstr(mla_store_message(store), said) == NULL) {
        fail_msg("message '%s' lacks '%s'", mla_store_message(store), said);
    }
    assert_int_equal(mla_store_view_json(store, view, key, &json), status);
    assert_null(json);
}

static void test_bad_keys(void **state)
{
    (void)state;
    begin("run", "aaa", false, "");
    put(0x11110001, "k", "pass", "", 0.5);
    put(0x11110002, "k", "pass", "", 0.5);
    const char *runs[] = {"2", "0", "-1", "1x", "", " 1", "99999999999999999999", "abcd"};
    const enum mla_store_view run_views[] = {MLA_VIEW_RUNS, MLA_VIEW_SUMMARY,  MLA_VIEW_WORST,
                                             MLA_VIEW_RUN,  MLA_VIEW_ACCURACY, MLA_VIEW_CRITERIA};
    for (int view = 0; view < 6; view++) {
        for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
            expect_bad_key(run_views[view], runs[i], MLA_STORE_ERR_NOT_FOUND, runs[i]);
        }
    }
    expect_bad_key(MLA_VIEW_FINDINGS, "2222", MLA_STORE_ERR_NOT_FOUND, "'2222'");
    expect_bad_key(MLA_VIEW_FINDINGS, "1111", MLA_STORE_ERR_AMBIGUOUS, "'1111'");
    expect_bad_key(MLA_VIEW_CASE, "1", MLA_STORE_ERR_NOT_FOUND, "'1'");
    expect_bad_key(MLA_VIEW_CASE, NULL, MLA_STORE_ERR_NOT_FOUND, "(null)");
    expect_bad_key(MLA_VIEW_N, NULL, MLA_STORE_ERR_NOT_FOUND, "no view");
}

/* The views a person finds in the sqlite3 shell. */
static void test_shell_views(void **state)
{
    (void)state;
    begin("run one", "aaa", false, "");
    put(1, "k", "pass", "", 0.25);
    put(2, "k", "crash", "", -1);
    begin("run two", "aaa", false, "");
    put(1, "k", "fail-certain", "", 2.5);
    begin("run three", "aaa", false, "undefined");
    put(1, "k", "pass", "", 0.75);
    begin("run four", "bbb", false, "");
    OK(mla_store_tally(store, "sparse", "j", "full", "pass", 50, 0.5));
    OK(mla_store_flush(store));
    test_exec(path, "UPDATE run SET started = 's' || id");
    assert_string_equal(
        test_text(path,
                  "SELECT group_concat(\"commit\" || ' ' || dirty || ' ' || sanitizer || ' ' ||"
                  " kernel || ' ' || op || ' ' || first_run || ' ' || cases || ' ' || failed ||"
                  " ' ' || worst_err_over_bound, char(10)) FROM trend"),
        "aaa 0  k ring s1 3 2 2.5\naaa 0 undefined k ring s3 1 0 0.75\nbbb 0  j sparse s4 50 0 "
        "0.5");
    assert_string_equal(test_text(path, "SELECT group_concat(run || ' ' || cases, ',') FROM"
                                        " (SELECT * FROM summary ORDER BY run)"),
                        "1 2,2 1,3 1,4 50");
    assert_string_equal(test_text(path, "SELECT group_concat(run || ' ' || id || ' ' ||"
                                        " err_over_bound, ',') FROM worst"),
                        "2 000000010000 2.5,3 000000010000 0.75,1 000000010000 0.25");
    assert_int_equal(test_number(path, "SELECT count(*) FROM findings"), 2);
    assert_int_equal(test_number(path, "SELECT count(*) FROM runs"), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_summary, setup, teardown),
        cmocka_unit_test_setup_teardown(test_summary_of_not_finite, setup, teardown),
        cmocka_unit_test_setup_teardown(test_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_worst, setup, teardown),
        cmocka_unit_test_setup_teardown(test_findings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_case_view, setup, teardown),
        cmocka_unit_test_setup_teardown(test_run_view, setup, teardown),
        cmocka_unit_test_setup_teardown(test_accuracy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_criteria, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shell_views, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
