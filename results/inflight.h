/* SPDX-License-Identifier: Apache-2.0
 *
 * inflight.h - the note file: which case a kernel is running, kept past the death of the process.
 *
 * Layout: struct mla_note_head, then the body: the run, the numbers of the case, and texts, each
 * with its length before it. `valid` is the length of the body, 0 while there is no note or it is
 * being written; the checksum catches what memory order or a power cut may still have torn. The
 * file is in the machine's own byte order: only this machine can know that its process is dead.
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

#define MLA_NOTE_MAGIC   "mlanote2"
#define MLA_NOTE_MAGIC_1 "mlanote1"   /* by schema version 1: without sign_coins, the last number */
#define MLA_NOTE_INFIX   "-inflight-" /* <db>-inflight-<pid>[-<number>] */

struct mla_note_head {
    char magic[8];
    int64_t pid;
    uint64_t start; /* of the process, see process.h */
    uint64_t checksum;
    _Atomic uint64_t valid;
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

#endif
