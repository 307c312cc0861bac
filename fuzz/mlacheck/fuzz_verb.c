/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_verb.c - `mlacheck fuzz`: libFuzzer workers, one process each, all writing into one
 * database.
 *
 * A worker that dies inside a kernel leaves a note of its case beside the database; it becomes a
 * finding when the database is next opened, and the worker is started again for the time that is
 * left.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "fuzz/call.h"
#include "fuzz/kernels.h"
#include "fuzz/mlacheck/build.h"
#include "fuzz/mlacheck/fuzz_care.h"
#include "fuzz/mlacheck/fuzz_seeds.h"
#include "fuzz/mlacheck/options.h"
#include "fuzz/mlacheck/progress.h"
#include "fuzz/mlacheck/table.h"
#include "fuzz/number.h"
#include "results/report_text.h"

static const char help[] =
    "usage: mlacheck fuzz [--op ring|sparse|reject|all] [--time S] [--jobs N] [flags]\n\n"
    "  --op           what to fuzz (default all: both operations, and refusals for a fifth of the "
    "time)\n"
    "  --time S       seconds in all (default 60)\n"
    "  --jobs N       workers side by side (default 1)\n"
    "  --limit S      seconds one input may take before it is a hang (default 30)\n"
    "  --kernel NAME  kernel to fuzz (default scalar)\n"
    "  --set FILE     corpus file whose cases are the seeds (any number)\n"
    "  --seed S       of the engine (default 1)\n"
    "  --merge        merge the corpora afterwards (by itself only where one is large)\n"
    "  --db FILE      default results/mlacheck.db; corpora and logs go to FILE.fuzz\n"
    "  --report       write the HTML report beside the database afterwards (needs gnuplot)\n"
    "  --json         end with one JSON object of counts\n"
    "  --quiet        no progress on stderr\n\n"
    "example: mlacheck fuzz --op ring --time 600 --jobs 2 --kernel ./my_kernel.so\n";

#define RESTARTS_MAX  20  /* of one worker: a kernel that always dies is known by then */
#define SILENT_MAX    3   /* deaths in a row that are no finding: it cannot work */
#define FINDINGS_MAX  10  /* printed at the end */
#define GRACE_SECONDS 60  /* beyond its time a worker is killed */
#define PRUNE_SECONDS 600 /* between two prunings of the database */

struct phase {
    const char *op;
    double seconds;
};

struct worker {
    int number;
    struct phase phases[3];
    int phases_n, phase;
    pid_t pid;   /* 0: not running */
    double ends; /* of the phase */
    int restarts;
    int silent;   /* deaths since the last one with a case to show for it */
    bool overdue; /* killed by us for taking too long */
};

struct hunt {
    struct mla_options options;
    struct mla_kernel_list kernels;
    char folder[900]; /* <database>.fuzz */
    char programs[900];
    int64_t run_id;
    char since[32]; /* when it began, ISO 8601 UTC as in the store */
    double began;
    struct mla_progress progress;
    struct worker workers[256];
    bool failed; /* a worker could not work at all */
};

/* ---- workers ---- */

static void plan(struct hunt *hunt)
{
    const char *op = hunt->options.op == NULL ? "all" : hunt->options.op;
    double seconds = hunt->options.seconds;
    for (int i = 0; i < hunt->options.jobs; i++) {
        struct worker *w = &hunt->workers[i];
        w->number = i;
        if (strcmp(op, "all") != 0) {
            w->phases[w->phases_n++] = (struct phase){op, seconds};
            continue;
        }
        if (hunt->options.jobs == 1) {
            w->phases[w->phases_n++] = (struct phase){"ring", 0.4 * seconds};
            w->phases[w->phases_n++] = (struct phase){"sparse", 0.4 * seconds};
        } else {
            w->phases[w->phases_n++] =
                (struct phase){i % 2 == 0 ? "ring" : "sparse", 0.8 * seconds};
        }
        w->phases[w->phases_n++] = (struct phase){"reject", 0.2 * seconds};
    }
}

/* What an input may take, in the engine's whole seconds. */
static int unit_seconds(const struct hunt *hunt)
{
    return hunt->options.limit > 0 ? (int)(hunt->options.limit + 0.999) : 30;
}

static void environment(const struct hunt *hunt)
{
    char run[32], limit[32];
    snprintf(run, sizeof run, "%" PRId64, hunt->run_id);
    snprintf(limit, sizeof limit, "%d", unit_seconds(hunt));
    setenv("MLACHECK_LIMIT", limit, 1);
    setenv("MLACHECK_DB", hunt->options.db, 1);
    setenv("MLACHECK_RUN", run, 1);
    setenv("MLACHECK_SINCE", hunt->since, 1);
    setenv("MLACHECK_KERNEL", hunt->options.kernels_n > 0 ? hunt->options.kernels[0] : "scalar", 1);
}

/* In the child: log to a file, leave the terminal's process group, become the engine. */
static void become(const struct hunt *hunt, const struct worker *w, const char *op, double seconds)
{
    char program[1024], corpus[1024], log[1024], artifacts[1024], time_flag[64], seed_flag[64],
        unit_flag[64];
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    environment(hunt);
    snprintf(program, sizeof program, "%s/fuzz_%s", hunt->programs, op);
    snprintf(corpus, sizeof corpus, "%s/corpus-%s", hunt->folder, op);
    snprintf(log, sizeof log, "%s/%s-%d.log", hunt->folder, op, w->number);
    snprintf(artifacts, sizeof artifacts, "-artifact_prefix=%s/%s-", hunt->folder, op);
    snprintf(time_flag, sizeof time_flag, "-max_total_time=%d", (int)(seconds + 0.999));
    /* 0 would mean a random seed to the engine. */
    uint64_t seed = mla_number_at(hunt->options.seed, (uint64_t)w->number, (uint64_t)w->restarts,
                                  (uint64_t)w->phase);
    snprintf(seed_flag, sizeof seed_flag, "-seed=%" PRIu64, 1 + seed % 0x7fffffffu);
    snprintf(unit_flag, sizeof unit_flag, "-timeout=%d", unit_seconds(hunt));
    int fd = open(log, O_CREAT | O_WRONLY | O_APPEND, 0644);
    if (fd >= 0) {
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
    }
    execl(program, program, corpus, time_flag, seed_flag, unit_flag, artifacts, "-max_len=2048",
          "-len_control=0", "-rss_limit_mb=4096", "-print_final_stats=1", (char *)NULL);
    _exit(3);
}

static void start(struct hunt *hunt, struct worker *w)
{
    const struct phase *phase = &w->phases[w->phase];
    double now = mla_call_clock();
    if (w->ends == 0)
        w->ends = now + phase->seconds;
    double left = w->ends - now < 1 ? 1 : w->ends - now;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become(hunt, w, phase->op, left);
    w->pid = pid < 0 ? 0 : pid;
    hunt->failed = hunt->failed || pid < 0;
}

static void next_phase(struct worker *w)
{
    w->phase++;
    w->ends = 0;
    w->restarts = 0;
    w->silent = 0;
}

/* Did the process die with a case in flight? Its note is still there then. */
static bool left_note(const struct hunt *hunt, pid_t pid)
{
    char path[1100];
    snprintf(path, sizeof path, "%s-inflight-%ld", hunt->options.db, (long)pid);
    return access(path, F_OK) == 0;
}

/* Store what the note of a dead worker says: a finding, unless somebody else killed it (out of memory). */
static void recover(struct hunt *hunt, const struct worker *w, bool hang, bool by_others)
{
    char message[512];
    struct mla_store *store;
    const struct mla_store_death death = {w->pid, hang ? "timeout" : "crash",
                                          hang ? "the input took longer than --limit"
                                               : "the worker died while this case ran"},
                                 unknown = {w->pid, "unjudged", MLA_STORE_INTERRUPTED};
    mla_progress_clear(&hunt->progress);
    printf("worker %d (%s) %s; see %s/%s-%d.log\n", w->number, w->phases[w->phase].op,
           hang        ? "took too long on one input"
           : by_others ? "was killed from outside"
                       : "died",
           hunt->folder, w->phases[w->phase].op, w->number);
    if (mla_store_open_after(hunt->options.db, by_others ? &unknown : &death, &store, message,
                             sizeof message) == MLA_STORE_OK) {
        mla_options_print_notice(store, "fuzz");
    } else {
        fprintf(stderr, "mlacheck fuzz: --db: %s\n", message);
        hunt->failed = true;
    }
    mla_store_close(store);
}

/* What it was to do has not been done: the hunt is no success, and ends. */
static void fail(struct hunt *hunt, struct worker *w, const char *how)
{
    mla_progress_clear(&hunt->progress);
    fprintf(stderr, "mlacheck fuzz: worker %d %s; see %s/%s-%d.log\n", w->number, how, hunt->folder,
            w->phases[w->phase].op, w->number);
    hunt->failed = true;
    w->phase = w->phases_n;
}

/*
 * A worker has ended. Exit codes: 0 its time is up, 3 it could not work, 70 an input took too long. A
 * note left behind says more than the code: a kernel may end the process with any. Without one, nobody
 * is to blame, which is no reason to go on for ever, nor to pass for a hunt that found nothing.
 */
static void bury(struct hunt *hunt, struct worker *w, const siginfo_t *end)
{
    int code = end->si_code == CLD_EXITED ? end->si_status : -1;
    bool killed = end->si_code == CLD_KILLED && end->si_status == SIGKILL;
    bool noted = left_note(hunt, w->pid);
    if (noted || (code != 0 && code != 3))
        recover(hunt, w, code == 70 || w->overdue, killed && !w->overdue);
    waitpid(w->pid, NULL, 0); /* until now nobody else took its note for that of one who vanished */
    w->pid = 0;
    w->overdue = false;
    if (code == 0 && !noted) {
        next_phase(w);
        return;
    }
    if (code == 3 && !noted) {
        fail(hunt, w, "could not work");
        return;
    }
    w->restarts++;
    w->silent = noted ? 0 : w->silent + 1;
    bool over = w->ends - mla_call_clock() < 2;
    if (!mla_interrupted && (w->silent >= SILENT_MAX || (over && w->silent == w->restarts))) {
        fail(hunt, w, "ended again and again, or at its end, without a case to show for it");
        return;
    }
    if (w->restarts > RESTARTS_MAX)
        printf("worker %d (%s) gave up after %d deaths\n", w->number, w->phases[w->phase].op,
               w->restarts);
    if (over || w->restarts > RESTARTS_MAX)
        next_phase(w);
}

static bool running(struct hunt *hunt)
{
    bool any = false;
    for (int i = 0; i < hunt->options.jobs; i++) {
        struct worker *w = &hunt->workers[i];
        siginfo_t end = {.si_pid = 0};
        if (w->pid != 0 && waitid(P_PID, (id_t)w->pid, &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            end.si_pid == w->pid)
            bury(hunt, w, &end);
        if (w->pid == 0 && w->phase < w->phases_n && !mla_interrupted && !hunt->failed)
            start(hunt, w);
        if (w->pid != 0 && mla_call_clock() > w->ends + GRACE_SECONDS) {
            w->overdue = true;
            kill(w->pid, SIGKILL);
        }
        any = any || w->pid != 0;
    }
    return any;
}

static void work(struct hunt *hunt)
{
    bool told = false;
    double pruned = mla_call_clock();
    mla_progress_begin(&hunt->progress, hunt->options.quiet);
    while (running(hunt)) {
        mla_progress_say(&hunt->progress, mla_call_clock() - hunt->began, hunt->options.seconds,
                         "s", "");
        if (mla_call_clock() - pruned > PRUNE_SECONDS) {
            mla_fuzz_prune(&hunt->options);
            pruned = mla_call_clock();
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        for (int i = 0; (mla_interrupted || hunt->failed) && !told && i < hunt->options.jobs; i++)
            if (hunt->workers[i].pid != 0)
                kill(hunt->workers[i].pid, SIGUSR1); /* the engine ends after the input at hand */
        told = mla_interrupted || hunt->failed;
    }
    mla_progress_clear(&hunt->progress);
}

/* ---- set-up and report ---- */

static int find_programs(struct hunt *hunt)
{
    char self[800], program[1024];
    static const char *const names[] = {"ring", "sparse", "reject"};
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "fuzz", "cannot find this program's folder");
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(hunt->programs, sizeof hunt->programs, "%s", self);
    for (size_t i = 0; i < 3; i++) {
        snprintf(program, sizeof program, "%s/fuzz_%s", self, names[i]);
        if (access(program, X_OK) != 0)
            return mla_options_fail(MLA_EXIT_ENVIRONMENT, "fuzz",
                                    "%s is missing: build with the preset `fuzz` (clang with "
                                    "libFuzzer), or use scripts/fuzz",
                                    program);
    }
    return 0;
}

static int make_folders(struct hunt *hunt)
{
    static const char *const names[] = {"", "/corpus-ring", "/corpus-sparse", "/corpus-reject"};
    char path[1000];
    snprintf(hunt->folder, sizeof hunt->folder, "%s.fuzz", hunt->options.db);
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s%s", hunt->folder, names[i]);
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            return mla_options_fail(MLA_EXIT_ENVIRONMENT, "fuzz", "%s: cannot be made: %s", path,
                                    strerror(errno));
    }
    return 0;
}

static int begin(struct hunt *hunt, int argc, char **argv)
{
    const char *spec = hunt->options.kernels_n > 0 ? hunt->options.kernels[0] : "scalar";
    char *kernels = mla_build_kernels(&hunt->kernels);
    if (kernels == NULL)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "fuzz", "out of memory");
    struct mla_store *store = mla_options_store(&hunt->options, "fuzz");
    if (store == NULL) {
        free(kernels);
        return MLA_EXIT_ENVIRONMENT;
    }
    int code = 0;
    time_t now = time(NULL);
    struct tm utc;
    strftime(hunt->since, sizeof hunt->since, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    hunt->began = mla_call_clock();
    if (mla_build_begin_run(store, argc, argv, kernels, (int64_t)hunt->options.seed,
                            &hunt->run_id) != MLA_STORE_OK)
        code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "fuzz", "%s", mla_store_message(store));
    mla_store_close(store);
    free(kernels);
    if (code == 0)
        printf("mlacheck fuzz, run %" PRId64 ": %g s, %" PRId64 " jobs, kernel %s, seed %" PRIu64
               "\n",
               hunt->run_id, hunt->options.seconds, hunt->options.jobs, spec, hunt->options.seed);
    return code;
}

/* Sums of the summary view's columns over its rows. */
struct sums {
    int64_t cases, passed, failed, improbable, unjudged, unsupported, refused, crashed;
};

static int add_row(void *context, int columns_n, const char *const *names,
                   const char *const *values)
{
    struct sums *sums = context;
    const struct {
        const char *name;
        int64_t *sum;
    } columns[] = {{"cases", &sums->cases},       {"passed", &sums->passed},
                   {"failed", &sums->failed},     {"improbable", &sums->improbable},
                   {"unjudged", &sums->unjudged}, {"unsupported", &sums->unsupported},
                   {"refused", &sums->refused},   {"crashed", &sums->crashed}};
    for (int c = 0; c < columns_n; c++)
        for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++)
            if (values[c] != NULL && strcmp(names[c], columns[k].name) == 0)
                *columns[k].sum += strtoll(values[c], NULL, 10);
    return 0;
}

/* What was found or met again since the hunt began, as a person can use it. */
struct finding_printer {
    const char *since;
    const char *kernel; /* its name begins with this */
    int n;
};

static int print_finding(void *context, int columns_n, const char *const *names,
                         const char *const *values)
{
    struct finding_printer *p = context;
    const char *text[5] = {"", "", "", "", ""};
    static const char *const wanted[5] = {"kernel", "verdict", "reason", "repro", "last_seen"};
    for (int c = 0; c < columns_n; c++)
        for (int k = 0; k < 5; k++)
            if (strcmp(names[c], wanted[k]) == 0 && values[c] != NULL)
                text[k] = values[c];
    if (strcmp(text[4], p->since) < 0 || strncmp(text[0], p->kernel, strlen(p->kernel)) != 0)
        return 0;
    static const char *const before[] = {"  ", " ", ": ", "\n    repro: "};
    for (int k = 0; k < 4; k++) {
        fputs(before[k], stdout);
        mla_text_plain(stdout, text[k]);
    }
    putchar('\n');
    return ++p->n == FINDINGS_MAX;
}

static int report(struct hunt *hunt)
{
    char key[32];
    struct sums n = {0};
    struct mla_store *store = mla_options_store(&hunt->options, "fuzz");
    if (store == NULL)
        return MLA_EXIT_ENVIRONMENT;
    snprintf(key, sizeof key, "%" PRId64, hunt->run_id);
    mla_store_join_run(store, hunt->run_id);
    mla_store_end_run(store);
    mla_store_view(store, MLA_VIEW_SUMMARY, key, add_row, &n);
    mla_table_print(stdout, store, MLA_VIEW_SUMMARY, key);
    int64_t faults = n.failed + n.improbable + n.crashed;
    if (faults > 0) {
        struct finding_printer printer = {
            hunt->since,
            mla_kernels_name(hunt->options.kernels_n > 0 ? hunt->options.kernels[0] : "scalar"), 0};
        printf("findings (the first %d; all of them: mlacheck list findings):\n", FINDINGS_MAX);
        mla_store_view(store, MLA_VIEW_FINDINGS, NULL, print_finding, &printer);
    }
    int64_t judged = n.passed + n.refused + faults;
    double seconds = mla_call_clock() - hunt->began;
    printf("%" PRId64 " executions judged in %.0f s x %" PRId64 " jobs (%.0f a second and job), "
           "%" PRId64 " faults, %" PRId64 " unjudged\n",
           judged, seconds, hunt->options.jobs,
           (double)judged / seconds / (double)hunt->options.jobs, faults, n.unjudged);
    if (hunt->options.json)
        printf("{\"cases\":%" PRId64 ",\"judged\":%" PRId64 ",\"passed\":%" PRId64
               ",\"failed\":%" PRId64 ",\"improbable\":%" PRId64 ",\"unjudged\":%" PRId64
               ",\"refused\":%" PRId64 ",\"crashed\":%" PRId64 "}\n",
               n.cases, judged, n.passed, n.failed, n.improbable, n.unjudged, n.refused, n.crashed);
    mla_store_close(store);
    if (faults > 0)
        return MLA_EXIT_FAULT;
    if (hunt->failed)
        return MLA_EXIT_ENVIRONMENT;
    if (mla_interrupted)
        return MLA_EXIT_INTERRUPTED;
    return judged == 0 ? MLA_EXIT_NOTHING : MLA_EXIT_PASSED;
}

static int check(const struct mla_options *o, struct mla_kernel_list *kernels)
{
    char error[1024];
    const char *spec = o->kernels_n > 0 ? o->kernels[0] : "scalar";
    if (o->words_n > 0)
        return mla_options_fail(MLA_EXIT_USAGE, "fuzz", "unexpected word '%s'", o->words[0]);
    if (o->kernels_n > 1)
        return mla_options_fail(MLA_EXIT_USAGE, "fuzz", "--kernel may be given once");
    if (mla_kernels_add(kernels, spec, error, sizeof error) != MLA_OK)
        return mla_options_fail(mla_kernels_is_path(spec) ? MLA_EXIT_ENVIRONMENT : MLA_EXIT_USAGE,
                                "fuzz", "--kernel: %s", error);
    size_t skipped = 0;
    for (size_t i = 0; i < kernels->n; i++)
        if (!mla_kernel_is_usable(kernels->list[i].kernel)) {
            printf("skipped %s: not usable on this CPU\n", kernels->list[i].spec);
            skipped++;
        }
    return skipped < kernels->n
               ? 0
               : mla_options_fail(MLA_EXIT_NOTHING, "fuzz",
                                  "--kernel '%s': nothing to run on this CPU", spec);
}

int mla_verb_fuzz(int argc, char **argv)
{
    static struct hunt hunt;
    int code = mla_options_parse(&hunt.options, "fuzz", "ksoSdtljJMEqh", argc, argv);
    if (code != 0 || hunt.options.help) {
        if (code == 0)
            fputs(help, stdout);
        return code;
    }
    if (hunt.options.op != NULL && strcmp(hunt.options.op, "oracle") == 0)
        return mla_options_fail(MLA_EXIT_USAGE, "fuzz",
                                "--op 'oracle': must be ring, sparse, reject or all");
    hunt.options.jobs = hunt.options.jobs > 0 ? hunt.options.jobs : 1;
    if (hunt.options.seconds <= 0)
        hunt.options.seconds = 60;
    code = check(&hunt.options, &hunt.kernels);
    code = code != 0 ? code : find_programs(&hunt);
    code = code != 0 ? code : mla_fuzz_seeds(&hunt.options, NULL);
    code = code != 0 ? code : begin(&hunt, argc, argv);
    code = code != 0 ? code : make_folders(&hunt);
    code = code != 0 ? code : mla_fuzz_seeds(&hunt.options, hunt.folder);
    if (code != 0)
        return code;
    fflush(stdout);
    plan(&hunt);
    work(&hunt);
    mla_fuzz_merge(&hunt.options, hunt.programs, hunt.folder);
    code = report(&hunt);
    mla_fuzz_prune(&hunt.options);
    if (hunt.options.report)
        (void)mla_report_after(&hunt.options); /* says why it cannot; what was found stands */
    return code;
}
