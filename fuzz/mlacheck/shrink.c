/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink.c - `mlacheck shrink`: the smallest case on which a kernel fails in the same way.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/blame.h"
#include "fuzz/call.h"
#include "fuzz/kernels.h"
#include "fuzz/mlacheck/build.h"
#include "fuzz/mlacheck/options.h"
#include "fuzz/mlacheck/progress.h"
#include "fuzz/record.h"
#include "fuzz/shrink.h"

#define SECONDS 120.0 /* --time */
#define LIMIT   10.0  /* --limit */

static const char help[] =
    "usage: mlacheck shrink ID|--case 'LINE' --kernel NAME|PATH.so:NAME|fault:NAME [flags]\n\n"
    "Looks for the smallest case with the same verdict and the same kind of error. A step counts "
    "only\n"
    "if the kernel fails in each of 3 tries (10, if it did not always fail to begin with).\n\n"
    "  ID               a stored case by the beginning of its id (>= 4 digits)\n"
    "  --case 'LINE'    one canonical case line\n"
    "  --kernel ...     exactly one kernel\n"
    "  --time SECONDS   in all (default 120); the best until then is given\n"
    "  --limit SECONDS  of one kernel call (default 10)\n"
    "  --no-relations   do not ask the relations\n"
    "  --oracle WHICH   fast (default), or definition: the plain evaluation in MPFR\n"
    "  --out FILE       append the line to that file (corpus/regressions.txt), once\n"
    "  --db FILE        default results/mlacheck.db: ids are looked up and the result is stored "
    "there\n"
    "  --json           end with one JSON object\n"
    "  --quiet          no progress on stderr\n\n"
    "example: mlacheck shrink 9f31c02a --kernel scalar --out corpus/regressions.txt\n\n"
    "exit: 1 the shrunk case fails (a fault, as ever), 2 bad usage or input, 3 environment,\n"
    "77 the kernel does not fail on this case\n";

struct shrink {
    struct mla_options options;
    struct mla_progress progress;
    double began;
    struct mla_kernel_list kernels;
    struct mla_case test;
    struct mla_store *store;
    struct mla_shrunk shrunk;
};

static int read_kernel(struct shrink *s)
{
    char error[1024];
    if (s->options.kernels_n != 1)
        return mla_options_fail(MLA_EXIT_USAGE, "shrink", "give one --kernel");
    const char *spec = s->options.kernels[0];
    if (mla_kernels_add(&s->kernels, spec, error, sizeof error) != MLA_OK)
        return mla_options_fail(mla_kernels_is_path(spec) ? MLA_EXIT_ENVIRONMENT : MLA_EXIT_USAGE,
                                "shrink", "--kernel: %s", error);
    if (s->kernels.n != 1)
        return mla_options_fail(MLA_EXIT_USAGE, "shrink", "--kernel '%s': matches %zu kernels",
                                spec, s->kernels.n);
    return 0;
}

static int read_line(struct shrink *s, const char *flag, const char *line)
{
    char error[MLA_CASE_ERROR_MAX];
    if (mla_case_parse(line, strlen(line), &s->test, error) != MLA_OK ||
        mla_case_problem(&s->test, INT64_MAX, error) != NULL)
        return mla_options_fail(MLA_EXIT_USAGE, "shrink", "%s: %s", flag, error);
    if (s->test.data[0] != '\0')
        return mla_options_fail(MLA_EXIT_USAGE, "shrink",
                                "%s: the tensors come from a file, which has one shape only", flag);
    return 0;
}

static int read_case(struct shrink *s)
{
    const struct mla_options *o = &s->options;
    char *line;
    if (o->cases_n == 1)
        return read_line(s, "--case", o->cases[0]);
    if (mla_store_find_line(s->store, o->words[0], &line) != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_USAGE, "shrink", "ID '%s': %s", o->words[0],
                                mla_store_message(s->store));
    int code = read_line(s, "ID", line);
    free(line);
    return code;
}

static double seconds_in_all(const struct shrink *s)
{
    return s->options.seconds > 0 ? s->options.seconds : SECONDS;
}

static void progress(void *context, const char *step, int64_t judged)
{
    struct shrink *s = context;
    char note[128];
    snprintf(note, sizeof note, "%" PRId64 " judged, %s smaller, %" PRId64 " bytes of tensors",
             judged, step, mla_case_bytes(&s->shrunk.test));
    mla_progress_say(&s->progress, mla_call_clock() - s->began, seconds_in_all(s), "s at most",
                     note);
}

/* ---- report ---- */

/* The words in which two lines of one operation differ, as "key from -> to". */
static void print_changes(const char *from, const char *to)
{
    while (*from != '\0' || *to != '\0') {
        int m = (int)strcspn(from, " "), n = (int)strcspn(to, " ");
        int key = (int)strcspn(to, "=");
        if (m == 0) /* a field that only the newer version has */
            printf("  %-9.*s - -> %.*s\n", key, to, n - key - 1, to + key + 1);
        else if (m != n || strncmp(from, to, (size_t)n) != 0)
            printf("  %-9.*s %.*s -> %.*s\n", key, to, m - key - 1, from + key + 1, n - key - 1,
                   to + key + 1);
        from += m + (from[m] == ' ');
        to += n + (to[n] == ' ');
    }
}

static const char *end_text(enum mla_shrink_end end)
{
    switch (end) {
    case MLA_SHRINK_MINIMAL:
        return "minimal: no step makes it smaller";
    case MLA_SHRINK_OUT_OF_TIME:
        return "out of time: the best so far";
    case MLA_SHRINK_STOPPED:
        return "interrupted: the best so far";
    case MLA_SHRINK_NO_FAILURE:
        break;
    }
    return "no failure";
}

/* Is it one of the file's lines? */
static bool has_line(FILE *file, const char *line)
{
    char *text = NULL;
    size_t room = 0;
    bool found = false;
    while (!found && getline(&text, &room, file) >= 0) {
        text[strcspn(text, "\r\n")] = '\0';
        found = strcmp(text, line) == 0;
    }
    free(text);
    return found;
}

/* A file without a newline at its end gets one first. */
static bool append_line(FILE *file, const char *line)
{
    bool cut = false;
    if (fseek(file, -1, SEEK_END) == 0)
        cut = fgetc(file) != '\n';
    return fseek(file, 0, SEEK_END) == 0 && fprintf(file, "%s%s\n", cut ? "\n" : "", line) > 0;
}

static int add_line(const char *path, const char *line)
{
    FILE *file = fopen(path, "a+");
    bool ok = file != NULL && fseek(file, 0, SEEK_SET) == 0;
    bool there = ok && has_line(file, line);
    if (there)
        printf("%s: has this line already\n", path);
    ok = ok && !ferror(file) && (there || append_line(file, line));
    if (file != NULL)
        ok = fclose(file) == 0 && ok;
    if (ok)
        return 0;
    return mla_options_fail(MLA_EXIT_ENVIRONMENT, "shrink", "--out: '%s': %s", path,
                            strerror(errno));
}

static int report(struct shrink *s)
{
    const struct mla_shrunk *r = &s->shrunk;
    char from[MLA_CASE_LINE_MAX], to[MLA_CASE_LINE_MAX], id[MLA_CASE_ID_BYTES];
    struct mla_blame blame;
    const char *spec = s->kernels.list[0].spec;
    mla_case_format(&s->test, from);
    mla_case_format(&r->test, to);
    mla_case_id(&r->test, id);
    mla_progress_clear(&s->progress);
    if (r->end == MLA_SHRINK_NO_FAILURE) {
        printf("%s does not fail on this case in %d tries: %s%s%s\n", spec, r->tries_n,
               mla_verdict_name(r->first.kind), r->first.reason[0] != '\0' ? ": " : "",
               r->first.reason);
        if (s->options.json)
            printf("{\"failed\":false,\"judged\":%" PRId64 "}\n", r->judged);
        return MLA_EXIT_NOTHING;
    }
    if (r->failed_n < r->tries_n)
        printf("unsteady: the case it began with failed in %d of %d tries\n", r->failed_n,
               r->tries_n);
    printf("%" PRId64 " steps, %" PRId64 " verdicts; %s\n", r->steps, r->judged, end_text(r->end));
    print_changes(from, to);
    printf("%s\n", to);
    mla_record_print(stdout, &r->test, spec, &r->verdict);
    mla_blame_find(&r->test, s->kernels.list[0].kernel, &r->verdict,
                   s->options.limit > 0 ? s->options.limit : LIMIT, &blame);
    printf("  blame: %s: %s\n", mla_cause_name(blame.cause), blame.text);
    int code = s->options.out == NULL ? 0 : add_line(s->options.out, to);
    if (s->options.json)
        printf("{\"failed\":true,\"minimal\":%s,\"steady\":%s,\"steps\":%" PRId64
               ",\"judged\":%" PRId64 ",\"bytes\":%" PRId64
               ",\"id\":\"%s\",\"verdict\":\"%s\",\"cause\":\"%s\""
               ",\"line\":\"%s\"}\n",
               r->end == MLA_SHRINK_MINIMAL ? "true" : "false",
               r->failed_n == r->tries_n ? "true" : "false", r->steps, r->judged,
               mla_case_bytes(&r->test), id, mla_verdict_name(r->verdict.kind),
               mla_cause_name(blame.cause), to);
    return code != 0 ? code : MLA_EXIT_FAULT;
}

/* ---- the run ---- */

static int store_result(struct shrink *s, int argc, char **argv)
{
    int64_t id;
    char *kernels = mla_build_kernels(&s->kernels);
    if (kernels == NULL)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "shrink", "out of memory");
    int32_t status = mla_build_begin_run(s->store, argc, argv, kernels, 0, &id);
    free(kernels);
    if (status == MLA_STORE_OK &&
        mla_record_store(s->store, &s->shrunk.test, s->kernels.list[0].spec, &s->shrunk.verdict) ==
            MLA_STORE_OK &&
        mla_store_end_run(s->store) == MLA_STORE_OK)
        return 0;
    return mla_options_fail(MLA_EXIT_ENVIRONMENT, "shrink", "%s", mla_store_message(s->store));
}

static int shrink(struct shrink *s)
{
    char error[MLA_CASE_ERROR_MAX] = "out of memory";
    const struct mla_options *o = &s->options;
    long processors = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
    struct mla_shrink_options options = {
        .seconds = seconds_in_all(s),
        .call_seconds = o->limit > 0 ? o->limit : LIMIT,
        .bytes_max = (int64_t)pages * sysconf(_SC_PAGESIZE) / 3,
        .oracle_threads = processors < 1 ? 1 : (int)processors,
        .plain_oracle = o->plain_oracle,
        .relations = o->relations,
        .stop = &mla_interrupted,
        .progress = progress,
        .context = s,
    };
    s->began = mla_call_clock();
    mla_progress_begin(&s->progress, o->quiet);
    if (mla_case_problem(&s->test, options.bytes_max, error) != NULL ||
        mla_shrink(&s->test, s->kernels.list[0].kernel, &options, &s->shrunk, error) != MLA_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "shrink", "%s", error);
    return 0;
}

int mla_verb_shrink(int argc, char **argv)
{
    static struct shrink s;
    int code = mla_options_parse(&s.options, "shrink", "kctldurOJqh", argc, argv);
    if (code != 0 || s.options.help) {
        if (code == 0)
            fputs(help, stdout);
        return code;
    }
    if (s.options.cases_n + s.options.words_n != 1)
        return mla_options_fail(MLA_EXIT_USAGE, "shrink", "give one case: its ID, or --case");
    code = read_kernel(&s);
    if (code == 0) {
        bool stored = s.options.words_n == 1;
        s.store = stored ? mla_options_read_store(&s.options, "shrink")
                         : mla_options_store(&s.options, "shrink");
        code = s.store == NULL ? MLA_EXIT_ENVIRONMENT : read_case(&s);
    }
    code = code != 0 ? code : shrink(&s);
    if (code == 0) {
        code = report(&s);
        int stored = code == MLA_EXIT_FAULT ? store_result(&s, argc, argv) : 0;
        code = stored != 0 ? stored : code;
    }
    if (mla_store_close(s.store) != MLA_STORE_OK)
        code =
            mla_options_fail(MLA_EXIT_ENVIRONMENT, "shrink", "the database could not be written");
    return code;
}
