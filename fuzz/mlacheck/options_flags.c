/* SPDX-License-Identifier: Apache-2.0
 *
 * options_flags.c - every flag of every verb: its name, how its value is read, and where it goes.
 */
#include "fuzz/mlacheck/options_flags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- how values are read ---- */

static void *place_of(struct mla_options *o, const struct mla_flag *flag)
{
    return (char *)o + flag->place;
}

static bool any_text(struct mla_options *o, const struct mla_flag *flag, const char *text)
{
    *(const char **)place_of(o, flag) = text;
    return true;
}

static bool some_text(struct mla_options *o, const struct mla_flag *flag, const char *text)
{
    return any_text(o, flag, text) && text[0] != '\0';
}

static bool one_more(struct mla_options *o, const struct mla_flag *flag, const char *text)
{
    const char **list = place_of(o, flag);
    int *n = (int *)((char *)o + flag->count);
    if (*n == MLA_OPTIONS_LIST_MAX)
        return false;
    list[(*n)++] = text;
    return true;
}

static bool config(struct mla_options *o, const struct mla_flag *flag, const char *text)
{
    (void)flag;
    if (o->configs_n == 2)
        return false;
    o->configs[o->configs_n++] = text;
    return text[0] != '\0';
}

static bool integer(const char *text, int64_t low, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *value >= low;
}

static bool count(struct mla_options *o, const struct mla_flag *flag, const char *text)
{
    return integer(text, 1, place_of(o, flag));
}

static bool jobs(struct mla_options *o, const struct mla_flag *flag, const char *text)
{
    return count(o, flag, text) && o->jobs <= 256;
}

static bool seed(struct mla_options *o, const struct mla_flag *flag, const char *text)
{
    int64_t value;
    (void)flag;
    if (!integer(text, 0, &value))
        return false;
    o->seed = (uint64_t)value;
    return true;
}

static bool seconds(struct mla_options *o, const struct mla_flag *flag, const char *text)
{
    char *end;
    double *value = place_of(o, flag);
    *value = strtod(text, &end);
    return *end == '\0' && end != text && *value > 0 && *value <= 1e7;
}

/* "1,2,4" */
static bool threads(struct mla_options *o, const struct mla_flag *flag, const char *text)
{
    char *end;
    (void)flag;
    o->threads_n = 0;
    for (;; text = end + 1) {
        errno = 0;
        int64_t n = strtoll(text, &end, 10);
        if (errno != 0 || end == text || n < 1 || n > 256 ||
            o->threads_n == MLA_OPTIONS_THREADS_MAX)
            return false;
        o->threads[o->threads_n++] = (int)n;
        if (*end != ',')
            return *end == '\0';
    }
}

static bool op(struct mla_options *o, const struct mla_flag *flag, const char *text)
{
    static const char *const names[] = {"ring", "sparse", "reject", "oracle", "all"};
    (void)flag;
    o->op = text;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}

static bool oracle(struct mla_options *o, const struct mla_flag *flag, const char *text)
{
    (void)flag;
    o->plain_oracle = strcmp(text, "definition") == 0;
    o->no_oracle = strcmp(text, "none") == 0;
    return o->plain_oracle || o->no_oracle || strcmp(text, "fast") == 0;
}

static bool pad_index(struct mla_options *o, const struct mla_flag *flag, const char *text)
{
    (void)flag;
    o->masked = strcmp(text, "masked") == 0;
    return o->masked || strcmp(text, "refused") == 0;
}

/* ---- the table ---- */

#define AT(member)    offsetof(struct mla_options, member)
#define LIST(member)  one_more, AT(member), "given at most 64 times", AT(member##_n), false
#define TEXT(member)  some_text, AT(member), "not empty", 0, false
#define PATH(member)  some_text, AT(member), "a path", 0, false
#define COUNT(member) count, AT(member), "an integer in 1 .. 2^63-1", 0, false
#define TIME(member)  seconds, AT(member), "a number of seconds in (0, 1e7]", 0, false
#define SETS(member)  NULL, AT(member), "", 0, false

const struct mla_flag mla_flags[] = {
    {"kernel", 'k', LIST(kernels)},
    {"set", 's', LIST(sets)},
    {"case", 'c', LIST(cases)},
    {"id", 'i', LIST(ids)},
    {"random", 'n', COUNT(random)},
    {"seed", 'S', seed, AT(seed), "an integer in 0 .. 2^63-1", 0, false},
    {"op", 'o', op, AT(op), "ring, sparse, reject, oracle or all", 0, false},
    {"db", 'd', PATH(db)},
    {"time", 't', TIME(seconds)},
    {"limit", 'l', TIME(limit)},
    {"oracle", 'O', oracle, 0, "fast, definition or none", 0, false},
    {"shape", 'H', any_text, AT(shape), "", 0, false},
    {"threads", 'T', threads, 0, "up to 8 integers in 1 .. 256, as in 1,2", 0, false},
    {"jobs", 'j', jobs, AT(jobs), "an integer in 1 .. 256", 0, false},
    {"slow", 'w', SETS(slow)},
    {"no-relations", 'r', NULL, AT(relations), "", 0, true},
    {"relations", 'R', SETS(all_relations)},
    {"in-process", 'p', SETS(in_process)},
    {"json", 'J', SETS(json)},
    {"verbose", 'v', SETS(verbose)},
    {"cases", 'N', COUNT(number)},
    {"help", 'h', SETS(help)},
    {"peers", 'P', SETS(peers)},
    {"trials", 'A', COUNT(number)},
    {"random", 'D', SETS(draws)},
    {"out", 'u', PATH(out)},
    {"blame", 'b', SETS(blame)},
    {"merge", 'M', SETS(merge)},
    {"repo", 'e', TEXT(repo)},
    {"build", 'B', TEXT(build)},
    {"plugin", 'L', TEXT(plugin)},
    {"good", 'g', TEXT(good)},
    {"bad", 'x', TEXT(bad)},
    {"where", 'W', TEXT(where)},
    {"config", 'C', config, 0, "not empty, and given twice", 0, false},
    {"bits", 'I', SETS(bits)},
    {"tries", 'y', COUNT(number)},
    {"quiet", 'q', SETS(quiet)},
    {"golden", 'z', PATH(golden)},
    {"update", 'U', SETS(update)},
    {"format", 'F', any_text, AT(format), "", 0, false},
    {"github", 'G', SETS(github)},
    {"report", 'E', SETS(report)},
    {"result", 'f', PATH(result)},
    {"model", 'm', some_text, AT(model), "a path or a kernel's name", 0, false},
    {"pad-index", 'a', pad_index, 0, "masked or refused", 0, false},
    {"param", 'X', LIST(params)},
    {NULL, 0, NULL, 0, NULL, 0, false},
};
_Static_assert(sizeof mla_flags / sizeof mla_flags[0] <= MLA_FLAGS_MAX, "raise MLA_FLAGS_MAX");
