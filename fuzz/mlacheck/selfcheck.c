/* SPDX-License-Identifier: Apache-2.0
 *
 * selfcheck.c - `mlacheck selfcheck`: the verdict against kernels that do all their models allow.
 *
 * Sound: none of them may be accused. Sharp: the closer they come to a bound, the less it gives away.
 * Case i goes to adversary i mod n, so every one gets both operations and all families in turn. On a
 * sample of rows the fast evaluation of the definition is held against the plain one.
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/adversary/adversary.h"
#include "fuzz/family.h"
#include "fuzz/kernels.h"
#include "fuzz/mlacheck/build.h"
#include "fuzz/mlacheck/options.h"
#include "fuzz/mlacheck/progress.h"
#include "fuzz/record.h"
#include "fuzz/selfcheck.h"
#include "oracle/oracle.h"

static const char help[] =
    "usage: mlacheck selfcheck [flags]\n\n"
    "Judges kernels that keep to their models but choose every rounding within them, at random or\n"
    "against one element of each row. Nobody may be accused. Compares the two ways the definition\n"
    "is evaluated.\n\n"
    "  --cases N          default 5000, in turn over all adversaries and both operations\n"
    "  --seed S           default 1\n"
    "  --kernel adversary:NAME|GLOB   only these; adversary:cheat-* must be accused\n"
    "  --jobs N           threads (default 1)\n"
    "  --db FILE          default results/mlacheck.db\n"
    "  --json             end with one JSON object\n"
    "  --quiet            no progress on stderr\n\n"
    "example: mlacheck selfcheck --cases 20000 --jobs 2\n";

#define FAMILIES_MAX    16
#define COMPARE_EVERY   4  /* cases of which one row is evaluated twice */
#define ACCUSATIONS_MAX 20 /* printed and stored one by one; all are counted */

struct line {
    int64_t cases, accused, unjudged;
    double worst;  /* err/B */
    double energy; /* over its threshold; -1: no row tested */
};

struct selfcheck {
    struct mla_options options;
    struct mla_progress progress;
    struct mla_kernel_list kernels;
    struct mla_store *store;
    pthread_mutex_t lock; /* of all below, and of the store */
    int64_t next;
    int64_t done;
    int64_t certain, improbable, broken;
    int64_t mismatches, compared;
    int64_t oracle_failed; /* cases in which the oracle contradicted itself: nobody can be judged */
    struct line lines[MLA_KERNELS_MAX];
    double sharpest[FAMILIES_MAX];
    double row_tests; /* of the whole check, fixed before its first case */
    int64_t by_family[FAMILIES_MAX];
    int code; /* of an error that ends the check */
};

/* ---- input ---- */

static int add_kernels(struct selfcheck *check, const char *spec)
{
    char error[1024];
    if (strncmp(spec, "adversary:", strlen("adversary:")) != 0)
        return mla_options_fail(MLA_EXIT_USAGE, "selfcheck",
                                "--kernel '%s': must be adversary:NAME", spec);
    if (mla_kernels_add(&check->kernels, spec, error, sizeof error) != MLA_OK)
        return mla_options_fail(MLA_EXIT_USAGE, "selfcheck", "--kernel: %s", error);
    return 0;
}

static int read_kernels(struct selfcheck *check)
{
    size_t n;
    const struct mla_adversary *const *all = mla_adversaries(&n);
    int code = 0;
    for (int i = 0; i < check->options.kernels_n && code == 0; i++)
        code = add_kernels(check, check->options.kernels[i]);
    for (size_t i = 0; i < n && check->options.kernels_n == 0 && code == 0; i++) {
        char spec[80];
        snprintf(spec, sizeof spec, "adversary:%s", all[i]->kernel.name);
        code = add_kernels(check, spec);
    }
    return code;
}

/* ---- one case ---- */

static struct mla_case draw(const struct selfcheck *check, int64_t i)
{
    struct mla_case test;
    enum mla_op op = (enum mla_op)(i / (int64_t)check->kernels.n % MLA_OP_N);
    struct mla_rng rng = {mla_number_at(check->options.seed, (uint64_t)i, 0x5e1f, 0), 0};
    mla_selfcheck_draw(&test, op, &rng);
    return test;
}

/* An accused adversary: said and kept, the first few. */
static int32_t accuse(struct selfcheck *check, const struct mla_case *test, const char *spec,
                      const struct mla_verdict *verdict)
{
    int64_t before = check->certain + check->improbable + check->broken;
    check->certain += verdict->kind == MLA_VERDICT_FAIL_CERTAIN;
    check->improbable += verdict->kind == MLA_VERDICT_FAIL_IMPROBABLE;
    check->broken += verdict->kind == MLA_VERDICT_CRASH || verdict->kind == MLA_VERDICT_TIMEOUT;
    if (before >= ACCUSATIONS_MAX)
        return mla_record_tally(check->store, test, spec, verdict);
    mla_progress_clear(&check->progress);
    mla_record_print(stdout, test, spec, verdict);
    return mla_record_store(check->store, test, spec, verdict);
}

static void report_mismatch(struct selfcheck *check, const struct mla_case *test, double ratio)
{
    char line[MLA_CASE_LINE_MAX];
    if (check->mismatches++ >= ACCUSATIONS_MAX)
        return;
    mla_case_format(test, line);
    mla_progress_clear(&check->progress);
    printf("MISMATCH the two evaluations of the definition differ by %.3g of their radii\n"
           "  repro: mlacheck run --kernel scalar --case '%s'\n",
           ratio, line);
}

static void report_contradiction(struct selfcheck *check, const struct mla_case *test,
                                 const char *spec, const struct mla_verdict *verdict)
{
    char line[MLA_CASE_LINE_MAX], repro[MLA_REPRO_MAX];
    if (check->oracle_failed++ >= ACCUSATIONS_MAX)
        return;
    mla_case_format(test, line);
    mla_progress_clear(&check->progress);
    printf("CONTRADICTION %s\n  repro: %s\n", verdict->reason,
           mla_record_repro(spec, line, false, repro));
}

/* With the lock held. */
static void record(struct selfcheck *check, const struct mla_case *test, int64_t i,
                   const struct mla_verdict *verdict)
{
    size_t k = (size_t)(i % (int64_t)check->kernels.n), f = (size_t)test->family % FAMILIES_MAX;
    const char *spec = check->kernels.list[k].spec;
    struct line *line = &check->lines[k];
    bool failed = mla_verdict_is_failure(verdict->kind);
    int32_t status = failed ? accuse(check, test, spec, verdict)
                            : mla_record_tally(check->store, test, spec, verdict);
    if (verdict->oracle_failed)
        report_contradiction(check, test, spec, verdict);
    check->done++;
    line->cases++;
    line->accused += failed;
    line->unjudged += verdict->kind == MLA_VERDICT_UNJUDGED;
    line->energy = fmax(line->energy, verdict->elements_n > 0 ? verdict->max_energy : -1);
    if (verdict->elements_n > 0) {
        check->by_family[f]++;
        if (verdict->max_ratio > line->worst)
            line->worst = verdict->max_ratio;
        if (verdict->max_ratio > check->sharpest[f])
            check->sharpest[f] = verdict->max_ratio;
    }
    if (status != MLA_STORE_OK)
        check->code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "selfcheck", "%s",
                                       mla_store_message(check->store));
    mla_progress_say(&check->progress, (double)check->done, (double)check->options.number, "cases",
                     "");
}

static void run_case(struct selfcheck *check, int64_t i)
{
    struct mla_case test = draw(check, i);
    struct mla_subject *subject;
    struct mla_verdict verdict = {.kind = MLA_VERDICT_UNJUDGED, .relation = ""};
    struct mla_judge_options judge = {
        .seconds_limit = 0, .oracle_threads = 1, .relations = 0, .row_tests = check->row_tests};
    char error[MLA_CASE_ERROR_MAX];
    double ratio = 0;
    int64_t rows = 0;
    int32_t status = mla_subject_make(&test, &subject, error);
    if (status == MLA_OK) {
        const struct mla_kernel *kernel = check->kernels.list[i % (int64_t)check->kernels.n].kernel;
        mla_subject_judge(subject, kernel, &judge, &verdict);
        if (i % COMPARE_EVERY == 0)
            status = mla_selfcheck_compare(subject, 1, &ratio, &rows);
        mla_subject_free(subject);
    } else {
        snprintf(verdict.reason, sizeof verdict.reason, "%.250s", error);
    }
    pthread_mutex_lock(&check->lock);
    record(check, &test, i, &verdict);
    check->compared += rows;
    if (!(ratio <= 1.0) || status == MLA_ERR_INTERNAL)
        report_mismatch(check, &test, ratio);
    pthread_mutex_unlock(&check->lock);
}

static void *worker(void *context)
{
    struct selfcheck *check = context;
    for (;;) {
        pthread_mutex_lock(&check->lock);
        int64_t i = check->next++;
        bool stop = i >= check->options.number || mla_interrupted || check->code != 0;
        pthread_mutex_unlock(&check->lock);
        if (stop)
            break;
        run_case(check, i);
    }
    mla_oracle_thread_done();
    return NULL;
}

static void count_row_tests(struct selfcheck *check)
{
    for (size_t k = 0; k < check->kernels.n; k++)
        check->lines[k].energy = -1;
    for (int64_t i = 0; i < check->options.number && !mla_interrupted; i++) {
        struct mla_case test = draw(check, i);
        check->row_tests += mla_judge_row_tests(&test);
    }
}

static void run_cases(struct selfcheck *check)
{
    pthread_t ids[256];
    int started = 0;
    mla_progress_begin(&check->progress, check->options.quiet);
    while (started < check->options.jobs - 1 &&
           pthread_create(&ids[started], NULL, worker, check) == 0)
        started++;
    worker(check); /* with too few threads the work is only slower */
    for (int i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    mla_progress_clear(&check->progress);
}

/* ---- the run ---- */

static int begin(struct selfcheck *check, int argc, char **argv)
{
    int64_t id;
    check->store = mla_options_store(&check->options, "selfcheck");
    if (check->store == NULL)
        return MLA_EXIT_ENVIRONMENT;
    if (mla_build_begin_run(check->store, argc, argv, "adversary:*", (int64_t)check->options.seed,
                            &id) != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "selfcheck", "%s",
                                mla_store_message(check->store));
    printf("mlacheck selfcheck, run %" PRId64 ": %" PRId64 " cases, %zu adversaries, seed %" PRIu64
           "\n",
           id, check->options.number, check->kernels.n, check->options.seed);
    fflush(stdout);
    return 0;
}

static void print_table(const struct selfcheck *check)
{
    size_t families_n;
    const struct mla_family *const *families = mla_families(&families_n);
    printf("\n%-32s %8s %8s %8s %10s %10s\n", "adversary", "cases", "accused", "unjudged",
           "err/bound", "energy");
    for (size_t k = 0; k < check->kernels.n; k++) {
        const struct line *line = &check->lines[k];
        printf("%-32s %8" PRId64 " %8" PRId64 " %8" PRId64 " %10.4f", check->kernels.list[k].spec,
               line->cases, line->accused, line->unjudged, line->worst);
        if (line->energy >= 0)
            printf(" %10.4f", line->energy);
        putchar('\n');
    }
    printf("\n%-32s %8s %28s\n", "family", "judged", "sharpest err/bound");
    for (size_t f = 0; f < families_n; f++)
        printf("%-32s %8" PRId64 " %28.4f\n", families[f]->name, check->by_family[f],
               check->sharpest[f]);
}

static void print_json(const struct selfcheck *check)
{
    size_t families_n;
    const struct mla_family *const *families = mla_families(&families_n);
    int64_t unjudged = 0;
    double energy = -1;
    for (size_t k = 0; k < check->kernels.n; k++) {
        unjudged += check->lines[k].unjudged;
        energy = fmax(energy, check->lines[k].energy);
    }
    printf("{\"adversary_cases\":%" PRId64 ",\"accused_certain\":%" PRId64
           ",\"accused_improbable\":%" PRId64 ",\"sharpest\":{",
           check->done, check->certain, check->improbable);
    for (size_t f = 0; f < families_n; f++)
        printf("%s\"%s\":%.6g", f == 0 ? "" : ",", families[f]->name, check->sharpest[f]);
    printf("},\"definition_mismatch\":%" PRId64 ",\"definition_rows\":%" PRId64
           ",\"unjudged\":%" PRId64 ",\"oracle_failed\":%" PRId64 ",\"energy\":%.6g}\n",
           check->mismatches, check->compared, unjudged, check->oracle_failed, energy);
}

static int finish(struct selfcheck *check)
{
    int64_t judged = 0, faults = check->certain + check->improbable + check->broken;
    if (mla_build_end_run(check->store, check->done == check->options.number) != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "selfcheck", "%s",
                                mla_store_message(check->store));
    for (size_t f = 0; f < FAMILIES_MAX; f++)
        judged += check->by_family[f];
    print_table(check);
    printf("\n%" PRId64 " cases, %" PRId64 " judged: %" PRId64 " accused with certainty, %" PRId64
           " as improbable; %" PRId64 " of %" PRId64 " rows evaluated twice disagree; in %" PRId64
           " cases the oracle contradicts itself%s\n",
           check->done, judged, check->certain, check->improbable, check->mismatches,
           check->compared, check->oracle_failed, mla_interrupted ? "; interrupted" : "");
    if (check->options.json)
        print_json(check);
    if (faults + check->mismatches + check->oracle_failed > 0)
        return MLA_EXIT_FAULT;
    if (mla_interrupted)
        return MLA_EXIT_INTERRUPTED;
    return judged == 0 ? MLA_EXIT_NOTHING : MLA_EXIT_PASSED;
}

int mla_verb_selfcheck(int argc, char **argv)
{
    static struct selfcheck check; /* large, and one a process */
    int code = mla_options_parse(&check.options, "selfcheck", "kNSdjJqh", argc, argv);
    if (code != 0 || check.options.help) {
        if (code == 0)
            fputs(help, stdout);
        return code;
    }
    if (check.options.words_n > 0)
        return mla_options_fail(MLA_EXIT_USAGE, "selfcheck", "unexpected word '%s'",
                                check.options.words[0]);
    check.options.jobs = check.options.jobs > 0 ? check.options.jobs : 1;
    if (check.options.number < 0)
        check.options.number = 5000;
    code = read_kernels(&check);
    code = code != 0 ? code : begin(&check, argc, argv);
    if (code == 0) {
        pthread_mutex_init(&check.lock, NULL);
        count_row_tests(&check);
        run_cases(&check);
        pthread_mutex_destroy(&check.lock);
        code = check.code != 0 ? check.code : finish(&check);
    }
    if (mla_store_close(check.store) != MLA_STORE_OK)
        code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "selfcheck",
                                "the database could not be written");
    return code;
}
