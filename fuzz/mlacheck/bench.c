/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.c - `mlacheck bench`: speed as ratios of things measured in one run.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/mlacheck/bench_oracle.h"
#include "fuzz/mlacheck/build.h"
#include "fuzz/mlacheck/options.h"

#define SHAPES_MAX 16

static const char help[] =
    "usage: mlacheck bench [--op oracle] [--shape NAME|GLOB] [--threads 1,2] [flags]\n\n"
    "Time the certified oracle on the rows of named shapes, with each thread count, against the\n"
    "plain MPFR definition on the same rows, all in turn: medians of five, and the spread.\n\n"
    "flags:\n"
    "  --shape NAME   default: all of them\n"
    "  --threads LIST default 1,2\n"
    "  --json         end with one JSON object\n\nshapes:\n";

struct line {
    const struct mla_bench_shape *shape;
    struct mla_bench_oracle result;
};

static void print_help(void)
{
    size_t shapes_n;
    const struct mla_bench_shape *shapes = mla_bench_oracle_shapes(&shapes_n);
    fputs(help, stdout);
    for (size_t i = 0; i < shapes_n; i++)
        printf("  %-12s %s\n", shapes[i].name, shapes[i].what);
}

static void print_line(const struct line *line, const struct mla_options *o)
{
    const struct mla_bench_oracle *r = &line->result;
    double work = (double)r->rows_n * (double)r->keys_n * (double)(r->width + r->columns_n);
    printf(
        "%-12s %5" PRId64 " rows x %6" PRId64 " keys  definition  1 thread  %9.4f s  (+-%.0f%%)\n",
        line->shape->name, r->rows_n, r->keys_n, r->definition_seconds, 50 * r->definition_spread);
    for (int t = 0; t < o->threads_n; t++)
        printf("%-12s %5s %25s %3d thread%s %9.4f s  (+-%.0f%%)  %6.1f x definition, %.2f x the "
               "first, %.3f ns per multiply-add\n",
               "", "", "fast", o->threads[t], o->threads[t] == 1 ? " " : "s", r->seconds[t],
               50 * r->spread[t], r->definition_seconds / r->seconds[t],
               r->seconds[0] / r->seconds[t], 1e9 * r->seconds[t] / work);
    fflush(stdout);
}

static void print_row(const struct line *line, const char *kernel, int threads, double seconds,
                      double spread, const char *comma)
{
    printf("%s{\"op\":\"oracle\",\"shape\":\"%s\",\"kernel\":\"%s\",\"threads\":%d,"
           "\"rows\":%" PRId64 ",\"keys\":%" PRId64
           ",\"seconds\":%.6g,\"spread\":%.3g,\"times_definition\":%.4g}",
           comma, line->shape->name, kernel, threads, line->result.rows_n, line->result.keys_n,
           seconds, spread, line->result.definition_seconds / seconds);
}

static void print_json(const struct line *lines, size_t n, const struct mla_options *o)
{
    struct mla_store_build build = mla_build_describe();
    printf("{\"isa\":\"%s\",\"rows\":[", build.isa);
    for (size_t i = 0; i < n; i++) {
        const struct mla_bench_oracle *r = &lines[i].result;
        print_row(&lines[i], "definition", 1, r->definition_seconds, r->definition_spread,
                  i == 0 ? "" : ",");
        for (int t = 0; t < o->threads_n; t++)
            print_row(&lines[i], "fast", o->threads[t], r->seconds[t], r->spread[t], ",");
    }
    printf("]}\n");
}

int mla_verb_bench(int argc, char **argv)
{
    struct mla_options o;
    struct line lines[SHAPES_MAX];
    size_t shapes_n, lines_n = 0;
    const struct mla_bench_shape *shapes = mla_bench_oracle_shapes(&shapes_n);
    int code = mla_options_parse(&o, "bench", "oHTJh", argc, argv);
    if (code != 0)
        return code;
    if (o.help) {
        print_help();
        return MLA_EXIT_PASSED;
    }
    if (o.op != NULL && strcmp(o.op, "oracle") != 0)
        return mla_options_fail(MLA_EXIT_USAGE, "bench", "--op '%s': must be oracle", o.op);
    if (o.words_n > 0)
        return mla_options_fail(MLA_EXIT_USAGE, "bench", "unexpected word '%s'", o.words[0]);
    if (o.threads_n == 0) {
        o.threads_n = 2;
        o.threads[0] = 1;
        o.threads[1] = 2;
    }
    for (size_t i = 0; i < shapes_n && lines_n < SHAPES_MAX && !mla_interrupted; i++) {
        if (o.shape != NULL && fnmatch(o.shape, shapes[i].name, 0) != 0)
            continue;
        struct line *line = &lines[lines_n++];
        line->shape = &shapes[i];
        const char *problem =
            mla_bench_oracle_run(line->shape, o.threads, o.threads_n, &line->result);
        if (problem != NULL)
            return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench", "%s: %s", shapes[i].name,
                                    problem);
        print_line(line, &o);
    }
    if (lines_n == 0)
        return mla_options_fail(MLA_EXIT_USAGE, "bench", "--shape '%s': no such shape", o.shape);
    if (o.json)
        print_json(lines, lines_n, &o);
    return mla_interrupted ? MLA_EXIT_INTERRUPTED : MLA_EXIT_PASSED;
}
