/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_measure.c - one shape: every kernel and peer with every thread count, in turn.
 *
 * Machines are shared and drift. So everything is called once a round, one after the other, and
 * between any two calls the peak is measured, with as many threads: each call's share is of the mean
 * of the peaks just before and just after it, and medians are taken of such shares.
 *
 * A repetition is disturbed when the two peaks differ by more than a tenth, or one of its peaks lies
 * more than that below the best of the run, or when others took processor time that it needed: a peak
 * is short enough to slip through where a long call is not. None of these looks at the time of the
 * call. Medians are of the undisturbed ones, where there are enough. The best may come late: all are
 * held to it once more at the end.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/call.h"
#include "fuzz/mlacheck/bench.h"
#include "fuzz/mlacheck/bench_shapes.h"
#include "fuzz/mlacheck/others.h"

#define REPS_MIN    5
#define REPS_MAX    200
#define SHORT       0.01 /* seconds: shorter calls are repeated that long, and the mean is the time */
#define CALLS_MAX   1000
#define TIMES_MAX   20  /* an entry ends after so many times the seconds asked for */
#define LONG        10  /* a call of more times these is skipped if nobody named its kernel */
#define CORES_MAX   1.1 /* of a stream that has one: its making is counted too */
#define DIFFERENCE  0.1
#define ENTRIES_MAX (MLA_KERNELS_MAX * MLA_OPTIONS_THREADS_MAX)

/*
 * Why DIFFERENCE: rounding weights and outputs to bf16 moves each by 2^-9 of itself at most, in the
 * kernel and in the peer: below 0.008 together, and a kernel with bf16 sums stays below some 0.05.
 * Another row, scale or order of columns makes it about 1. It judges nobody: it only guards that the
 * peer does the same work.
 */

struct entry {
    const struct mla_kernel_choice *choice; /* or */
    const struct mla_peer *peer;
    struct mla_peer_job *job;
    int threads;
    bool has_own;
    enum mla_peak_isa own;
    bool ended;
    int reps;
    int calls;              /* of a repetition */
    double spent;           /* seconds in repetitions */
    double quiet;           /* of that in undisturbed ones */
    double processor, wall; /* a peer's, of one stream, all calls */
    int disturbed;          /* repetitions */
    bool is_disturbed[REPS_MAX];
    double seconds[REPS_MAX], peak[REPS_MAX], share[REPS_MAX];
    double own_peak[REPS_MAX], own_share[REPS_MAX]; /* with has_own */
};

struct shape {
    struct mla_bench *bench;
    const char *name;
    const struct mla_case *test;
    struct mla_tensors *tensors;
    double flops;
    struct entry **entries;
    int entries_n;
    struct mla_peer_job *jobs[8];
    int jobs_n;
};

static const char *name_of(const struct entry *e)
{
    return e->peer != NULL ? e->peer->name : mla_kernels_name(e->choice->spec);
}

static void set_threads(struct mla_tensors *tensors, int threads)
{
    tensors->ring.threads = threads;
    tensors->sparse.threads = threads;
}

/* Does the kernel offer this call here? NULL, or why not. */
static const char *unsupported(const struct mla_kernel *kernel, const struct mla_tensors *t)
{
    bool ring = t->test.op == MLA_OP_RING;
    if (!mla_kernel_is_usable(kernel))
        return "not usable on this CPU";
    if (ring ? kernel->ring == NULL : kernel->sparse == NULL)
        return "does not offer the operation";
    if (ring ? kernel->ring_supports != NULL && !kernel->ring_supports(&t->ring)
             : kernel->sparse_supports != NULL && !kernel->sparse_supports(&t->sparse))
        return "does not offer this call";
    return NULL;
}

/* Seconds of one call; negative after complaining. */
static double call_kernel(struct mla_bench *bench, const struct mla_kernel_choice *choice,
                          struct mla_tensors *tensors, const char *shape, int threads)
{
    struct mla_call call;
    set_threads(tensors, threads);
    mla_call_make(choice->kernel, tensors, 0, &call);
    if (call.status == MLA_OK)
        return call.seconds > 0 ? call.seconds : 1e-9;
    if (call.status == MLA_ERR_UNSUPPORTED) {
        printf("%-28s %s skipped: %s\n", shape, choice->spec, call.message);
        return -1;
    }
    bench->fault = true;
    mla_options_fail(MLA_EXIT_FAULT, "bench", "%s on %s, %d thread(s): status %" PRId32 ": %s",
                     choice->spec, shape, threads, call.status, call.message);
    return -1;
}

static double call_peer(struct shape *s, struct entry *e)
{
    double cores, seconds = mla_peer_job_run(e->job, e->threads, &cores);
    e->processor += cores * seconds;
    e->wall += seconds;
    if (seconds > 0)
        return seconds;
    s->bench->fault = true;
    mla_options_fail(MLA_EXIT_FAULT, "bench", "%s on %s: the library reports an error",
                     e->peer->name, s->name);
    return -1;
}

/* One repetition: seconds of a call, a mean if several were made. */
static double call_entry(struct shape *s, struct entry *e)
{
    double sum = 0;
    for (int i = 0; i < e->calls; i++) {
        double seconds = e->peer != NULL
                             ? call_peer(s, e)
                             : call_kernel(s->bench, e->choice, s->tensors, s->name, e->threads);
        if (seconds < 0)
            return -1;
        sum += seconds;
    }
    return sum / e->calls;
}

/* Did the peak around a call stand still? */
static bool is_still(double before, double after)
{
    return fabs(after - before) <= MLA_BENCH_STILL * (before + after) / 2;
}

/* Does a peak of the i-th repetition lie too far below the best of the run so far? */
static bool is_low(const struct mla_bench *bench, const struct entry *e, int i)
{
    return mla_bench_is_low(bench, bench->isa, e->threads, e->peak[i]) ||
           (e->has_own && mla_bench_is_low(bench, e->own, e->threads, e->own_peak[i]));
}

static void keep(const struct mla_bench *bench, struct entry *e, double flops, double seconds,
                 double peak, double own, bool disturbed)
{
    int i = e->reps++;
    e->seconds[i] = seconds;
    e->peak[i] = peak;
    e->share[i] = flops / seconds / peak;
    e->own_peak[i] = own;
    e->own_share[i] = e->has_own ? flops / seconds / own : 0;
    e->is_disturbed[i] = disturbed || is_low(bench, e, i);
    e->disturbed += e->is_disturbed[i];
    e->spent += seconds * e->calls;
    e->quiet += e->is_disturbed[i] ? 0 : seconds * e->calls;
}

/* One call between two peaks; *before becomes the one after. A warm-up counts only if it is dear. */
static bool repeat(struct shape *s, struct entry *e, double *before, bool warm_up)
{
    double wanted = s->bench->seconds;
    double others = mla_others_seconds();
    double seconds = call_entry(s, e);
    bool disturbed =
        mla_others_disturb(others, mla_others_seconds(), seconds * e->calls, e->threads);
    double after = mla_bench_peak(s->bench, s->bench->isa, e->threads);
    double own = e->has_own ? mla_bench_peak(s->bench, e->own, e->threads) : 0;
    if (seconds < 0 || after < 0 || own < 0) {
        e->ended = true;
        return after >= 0 && own >= 0;
    }
    if (!warm_up || seconds > wanted * LONG) {
        disturbed = disturbed || !is_still(*before, after);
        keep(s->bench, e, s->flops, seconds, (*before + after) / 2, own, disturbed);
    } else if (seconds < SHORT) {
        double calls = SHORT / seconds;
        e->calls = calls < CALLS_MAX ? (int)calls + 1 : CALLS_MAX;
    }
    *before = after;
    e->ended = (e->reps - e->disturbed >= REPS_MIN && e->quiet >= wanted) || e->reps == REPS_MAX ||
               (e->reps > 0 && e->spent >= wanted * TIMES_MAX);
    return true;
}

static void progress(const struct shape *s, int round)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%-40s round %-4d", s->name, round);
}

static int run_rounds(struct shape *s)
{
    const struct mla_options *o = &s->bench->options;
    bool all_ended = s->entries_n == 0;
    for (int round = 0; !all_ended && !mla_interrupted; round++) {
        all_ended = true;
        progress(s, round);
        for (int t = 0; t < o->threads_n; t++) {
            double before = -1;
            for (int i = 0; i < s->entries_n && !mla_interrupted; i++) {
                struct entry *e = s->entries[i];
                if (e->ended || e->threads != o->threads[t])
                    continue;
                if (before < 0)
                    before = mla_bench_peak(s->bench, s->bench->isa, e->threads);
                if (before < 0 || !repeat(s, e, &before, round == 0))
                    return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench",
                                            "--threads: %d threads cannot be had", e->threads);
                all_ended = all_ended && e->ended;
            }
        }
    }
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%60s\r", "");
    return 0;
}

/* ---- entries ---- */

static int add_entry(struct shape *s, struct entry entry)
{
    for (int t = 0; t < s->bench->options.threads_n; t++) {
        struct entry *e = s->entries_n == ENTRIES_MAX ? NULL : malloc(sizeof *e);
        if (e == NULL)
            return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench", "out of memory");
        *e = entry;
        e->calls = 1;
        e->threads = s->bench->options.threads[t];
        s->entries[s->entries_n++] = e;
    }
    return 0;
}

/* A call that takes long is left out unless its kernel was named; or, of a dear shape, which itself
 * was, unless it is the fastest. */
static bool too_long(const struct shape *s, const struct mla_kernel_choice *choice,
                     const double *speeds, double speed)
{
    double seconds = speed > 0 ? s->flops / speed : 0;
    bool fastest = true;
    for (size_t i = 0; i < s->bench->kernels.n; i++)
        fastest = fastest && speeds[i] <= speed;
    if (s->bench->chosen || seconds <= s->bench->seconds * LONG || (s->test->slow && fastest))
        return false;
    printf("%-28s %s skipped: some %.0f s a call on one thread (--kernel %s times it)\n", s->name,
           choice->spec, seconds, choice->spec);
    return true;
}

static int add_kernels(struct shape *s, const double *speeds)
{
    int code = 0;
    for (size_t i = 0; i < s->bench->kernels.n && code == 0; i++) {
        const struct mla_kernel_choice *choice = &s->bench->kernels.list[i];
        const char *why = unsupported(choice->kernel, s->tensors);
        if (!mla_kernel_is_usable(choice->kernel))
            continue; /* named at the beginning */
        if (why != NULL) {
            printf("%-28s %s skipped: %s\n", s->name, choice->spec, why);
            continue;
        }
        if (too_long(s, choice, speeds, speeds[i]))
            continue;
        struct entry e = {.choice = choice};
        e.has_own = mla_bench_kernel_isa(choice->spec, &e.own) && e.own < s->bench->isa;
        code = add_entry(s, e);
    }
    return code;
}

static int add_peers(struct shape *s)
{
    size_t peers_n;
    const struct mla_peer *peers = mla_peers(&peers_n);
    const struct mla_options *o = &s->bench->options;
    int code = 0, most = 1;
    if (!o->peers || s->test->op != MLA_OP_SPARSE || !mla_peer_fits(&s->tensors->sparse))
        return 0;
    for (int t = 0; t < o->threads_n; t++)
        most = o->threads[t] > most ? o->threads[t] : most;
    for (size_t i = 0; i < peers_n && code == 0; i++) {
        char error[256] = "";
        struct mla_peer_job *job =
            mla_peer_job_make(&peers[i], &s->tensors->sparse, most, error, sizeof error);
        if (job == NULL) {
            printf("%-28s %s skipped: %s\n", s->name, peers[i].name, error);
            continue;
        }
        s->jobs[s->jobs_n++] = job;
        code = add_entry(s, (struct entry){.peer = &peers[i], .job = job});
    }
    return code;
}

/* ---- rows ---- */

/* Leave disturbed repetitions out, if enough are left. */
static void leave_out(const struct mla_bench *bench, struct entry *e, struct mla_bench_row *row)
{
    int n = 0;
    for (int i = 0; i < e->reps; i++) {
        bool late = !e->is_disturbed[i] && is_low(bench, e, i);
        e->is_disturbed[i] = e->is_disturbed[i] || late;
        e->disturbed += late;
    }
    row->noisy = e->reps - e->disturbed < REPS_MIN && 4 * e->disturbed >= e->reps;
    if (e->reps - e->disturbed < REPS_MIN)
        return;
    for (int i = 0; i < e->reps; i++)
        if (!e->is_disturbed[i]) {
            e->seconds[n] = e->seconds[i];
            e->peak[n] = e->peak[i];
            e->share[n] = e->share[i];
            e->own_share[n++] = e->own_share[i];
        }
    row->left_out = e->disturbed;
    e->reps = n;
}

static int add_row(struct shape *s, struct entry *e)
{
    struct mla_bench_row *row = mla_bench_add_row(s->bench);
    if (row == NULL)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench", "out of memory");
    row->op = s->test->op == MLA_OP_RING ? "ring" : "sparse";
    row->shape = s->name;
    row->name = name_of(e);
    row->is_peer = e->peer != NULL;
    mla_case_id(s->test, row->id);
    row->threads = e->threads;
    row->flops = s->flops;
    row->bytes = mla_bench_bytes(s->test);
    leave_out(s->bench, e, row);
    row->has_own = e->has_own;
    row->own = e->own;
    row->cores = e->wall > 0 ? e->processor / e->wall : 0;
    mla_bench_set_times(row, e->seconds, e->reps);
    row->peak = mla_bench_median(e->peak, e->reps);
    row->of_peak = mla_bench_median(e->share, e->reps);
    row->of_own = e->has_own ? mla_bench_median(e->own_share, e->reps) : 0;
    return 0;
}

/* Peers did the kernel's work, on a core each. Compared with the last kernel's output. */
static void check_peers(struct shape *s)
{
    bool ours = false;
    for (int i = 0; i < s->entries_n; i++)
        ours = ours || (s->entries[i]->peer == NULL && s->entries[i]->reps > 0);
    for (int i = 0; i < s->entries_n; i++) {
        struct entry *e = s->entries[i];
        if (e->peer == NULL || e->reps == 0)
            continue;
        double off = ours ? mla_peer_job_difference(e->job, s->tensors->sparse.out) : 0;
        bool same = off <= DIFFERENCE; /* a NaN is not */
        if (!same)
            mla_options_fail(MLA_EXIT_FAULT, "bench", "%s on %s: differs by %g of the output's rms",
                             e->peer->name, s->name, off);
        /* The making of threads would be most of a short call. */
        double cores = e->calls > 1 ? 0 : e->processor / e->wall;
        if (cores > CORES_MAX)
            mla_options_fail(MLA_EXIT_FAULT, "bench", "%s on %s: %.2f cores a stream",
                             e->peer->name, s->name, cores);
        s->bench->fault = s->bench->fault || !same || cores > CORES_MAX;
    }
}

static int measure(struct shape *s, const double *speeds)
{
    size_t first = s->bench->rows_n;
    int code = add_kernels(s, speeds);
    code = code != 0 ? code : add_peers(s);
    code = code != 0 ? code : run_rounds(s);
    check_peers(s);
    for (int i = 0; i < s->entries_n && code == 0; i++)
        if (s->entries[i]->reps > 0)
            code = add_row(s, s->entries[i]);
    mla_bench_relate(s->bench, first);
    return code;
}

int mla_bench_measure(struct mla_bench *bench, const char *shape, const struct mla_case *test,
                      const double speeds[MLA_KERNELS_MAX])
{
    char error[MLA_CASE_ERROR_MAX];
    struct shape s = {.bench = bench, .name = shape, .test = test, .flops = mla_bench_flops(test)};
    double pages = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double bytes = (double)mla_case_bytes(test);
    if (bytes > 0.8 * pages) {
        printf("%-28s skipped: its tensors take %.1f GB of %.1f\n", shape, bytes / 1e9,
               pages / 1e9);
        return 0;
    }
    s.entries = calloc(ENTRIES_MAX, sizeof(struct entry *));
    if (s.entries == NULL || mla_tensors_make_plain(test, &s.tensors, error) != MLA_OK) {
        free(s.entries);
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench", "%s: %s", shape,
                                s.entries == NULL ? "out of memory" : error);
    }
    int code = measure(&s, speeds);
    for (int i = 0; i < s.jobs_n; i++)
        mla_peer_job_free(s.jobs[i]);
    for (int i = 0; i < s.entries_n; i++)
        free(s.entries[i]);
    free(s.entries);
    mla_tensors_free(s.tensors);
    return code;
}

int mla_bench_trial(struct mla_bench *bench, const char *line, double speeds[MLA_KERNELS_MAX])
{
    char error[MLA_CASE_ERROR_MAX];
    struct mla_case test;
    struct mla_tensors *tensors;
    const char *problem = mla_bench_shape_case(line, &test, error);
    if (problem != NULL || mla_tensors_make_plain(&test, &tensors, error) != MLA_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench", "trial: %s", error);
    for (size_t i = 0; i < bench->kernels.n; i++) {
        const struct mla_kernel_choice *choice = &bench->kernels.list[i];
        double seconds = -1;
        if (unsupported(choice->kernel, tensors) == NULL)
            for (int call = 0; call < 2; call++) /* the first warms up */
                seconds = call_kernel(bench, choice, tensors, "trial", 1);
        speeds[i] = seconds > 0 ? mla_bench_flops(&test) / seconds : 0;
    }
    mla_tensors_free(tensors);
    return 0;
}
