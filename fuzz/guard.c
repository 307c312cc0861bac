/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.c - one anonymous shared mapping a tensor: page without access, pages, page without access.
 *
 * Mapping pages, faulting each in and unmapping them again costs more than most cases need for all
 * the rest, so a released mapping is kept for the next tensor of its size. After USES_MAX tensors
 * it is unmapped all the same: a kernel that keeps a pointer beyond its call meets a hole before
 * long, and until then another tensor, whose numbers it spoils or is spoilt by. (Taking access away
 * at each release would be stricter, but costs half of unmapping.)
 */
#include "fuzz/guard.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#define PATTERN   0xff
#define HUGE_PAGE ((size_t)2 << 20)

#define KEPT_MAX       512                /* mappings kept at a time */
#define KEPT_BYTES_MAX ((size_t)64 << 20) /* and their bytes, together */

struct mapping {
    char *map;    /* NULL: none */
    size_t bytes; /* with both outer pages */
    int uses;     /* tensors it has served */
};

/* Released mappings, the longest unused one first. */
static struct {
    pthread_mutex_t lock;
    struct mapping list[KEPT_MAX];
    size_t n;
    size_t bytes;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t page_bytes(void)
{
    static size_t bytes; /* written by whoever comes first, always the same */
    size_t known = __atomic_load_n(&bytes, __ATOMIC_RELAXED);
    if (known == 0) {
        known = (size_t)sysconf(_SC_PAGESIZE);
        __atomic_store_n(&bytes, known, __ATOMIC_RELAXED);
    }
    return known;
}

/* ---- mappings ---- */

/*
 * Bytes to map between the outer pages: whole pages, from 16 pages on in steps of an eighth or less,
 * so that nearby sizes share mappings. What is too much carries the pattern like the rest.
 */
static size_t inner_bytes(size_t bytes)
{
    size_t unit = page_bytes();
    while (bytes / unit >= 16)
        unit *= 2;
    return (bytes + unit - 1) / unit * unit;
}

static struct mapping take_out(size_t i)
{
    struct mapping found = kept.list[i];
    kept.n--;
    kept.bytes -= found.bytes;
    memmove(&kept.list[i], &kept.list[i + 1], (kept.n - i) * sizeof found);
    return found;
}

/* The last released mapping of that size, or none. */
static struct mapping reuse(size_t bytes)
{
    struct mapping found = {NULL, 0, 0};
    pthread_mutex_lock(&kept.lock);
    for (size_t i = kept.n; i > 0 && found.map == NULL; i--)
        if (kept.list[i - 1].bytes == bytes)
            found = take_out(i - 1);
    pthread_mutex_unlock(&kept.lock);
    return found;
}

static struct mapping create(size_t bytes)
{
    size_t page = page_bytes();
    char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return (struct mapping){NULL, 0, 0};
    if (mprotect(map, page, PROT_NONE) != 0 || mprotect(map + bytes - page, page, PROT_NONE) != 0) {
        munmap(map, bytes);
        return (struct mapping){NULL, 0, 0};
    }
    return (struct mapping){map, bytes, 0};
}

/* Keep a mapping, at the cost of the longest unused ones, or end it. */
static void release(struct mapping mapping)
{
    if (mapping.uses >= MLA_GUARD_USES_MAX || mapping.bytes > KEPT_BYTES_MAX / 4) {
        munmap(mapping.map, mapping.bytes);
        return;
    }
    pthread_mutex_lock(&kept.lock);
    while (kept.n == KEPT_MAX || kept.bytes + mapping.bytes > KEPT_BYTES_MAX) {
        struct mapping oldest = take_out(0);
        munmap(oldest.map, oldest.bytes);
    }
    kept.list[kept.n++] = mapping;
    kept.bytes += mapping.bytes;
    pthread_mutex_unlock(&kept.lock);
}

/* ---- tensors ---- */

/* A tensor `lead` bytes behind the first page of a mapping, the pattern around it. */
static bool lay_out(struct mla_guard *guard, struct mapping mapping, size_t lead, size_t bytes)
{
    if (mapping.map == NULL)
        return false;
    unsigned char *first = (unsigned char *)mapping.map + page_bytes();
    size_t inner = mapping.bytes - 2 * page_bytes();
    memset(first, PATTERN, lead);
    memset(first + lead + bytes, PATTERN, inner - lead - bytes);
    guard->map = mapping.map;
    guard->map_bytes = mapping.bytes;
    guard->uses = mapping.uses + 1;
    guard->data = first + lead;
    guard->bytes = bytes;
    return true;
}

bool mla_guard_make(struct mla_guard *guard, size_t bytes, size_t element_bytes,
                    enum mla_guard_place place)
{
    size_t page = page_bytes();
    memset(guard, 0, sizeof *guard);
    if (bytes > SIZE_MAX / 4)
        return false;
    size_t inner = inner_bytes(bytes + element_bytes);
    struct mapping mapping = reuse(inner + 2 * page);
    if (mapping.map == NULL)
        mapping = create(inner + 2 * page);
    size_t lead = place == MLA_GUARD_START ? 0
                  : place == MLA_GUARD_ODD ? inner - bytes - element_bytes
                                           : inner - bytes;
    return lay_out(guard, mapping, lead, bytes);
}

bool mla_guard_make_thin(struct mla_guard *guard, size_t bytes, enum mla_guard_place place)
{
    size_t page = page_bytes();
    memset(guard, 0, sizeof *guard);
    if (bytes > SIZE_MAX / 4)
        return false;
    size_t inner = (bytes + page - 1) / page * page;
    struct mapping mapping = create(inner + 2 * page);
    mapping.uses = MLA_GUARD_USES_MAX; /* never used again: its pages shall be zeros */
    return lay_out(guard, mapping, place == MLA_GUARD_START ? 0 : inner - bytes, bytes);
}

bool mla_guard_make_plain(struct mla_guard *guard, size_t bytes)
{
    memset(guard, 0, sizeof *guard);
    if (bytes > SIZE_MAX / 4)
        return false;
    size_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE, map_bytes = whole + HUGE_PAGE;
    char *map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return false;
    char *first = map + (HUGE_PAGE - (uintptr_t)map % HUGE_PAGE) % HUGE_PAGE;
#ifdef MADV_HUGEPAGE
    (void)madvise(first, whole, MADV_HUGEPAGE); /* advice only: without, it is slower */
#endif
    guard->map = map;
    guard->map_bytes = map_bytes;
    guard->uses = MLA_GUARD_USES_MAX; /* never used again */
    guard->data = (unsigned char *)first;
    guard->bytes = bytes;
    return true;
}

/* The first byte of [from, to) that is not the pattern, or to. */
static const unsigned char *damaged(const unsigned char *from, const unsigned char *to)
{
    /* The first byte is the pattern and each equals the next: nearly always, and quick to find. */
    if (from < to && *from == PATTERN && memcmp(from, from + 1, (size_t)(to - from) - 1) == 0)
        return to;
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

bool mla_guard_set_writable(const struct mla_guard *guard, bool writable)
{
    size_t page = page_bytes();
    int rights = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    return mprotect((char *)guard->map + page, guard->map_bytes - 2 * page, rights) == 0;
}

bool mla_guard_holds(const struct mla_guard *guard, const void *address)
{
    uintptr_t first = (uintptr_t)guard->map + page_bytes(), at = (uintptr_t)address;
    return at >= first && at < first + guard->map_bytes - 2 * page_bytes();
}

void mla_guard_free(struct mla_guard *guard)
{
    if (guard->map != NULL)
        release((struct mapping){guard->map, guard->map_bytes, guard->uses});
    memset(guard, 0, sizeof *guard);
}

void mla_guard_forget(void)
{
    pthread_mutex_lock(&kept.lock);
    while (kept.n > 0) {
        struct mapping mapping = take_out(kept.n - 1);
        munmap(mapping.map, mapping.bytes);
    }
    pthread_mutex_unlock(&kept.lock);
}

void mla_guard_keep_heap(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}
