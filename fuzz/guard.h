/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.h - memory for one tensor between two unmapped pages.
 *
 * The bytes between the tensor and the pages hold a pattern that is NaN as bf16 and float32 and -1
 * as an index, and is checked afterwards. The mapping is shared: a forked child's writes are seen
 * here.
 *
 * Mappings are used again, so a new tensor's bytes are those of an earlier one.
 */
#ifndef MLA_FUZZ_GUARD_H
#define MLA_FUZZ_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where in its pages a tensor lies: each place catches other faults. */
enum mla_guard_place {
    MLA_GUARD_END = 0, /* last byte against the page: reads and writes past the end trap */
    MLA_GUARD_ODD,     /* one element before that: no alignment beyond the element's own */
    MLA_GUARD_START,   /* first byte against the page: reads and writes before the start trap */
    MLA_GUARD_PLACES_N
};

/* Tensors one mapping serves before it is unmapped for good. */
#define MLA_GUARD_USES_MAX 64

struct mla_guard {
    void *map; /* NULL: nothing held */
    size_t map_bytes;
    int uses; /* tensors the mapping has served, this one counted */
    unsigned char *data;
    size_t bytes;
};

/* bytes >= 1. false when the memory cannot be had; the guard is then empty. */
bool mla_guard_make(struct mla_guard *guard, size_t bytes, size_t element_bytes,
                    enum mla_guard_place place);
/*
 * The same for a tensor of which little is ever touched: whole pages of address space that read as
 * zeros, and are unmapped when released. MLA_GUARD_ODD is like MLA_GUARD_END.
 */
bool mla_guard_make_thin(struct mla_guard *guard, size_t bytes, enum mla_guard_place place);
/*
 * Memory for large tensors that are timed, not watched: private, aligned to a huge page, and advised
 * to consist of those before its first use. Nothing traps, and mla_guard_intact may not be asked.
 */
bool mla_guard_make_plain(struct mla_guard *guard, size_t bytes);
/* Is the pattern around the tensor whole? *offset: first damaged byte relative to the tensor. */
bool mla_guard_intact(const struct mla_guard *guard, int64_t *offset);
/* Give or take the right to write the tensor and the pattern around it, in this process. false: refused. */
bool mla_guard_set_writable(const struct mla_guard *guard, bool writable);
/* Does the address lie between the outer pages? */
bool mla_guard_holds(const struct mla_guard *guard, const void *address);
void mla_guard_free(struct mla_guard *guard);

/*
 * For a process that is forked to make tensors of its own: give up the mappings kept so far, which it
 * shares with its parent.
 */
void mla_guard_forget(void);
/* For one that makes many: let malloc keep what is freed. Given back, it is faulted in again by the next
 * case, at more than most calls cost. */
void mla_guard_keep_heap(void);

#endif
