/* SPDX-License-Identifier: Apache-2.0
 *
 * progress_test.c - what is said of long work, and how often; at times of the test's own.
 */
#include "fuzz/mlacheck/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

static void expect_text(const char *due, bool bar, double seconds, double done, double total,
                        const char *unit, const char *note)
{
    char text[200];
    mla_progress_text(text, sizeof text, bar, seconds, done, total, unit, note);
    assert_string_equal(text, due);
}

static void texts(void **state)
{
    (void)state;
    expect_text("[#####---------------] 25 % 100 of 400 cases, 50/s, 6 s left, 2 faults", true, 2,
                100, 400, "cases", "2 faults");
    expect_text("25 % 100 of 400 cases, 50/s, 6 s left", false, 2, 100, 400, "cases", "");
    expect_text("[--------------------] 0 % 0 of 400 cases", true, 5, 0, 400, "cases", "");
    expect_text("[####################] 100 % 400 of 400 cases, 4/s", true, 100, 400, 400, "cases",
                "");
    expect_text("50 % 2 of 4 cases", false, 0.5, 2, 4, "cases", ""); /* too early for a rate */
    expect_text("1000 verdicts, 100/s", true, 10, 1000, 0, "verdicts", "");
    expect_text("25 % 15 of 60 s, 45 s left", false, 15, 15, 60, "s", "");
    expect_text("10 % 60 of 600 s at most, 9 min 0 s left", false, 60, 60, 600, "s at most", "");
    expect_text("1 % 1 of 100 cases, 0.01/s, 2 h 45 min left", false, 100, 1, 100, "cases", "");
    expect_text("100 % 500 of 400 cases, 50/s", false, 10, 500, 400, "cases", "");
}

static void short_buffer(void **state)
{
    (void)state;
    char text[10];
    mla_progress_text(text, sizeof text, true, 2, 100, 400, "cases", "2 faults");
    assert_int_equal(strlen(text), 9);
}

/* All that was written when it has been called at every second from 1 to n. */
static char *written(bool terminal, bool quiet, int n)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    struct mla_progress p = {
        .file = quiet ? NULL : file, .terminal = terminal, .said = terminal ? -1 : 0};
    for (int i = 1; i <= n; i++)
        mla_progress_say_at(&p, i, i, 100, "cases", "");
    mla_progress_clear(&p);
    mla_progress_clear(&p); /* nothing stands there any more */
    fclose(file);
    return text;
}

static void lines_now_and_then(void **state)
{
    (void)state;
    char *text = written(false, false, 9);
    assert_string_equal(text, "");
    free(text);
    text = written(false, false, 25);
    assert_string_equal(text, "10 % 10 of 100 cases, 1/s, 1 min 30 s left\n"
                              "20 % 20 of 100 cases, 1/s, 1 min 20 s left\n");
    free(text);
}

static void bar_on_a_terminal(void **state)
{
    (void)state;
    char *text = written(true, false, 2);
    assert_string_equal(text,
                        "\r[--------------------] 1 % 1 of 100 cases, 1/s, 1 min 39 s left\033[K"
                        "\r[--------------------] 2 % 2 of 100 cases, 1/s, 1 min 38 s left\033[K"
                        "\r\033[K");
    free(text);
}

static void quiet(void **state)
{
    (void)state;
    for (int terminal = 0; terminal < 2; terminal++) {
        char *text = written(terminal != 0, true, 50);
        assert_string_equal(text, "");
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(short_buffer),
        cmocka_unit_test(lines_now_and_then),
        cmocka_unit_test(bar_on_a_terminal),
        cmocka_unit_test(quiet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
