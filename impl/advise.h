/* SPDX-License-Identifier: Apache-2.0
 *
 * advise.h - ask for huge pages under a large cache.
 *
 * Rows picked at random from a cache of many megabytes cost a page walk each with pages of 4 KiB.
 * On Linux a range may be recommended for pages of 2 MiB; what is mapped already is then exchanged
 * in the background, what is touched later comes in huge pages at once. It is advice: contents and
 * access rights stay, an error (a kernel without, a file) is ignored, and elsewhere nothing is
 * done. Only pages that lie wholly inside are named, so nothing of a neighbour changes.
 */
#ifndef MLA_IMPL_ADVISE_H
#define MLA_IMPL_ADVISE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define MLA_ADVISE_LEAST (4 << 20) /* bytes: below, what the page tables cost is small */

static inline void mla_advise_huge(const void *from, int64_t bytes)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const int callers = errno;
    const long page = sysconf(_SC_PAGESIZE);
    if (bytes < MLA_ADVISE_LEAST || page <= 0) {
        return;
    }
    const uintptr_t size = (uintptr_t)page;
    const uintptr_t first = ((uintptr_t)from + size - 1) / size * size;
    const uintptr_t end = ((uintptr_t)from + (uintptr_t)bytes) / size * size;
    /* madvise() takes what it may not write to as non-const too. */
    (void)madvise((void *)first, (size_t)(end - first), MADV_HUGEPAGE);
    errno = callers;
#else
    (void)from;
    (void)bytes;
#endif
}

#endif
