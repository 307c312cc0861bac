/* SPDX-License-Identifier: Apache-2.0
 *
 * store_digest.c - SHA-256 over SQL values, and random names.
 */
#include "results/store_digest.h"

#include <nettle/sha2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* SQLite gives it zeroed. */
struct state {
    bool begun;
    struct sha256_ctx hash;
};

static void to_hex(const uint8_t bytes[16], char text[MLA_UID_BYTES])
{
    for (size_t i = 0; i < 16; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
}

static void add_number(struct sha256_ctx *hash, uint64_t bits)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(bits >> (56 - 8 * i));
    }
    sha256_update(hash, sizeof bytes, bytes);
}

static void add_bytes(struct sha256_ctx *hash, const void *bytes, int bytes_n)
{
    add_number(hash, (uint64_t)bytes_n);
    if (bytes_n > 0) {
        sha256_update(hash, (size_t)bytes_n, bytes);
    }
}

static void add_letter(struct sha256_ctx *hash, char letter)
{
    const uint8_t byte = (uint8_t)letter;
    sha256_update(hash, 1, &byte);
}

static void add_value(struct sha256_ctx *hash, sqlite3_value *value)
{
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        add_letter(hash, 'i');
        add_number(hash, (uint64_t)sqlite3_value_int64(value));
        break;
    case SQLITE_FLOAT: {
        double real = sqlite3_value_double(value);
        uint64_t bits = 0;
        memcpy(&bits, &real, sizeof bits);
        add_letter(hash, 'r');
        add_number(hash, bits);
        break;
    }
    case SQLITE_TEXT: {
        const void *text = sqlite3_value_text(value);
        add_letter(hash, 't');
        add_bytes(hash, text, sqlite3_value_bytes(value)); /* of the UTF-8 just asked for */
        break;
    }
    case SQLITE_BLOB: {
        const void *blob = sqlite3_value_blob(value);
        add_letter(hash, 'b');
        add_bytes(hash, blob, sqlite3_value_bytes(value));
        break;
    }
    default:
        add_letter(hash, 'n');
        break;
    }
}

static void step(sqlite3_context *context, int values_n, sqlite3_value **values)
{
    struct state *state = sqlite3_aggregate_context(context, sizeof *state);
    if (state == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (!state->begun) {
        sha256_init(&state->hash);
        state->begun = true;
    }
    for (int i = 0; i < values_n; i++) {
        add_value(&state->hash, values[i]);
    }
}

static void final(sqlite3_context *context)
{
    struct state *state = sqlite3_aggregate_context(context, 0);
    if (state == NULL || !state->begun) {
        sqlite3_result_null(context);
        return;
    }
    uint8_t bytes[16];
    char text[MLA_UID_BYTES];
    sha256_digest(&state->hash, sizeof bytes, bytes);
    to_hex(bytes, text);
    sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

int mla_digest_register(sqlite3 *db)
{
    return sqlite3_create_function_v2(db, "mla_digest", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                      NULL, NULL, step, final, NULL);
}

/* Microseconds since 1970, 56 bits: up to the year 4253. */
static void put_time(uint8_t bytes[7])
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t time = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    for (int i = 6; i >= 0; i--) {
        bytes[i] = (uint8_t)time;
        time >>= 8;
    }
}

bool mla_uid_make(char uid[MLA_UID_BYTES])
{
    /* A name is no test data: nothing that is judged, drawn or compared depends on it, and two machines
     * that begin the same command in the same second must not agree on it. Hashing host name, pid and
     * clock would only make that rare: containers share all three. Up to 256 bytes come whole. */
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return false;
    }
    put_time(bytes); /* runs that began in the same second are ordered by their names */
    to_hex(bytes, uid);
    return true;
}
