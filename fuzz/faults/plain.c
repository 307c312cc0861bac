/* SPDX-License-Identifier: Apache-2.0
 *
 * plain.c - which fault is planted, and the mark that it has made a difference.
 */
#include "fuzz/faults/plain.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "fuzz/faults/faults.h"

/*
 * In memory that a forked child shares: a call that is made in isolation leaves its mark too. Without
 * such memory (NULL) nothing is ever marked.
 */
static atomic_bool *applied;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_mark(void)
{
    void *page =
        mmap(NULL, sizeof *applied, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    applied = page == MAP_FAILED ? NULL : page;
}

static atomic_bool *mark(void)
{
    pthread_once(&once, make_mark);
    return applied;
}

bool mla_plain_has(struct mla_plain_variant variant, enum mla_plain_fault fault)
{
    if (variant.fault != fault) {
        return false;
    }
    if (mark()) {
        atomic_store_explicit(applied, true, memory_order_relaxed);
    }
    return true;
}

void mla_fault_keep_mark_in(atomic_bool *place)
{
    (void)mark(); /* or the first call by a fault would make another */
    applied = place;
}

void mla_fault_reset_applied(void)
{
    if (mark()) {
        atomic_store(applied, false);
    }
}

bool mla_fault_is_applied(void)
{
    return mark() && atomic_load(applied);
}
