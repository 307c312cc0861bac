/* SPDX-License-Identifier: Apache-2.0
 *
 * inflight_read.c - read a note that a dead process left, of any version, believing nothing of it.
 */
#include "results/inflight.h"
#include "results/store_fields.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTE_BYTES_MAX ((off_t)1 << 30)

/* A note in memory. */
struct note_text {
    struct mla_note_head head;
    int version; /* 0: a head that was never written */
    unsigned char *body;
    size_t body_bytes;
};

static bool read_fully(int file, void *data, size_t bytes, off_t offset)
{
    unsigned char *end = data;
    while (bytes > 0) {
        ssize_t n = pread(file, end, bytes, offset);
        if (n <= 0) {
            return false;
        }
        end += n;
        offset += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* -1: not a note. */
static int version_of(const struct mla_note_head *head)
{
    static const char nothing[sizeof head->magic];
    const char *const magics[] = {nothing, MLA_NOTE_MAGIC_1, MLA_NOTE_MAGIC_2, MLA_NOTE_MAGIC};
    for (int version = 0; version < 4; version++) {
        if (memcmp(head->magic, magics[version], sizeof head->magic) == 0) {
            return version;
        }
    }
    return -1;
}

/* The head; *body: where what follows it begins. false: the file is too short, or no note. */
static bool read_head(int file, struct note_text *note, off_t *body)
{
    *body = (off_t)offsetof(struct mla_note_head, signal);
    if (!read_fully(file, &note->head, (size_t)*body, 0)) {
        return false;
    }
    note->version = version_of(&note->head);
    if (note->version != 3) {
        return note->version >= 0;
    }
    *body = (off_t)sizeof note->head;
    return read_fully(file, &note->head, sizeof note->head, 0);
}

/* Read head and, when there is a whole note, its body. */
static bool read_text(int file, struct note_text *note, bool *looks_ours)
{
    struct stat info;
    off_t at = 0;
    memset(note, 0, sizeof *note);
    *looks_ours = false;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > NOTE_BYTES_MAX) {
        return false;
    }
    if (info.st_size == 0) { /* died right after creating it */
        *looks_ours = true;
        return false;
    }
    if (!read_head(file, note, &at)) {
        return false;
    }
    *looks_ours = true;
    uint64_t valid = atomic_load_explicit(&note->head.valid, memory_order_relaxed);
    if (note->version == 0 || valid == 0 || valid > (uint64_t)(info.st_size - at)) {
        return false;
    }
    note->body_bytes = (size_t)valid;
    note->body = malloc(note->body_bytes);
    if (note->body == NULL || !read_fully(file, note->body, note->body_bytes, at)) {
        *looks_ours = false; /* perhaps whole: leave it to the next open */
        return false;
    }
    return mla_note_checksum(note->body, note->body_bytes) == note->head.checksum;
}

static bool get(const unsigned char **at, const unsigned char *end, void *data, size_t bytes)
{
    if ((size_t)(end - *at) < bytes) {
        return false;
    }
    memcpy(data, *at, bytes);
    *at += bytes;
    return true;
}

/* The next text, copied to *room and terminated; NULL when the body ends before it. */
static const char *get_text(const unsigned char **at, const unsigned char *end, char **room)
{
    uint64_t length = 0;
    char *text = *room;
    if (!get(at, end, &length, sizeof length) || length > (uint64_t)(end - *at) ||
        !get(at, end, text, (size_t)length)) {
        return NULL;
    }
    text[length] = '\0';
    *room += length + 1;
    return text;
}

/* Take the body apart; false when it is not what inflight.c writes. content->texts is to be freed. */
static bool parse(const struct note_text *note, struct mla_note_content *content)
{
    const unsigned char *at = note->body;
    const unsigned char *end = note->body + note->body_bytes;
    const char *id = NULL;
    memset(content, 0, sizeof *content);
    content->testcase.sign_coins = MLA_STORE_NULL;
    bool ok = get(&at, end, &content->run, sizeof content->run);
    for (int i = 0; ok && i < MLA_CASE_NUMBERS_N - (note->version == 1 ? 1 : 0); i++) {
        ok = get(&at, end, mla_case_number(&content->testcase, i), sizeof(int64_t));
    }
    /* Each text's length takes more room in the body than its NUL does here. */
    content->texts = malloc(note->body_bytes + 1);
    char *room = content->texts;
    if (!ok || room == NULL) {
        return false;
    }
    const char **texts[4] = {&id, &content->kernel, &content->repro, &content->started};
    for (int i = 0; i < 4 + MLA_CASE_TEXTS_N; i++) {
        const char **text = i < 4 ? texts[i] : mla_case_text(&content->testcase, i - 4);
        *text = get_text(&at, end, &room);
        if (*text == NULL) {
            return false;
        }
    }
    if (at != end || strlen(id) != 64) {
        return false;
    }
    memcpy(content->testcase.id, id, 65);
    return true;
}

bool mla_note_read(int file, struct mla_note_content *content, uint64_t *start, bool *looks_ours)
{
    struct note_text note;
    memset(content, 0, sizeof *content);
    bool whole = read_text(file, &note, looks_ours) && parse(&note, content);
    uint64_t signal = atomic_load_explicit(&note.head.signal, memory_order_relaxed);
    content->signal = note.version == 3 && signal < 128 ? (int)signal : 0;
    *start = note.head.start;
    free(note.body);
    if (!whole) {
        mla_note_free(content);
    }
    return whole;
}

void mla_note_free(struct mla_note_content *content)
{
    free(content->texts);
    memset(content, 0, sizeof *content);
}
