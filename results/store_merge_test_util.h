/* SPDX-License-Identifier: Apache-2.0
 *
 * store_merge_test_util.h - files to merge, and their content as text.
 */
#ifndef MLA_RESULTS_STORE_MERGE_TEST_UTIL_H
#define MLA_RESULTS_STORE_MERGE_TEST_UTIL_H

#include "results/store_test_util.h"

/* A file from a dump. */
void test_dump_load(const char *dump, const char *path);
/*
 * What a machine of that number stores: a hunt with so many verdicts (a third of them failures, some of
 * cases that other machines have too), tallies and figures, a run with a timing and a trial, a step of a
 * bisection, and steps of a search that all machines are at. go_on adds verdicts to the hunt, to the other
 * run a timing and a trial of that number, and to the search so many more tries and an end, as other
 * processes would.
 */
void test_machine_write(const char *path, unsigned machine, unsigned verdicts_n);
void test_machine_go_on(const char *path, unsigned machine, unsigned verdicts_n);
/* Keep only the worst and newest so many of each cell of hunts. */
void test_prune(const char *path, int64_t kept_n);

/* Merge or fail the test. */
struct mla_store_merged test_merge(const char *into, const char *from);

/* Every cell of every table, numbers of rows replaced by names, sorted; to be freed. */
char *test_content(const char *path);
/* "table.column " for each column without a value anywhere; to be freed. */
char *test_empty_columns(const char *path);
/* The one text of a query, however long; to be freed. */
char *test_text_of(const char *path, const char *sql);

void test_file_copy(const char *from, const char *to);
/* A small generator of numbers that are the same everywhere. */
unsigned test_random(unsigned *seed);

#endif
