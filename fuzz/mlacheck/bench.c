/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.c - `mlacheck bench`: speed as ratios of things measured in one run.
 */
#include "fuzz/mlacheck/bench.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/mlacheck/bench_oracle.h"
#include "fuzz/mlacheck/bench_shapes.h"
#include "fuzz/mlacheck/build.h"

static const char help[] =
    "usage: mlacheck bench [--op ring|sparse|oracle|all] [--shape NAME|GLOB] [--kernel NAME|GLOB]\n"
    "                      [--threads 1,2] [--peers] [flags]\n\n"
    "Time kernels on named shapes, with each thread count, all in turn, and beside every call "
    "what\n"
    "the CPU can do at that moment: medians, spread, share of that peak. With --peers also what\n"
    "unfused pipelines of other libraries need for the sparse shapes, one stream a core. The "
    "oracle\n"
    "is timed against the plain MPFR definition. Rows go into the database.\n\n"
    "flags:\n"
    "  --op OP        default: all\n"
    "  --shape NAME   a shape, a glob, or what names begin with (deepseek-short). Default: all "
    "but\n"
    "                 the dear ones, which must be named; their fastest kernel is then not left "
    "out\n"
    "  --kernel NAME  built-in, fault:NAME, PATH.so; may be repeated. Default: those made for "
    "speed\n"
    "  --threads LIST default: 1,2,4,.. up to the processors\n"
    "  --time S       seconds each is called at least, beyond five times (default 1)\n"
    "  --peers        oneDNN and OpenBLAS (scripts/setup --peers installs them)\n"
    "  --db FILE      default results/mlacheck.db\n"
    "  --json         end with one JSON object\n\n"
    "example: mlacheck bench --op sparse --shape 'deepseek*' --threads 1,2\n\n";

static void print_shapes(enum mla_op op)
{
    size_t n;
    const struct mla_bench_shape *shapes = mla_bench_shapes(&n);
    printf("%s shapes:\n", op == MLA_OP_RING ? "ring" : "sparse");
    for (size_t i = 0; i < n; i++) {
        char error[MLA_CASE_ERROR_MAX];
        struct mla_case test;
        if (mla_bench_shape_case(shapes[i].line, &test, error) == NULL && test.op == (int)op)
            printf("  %-28s %-58s %9.4g GFLOP%s", shapes[i].name, shapes[i].what,
                   mla_bench_flops(&test) / 1e9, test.slow ? "" : "\n");
        else
            continue;
        if (test.slow)
            printf(", %.1f GB: dear\n", (double)mla_case_bytes(&test) / 1e9);
    }
}

static void print_help(void)
{
    size_t n;
    const struct mla_bench_oracle_shape *oracle = mla_bench_oracle_shapes(&n);
    fputs(help, stdout);
    print_shapes(MLA_OP_SPARSE);
    print_shapes(MLA_OP_RING);
    printf("oracle shapes:\n");
    for (size_t i = 0; i < n; i++)
        printf("  %-28s %s\n", oracle[i].name, oracle[i].what);
}

/* ---- what is asked for ---- */

static bool is_op(const struct mla_bench *bench, const char *op)
{
    const char *asked = bench->options.op;
    return asked == NULL || strcmp(asked, "all") == 0 || strcmp(asked, op) == 0;
}

static bool is_shape(const struct mla_bench *bench, const struct mla_bench_shape *shape,
                     const struct mla_case *test)
{
    return is_op(bench, test->op == MLA_OP_RING ? "ring" : "sparse") &&
           mla_bench_shape_is_asked(shape, test->slow, bench->options.shape);
}

/* Is there any such shape, of any kind asked for? */
static bool any_shape(const struct mla_bench *bench)
{
    size_t n;
    const struct mla_bench_shape *shapes = mla_bench_shapes(&n);
    for (size_t i = 0; i < n; i++) {
        char error[MLA_CASE_ERROR_MAX];
        struct mla_case test;
        if (mla_bench_shape_case(shapes[i].line, &test, error) == NULL &&
            is_shape(bench, &shapes[i], &test))
            return true;
    }
    const struct mla_bench_oracle_shape *oracle = mla_bench_oracle_shapes(&n);
    for (size_t i = 0; i < n && is_op(bench, "oracle"); i++)
        if (bench->options.shape == NULL || fnmatch(bench->options.shape, oracle[i].name, 0) == 0)
            return true;
    return false;
}

static int read_kernels(struct mla_bench *bench)
{
    char error[1024];
    const struct mla_options *o = &bench->options;
    bench->chosen = o->kernels_n > 0;
    for (int i = 0; i < o->kernels_n; i++)
        if (mla_kernels_add(&bench->kernels, o->kernels[i], error, sizeof error) != MLA_OK)
            return mla_options_fail(mla_kernels_is_path(o->kernels[i]) ? MLA_EXIT_ENVIRONMENT
                                                                       : MLA_EXIT_USAGE,
                                    "bench", "--kernel: %s", error);
    const char *name;
    for (size_t i = 0; !bench->chosen && (name = mla_bench_kernel_default(i)) != NULL; i++)
        (void)mla_kernels_add(&bench->kernels, name, error, sizeof error); /* if there is one */
    return 0;
}

static void default_threads(struct mla_options *o)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    for (int n = 1; o->threads_n == 0 || n <= processors; n *= 2) {
        if (o->threads_n == MLA_OPTIONS_THREADS_MAX)
            break;
        o->threads[o->threads_n++] = n;
    }
}

static int check_peers(const struct mla_bench *bench)
{
    size_t n;
    const struct mla_peer *peers = mla_peers(&n);
    int code = 0;
    char error[1024];
    for (size_t i = 0; i < n && bench->options.peers; i++)
        if (mla_peer_load(&peers[i], error, sizeof error) == NULL)
            code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench", "--peers: %s: %s", peers[i].name,
                                    error);
    return code;
}

static int read_input(struct mla_bench *bench)
{
    struct mla_options *o = &bench->options;
    if (o->op != NULL && strcmp(o->op, "reject") == 0)
        return mla_options_fail(MLA_EXIT_USAGE, "bench",
                                "--op '%s': must be ring, sparse, oracle or all", o->op);
    if (o->words_n > 0)
        return mla_options_fail(MLA_EXIT_USAGE, "bench", "unexpected word '%s'", o->words[0]);
    if (o->peers && !is_op(bench, "sparse"))
        return mla_options_fail(MLA_EXIT_USAGE, "bench",
                                "--peers with --op '%s': peers are of sparse shapes only", o->op);
    if (!any_shape(bench))
        return mla_options_fail(MLA_EXIT_USAGE, "bench",
                                "--shape '%s': no such shape for this --op (mlacheck bench --help; "
                                "a dear one is not meant by a glob)",
                                o->shape == NULL ? "*" : o->shape);
    if (o->threads_n == 0)
        default_threads(o);
    bench->seconds = o->seconds > 0 ? o->seconds : 1;
    bench->isa = mla_peak_widest();
    int code = read_kernels(bench);
    return code != 0 ? code : check_peers(bench);
}

/* ---- the run ---- */

static int begin(struct mla_bench *bench, int argc, char **argv)
{
    char cpu[128];
    int64_t id;
    bench->store = mla_options_store(&bench->options, "bench");
    if (bench->store == NULL)
        return MLA_EXIT_ENVIRONMENT;
    mla_build_cpu(cpu, sizeof cpu);
    bool called = is_op(bench, "ring") || is_op(bench, "sparse");
    char *kernels = called ? mla_build_kernels(&bench->kernels) : strdup("none");
    if (kernels == NULL)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench", "out of memory");
    int32_t status = mla_build_begin_run(bench->store, argc, argv, kernels, MLA_STORE_NULL, &id);
    free(kernels);
    if (status != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench", "%s",
                                mla_store_message(bench->store));
    double peak =
        mla_bench_peak(bench, bench->isa, 1); /* there is one, whatever threads are asked for */
    printf("mlacheck bench %" PRId64 ": %s, peak of one thread %.0f GFLOP/s (%s)\n", id, cpu,
           peak / 1e9, mla_peak_name(bench->isa));
    for (size_t k = 0; k < bench->kernels.n; k++)
        if (!mla_kernel_is_usable(bench->kernels.list[k].kernel))
            printf("skipped %s: not usable on this CPU\n", bench->kernels.list[k].spec);
    fflush(stdout);
    return 0;
}

static int measure_op(struct mla_bench *bench, enum mla_op op)
{
    double speeds[MLA_KERNELS_MAX] = {0};
    bool tried = false;
    size_t n;
    const struct mla_bench_shape *shapes = mla_bench_shapes(&n);
    int code = 0;
    for (size_t i = 0; i < n && code == 0 && !mla_interrupted; i++) {
        char error[MLA_CASE_ERROR_MAX];
        struct mla_case test;
        size_t first = bench->rows_n;
        const char *problem = mla_bench_shape_case(shapes[i].line, &test, error);
        if (problem != NULL)
            return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench", "%s: %s", shapes[i].name,
                                    problem);
        if (test.op != (int)op)
            continue;
        if (!tried && !bench->chosen) /* the first shape of an operation is small */
            code = mla_bench_trial(bench, shapes[i].line, speeds);
        tried = true;
        if (code != 0 || !is_shape(bench, &shapes[i], &test))
            continue;
        bench->shapes_n++;
        code = mla_bench_measure(bench, shapes[i].name, &test, speeds);
        int stored = mla_bench_report(bench, first);
        code = code != 0 ? code : stored;
    }
    return code;
}

static int measure(struct mla_bench *bench)
{
    int code = is_op(bench, "sparse") ? measure_op(bench, MLA_OP_SPARSE) : 0;
    if (code == 0 && is_op(bench, "ring"))
        code = measure_op(bench, MLA_OP_RING);
    if (code == 0 && is_op(bench, "oracle"))
        code = mla_bench_measure_oracle(bench);
    return code;
}

static int finish(struct mla_bench *bench, int code)
{
    bool is_whole = code == 0 && !mla_interrupted;
    if (mla_build_end_run(bench->store, is_whole) != MLA_STORE_OK && code == 0)
        code =
            mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench", "%s", mla_store_message(bench->store));
    if (code != 0)
        return code;
    if (bench->options.json)
        mla_bench_report_json(bench);
    if (bench->fault)
        return MLA_EXIT_FAULT;
    if (mla_interrupted)
        return MLA_EXIT_INTERRUPTED;
    return bench->rows_n == 0 ? MLA_EXIT_NOTHING : MLA_EXIT_PASSED;
}

int mla_verb_bench(int argc, char **argv)
{
    static struct mla_bench bench;
    int code = mla_options_parse(&bench.options, "bench", "okdtHTPJh", argc, argv);
    if (code != 0)
        return code;
    if (bench.options.help) {
        print_help();
        return MLA_EXIT_PASSED;
    }
    code = read_input(&bench);
    code = code != 0 ? code : begin(&bench, argc, argv);
    if (code == 0)
        code = finish(&bench, measure(&bench));
    free(bench.rows);
    free(bench.peaks);
    if (mla_store_close(bench.store) != MLA_STORE_OK && code == 0)
        code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench", "the database could not be written");
    return code;
}
