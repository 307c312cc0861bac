/* SPDX-License-Identifier: Apache-2.0
 *
 * inflight.c - write the in-flight note: a memory copy into a mapped file.
 *
 * What is in a shared mapping survives kill -9 of its process without any system call. The disk
 * space is reserved when the file is made or grows, since a store into a hole on a full disk is a
 * SIGBUS.
 */
#include "results/inflight.h"

#include "results/process.h"
#include "results/store_fields.h"
#include "results/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTE_BYTES    ((size_t)64 * 1024) /* at first; grows for longer texts */
#define NOTE_TEXTS_N  (MLA_CASE_TEXTS_N + 4)
#define NAMES_TRIED_N 100

/* FNV-1a: it has to catch accidents, not attacks. */
uint64_t mla_note_checksum(const unsigned char *body, size_t bytes)
{
    uint64_t sum = 0xcbf29ce484222325U;
    for (size_t i = 0; i < bytes; i++) {
        sum = (sum ^ body[i]) * 0x100000001b3U;
    }
    return sum;
}

bool mla_note_lock(int file, bool wait)
{
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    int result = fcntl(file, wait ? F_SETLKW : F_SETLK, &lock);
    while (result != 0 && errno == EINTR) {
        result = fcntl(file, wait ? F_SETLKW : F_SETLK, &lock);
    }
    return result == 0;
}

static int32_t fail_errno(struct mla_store *store, const char *doing, int error)
{
    return mla_store_fail(store, MLA_STORE_ERR_WRITE, "cannot %s the in-flight note of '%s': %s",
                          doing, store->path, strerror(error));
}

/*
 * Create a note file under the first free name and lock it. Names are taken when another store of
 * this process has one, or a process of the same pid in another pid namespace.
 */
static int32_t create_file(struct mla_store *store, struct mla_note *note)
{
    size_t bytes = strlen(store->path) + sizeof MLA_NOTE_INFIX + 32;
    char *path = malloc(bytes);
    if (path == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory for an in-flight note");
    }
    int error = EEXIST;
    for (int i = 0; i < NAMES_TRIED_N && error == EEXIST; i++) {
        char number[16] = "";
        if (i > 0) {
            (void)snprintf(number, sizeof number, "-%d", i);
        }
        (void)snprintf(path, bytes, "%s%s%ld%s", store->path, MLA_NOTE_INFIX, (long)store->pid,
                       number);
        note->file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        error = note->file < 0 ? errno : 0;
        struct stat info;
        if (error == 0 && mla_note_lock(note->file, true) && fstat(note->file, &info) == 0 &&
            info.st_nlink > 0) {
            note->path = path;
            return MLA_STORE_OK;
        }
        if (error == 0) { /* taken for a dead one's in the moment before the lock */
            (void)close(note->file);
            note->file = -1;
            error = EEXIST;
        }
    }
    free(path);
    return fail_errno(store, "create", error);
}

/* Make the file and the mapping hold so many bytes. The old mapping stays on error. */
static int32_t reserve(struct mla_store *store, struct mla_note *note, size_t bytes)
{
    size_t wanted = note->mapped_bytes == 0 ? NOTE_BYTES : note->mapped_bytes;
    while (wanted < bytes) {
        wanted *= 2;
    }
    if (wanted == note->mapped_bytes) {
        return MLA_STORE_OK;
    }
    int error = posix_fallocate(note->file, 0, (off_t)wanted);
    if (error != 0) {
        return fail_errno(store, "reserve space for", error);
    }
    void *mapping = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, note->file, 0);
    if (mapping == MAP_FAILED) {
        return fail_errno(store, "map", errno);
    }
    if (note->head != NULL) {
        (void)munmap(note->head, note->mapped_bytes);
    }
    note->head = mapping;
    note->mapped_bytes = wanted;
    return MLA_STORE_OK;
}

static int32_t create_note(struct mla_store *store, struct mla_note *note)
{
    int32_t status = create_file(store, note);
    if (status != MLA_STORE_OK) {
        return status;
    }
    status = reserve(store, note, NOTE_BYTES);
    if (status != MLA_STORE_OK) {
        mla_inflight_close(store);
        return status;
    }
    note->head->pid = store->pid;
    note->head->start = mla_process_start(store->pid);
    memcpy(note->head->magic, MLA_NOTE_MAGIC, sizeof note->head->magic);
    return MLA_STORE_OK;
}

static void put(unsigned char **end, const void *data, size_t bytes)
{
    memcpy(*end, data, bytes);
    *end += bytes;
}

static void put_texts(unsigned char **end, const char *const *texts)
{
    for (int i = 0; i < NOTE_TEXTS_N; i++) {
        uint64_t length = strlen(texts[i]);
        put(end, &length, sizeof length);
        put(end, texts[i], (size_t)length);
    }
}

int32_t mla_store_inflight_begin(struct mla_store *store, const struct mla_store_case *testcase,
                                 const char *kernel, const char *repro)
{
    int32_t status = mla_store_usable(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    if (store->run == 0) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "no run was begun or joined");
    }
    struct mla_store_verdict crash = {
        .testcase = testcase, .kernel = kernel, .verdict = "crash", .elements_n = MLA_STORE_NULL};
    status = mla_queue_check_verdict(store, &crash);
    if (status != MLA_STORE_OK) {
        return status;
    }
    const char *texts[NOTE_TEXTS_N] = {testcase->id, kernel, repro == NULL ? "" : repro,
                                       store->run_started};
    size_t bytes = sizeof store->run + MLA_CASE_NUMBERS_N * sizeof(int64_t);
    for (int i = 0; i < MLA_CASE_TEXTS_N; i++) {
        const char *text = mla_case_text_of(testcase, i);
        texts[4 + i] = text == NULL ? "" : text;
    }
    for (int i = 0; i < NOTE_TEXTS_N; i++) {
        bytes += sizeof(uint64_t) + strlen(texts[i]);
    }
    struct mla_note *note = &store->note;
    if (note->file < 0) {
        status = create_note(store, note);
    }
    if (status == MLA_STORE_OK) {
        status = reserve(store, note, sizeof *note->head + bytes);
    }
    if (status != MLA_STORE_OK) {
        return status;
    }
    /* An exchange, not a store: the body below must not become visible before the 0. */
    (void)atomic_exchange_explicit(&note->head->valid, 0, memory_order_acq_rel);
    unsigned char *body = (unsigned char *)(note->head + 1);
    unsigned char *end = body;
    put(&end, &store->run, sizeof store->run);
    for (int i = 0; i < MLA_CASE_NUMBERS_N; i++) {
        int64_t number = mla_case_number_of(testcase, i);
        put(&end, &number, sizeof number);
    }
    put_texts(&end, texts);
    atomic_store_explicit(&note->head->signal, 0, memory_order_relaxed);
    note->head->checksum = mla_note_checksum(body, bytes);
    atomic_store_explicit(&note->head->valid, bytes, memory_order_release);
    return MLA_STORE_OK;
}

int32_t mla_store_inflight_end(struct mla_store *store)
{
    int32_t status = mla_store_usable(store);
    if (status == MLA_STORE_OK && store->note.head != NULL) {
        atomic_store_explicit(&store->note.head->valid, 0, memory_order_release);
    }
    return status;
}

void mla_store_inflight_fatal(struct mla_store *store, int signal)
{
    if (store->note.head != NULL && getpid() == store->pid) {
        atomic_store_explicit(&store->note.head->signal, (uint64_t)signal, memory_order_release);
    }
}

void mla_inflight_close(struct mla_store *store)
{
    struct mla_note *note = &store->note;
    if (note->file < 0) {
        return;
    }
    if (note->head != NULL) {
        (void)munmap(note->head, note->mapped_bytes);
    }
    (void)unlink(note->path);
    (void)close(note->file);
    free(note->path);
    *note = (struct mla_note){.file = -1};
}
