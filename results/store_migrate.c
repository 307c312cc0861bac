/* SPDX-License-Identifier: Apache-2.0
 *
 * store_migrate.c - recognise the file and migrate it forward.
 *
 * A new file goes through the same steps as an old one, so there is one way to every schema. To
 * change the schema: add a step here (a file schema_<version>.sql) and raise
 * MLA_STORE_SCHEMA_VERSION; never edit a released step.
 */
#include "results/store_migrate.h"

#include "results/store_digest.h"
#include "results/store_internal.h"

static const struct mla_migrate_step steps_of_today[MLA_STORE_SCHEMA_VERSION] = {
    {(const char *)mla_schema_sql},   {(const char *)mla_schema_2_sql},
    {(const char *)mla_schema_3_sql}, {(const char *)mla_schema_4_sql},
    {(const char *)mla_schema_5_sql},
};

/* One integer of a fixed query, prepared for this once: OK, or ERR_OPEN. */
static int32_t read_number(struct mla_store *store, const char *sql, int64_t *value)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(stmt);
    }
    if (code == SQLITE_ROW) {
        *value = sqlite3_column_int64(stmt, 0);
    }
    (void)sqlite3_finalize(stmt);
    if (code == SQLITE_ROW) {
        return MLA_STORE_OK;
    }
    if (code == SQLITE_NOTADB || code == SQLITE_ERROR) { /* the latter: "unsupported file format" */
        return mla_store_fail(
            store, MLA_STORE_ERR_OPEN,
            "'%s' is not an SQLite database: give another path, or, if it was one, its "
            "beginning is damaged: " MLA_STORE_SALVAGE,
            store->path);
    }
    (void)mla_sql_fail(store, "read the kind of file");
    return MLA_STORE_ERR_OPEN;
}

/* The three numbers of one moment: another process may be creating the file just now. */
static int32_t read_numbers(struct mla_store *store, int64_t *application, int64_t *version,
                            int64_t *objects_n)
{
    bool own = sqlite3_get_autocommit(store->db) != 0;
    if (own && sqlite3_exec(store->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        (void)mla_sql_fail(store, "read the kind of file");
        return MLA_STORE_ERR_OPEN;
    }
    int32_t status = read_number(store, "PRAGMA application_id", application);
    if (status == MLA_STORE_OK) {
        status = read_number(store, "PRAGMA user_version", version);
    }
    if (status == MLA_STORE_OK) {
        status = read_number(store, "SELECT count(*) FROM sqlite_schema", objects_n);
    }
    if (own) {
        mla_write_rollback(store);
    }
    return status;
}

int32_t mla_migrate_identify(struct mla_store *store, int64_t newest, int64_t *version)
{
    int64_t application = 0;
    int64_t objects_n = 0;
    int32_t status = read_numbers(store, &application, version, &objects_n);
    if (status != MLA_STORE_OK) {
        return status;
    }
    if (application == 0 && *version == 0 && objects_n == 0) {
        return MLA_STORE_OK;
    }
    if (application != MLA_STORE_APPLICATION_ID || *version < 1) {
        return mla_store_fail(store, MLA_STORE_ERR_SCHEMA,
                              "'%s' is another program's database (application_id %lld, "
                              "user_version %lld, %lld tables and such), not ours to write into",
                              store->path, (long long)application, (long long)*version,
                              (long long)objects_n);
    }
    if (*version > newest) {
        return mla_store_fail(store, MLA_STORE_ERR_SCHEMA,
                              "'%s' has schema version %lld, written by a newer mlacheck; this one "
                              "knows up to version %lld",
                              store->path, (long long)*version, (long long)newest);
    }
    return MLA_STORE_OK;
}

static int32_t run_step(struct mla_store *store, const struct mla_migrate_step *step,
                        int64_t version)
{
    char *error = NULL;
    if (sqlite3_exec(store->db, step->sql, NULL, NULL, &error) == SQLITE_OK) {
        return MLA_STORE_OK;
    }
    int32_t status = mla_store_fail(
        store, MLA_STORE_ERR_WRITE, "cannot migrate '%s' from schema version %lld to %lld: %s",
        store->path, (long long)version, (long long)version + 1, error == NULL ? "" : error);
    sqlite3_free(error);
    return status;
}

/* application_id and user_version lie in the file's header and belong to the transaction. */
static int32_t stamp(struct mla_store *store, int64_t version)
{
    char *sql = sqlite3_mprintf("PRAGMA application_id = %d; PRAGMA user_version = %lld",
                                MLA_STORE_APPLICATION_ID, (long long)version);
    if (sql == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory to migrate");
    }
    struct mla_migrate_step step = {sql};
    int32_t status = run_step(store, &step, version - 1);
    sqlite3_free(sql);
    return status;
}

int32_t mla_migrate_steps(struct mla_store *store, const struct mla_migrate_step *steps,
                          size_t steps_n)
{
    int64_t version = 0;
    int32_t status = mla_migrate_identify(store, (int64_t)steps_n, &version);
    if (status != MLA_STORE_OK || version == (int64_t)steps_n) {
        return status;
    }
    if (mla_digest_register(store->db) != SQLITE_OK) { /* step 5 names runs by it */
        return mla_sql_fail(store, "prepare to migrate");
    }
    status = mla_write_begin(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    /* Another process may have been here between the look and the lock. */
    status = mla_migrate_identify(store, (int64_t)steps_n, &version);
    for (; status == MLA_STORE_OK && version < (int64_t)steps_n; version++) {
        status = run_step(store, &steps[version], version);
    }
    if (status == MLA_STORE_OK) {
        status = stamp(store, (int64_t)steps_n);
    }
    if (status == MLA_STORE_OK) {
        status = mla_write_commit(store);
    }
    if (status != MLA_STORE_OK) {
        mla_write_rollback(store);
    }
    return status;
}

int32_t mla_migrate(struct mla_store *store)
{
    return mla_migrate_steps(store, steps_of_today, MLA_STORE_SCHEMA_VERSION);
}
