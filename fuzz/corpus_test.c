/* SPDX-License-Identifier: Apache-2.0
 *
 * corpus_test.c - corpus files are read whole or not at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fuzz/corpus.h"

static char path[] = "/tmp/mlacheck-corpus-XXXXXX";

static int setup(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd) != 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void test_good(void **state)
{
    struct mla_corpus corpus = {0};
    struct mla_case test;
    char line[MLA_CASE_LINE_MAX], text[3 * MLA_CASE_LINE_MAX], error[512];
    (void)state;
    mla_case_init(&test, MLA_OP_SPARSE);
    mla_case_format(&test, line);
    snprintf(text, sizeof text, "# comment\n\n%s\n%s", line, line); /* no newline at the end */
    write_file(text);
    if (mla_corpus_read(&corpus, path, error, sizeof error) != MLA_OK)
        fail_msg("%s", error);
    assert_int_equal(corpus.n, 2);
    mla_corpus_free(&corpus);
}

static void refused(const char *text, const char *where)
{
    struct mla_corpus corpus = {0};
    struct mla_case test;
    char error[512], wanted[128];
    mla_case_init(&test, MLA_OP_RING);
    assert_int_equal(mla_corpus_add(&corpus, &test), MLA_OK);
    write_file(text);
    assert_int_equal(mla_corpus_read(&corpus, path, error, sizeof error), MLA_ERR_PARAM);
    snprintf(wanted, sizeof wanted, "%s%s", path, where);
    if (strstr(error, wanted) == NULL)
        fail_msg("'%s' does not say '%s'", error, wanted);
    assert_int_equal(corpus.n, 1); /* what was there stays, nothing of the file is kept */
    mla_corpus_free(&corpus);
}

static void test_bad(void **state)
{
    struct mla_case test;
    char line[MLA_CASE_LINE_MAX], text[2 * MLA_CASE_LINE_MAX];
    (void)state;
    mla_case_init(&test, MLA_OP_RING);
    mla_case_format(&test, line);
    refused("", ": holds no case");
    refused("# only words\n", ": holds no case");
    snprintf(text, sizeof text, "%s\n%.*s\n", line, (int)strlen(line) - 3, line);
    refused(text, ":2: ");
    snprintf(text, sizeof text, "%s\n\n %s\n", line, line);
    refused(text, ":3: ");
    snprintf(text, sizeof text, "%s\r\n", line);
    refused(text, ":1: ");
    test.ring.num_links = 0;
    mla_case_format(&test, line);
    snprintf(text, sizeof text, "#\n%s\n", line);
    refused(text, ":2: num_links");
}

static void test_missing(void **state)
{
    struct mla_corpus corpus = {0};
    char error[512];
    (void)state;
    assert_int_equal(mla_corpus_read(&corpus, "/no/such/file", error, sizeof error), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "/no/such/file"));
    assert_int_equal(mla_corpus_read(&corpus, "/tmp", error, sizeof error), MLA_ERR_PARAM);
    assert_int_equal(corpus.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_missing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
