/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect_steps.c - what a search knows so far, here and in the store.
 *
 * A search is named by all that decides its outcomes, this very program among it: a judge that was built
 * anew judges anew (what was built for it to judge stays).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/kernels.h"
#include "fuzz/mlacheck/bisect.h"
#include "fuzz/mlacheck/build.h"
#include "fuzz/record.h"

static struct mla_store_step *append(struct mla_bisect *b)
{
    if (b->steps_n == b->steps_room) {
        size_t room = b->steps_room == 0 ? 64 : 2 * b->steps_room;
        struct mla_store_step *more = realloc(b->steps, room * sizeof *more);
        if (more == NULL)
            return NULL;
        b->steps = more;
        b->steps_room = room;
    }
    b->steps[b->steps_n] = (struct mla_store_step){.outcome = MLA_STORE_SKIP};
    return &b->steps[b->steps_n++];
}

struct mla_store_step *mla_bisect_step(struct mla_bisect *b, const char *commit,
                                       const char *configuration)
{
    for (size_t i = 0; i < b->steps_n; i++)
        if (strcmp(b->steps[i].commit, commit) == 0 &&
            strcmp(b->steps[i].configuration, configuration) == 0)
            return &b->steps[i];
    struct mla_store_step *step = append(b);
    if (step == NULL) {
        (void)mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "out of memory");
        return NULL;
    }
    snprintf(step->commit, sizeof step->commit, "%s", commit);
    snprintf(step->configuration, sizeof step->configuration, "%s", configuration);
    return step;
}

static void keep(void *context, const struct mla_store_step *step)
{
    bool is_judged = step->tries > 0 || step->outcome != MLA_STORE_SKIP;
    /* What could not be judged may be by now (a compiler installed, *.failed removed): ask. */
    struct mla_store_step *mine = is_judged ? append(context) : NULL;
    if (mine != NULL) /* else it is asked again */
        *mine = *step;
}

int mla_bisect_store(struct mla_bisect *b, const struct mla_store_step *step)
{
    if (mla_store_bisect_step(b->store, b->id, step) == MLA_STORE_OK)
        return 0;
    return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "%s", mla_store_message(b->store));
}

/* ---- its name ---- */

/* Of this program's file; of what it was built from where that cannot be read. */
static void judge_hash(char hex[65])
{
    struct mla_store_build build = mla_build_describe();
    if (!mla_build_hash_file("/proc/self/exe", hex))
        mla_bisect_hash(hex, build.commit, build.compiler, build.flags, NULL);
}

/* Of a plug-in that is not built here, "PATH.so:NAME" or "PATH.so", the first n bytes; "" where the kernel is
 * one of ours. */
static void plugin_hash(const char *text, size_t n, char hex[65])
{
    char spec[MLA_BISECT_PATH];
    snprintf(spec, sizeof spec, "%.*s", (int)n, text);
    spec[mla_kernels_plugin(spec)] = '\0';
    (void)mla_build_hash_file(spec, hex);
}

static void search_key(const struct mla_bisect *b, const char *line, const char *good,
                       const char *bad, char key[65])
{
    const struct mla_options *o = &b->options;
    char judge[65], flags[128];
    const char *cc = getenv("CC"), *cflags = getenv("CFLAGS");
    char files[3][65] = {"", "", ""};
    judge_hash(judge);
    for (int i = 0; b->repo[0] == '\0' && i < 2; i++) {
        const char *own = strstr(o->configs[i], "kernel=");
        if (own != NULL) /* a comma ends its value */
            plugin_hash(own + 7, strcspn(own + 7, ","), files[i]);
    }
    if (b->repo[0] == '\0')
        plugin_hash(b->kernel, strlen(b->kernel), files[2]);
    snprintf(flags, sizeof flags, "%" PRId64 " %g %d %d %d %d", b->tries, o->limit, o->relations,
             o->all_relations, o->plain_oracle, o->no_oracle);
    mla_bisect_hash(key, judge, line, b->kernel, b->question, b->repo, b->build, b->plugin, good,
                    bad, flags, cc == NULL ? "" : cc, cflags == NULL ? "" : cflags, files[0],
                    files[1], files[2], NULL);
}

int mla_bisect_begin(struct mla_bisect *b, const char *good, const char *bad)
{
    char key[65], line[MLA_CASE_LINE_MAX];
    struct mla_store_case row;
    mla_case_format(&b->test, line);
    mla_record_case(&b->test, line, &row);
    search_key(b, line, good, bad, key);
    const struct mla_store_bisect search = {
        key,         &row,    b->kernel[0] == '\0' ? "*" : b->kernel,
        b->question, b->repo, b->build,
        b->plugin,   good,    bad};
    if (mla_store_bisect_begin(b->store, &search, &b->id) != MLA_STORE_OK ||
        mla_store_bisect_steps(b->store, b->id, keep, b) != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "%s", mla_store_message(b->store));
    if (b->steps_n > 0)
        printf("going on: %zu steps are stored\n", b->steps_n);
    return 0;
}
