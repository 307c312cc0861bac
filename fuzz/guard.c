/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.c - one anonymous shared mapping a tensor: page without access, pages, page without access.
 */
#include "fuzz/guard.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATTERN 0xff

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

bool mla_guard_make(struct mla_guard *guard, size_t bytes, size_t element_bytes,
                    enum mla_guard_place place)
{
    size_t page = page_bytes();
    memset(guard, 0, sizeof *guard);
    size_t inner = (bytes + element_bytes + page - 1) / page * page;
    char *map = mmap(NULL, inner + 2 * page, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return false;
    if (mprotect(map, page, PROT_NONE) != 0 || mprotect(map + page + inner, page, PROT_NONE) != 0) {
        munmap(map, inner + 2 * page);
        return false;
    }
    size_t lead = place == MLA_GUARD_START ? 0
                  : place == MLA_GUARD_ODD ? inner - bytes - element_bytes
                                           : inner - bytes;
    unsigned char *first = (unsigned char *)map + page;
    memset(first, PATTERN, lead);
    memset(first + lead + bytes, PATTERN, inner - lead - bytes);
    guard->map = map;
    guard->map_bytes = inner + 2 * page;
    guard->data = first + lead;
    guard->bytes = bytes;
    return true;
}

/* The first byte of [from, to) that is not the pattern, or to. */
static const unsigned char *damaged(const unsigned char *from, const unsigned char *to)
{
    while (from < to && *from == PATTERN)
        from++;
    return from;
}

bool mla_guard_intact(const struct mla_guard *guard, int64_t *offset)
{
    const unsigned char *first = (const unsigned char *)guard->map + page_bytes();
    const unsigned char *end = first + guard->map_bytes - 2 * page_bytes();
    const unsigned char *before = damaged(first, guard->data);
    const unsigned char *after = damaged(guard->data + guard->bytes, end);
    if (before < guard->data)
        *offset = before - guard->data;
    else
        *offset = after - guard->data;
    return before == guard->data && after == end;
}

void mla_guard_free(struct mla_guard *guard)
{
    if (guard->map != NULL)
        munmap(guard->map, guard->map_bytes);
    memset(guard, 0, sizeof *guard);
}
