/* SPDX-License-Identifier: Apache-2.0
 *
 * inflight.h - the note file: which case a kernel is running, kept past the death of the process.
 *
 * Layout: struct mla_note_head, then the body: the run, the numbers of the case, and texts, each
 * with its length before it. `valid` is the length of the body, 0 while there is no note or it is
 * being written; the checksum catches what memory order or a power cut may still have torn.
 * `signal` is the one that ended the kernel in its own process, which had the time to say so; 0: nobody
 * knows why the process is gone, and the kernel is not to blame. The file is in the machine's own byte
 * order: only this machine can know that its process is dead.
 *
 * Its owner holds a lock on the file as long as it lives; who turns a dead one's note into a
 * finding holds it meanwhile, so that this happens once.
 */
#ifndef MLA_RESULTS_INFLIGHT_H
#define MLA_RESULTS_INFLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "results/store.h"

#define MLA_NOTE_MAGIC   "mlanote3"
#define MLA_NOTE_MAGIC_2 "mlanote2"   /* without signal */
#define MLA_NOTE_MAGIC_1 "mlanote1"   /* nor sign_coins, the last number: by schema version 1 */
#define MLA_NOTE_INFIX   "-inflight-" /* <db>-inflight-<pid>[-<number>] */

struct mla_note_head {
    char magic[8];
    int64_t pid;
    uint64_t start; /* of the process, see process.h */
    uint64_t checksum;
    _Atomic uint64_t valid;
    _Atomic uint64_t signal; /* not in older ones: their body begins here */
};

struct mla_note {
    int file; /* -1: none yet */
    char *path;
    struct mla_note_head *head; /* the mapping */
    size_t mapped_bytes;
};

uint64_t mla_note_checksum(const unsigned char *body, size_t bytes);
/* Lock a note file for this process; false when another process holds it. */
bool mla_note_lock(int file, bool wait);

/* A whole note, read. */
struct mla_note_content {
    int64_t run;
    struct mla_store_case testcase;
    const char *kernel, *repro, *started;
    int signal;  /* that ended the kernel, 0: not known to */
    char *texts; /* the texts of all these, in one block */
};
/*
 * The note in a file, as its owner left it. false: there is no whole one, and content has nothing to be freed.
 * *start: of its process; *looks_ours: it is a note file, which may be removed.
 */
bool mla_note_read(int file, struct mla_note_content *content, uint64_t *start, bool *looks_ours);
void mla_note_free(struct mla_note_content *content);

#endif
