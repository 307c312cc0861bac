/* SPDX-License-Identifier: Apache-2.0
 *
 * store_merge_test_util.c - files to merge, and their content as text.
 */
#include "results/store_merge_test_util.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(bool ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "store_merge_test_util: %s\n", what);
        abort();
    }
}

static void must_store(struct mla_store *store, int32_t status)
{
    must(status == MLA_STORE_OK, mla_store_message(store));
}

void test_dump_load(const char *dump, const char *path)
{
    long bytes = 0;
    char *sql = test_read_file(dump, &bytes);
    must(sql != NULL, dump);
    test_exec(path, sql);
    free(sql);
}

static void write_verdicts(struct mla_store *store, unsigned machine, unsigned from, unsigned n)
{
    for (unsigned i = from; i < from + n; i++) {
        /* Half of the cases are the same on all machines. */
        struct mla_store_case c = test_case(i % 2 == 0 ? i : i + 1000 * machine);
        struct mla_store_verdict v = test_verdict(&c, i % 3 == 0 ? "fail-certain" : "pass");
        const struct mla_store_metric metrics[] = {{"max_ulp", 0.5 + i}, {"bias", -(double)i}};
        char reason[32];
        (void)snprintf(reason, sizeof reason, "machine %u, %u", machine, i);
        v.reason = reason;
        v.max_ratio = i * 0.25;
        v.kernel_seconds = 0.001 * (machine + 10 * i);
        v.repro = i % 3 == 0 ? "mlacheck run" : NULL;
        v.metrics = metrics;
        v.metrics_n = 2;
        must_store(store, mla_store_verdict(store, &v));
    }
    must_store(store, mla_store_tally(store, "ring", "scalar", "full", "pass", n, 0.25));
}

/* A search that all machines are at, each with its own luck: the later ones ask more often. */
static void search(struct mla_store *store, unsigned machine, unsigned number)
{
    static const char key[] = "aaaaaaaabbbbbbbbaaaaaaaabbbbbbbbaaaaaaaabbbbbbbbaaaaaaaabbbbbbbb";
    struct mla_store_case c = test_case(700);
    const struct mla_store_bisect bisect = {key,    &c,        "mine", "max_ulp>2", "/here",
                                            "make", "mine.so", "c0",   "c9"};
    struct mla_store_step step = {.commit = "c5",
                                  .configuration = "threads=2",
                                  .outcome = (enum mla_store_outcome)(machine % 3),
                                  .tries = 3 + number,
                                  .failed = machine % 3,
                                  .bits = "00ff",
                                  .text = "fail-certain",
                                  .seconds = machine};
    char answer[16];
    int64_t id = 0;
    must_store(store, mla_store_bisect_begin(store, &bisect, &id));
    must_store(store, mla_store_bisect_step(store, id, &step));
    (void)snprintf(step.commit, sizeof step.commit, "of %u", machine);
    must_store(store, mla_store_bisect_step(store, id, &step));
    if (number != 0) {
        (void)snprintf(answer, sizeof answer, "of %u", number);
        must_store(store, mla_store_bisect_end(store, id, answer));
    }
}

static void write_others(struct mla_store *store, unsigned machine, unsigned number)
{
    struct mla_store_case c = test_case(500 + machine);
    const struct mla_store_catch caught = {false, "tier1", 1 + machine};
    const struct mla_store_trial trial = {.role = "fault",
                                          .fault = "rope-ignored",
                                          .class = "C",
                                          .op = "ring",
                                          .search = "guided",
                                          .trial = number,
                                          .outcome = "killed",
                                          .executions = machine,
                                          .testcase = &c,
                                          .catches = &caught,
                                          .catches_n = 1};
    const struct mla_store_bench bench = {.op = "ring",
                                          .shape = "tiny",
                                          .testcase = c.id,
                                          .kernel = "scalar",
                                          .threads = 1,
                                          .seconds = 0.5 * machine,
                                          .flops = 1e9,
                                          .peak = 4e9,
                                          .of_peak = 0.5,
                                          .isa = "portable",
                                          .reps = 5 + number};
    must_store(store, mla_store_trial(store, &trial));
    must_store(store, mla_store_bench(store, &bench));
    search(store, machine, number);
    must_store(store, mla_store_end_run(store));
}

static void begin(struct mla_store *store, unsigned machine, const char *command)
{
    char cpu[16];
    (void)snprintf(cpu, sizeof cpu, "CPU %u", machine);
    const struct mla_store_build build = {"c0ffee", false, "clang 14", "-O2", "", cpu};
    const struct mla_store_run run = {command, cpu, "scalar", machine};
    must_store(store, mla_store_begin_run(store, &build, &run, NULL));
}

void test_machine_write(const char *path, unsigned machine, unsigned verdicts_n)
{
    struct mla_store *store = test_open(path);
    begin(store, machine, "fuzz --time 1"); /* number 1; goes on */
    write_verdicts(store, machine, 0, verdicts_n);
    begin(store, machine, "faults"); /* number 2 */
    write_others(store, machine, 0);
    must_store(store, mla_store_close(store));
    test_exec(path,
              "INSERT INTO bisect_step (testcase, metric, kernel, git_commit, outcome, seconds,"
              " output) SELECT num, NULL, 'scalar', 'c0ffee', 'bad', 1.5, 'out'"
              " FROM testcase WHERE num IN (1, 2)");
}

void test_machine_go_on(const char *path, unsigned machine, unsigned verdicts_n)
{
    struct mla_store *store = test_open(path);
    must_store(store, mla_store_join_run(store, 1));
    write_verdicts(store, machine, 100 * machine, verdicts_n);
    must_store(store, mla_store_end_run(store));
    must_store(store, mla_store_join_run(store, 2));
    write_others(store, machine, verdicts_n);
    must_store(store, mla_store_close(store));
}

void test_prune(const char *path, int64_t kept_n)
{
    struct mla_store *store = test_open(path);
    must_store(store, mla_store_prune(store, kept_n, kept_n, NULL));
    must_store(store, mla_store_close(store));
}

struct mla_store_merged test_merge(const char *into, const char *from)
{
    struct mla_store_merged merged;
    struct mla_store *store = test_open(into);
    must_store(store, mla_store_merge(store, from, NULL, &merged));
    must_store(store, mla_store_close(store));
    return merged;
}

char *test_text_of(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    must(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK, path);
    (void)sqlite3_busy_timeout(db, 20000);
    must(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK, sqlite3_errmsg(db));
    must(sqlite3_step(stmt) == SQLITE_ROW, sql);
    const char *value = (const char *)sqlite3_column_text(stmt, 0);
    char *text = strdup(value == NULL ? "" : value);
    must(text != NULL, "no memory");
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return text;
}

/* What a reference to a row stands for. */
static const char *const names[][2] = {
    {"build", "(SELECT git_commit || dirty || compiler || flags || sanitizer || isa FROM build"
              " WHERE id = %s)"},
    {"run", "(SELECT uid FROM run WHERE id = %s)"},
    {"testcase", "(SELECT id FROM testcase WHERE num = %s)"},
    {"verdict", "(SELECT r.uid || c.id || v.kernel || v.verdict || v.relation || v.reason"
                " FROM verdict AS v JOIN run AS r ON r.id = v.run"
                " JOIN testcase AS c ON c.num = v.testcase WHERE v.id = %s)"},
    {"bisect", "(SELECT key FROM bisect WHERE id = %s)"},
    {"trial", "(SELECT r.uid || t.fault || t.op || t.search || t.trial FROM trial AS t"
              " JOIN run AS r ON r.id = t.run WHERE t.id = %s)"},
};

/* One query a table, made from the schema: '||'-joined quoted cells of all columns but row numbers. */
static char *table_query(const char *path, const char *table)
{
    char sql[4096];
    size_t used = (size_t)snprintf(
        sql, sizeof sql, "SELECT group_concat('quote(' || CASE coalesce(f.\"table\", '')");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char cell[64];
        (void)snprintf(cell, sizeof cell, "%s.\"%%s\"", table);
        used += (size_t)snprintf(sql + used, sizeof sql - used,
                                 " WHEN '%s' THEN replace('%s', '%%s', '%s.' || c.name)",
                                 names[i][0], names[i][1], table);
    }
    (void)snprintf(sql + used, sizeof sql - used,
                   " ELSE c.name END || ')', ' || ''|'' || ')"
                   " FROM pragma_table_info('%s') AS c"
                   " LEFT JOIN pragma_foreign_key_list('%s') AS f ON f.\"from\" = c.name"
                   " WHERE NOT (c.pk = 1 AND c.type = 'INTEGER' AND f.\"table\" IS NULL)",
                   table, table);
    char *cells = test_text_of(path, sql);
    size_t bytes = strlen(cells) + 256;
    char *query = malloc(bytes);
    must(query != NULL, "no memory");
    (void)snprintf(query, bytes,
                   "SELECT coalesce(group_concat(row, char(10)), '') FROM (SELECT %s AS row FROM %s"
                   " ORDER BY 1)",
                   cells, table);
    free(cells);
    return query;
}

/* The tables of a file, one a call, from *at; false after the last. */
static bool next_table(char **at, char table[64])
{
    size_t n = strcspn(*at, " ");
    if (n == 0) {
        return false;
    }
    (void)snprintf(table, 64, "%.*s", (int)n, *at);
    *at += n + ((*at)[n] == ' ');
    return true;
}

static char *table_list(const char *path)
{
    return test_text_of(path, "SELECT group_concat(name, ' ') FROM (SELECT name FROM sqlite_schema"
                              " WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name)");
}

char *test_content(const char *path)
{
    char *tables = table_list(path), *at = tables, *content = strdup(""), table[64];
    while (next_table(&at, table)) {
        char *query = table_query(path, table);
        char *rows = test_text_of(path, query);
        size_t bytes = strlen(content) + strlen(table) + strlen(rows) + 8;
        char *longer = malloc(bytes);
        must(longer != NULL, "no memory");
        (void)snprintf(longer, bytes, "%s%s:\n%s\n", content, table, rows);
        free(content);
        free(rows);
        free(query);
        content = longer;
    }
    free(tables);
    return content;
}

char *test_empty_columns(const char *path)
{
    char *tables = table_list(path), *at = tables, table[64];
    char *gaps = calloc(1, 4096);
    must(gaps != NULL, "no memory");
    while (next_table(&at, table)) {
        char sql[512];
        (void)snprintf(sql, sizeof sql,
                       "SELECT 'SELECT ' || group_concat('iif(count(\"' || name || '\") = 0,"
                       " ''%s.' || name || ' '', '''')', ' || ') || ' FROM %s'"
                       " FROM pragma_table_info('%s')",
                       table, table, table);
        char *query = test_text_of(path, sql);
        char *found = test_text_of(path, query);
        (void)snprintf(gaps + strlen(gaps), 4096 - strlen(gaps), "%s", found);
        free(query);
        free(found);
    }
    free(tables);
    return gaps;
}

void test_file_copy(const char *from, const char *to)
{
    long bytes = 0;
    char *data = test_read_file(from, &bytes);
    must(data != NULL, from);
    test_write_file(to, data, (size_t)bytes);
    free(data);
}

unsigned test_random(unsigned *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 10;
}
