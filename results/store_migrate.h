/* SPDX-License-Identifier: Apache-2.0
 *
 * store_migrate.h - is the file ours, of which version, and the way to the version of today.
 *
 * A file is ours when its application_id says so; its user_version is the version of the schema.
 */
#ifndef MLA_RESULTS_STORE_MIGRATE_H
#define MLA_RESULTS_STORE_MIGRATE_H

#include <stddef.h>
#include <stdint.h>

#define MLA_STORE_APPLICATION_ID 0x6d6c6163 /* "mlac" */

struct mla_store;

/* Step i (from 0) leads from version i to version i + 1. */
struct mla_migrate_step {
    const char *sql;
};

/* The texts of schema.sql (version 1) and of the steps after it, NUL-terminated. */
extern const unsigned char mla_schema_sql[];
extern const unsigned char mla_schema_2_sql[];
extern const unsigned char mla_schema_3_sql[];
extern const unsigned char mla_schema_4_sql[];
extern const unsigned char mla_schema_5_sql[];

/*
 * Look without writing: OK with *version (0: an empty file), ERR_SCHEMA for a newer version or
 * another program's database, ERR_OPEN for a file that is no database or cannot be read.
 */
int32_t mla_migrate_identify(struct mla_store *store, int64_t newest, int64_t *version);
/*
 * Bring the file to version steps_n in one transaction (all steps or none). Several processes may
 * do so at once: the version is read again under the write lock.
 */
int32_t mla_migrate_steps(struct mla_store *store, const struct mla_migrate_step *steps,
                          size_t steps_n);
/* The same with the steps of this library. */
int32_t mla_migrate(struct mla_store *store);

#endif
