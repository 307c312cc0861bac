/* SPDX-License-Identifier: Apache-2.0
 *
 * golden_test.c - the golden file is read strictly and written as it is read; what is worse is told from what is
 * better.
 */
#include "fuzz/mlacheck/golden.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

#define HEADER                                                                                     \
    "kernel,op,set,cases_id,cases,passed,refused,failed,unjudged,unsupported,rows_judged,"         \
    "max_err_over_bound,max_ulp,worst_p99_ulp,mean_rounded_percent,bits\n"
#define ROW  "scalar,ring,special,0123456789ab,10,7,3,0,0,0,70,0.5,1.25,0.5,99.5,fedcba987654\n"
#define NONE "avx2,sparse,upstream,0123456789ab,10,0,3,0,7,0,0,-,-,-,-,-\n"

static char path[64];

static bool read_text(const char *text, struct mla_golden *golden, char error[512])
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return mla_golden_read(path, golden, error, 512);
}

static int setup(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/golden_test.XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static void as_written(void **state)
{
    (void)state;
    struct mla_golden golden;
    char error[512], text[1024] = "";
    assert_true(read_text(HEADER ROW NONE, &golden, error));
    assert_int_equal(golden.n, 2);
    const struct mla_golden_row *row = mla_golden_find(&golden, "scalar", "ring", "special");
    assert_non_null(row);
    assert_int_equal(row->counts[MLA_GOLDEN_PASSED], 7);
    assert_true(row->figures[MLA_GOLDEN_MAX_ULP] == 1.25);
    assert_null(mla_golden_find(&golden, "scalar", "sparse", "special"));
    assert_true(mla_golden_write(path, &golden, error, sizeof error));
    FILE *file = fopen(path, "r");
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_string_equal(text, HEADER NONE ROW); /* sorted */
    mla_golden_free(&golden);
}

/* A file that is a link is written where it leads to. */
static void through_a_link(void **state)
{
    (void)state;
    struct mla_golden golden;
    char link[80], error[512], text[1024] = "", to[64] = "";
    snprintf(link, sizeof link, "%s.link", path);
    assert_true(read_text(HEADER ROW, &golden, error));
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(symlink(path, link), 0);
    assert_true(mla_golden_write(link, &golden, error, sizeof error));
    assert_int_equal(readlink(link, to, sizeof to), strlen(path));
    assert_int_equal(unlink(link), 0);
    FILE *file = fopen(path, "r");
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_string_equal(text, HEADER ROW);
    mla_golden_free(&golden);
}

static void damaged(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } files[] = {
        {"", ":0: cannot be read, or is empty"},
        {ROW, ":1: the header must be"},
        {HEADER "\n", ":2: 1 fields, must be 16"},
        {HEADER ROW "scalar,ring\n", ":3: 2 fields"},
        {HEADER ROW ROW, ":3: scalar, ring, special stands there twice"},
        {HEADER ",ring,special,0,1,1,0,0,0,0,1,0,0,0,0,-\n", "'kernel'"},
        {HEADER "k,ring,special,0,1,x,0,0,0,0,1,0,0,0,0,-\n", "'passed'"},
        {HEADER "k,ring,special,0,1,-1,0,0,0,0,1,0,0,0,0,-\n", "'passed'"},
        {HEADER "k,ring,special,0,1,1,0,0,0,0,1,nan,0,0,0,-\n", "'max_err_over_bound'"},
        {HEADER "k,ring,special,0,1,1,0,0,0,0,1,0,0,0,1e,-\n", "'mean_rounded_percent'"},
        {HEADER "k,ring,special,0,1,1,0,0,0,0,1,0,0,0,0,0123456789abc\n", "'bits'"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct mla_golden golden;
        char error[512] = "";
        assert_false(read_text(files[i].text, &golden, error));
        if (strstr(error, files[i].error) == NULL)
            fail_msg("file %zu: '%s'", i, error);
        mla_golden_free(&golden);
    }
}

static void no_file(void **state)
{
    (void)state;
    struct mla_golden golden;
    char error[512] = "";
    assert_false(mla_golden_read("/nowhere/golden.csv", &golden, error, sizeof error));
    assert_non_null(strstr(error, "/nowhere/golden.csv"));
    golden = (struct mla_golden){0};
    assert_false(mla_golden_write("/nowhere/golden.csv", &golden, error, sizeof error));
    assert_non_null(strstr(error, "/nowhere/golden.csv"));
}

/* One number changed at a time, both ways. */
static void better_and_worse(void **state)
{
    (void)state;
    struct mla_golden golden;
    char error[512], text[512];
    assert_true(read_text(HEADER ROW, &golden, error));
    static const int more_is_better[MLA_GOLDEN_COUNTS_N] = {0, 1, 1, -1, -1, -1, 1};
    for (int i = 0; i < MLA_GOLDEN_COUNTS_N; i++)
        for (int step = -1; step <= 1; step += 2) {
            struct mla_golden_row old = golden.rows[0], now;
            old.counts[i] = 5;
            now = old;
            now.counts[i] += step;
            int good = step * more_is_better[i];
            assert_int_equal(mla_golden_compare(&old, &now, text, sizeof text),
                             good > 0   ? MLA_GOLDEN_BETTER
                             : good < 0 ? MLA_GOLDEN_WORSE
                                        : MLA_GOLDEN_BITS);
            assert_non_null(strstr(text, step > 0 ? "5 -> 6" : "5 -> 4"));
        }
    for (int i = 0; i < MLA_GOLDEN_FIGURES_N; i++)
        for (int step = -1; step <= 1; step += 2) {
            struct mla_golden_row now = golden.rows[0];
            now.figures[i] *= 1 + 0.01 * step;
            int good = i == MLA_GOLDEN_ROUNDED ? step : -step;
            assert_int_equal(mla_golden_compare(&golden.rows[0], &now, text, sizeof text),
                             good > 0 ? MLA_GOLDEN_BETTER : MLA_GOLDEN_WORSE);
            now.figures[i] = golden.rows[0].figures[i] * (1 + 1e-9 * step);
            assert_int_equal(mla_golden_compare(&golden.rows[0], &now, text, sizeof text),
                             MLA_GOLDEN_SAME);
        }
    mla_golden_free(&golden);
}

static void other_changes(void **state)
{
    (void)state;
    struct mla_golden golden;
    char error[512], text[512];
    assert_true(read_text(HEADER ROW, &golden, error));
    const struct mla_golden_row *old = &golden.rows[0];
    struct mla_golden_row now = *old;
    assert_int_equal(mla_golden_compare(old, &now, text, sizeof text), MLA_GOLDEN_SAME);
    assert_string_equal(text, "");
    memcpy(now.bits, "000000000001", sizeof now.bits);
    assert_int_equal(mla_golden_compare(old, &now, text, sizeof text), MLA_GOLDEN_BITS);
    assert_string_equal(text, "bits fedcba987654 -> 000000000001");
    /* better in one thing, worse in another: worse */
    now.counts[MLA_GOLDEN_PASSED]++;
    now.figures[MLA_GOLDEN_ERR] = 0.75;
    assert_int_equal(mla_golden_compare(old, &now, text, sizeof text), MLA_GOLDEN_WORSE);
    assert_string_equal(text, "passed 7 -> 8, max_err_over_bound 0.5 -> 0.75, "
                              "bits fedcba987654 -> 000000000001");
    now.figures[MLA_GOLDEN_ERR] = INFINITY;
    assert_int_equal(mla_golden_compare(old, &now, text, sizeof text), MLA_GOLDEN_WORSE);
    memcpy(now.cases_id, "000000000001", sizeof now.cases_id);
    assert_int_equal(mla_golden_compare(old, &now, text, sizeof text), MLA_GOLDEN_OTHER);
    mla_golden_free(&golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_written, setup, teardown),
        cmocka_unit_test_setup_teardown(through_a_link, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(no_file, setup, teardown),
        cmocka_unit_test_setup_teardown(better_and_worse, setup, teardown),
        cmocka_unit_test_setup_teardown(other_changes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
