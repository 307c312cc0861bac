/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect_steps.c - what a search knows so far, here and in the store.
 *
 * A search is named by all that decides its outcomes, this very program among it: a judge that was built
 * anew judges anew (what was built for it to judge stays).
 */
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* SHA-256 of a file. false, and hex "": it cannot be opened. */
static bool file_hash(const char *path, char hex[65])
{
    struct sha256_ctx hash;
    uint8_t bytes[65536], digest[SHA256_DIGEST_SIZE];
    FILE *file = fopen(path, "rbe");
    size_t n;
    hex[0] = '\0';
    if (file == NULL)
        return false;
    sha256_init(&hash);
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0)
        sha256_update(&hash, n, bytes);
    fclose(file);
    sha256_digest(&hash, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return true;
}

/* Of this program's file; of what it was built from where that cannot be read. */
static void judge_hash(char hex[65])
{
    struct mla_store_build build = mla_build_describe();
    if (!file_hash("/proc/self/exe", hex))
        mla_bisect_hash(hex, build.commit, build.compiler, build.flags, NULL);
}

/* Of a plug-in that is not built here, named "PATH.so:NAME" or "PATH.so", a comma after it or not; "" where
 * the kernel is one of ours. */
static void plugin_hash(const char *spec, char hex[65])
{
    char path[MLA_BISECT_PATH];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(spec, ","), spec);
    char *name = strstr(path, ".so:");
    if (name != NULL)
        name[3] = '\0';
    (void)file_hash(path, hex);
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
        plugin_hash(own == NULL ? "" : own + 7, files[i]);
    }
    if (b->repo[0] == '\0')
        plugin_hash(b->kernel, files[2]);
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
