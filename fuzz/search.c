/* SPDX-License-Identifier: Apache-2.0
 *
 * search.c - a search of our own over cases.
 *
 * Which case to vary next is settled by small tournaments: of a few kept cases drawn at random the one
 * with the worst error wins, or the one that showed what has been met most rarely. That needs no sums
 * over the corpus, favours the best without leaving out anybody, and depends on the stream only.
 */
#include "fuzz/search.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/family.h"

#define RECORDS_MAX 256 /* cases kept for the worst err/B alone */
#define ENTRIES_MAX (MLA_GUIDANCE_COUNTERS + RECORDS_MAX)
#define BY_ERROR_N  32  /* in a tournament of errors: the few worst are varied most .. */
#define BY_RARITY_N 4   /* .. of rarity: many are rare, all shall have their turn */
#define WARM_UP     256 /* plain draws to begin with: most faults die within so many */

/* A kept case. */
struct entry {
    struct mla_case test;
    double ratio;    /* worst err/B of its stages, at most 1: beyond it all faults are alike */
    int32_t counter; /* one it was the first to raise; -1: a record only */
};

struct mla_search {
    enum mla_op op;
    bool reject;
    enum mla_search_kind kind;
    struct mla_rng rng;
    struct entry *entries;
    size_t n, room, records_n;
    int64_t next_n; /* cases handed out */
    double record;  /* worst err/B so far */
    uint32_t hits[MLA_GUIDANCE_COUNTERS];
    uint8_t now[MLA_GUIDANCE_COUNTERS]; /* of the case being learned */
};

struct mla_search *mla_search_begin(enum mla_op op, bool reject, enum mla_search_kind kind,
                                    uint64_t seed)
{
    struct mla_search *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->op = op;
    s->reject = reject;
    s->kind = kind;
    s->rng = (struct mla_rng){mla_number_mix(seed), 0};
    return s;
}

/* ---- what to run next ---- */

/* Seeds and size go together (mla_case_may_be_large): a new seed must not change that. */
void mla_search_renew(struct mla_case *test, struct mla_rng *rng)
{
    uint64_t size = test->seed % MLA_LARGE_SEEDS;
    if (mla_case_has_sign_coins(test))
        test->seed = (mla_rng_next(rng) >> 32) / MLA_LARGE_SEEDS * MLA_LARGE_SEEDS + size;
}

void mla_search_vary(struct mla_case *test, const struct mla_case *other, struct mla_rng *rng)
{
    if (other != NULL)
        mla_case_cross(test, other, rng);
    if (other == NULL || mla_rng_chance(rng, 1, 2))
        mla_case_mutate(test, rng);
    mla_search_renew(test, rng);
}

void mla_search_draw(struct mla_case *test, enum mla_op op, bool reject, struct mla_rng *rng)
{
    mla_case_draw(test, op, rng);
    if (reject)
        mla_case_draw_violation(test, rng);
}

/* Does a win against b? By the worse error, or by the rarer counter. */
static bool wins(const struct mla_search *s, const struct entry *a, const struct entry *b,
                 bool by_error)
{
    uint32_t a_hits = a->counter < 0 ? UINT32_MAX : s->hits[a->counter];
    uint32_t b_hits = b->counter < 0 ? UINT32_MAX : s->hits[b->counter];
    return by_error ? a->ratio > b->ratio : a_hits < b_hits;
}

static const struct mla_case *pick(struct mla_search *s)
{
    bool by_error = s->kind == MLA_SEARCH_GUIDED && mla_rng_chance(&s->rng, 1, 2);
    const struct entry *best = &s->entries[mla_rng_below(&s->rng, (int64_t)s->n)];
    for (int i = 1; i < (by_error ? BY_ERROR_N : BY_RARITY_N); i++) {
        const struct entry *next = &s->entries[mla_rng_below(&s->rng, (int64_t)s->n)];
        if (wins(s, next, best, by_error))
            best = next;
    }
    return &best->test;
}

void mla_search_next(struct mla_search *search, struct mla_case *test)
{
    if (search->kind == MLA_SEARCH_RANDOM || search->next_n++ < WARM_UP || search->n == 0 ||
        mla_rng_chance(&search->rng, 1, MLA_SEARCH_FRESH)) {
        mla_search_draw(test, search->op, search->reject, &search->rng);
        return;
    }
    *test = *pick(search);
    const struct mla_case *other = mla_rng_chance(&search->rng, 1, 4) ? pick(search) : NULL;
    mla_search_vary(test, other, &search->rng);
}

/* ---- what came of it ---- */

static double worst_ratio(const struct mla_verdict *verdict)
{
    double worst = 0;
    const double ratios[] = {verdict->max_value_ratio, verdict->max_stats_ratio,
                             verdict->max_energy};
    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++)
        if (!(ratios[i] <= worst))
            worst = ratios[i] <= 1 ? ratios[i] : 1; /* NaN: 1 */
    return worst;
}

/* Count the counters of a group; returns one that nobody raised before, or -1. */
static int32_t count_group(struct mla_search *s, const struct mla_guidance_group *group)
{
    int32_t fresh = -1;
    for (int64_t i = group->first; i < group->first + group->n; i++) {
        if (s->now[i] == 0)
            continue;
        fresh = s->hits[i] == 0 ? (int32_t)i : fresh;
        s->hits[i] += s->hits[i] < UINT32_MAX;
    }
    return fresh;
}

static int32_t count(struct mla_search *s, const struct mla_case *test,
                     const struct mla_verdict *verdict)
{
    struct mla_guidance_group group;
    int32_t fresh = -1;
    memset(s->now, 0, sizeof s->now);
    mla_guidance_note(test, verdict, s->now);
    for (size_t i = 0; mla_guidance_group(i, &group); i++) {
        if (group.errors && s->kind == MLA_SEARCH_SHAPES)
            continue;
        int32_t raised = count_group(s, &group);
        fresh = raised >= 0 ? raised : fresh;
    }
    return fresh;
}

static void keep(struct mla_search *s, const struct mla_case *test, double ratio, int32_t counter)
{
    if (s->n == s->room) {
        size_t room = s->room == 0 ? 64 : 2 * s->room;
        struct entry *more = realloc(s->entries, room * sizeof *more);
        if (more == NULL)
            return;
        s->entries = more;
        s->room = room;
    }
    s->entries[s->n++] = (struct entry){*test, ratio, counter};
}

void mla_search_learn(struct mla_search *search, const struct mla_case *test,
                      const struct mla_verdict *verdict)
{
    if (search->kind == MLA_SEARCH_RANDOM)
        return;
    int32_t counter = count(search, test, verdict);
    double ratio = worst_ratio(verdict);
    bool record = search->kind == MLA_SEARCH_GUIDED && ratio > search->record &&
                  search->records_n < RECORDS_MAX;
    if (ratio > search->record)
        search->record = ratio;
    search->records_n += record && counter < 0;
    if ((counter >= 0 || record) && search->n < ENTRIES_MAX)
        keep(search, test, ratio, counter);
}

size_t mla_search_kept(const struct mla_search *search)
{
    return search->n;
}

const struct mla_case *mla_search_case(const struct mla_search *search, size_t i)
{
    return &search->entries[i].test;
}

void mla_search_end(struct mla_search *search)
{
    if (search != NULL)
        free(search->entries);
    free(search);
}
