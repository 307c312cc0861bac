/* SPDX-License-Identifier: Apache-2.0
 *
 * report_test_util.h - what the tests of the report share. A failure fails the test.
 */
#ifndef MLA_RESULTS_REPORT_TEST_UTIL_H
#define MLA_RESULTS_REPORT_TEST_UTIL_H

#include "results/report_internal.h"

/* Everything that a language here could stumble over, and bytes that are no UTF-8. */
#define TEST_HOSTILE                                                                               \
    "=k\"'<script>alert(1)</script>&|`*_[x](y)$(id);]]>--\\ "                                      \
    "%0A::error::\n\x01\xff\xc0\xaf\xe2\x80\xae"

/* A run of a commit; later calls are later runs. */
void test_report_begin(struct mla_store *store, const char *commit, const char *sanitizer);
/* A verdict of it on the n-th case, with statistics unless ratio is negative; its reason is hostile. */
void test_report_judge(struct mla_store *store, unsigned n, const char *kernel, const char *verdict,
                       double ratio);
/* A database of three runs: the second breaks case 1, the third keeps it broken and worsens case 2. */
struct mla_store *test_report_runs(const char *path, const char *kernel);
/* What was stored so far, read; to be freed. */
struct mla_report *test_report_read(struct mla_store *store);
/* The same written, to be freed; TEST_ANNOTATIONS for those of GitHub. */
#define TEST_ANNOTATIONS MLA_REPORT_FORMATS_N
char *test_report_render(struct mla_store *store, enum mla_report_format format);
/* How often part stands in text. */
size_t test_report_count(const char *text, const char *part);

/* Of a group: a folder of its own as the state. */
int test_report_setup(void **state);
int test_report_teardown(void **state);

#endif
