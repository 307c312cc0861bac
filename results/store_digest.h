/* SPDX-License-Identifier: Apache-2.0
 *
 * store_digest.h - names for content: an SQL function that hashes rows, and names for what begins now.
 */
#ifndef MLA_RESULTS_STORE_DIGEST_H
#define MLA_RESULTS_STORE_DIGEST_H

#include <sqlite3.h>
#include <stdbool.h>

#define MLA_UID_BYTES 33 /* 32 lower-case hex digits and a NUL */

/*
 * Give a connection the aggregate mla_digest(value, ..): the first 128 bits of the SHA-256 of all its
 * values, row by row in the order they come, as 32 hex digits; NULL of no rows. A value counts as one
 * letter for its type and its bytes: n (NULL); i, r (64 bits of two's complement or IEEE 754, the highest
 * byte first); t, b (the length as 64 such bits, then the bytes, texts in UTF-8). No text form of a number
 * is involved, as SQLite's changed between versions. The definition stands for ever: names of old runs
 * are made by it. An SQLite code.
 */
int mla_digest_register(sqlite3 *db);

/*
 * 56 bits of time, microseconds since 1970, and 72 from the kernel's random generator, as 32 hex digits; false
 * when it has none to give. So the names of runs of one second tell which began later, in every copy: their
 * numbers do not once databases are merged. Older names are all random or digests, and break ties all the same.
 */
bool mla_uid_make(char uid[MLA_UID_BYTES]);

#endif
