/* SPDX-License-Identifier: Apache-2.0
 *
 * store_test_util.h - shared by the store's tests: a folder, sample cases, and a second way to
 * look.
 *
 * What a test expects in the file is read with a connection of its own, not through the store.
 */
#ifndef MLA_RESULTS_STORE_TEST_UTIL_H
#define MLA_RESULTS_STORE_TEST_UTIL_H

#include "results/store.h"

#include <sys/types.h>

/* A fresh folder and its removal with the files in it. */
char *test_folder_make(void);
/* The same in memory where there is such a place: what a kill leaves does not depend on the disk. */
char *test_folder_make_fast(void);
void test_folder_remove(char *folder);
/* folder/name, in one of a few static buffers. */
const char *test_path(const char *folder, const char *name);

/* Case number n; its id begins with n in 8 hex digits. Texts live in a few static buffers. */
struct mla_store_case test_case(unsigned n);
struct mla_store_verdict test_verdict(const struct mla_store_case *testcase, const char *verdict);

/* Open or fail the test. */
struct mla_store *test_open(const char *path);
/* The same with a run begun; *run may be NULL. */
struct mla_store *test_open_run(const char *path, int64_t *run);

/*
 * First column of the first row by another connection: an integer (-1: no row, -2: an error) or
 * text (static buffer; "(null)" for NULL, "(none)" without a row).
 */
int64_t test_number(const char *path, const char *sql);
const char *test_text(const char *path, const char *sql);
void test_exec(const char *path, const char *sql);

/* Whole file (NUL appended); *bytes -1 and NULL when it cannot be read. */
char *test_read_file(const char *path, long *bytes);
void test_write_file(const char *path, const void *data, size_t bytes);
/* Files in a folder whose name begins with prefix. */
int test_files_n(const char *folder, const char *prefix);
/* Wait for a child: its exit code, or 1000 + signal. */
int test_wait(pid_t child);
void test_sleep_ms(long ms);

#endif
