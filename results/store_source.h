/* SPDX-License-Identifier: Apache-2.0
 *
 * store_source.h - a database file, for reading: its content as the schema "src" of a store, or as the store.
 */
#ifndef MLA_RESULTS_STORE_SOURCE_H
#define MLA_RESULTS_STORE_SOURCE_H

#include <stdint.h>

struct mla_store;

/*
 * Copy the file at path into a private temporary database of today's schema and attach that as "src" to
 * the store's connection. The file is opened read-only and may be in use; it stays as it is, byte for
 * byte, whatever its version: an older copy is migrated, not the file. A newer one, another program's, a
 * damaged one, an empty one and the store's own are refused. stop (may be NULL): set to end early.
 */
int32_t mla_source_attach(struct mla_store *store, const char *path, const volatile int *stop);
/*
 * Make a store's connection one to such a copy of the file at path, which is resolved: what is written to it
 * goes nowhere. The store has no connection yet.
 */
int32_t mla_source_read(struct mla_store *store, char *path);
/* The copy is gone after this, as after the death of the process: it never has a name. */
void mla_source_detach(struct mla_store *store);

#endif
