/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c - `mlacheck run`: judge kernels on cases and store every verdict.
 *
 * All input is read and checked before the first case runs, so a mistake in the last line of the
 * last file costs nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/blame.h"
#include "fuzz/call.h"
#include "fuzz/case_fields.h"
#include "fuzz/corpus.h"
#include "fuzz/kernels.h"
#include "fuzz/mlacheck/build.h"
#include "fuzz/mlacheck/counts.h"
#include "fuzz/mlacheck/fatal.h"
#include "fuzz/mlacheck/options.h"
#include "fuzz/mlacheck/progress.h"
#include "fuzz/mlacheck/table.h"
#include "fuzz/record.h"
#include "fuzz/relations.h"
#include "results/report_text.h"

static const char help[] =
    "usage: mlacheck run [--kernel NAME|GLOB|PATH.so[:NAME]|fault:NAME]... CASES [flags]\n\n"
    "cases (any number of each):\n"
    "  --set FILE|GLOB    every case of a corpus file; slow ones only with --slow\n"
    "  --case 'LINE'      one canonical case line\n"
    "  --id HASH          a stored case by the beginning of its id (>= 4 digits)\n"
    "  --random N         N drawn cases of each operation of --op, from --seed S (default 1)\n\n"
    "flags:\n"
    "  --kernel ...       default: every built-in kernel\n"
    "  --op ring|sparse   keep only that operation (default all)\n"
    "  --slow             run the production-sized cases too\n"
    "  --relations        every relation between calls, on slow cases too (mlacheck list "
    "relations);\n"
    "                     default: those that cost one more call, but for slow cases\n"
    "  --no-relations     none of them\n"
    "  --oracle WHICH     fast (default); definition: the plain evaluation in MPFR; none: no "
    "values are\n"
    "                     judged, only what two calls must have in common bit for bit (never a "
    "pass)\n"
    "  --limit SECONDS    of one kernel call (default 60, slow cases 3600)\n"
    "  --blame            explain each failure by experiments on the kernel\n"
    "  --in-process       call kernels without a forked child (for debuggers)\n"
    "  --db FILE          default results/mlacheck.db\n"
    "  --json             end with one JSON object of counts\n"
    "  --verbose          a line for every verdict\n"
    "  --quiet            no progress on stderr\n\n"
    "examples:\n"
    "  mlacheck run --kernel scalar --set corpus/upstream.txt\n"
    "  mlacheck run --kernel ./my_kernel.so --random 200 --seed 1 --op ring\n";

struct run {
    struct mla_options options;
    struct mla_progress progress;
    struct mla_kernel_list kernels;
    struct mla_corpus corpus;
    struct mla_store *store;
    struct mla_counts counts;
    int64_t slow_skipped;
    int64_t left;                      /* cases that an interruption kept from some kernel */
    int64_t executed[MLA_KERNELS_MAX]; /* cases of each kernel that it was really called for */
    double row_tests;
    int oracle_threads;
    int64_t bytes_max;
};

/* ---- input ---- */

static bool wanted(const struct mla_options *o, const struct mla_case *test)
{
    return o->op == NULL || strcmp(o->op, "all") == 0 ||
           strcmp(o->op, mla_case_op_name(test->op)) == 0;
}

static int read_sets(struct run *run)
{
    char error[MLA_CASE_ERROR_MAX];
    for (int i = 0; i < run->options.sets_n; i++)
        if (mla_corpus_read_matching(&run->corpus, run->options.sets[i], error, sizeof error) !=
            MLA_OK)
            return mla_options_fail(MLA_EXIT_USAGE, "run", "--set: %s", error);
    return 0;
}

static int add_line(struct run *run, const char *flag, const char *line)
{
    struct mla_case test;
    char error[MLA_CASE_ERROR_MAX];
    if (mla_case_parse(line, strlen(line), &test, error) != MLA_OK ||
        mla_case_problem(&test, INT64_MAX, error) != NULL)
        return mla_options_fail(MLA_EXIT_USAGE, "run", "%s: %s", flag, error);
    if (mla_corpus_add(&run->corpus, &test) != MLA_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "run", "out of memory");
    return 0;
}

static int read_lines(struct run *run)
{
    int code = 0;
    for (int i = 0; i < run->options.cases_n && code == 0; i++)
        code = add_line(run, "--case", run->options.cases[i]);
    return code;
}

static int read_ids(struct run *run)
{
    int code = 0;
    for (int i = 0; i < run->options.ids_n && code == 0; i++) {
        char *line;
        if (mla_store_find_line(run->store, run->options.ids[i], &line) != MLA_STORE_OK)
            return mla_options_fail(MLA_EXIT_USAGE, "run", "--id: %s",
                                    mla_store_message(run->store));
        code = add_line(run, "--id", line);
        free(line);
    }
    return code;
}

/* Case i is the i-th of its own stream, so a longer run begins like a shorter one. */
static int draw_cases(struct run *run)
{
    for (int64_t i = 0; i < run->options.random; i++)
        for (int op = 0; op < MLA_OP_N; op++) {
            struct mla_case test;
            uint64_t key = mla_number_at(run->options.seed, (uint64_t)op, (uint64_t)i, 0);
            struct mla_rng rng = {key, 0};
            mla_case_draw(&test, (enum mla_op)op, &rng);
            if (wanted(&run->options, &test) && mla_corpus_add(&run->corpus, &test) != MLA_OK)
                return mla_options_fail(MLA_EXIT_ENVIRONMENT, "run", "out of memory");
        }
    return 0;
}

static int read_kernels(struct run *run)
{
    char error[1024];
    int n = run->options.kernels_n;
    for (int i = 0; i < (n == 0 ? 1 : n); i++) {
        const char *spec = n == 0 ? "*" : run->options.kernels[i];
        if (mla_kernels_add(&run->kernels, spec, error, sizeof error) != MLA_OK)
            return mla_options_fail(mla_kernels_is_path(spec) ? MLA_EXIT_ENVIRONMENT
                                                              : MLA_EXIT_USAGE,
                                    "run", "--kernel: %s", error);
    }
    return 0;
}

static int read_input(struct run *run)
{
    const struct mla_options *o = &run->options;
    if (o->words_n > 0)
        return mla_options_fail(MLA_EXIT_USAGE, "run", "unexpected word '%s'", o->words[0]);
    if (o->op != NULL && (strcmp(o->op, "reject") == 0 || strcmp(o->op, "oracle") == 0))
        return mla_options_fail(MLA_EXIT_USAGE, "run", "--op '%s': must be ring, sparse or all",
                                o->op);
    if (o->sets_n + o->cases_n + o->ids_n == 0 && o->random < 0)
        return mla_options_fail(MLA_EXIT_USAGE, "run",
                                "no cases: give --set, --case, --id or --random");
    int code = read_kernels(run);
    code = code != 0 ? code : read_sets(run);
    code = code != 0 ? code : read_lines(run);
    return code != 0 ? code : draw_cases(run);
}

/* ---- judging ---- */

static void report(struct run *run, const struct mla_case *test, const char *spec,
                   const struct mla_verdict *verdict)
{
    bool verbose = run->options.verbose;
    if (verbose || mla_verdict_is_failure(verdict->kind) || verdict->kind == MLA_VERDICT_UNJUDGED)
        mla_progress_clear(&run->progress);
    mla_verdict_report(test, spec, verdict, verbose);
}

static uint32_t choose_relations(const struct mla_options *o, const struct mla_case *test)
{
    if (!o->relations)
        return 0;
    if (o->all_relations)
        return UINT32_MAX;
    return test->slow ? 0 : mla_relations_cheap((enum mla_op)test->op);
}

static void explain(const struct mla_case *test, const struct mla_kernel *kernel, double limit,
                    const struct mla_verdict *verdict)
{
    struct mla_blame blame;
    mla_blame_find(test, kernel, verdict, limit, &blame);
    printf("  blame: %s: %s\n", mla_cause_name(blame.cause), blame.text);
}

static int judge_kernel(struct run *run, struct mla_subject *subject, const struct mla_case *test,
                        const struct mla_kernel_choice *choice)
{
    struct mla_verdict verdict;
    char line[MLA_CASE_LINE_MAX], repro[MLA_REPRO_MAX];
    struct mla_store_case row;
    double limit = run->options.limit > 0 ? run->options.limit : test->slow ? 3600 : 60;
    struct mla_judge_options judge = {.seconds_limit = run->options.in_process ? 0 : limit,
                                      .oracle_threads = run->oracle_threads,
                                      .plain_oracle = run->options.plain_oracle,
                                      .no_oracle = run->options.no_oracle,
                                      .row_tests = run->row_tests,
                                      .output_hash = true,
                                      .relations = choose_relations(&run->options, test)};
    mla_case_format(test, line);
    mla_record_case(test, line, &row);
    fflush(NULL); /* the child must not print it again, nor die of it */
    mla_store_inflight_begin(run->store, &row, mla_kernels_name(choice->spec),
                             mla_record_repro(choice->spec, line, judge.plain_oracle, repro));
    mla_subject_judge(subject, choice->kernel, &judge, &verdict);
    mla_store_inflight_end(run->store);
    mla_counts_add(&run->counts, &verdict);
    run->executed[choice - run->kernels.list] += verdict.kind != MLA_VERDICT_UNSUPPORTED;
    report(run, test, choice->spec, &verdict);
    if (run->options.blame && mla_verdict_is_failure(verdict.kind))
        explain(test, choice->kernel, limit, &verdict);
    if (mla_record_store(run->store, test, choice->spec, &verdict) != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "run", "%s", mla_store_message(run->store));
    return 0;
}

static int judge_case(struct run *run, const struct mla_case *test)
{
    struct mla_subject *subject = NULL;
    struct mla_verdict none = {
        .kind = MLA_VERDICT_UNJUDGED, .relation = "", .plain_oracle = run->options.plain_oracle};
    char error[MLA_CASE_ERROR_MAX];
    int code = 0;
    const char *problem = mla_case_problem(test, run->bytes_max, error);
    if (problem == NULL && mla_subject_make(test, &subject, error) != MLA_OK)
        problem = error;
    size_t k = 0;
    for (; k < run->kernels.n && code == 0 && !mla_interrupted; k++) {
        const struct mla_kernel_choice *choice = &run->kernels.list[k];
        if (problem == NULL) {
            code = judge_kernel(run, subject, test, choice);
            continue;
        }
        snprintf(none.reason, sizeof none.reason, "%.250s", problem);
        mla_counts_add(&run->counts, &none);
        report(run, test, choice->spec, &none);
        if (mla_record_store(run->store, test, choice->spec, &none) != MLA_STORE_OK)
            code = MLA_EXIT_ENVIRONMENT;
    }
    run->left += k < run->kernels.n;
    mla_subject_free(subject);
    return code;
}

static void progress(struct run *run, size_t done)
{
    char note[64];
    snprintf(note, sizeof note, "%" PRId64 " faults",
             run->counts.failed + run->counts.improbable + run->counts.crashed);
    mla_progress_say(&run->progress, (double)done, (double)run->corpus.n, "cases", note);
}

/* Left out: the other operation's cases, and slow ones unless they were named or asked for. */
static bool is_run(const struct run *run, const struct mla_case *test, int64_t *slow_skipped)
{
    bool named = run->options.cases_n + run->options.ids_n > 0;
    if (!wanted(&run->options, test))
        return false;
    if (test->slow && !run->options.slow && !named) {
        ++*slow_skipped;
        return false;
    }
    return true;
}

/* All row-energy tests there can be, before the first is made: their number sets the threshold. */
static double count_row_tests(const struct run *run)
{
    double sum = 1;
    for (size_t i = 0; i < run->corpus.n; i++)
        if (is_run(run, &run->corpus.cases[i], &(int64_t){0}))
            sum += mla_judge_row_tests(&run->corpus.cases[i]) * (double)run->kernels.n;
    return sum;
}

static int judge_cases(struct run *run)
{
    int code = 0;
    run->row_tests = count_row_tests(run);
    if (run->options.in_process)
        mla_fatal_watch(run->store);
    mla_progress_begin(&run->progress, run->options.quiet);
    for (size_t i = 0; i < run->corpus.n && code == 0; i++) {
        const struct mla_case *test = &run->corpus.cases[i];
        if (!is_run(run, test, &run->slow_skipped))
            continue;
        if (mla_interrupted) {
            run->left++;
            continue;
        }
        code = judge_case(run, test);
        progress(run, i + 1);
    }
    mla_progress_clear(&run->progress);
    return code;
}

/* ---- the run ---- */

/* The kernels that a run named: those it called, those it can call, those this CPU cannot run. */
enum roll { EXECUTED, USABLE, SKIPPED };

static bool is_on(const struct run *run, enum roll roll, size_t k)
{
    bool usable = mla_kernel_is_usable(run->kernels.list[k].kernel);
    return roll == EXECUTED ? run->executed[k] > 0 : usable == (roll == USABLE);
}

/* "a,b"; "none" for nobody. as_typed: with the paths of plug-ins. */
static const char *roll_text(const struct run *run, enum roll roll, bool as_typed)
{
    static char text[MLA_KERNELS_MAX * sizeof run->kernels.list[0].spec];
    size_t n = 0;
    for (size_t k = 0; k < run->kernels.n; k++) {
        const char *spec = run->kernels.list[k].spec;
        if (is_on(run, roll, k))
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n == 0 ? "" : ",",
                                  as_typed ? spec : mla_kernels_name(spec));
    }
    return n == 0 ? "none" : text;
}

static void print_roll_json(const struct run *run, const char *name, enum roll roll)
{
    const char *comma = "";
    printf(",\"%s\":[", name);
    for (size_t k = 0; k < run->kernels.n; k++) {
        if (!is_on(run, roll, k))
            continue;
        fputs(comma, stdout);
        mla_text_json(stdout, mla_kernels_name(run->kernels.list[k].spec));
        comma = ",";
    }
    printf("]");
}

static int begin(struct run *run, int argc, char **argv)
{
    char *kernels = mla_build_kernels(&run->kernels);
    int64_t id;
    if (kernels == NULL)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "run", "out of memory");
    int32_t status =
        mla_build_begin_run(run->store, argc, argv, kernels, (int64_t)run->options.seed, &id);
    free(kernels);
    if (status != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "run", "%s", mla_store_message(run->store));
    printf("mlacheck run %" PRId64 ": %zu cases, kernels %s, seed %" PRIu64 "\n", id, run->corpus.n,
           roll_text(run, USABLE, true), run->options.seed);
    for (size_t k = 0; k < run->kernels.n; k++)
        if (is_on(run, SKIPPED, k))
            printf("skipped %s: not usable on this CPU\n", run->kernels.list[k].spec);
    fflush(stdout);
    return 0;
}

static int finish(struct run *run)
{
    const struct mla_counts *n = &run->counts;
    if (mla_build_end_run(run->store, run->left == 0) != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "run", "%s", mla_store_message(run->store));
    mla_table_print(stdout, run->store, MLA_VIEW_SUMMARY, NULL);
    mla_counts_print(n, run->slow_skipped);
    if (run->left > 0)
        printf("interrupted: %" PRId64
               " cases were not judged, or not with every kernel; the run is "
               "stored as one that did not end\n",
               run->left);
    printf("executed: %s\n", roll_text(run, EXECUTED, false));
    printf("not usable on this CPU: %s\n", roll_text(run, SKIPPED, false));
    if (run->options.json) {
        mla_counts_print_json(n, run->slow_skipped);
        print_roll_json(run, "executed", EXECUTED);
        print_roll_json(run, "skipped", SKIPPED);
        printf("}\n");
    }
    return mla_counts_exit("run", n);
}

int mla_verb_run(int argc, char **argv)
{
    struct run run = {0};
    int code = mla_options_parse(&run.options, "run", "kscinSodlOwrRbpJvqh", argc, argv);
    if (code != 0 || run.options.help) {
        if (code == 0)
            fputs(help, stdout);
        return code;
    }
    long processors = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
    run.oracle_threads = processors < 1 ? 1 : (int)processors;
    /* Two sets of tensors (relations; four with calls before) and the kernel's own memory must fit. */
    run.bytes_max = (int64_t)pages * sysconf(_SC_PAGESIZE) / (run.options.all_relations ? 5 : 3);
    code = read_input(&run);
    if (code == 0) {
        run.store = mla_options_store(&run.options, "run");
        code = run.store == NULL ? MLA_EXIT_ENVIRONMENT : read_ids(&run);
    }
    code = code != 0 ? code : begin(&run, argc, argv);
    code = code != 0 ? code : judge_cases(&run);
    code = code != 0 ? code : finish(&run);
    mla_corpus_free(&run.corpus);
    if (mla_store_close(run.store) != MLA_STORE_OK)
        code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "run", "the database could not be written");
    return code;
}
