/* SPDX-License-Identifier: Apache-2.0
 *
 * target.c - the body of every fuzz target.
 */
#include "fuzz/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/alone.h"
#include "fuzz/guard.h"
#include "fuzz/judge.h"
#include "fuzz/kernels.h"
#include "fuzz/record.h"
#include "fuzz/relations.h"
#include "fuzz/search.h"
#include "fuzz/target_guidance.h"
#include "results/store.h"

#define FAMILIES_MAX 32
#define ID_DIGITS    12
#define DEADLY_MAX   1024
#define ALONE_MAX    5   /* failures of one process that are run again */
#define ALONE_CALL   10  /* seconds of a call there: whoever waits for it gives up sooner */
#define ALONE_ROOM   170 /* bytes of a reason that are kept before what is added */
#define FAILURES_MAX 100 /* rows and lines for one process: a broken kernel fails everywhere */

/* One process, one target, one thread: the engine's calling convention leaves no other place. */
static struct {
    bool ready;
    struct mla_kernel_list kernels;
    struct mla_store *store;
    /* Worst err/B stored so far, by kind of case. */
    double worst[MLA_OP_N][FAMILIES_MAX][MLA_REGION_N];
    int64_t failures_n;
    int64_t alone_n;   /* failures run again alone */
    const char *alone; /* this process is one of those: "all" or "chosen" relations */
    bool in_kernel;    /* a case is in flight */
    const char *spec;
    const char *since;             /* start of this hunt, ISO 8601 */
    char (*deadly)[ID_DIGITS + 1]; /* cases at which a worker of this hunt has died */
    size_t deadly_n;
} state;

/* A target that cannot work must not look like one that found nothing. */
static void give_up(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    fflush(stderr);
    if (state.store != NULL)
        (void)mla_store_inflight_end(state.store); /* not the case's doing */
    _exit(3); /* not exit: an engine would report that as a crash of the kernel */
}

/* At exit. A kernel that ends the process takes its case's note with it if the store is closed. */
static void close_store(void)
{
    if (state.in_kernel) {
        (void)mla_store_flush(state.store);
        _exit(1);
    }
    if (mla_store_close(state.store) != MLA_STORE_OK)
        fprintf(stderr, "the database could not be written to the end\n");
    state.store = NULL;
}

/* Remember the cases that ended a worker since the hunt began: running them again ends this one. */
static int collect_deadly(void *context, int columns_n, const char *const *names,
                          const char *const *values)
{
    const char *id = "", *kernel = "", *verdict = "", *last_seen = "";
    (void)context;
    for (int c = 0; c < columns_n; c++) {
        const char *value = values[c] == NULL ? "" : values[c];
        id = strcmp(names[c], "id") == 0 ? value : id;
        kernel = strcmp(names[c], "kernel") == 0 ? value : kernel;
        verdict = strcmp(names[c], "verdict") == 0 ? value : verdict;
        last_seen = strcmp(names[c], "last_seen") == 0 ? value : last_seen;
    }
    bool deadly = strcmp(verdict, "crash") == 0 || strcmp(verdict, "timeout") == 0;
    if (deadly && strcmp(kernel, mla_kernels_name(state.spec)) == 0 &&
        strcmp(last_seen, state.since) >= 0)
        snprintf(state.deadly[state.deadly_n++], ID_DIGITS + 1, "%s", id);
    return state.deadly_n == DEADLY_MAX;
}

static bool is_deadly(const struct mla_case *test)
{
    char id[MLA_CASE_ID_BYTES];
    if (state.deadly_n == 0)
        return false;
    mla_case_id(test, id);
    for (size_t i = 0; i < state.deadly_n; i++)
        if (memcmp(state.deadly[i], id, ID_DIGITS) == 0)
            return true;
    return false;
}

static void start(void)
{
    char error[MLA_CASE_ERROR_MAX];
    const char *spec = getenv("MLACHECK_KERNEL"), *db = getenv("MLACHECK_DB");
    const char *run = getenv("MLACHECK_RUN");
    const char *problem = mla_target_guidance_start();
    state.ready = true;
    state.alone = getenv(MLA_ALONE_VARIABLE);
    mla_guard_keep_heap();
    if (problem != NULL)
        give_up("environment", problem);
    if (mla_kernels_add(&state.kernels, spec == NULL ? "scalar" : spec, error, sizeof error) !=
        MLA_OK)
        give_up("MLACHECK_KERNEL", error);
    if (db == NULL)
        return;
    if (mla_store_open(db, &state.store, error, sizeof error) != MLA_STORE_OK)
        give_up("MLACHECK_DB", error);
    if (run == NULL || mla_store_join_run(state.store, strtoll(run, NULL, 10)) != MLA_STORE_OK)
        give_up("MLACHECK_RUN", "must be the id of a run in MLACHECK_DB");
    atexit(close_store);
    state.since = getenv("MLACHECK_SINCE");
    state.spec = state.kernels.list[0].spec;
    state.deadly = calloc(DEADLY_MAX, sizeof *state.deadly);
    if (state.since != NULL && state.deadly != NULL)
        mla_store_view(state.store, MLA_VIEW_FINDINGS, NULL, collect_deadly, NULL);
}

/* A row is kept for a fault, or where the worst error of its kind of case grew. */
static bool worth_a_row(const struct mla_case *test, const struct mla_verdict *verdict)
{
    double *worst = &state.worst[test->op][test->family % FAMILIES_MAX][test->region];
    if (mla_verdict_is_failure(verdict->kind))
        return state.failures_n <= FAILURES_MAX;
    if (!(verdict->max_ratio > *worst))
        return false;
    *worst = verdict->max_ratio;
    return true;
}

/*
 * Does the failure come of the case, or of what this process has called before? The second says
 * little to whoever repeats the case, unless a relation with calls of its own before shows it too.
 */
static void repeat_alone(const struct mla_case *test, struct mla_verdict *verdict)
{
    size_t n = strlen(verdict->reason);
    double seconds = mla_alone_seconds(getenv("MLACHECK_LIMIT"));
    if (state.store == NULL || state.alone_n++ >= ALONE_MAX ||
        mla_alone_run(test, false, seconds) != MLA_ALONE_PASSES)
        return;
    verdict->all_relations = mla_alone_run(test, true, seconds) == MLA_ALONE_FAILS;
    if (n > ALONE_ROOM)
        n = ALONE_ROOM;
    snprintf(verdict->reason + n, sizeof verdict->reason - n,
             verdict->all_relations
                 ? "; only after other calls in the same process, as its relations show"
                 : "; only after other calls in the same process: alone it passes");
}

static void keep(const struct mla_case *test, const char *spec, struct mla_verdict *verdict)
{
    bool failed = mla_verdict_is_failure(verdict->kind);
    if (state.alone != NULL)
        _exit(failed ? MLA_ALONE_FAILS : MLA_ALONE_PASSES);
    if (failed)
        repeat_alone(test, verdict);
    if (verdict->oracle_failed) {
        mla_record_print(stderr, test, spec, verdict);
        give_up("the oracle contradicted itself", "a fault of mlacheck, please report it");
    }
    if (failed && mla_target_guidance_excuses())
        return;
    state.failures_n += failed;
    if (failed && state.failures_n <= FAILURES_MAX)
        mla_record_print(stderr, test, spec, verdict);
    if (state.store == NULL) {
        if (failed)
            abort();
        return;
    }
    int32_t status = worth_a_row(test, verdict)
                         ? mla_record_store(state.store, test, spec, verdict)
                         : mla_record_tally(state.store, test, spec, verdict);
    if (status != MLA_STORE_OK)
        give_up("database", mla_store_message(state.store));
}

/* Run alone to see whether relations repeat a failure, as `mlacheck run` would make the calls. */
static bool asks_all(void)
{
    return state.alone != NULL && strcmp(state.alone, "all") == 0;
}

static uint32_t choose_relations(const struct mla_case *test)
{
    return asks_all() ? UINT32_MAX : mla_relations_choose(test);
}

/* From here until end_flight the death of this process is a finding on this case. */
static void begin_flight(const struct mla_case *test, const char *spec)
{
    bool dear = (choose_relations(test) & mla_relations_dear((enum mla_op)test->op)) != 0;
    char line[MLA_CASE_LINE_MAX], repro[MLA_REPRO_MAX];
    struct mla_store_case row;
    if (state.store == NULL)
        return;
    mla_case_format(test, line);
    mla_record_case(test, line, &row);
    mla_record_repro(spec, line, false, repro);
    if (dear)
        strncat(repro, " --relations", MLA_REPRO_MAX - 1 - strlen(repro));
    mla_store_inflight_begin(state.store, &row, mla_kernels_name(spec), repro);
}

static void end_flight(void)
{
    if (state.store != NULL)
        mla_store_inflight_end(state.store);
}

static void judge(struct mla_subject *subject, const struct mla_case *test,
                  const struct mla_kernel_choice *choice)
{
    struct mla_verdict verdict;
    struct mla_judge_options options = {.seconds_limit = asks_all() ? ALONE_CALL : 0,
                                        .oracle_threads = 1,
                                        .relations = choose_relations(test),
                                        .relation_rows = MLA_RELATION_ROWS,
                                        .row_tests = MLA_JUDGE_ROW_TESTS};
    begin_flight(test, choice->spec);
    state.in_kernel = true;
    mla_subject_judge(subject, choice->kernel, &options, &verdict);
    state.in_kernel = false;
    mla_target_guidance_learn(test, &verdict);
    keep(test, choice->spec, &verdict);
}

/* The end of a measurement is a success: not exit, which an engine reports as a crash. */
static void end_measurement(void)
{
    if (state.store != NULL)
        close_store();
    _exit(0);
}

int mla_target_run(const uint8_t *data, size_t size, enum mla_op op, bool reject)
{
    struct mla_case test;
    struct mla_subject *subject;
    char error[MLA_CASE_ERROR_MAX];
    if (!state.ready)
        start();
    if (size == 0) /* what an engine tries before its seeds: always the same case otherwise */
        return 0;
    mla_target_guidance_begin();
    if (!mla_target_guidance_draw(op, reject, &test))
        mla_case_decode(data, size, op, reject, &test);
    if (is_deadly(&test))
        return 0;
    begin_flight(&test, state.kernels.list[0].spec);
    if (mla_subject_make(&test, &subject, error) != MLA_OK) {
        end_flight();
        return 0; /* no memory: says nothing about the kernel */
    }
    for (size_t i = 0; i < state.kernels.n; i++)
        judge(subject, &test, &state.kernels.list[i]);
    mla_subject_free(subject);
    end_flight();
    if (mla_target_guidance_is_over())
        end_measurement();
    return 0;
}

static size_t emit(const struct mla_case *test, uint8_t *out, size_t room)
{
    char line[MLA_CASE_LINE_MAX];
    size_t n = mla_case_format(test, line);
    n = n < room ? n : room;
    memcpy(out, line, n);
    return n;
}

/* Plain builds have no engine: same bytes, same size. */
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    (void)data;
    (void)max_size;
    return size;
}

/* As the engine would change any input: a number of the line, mostly. */
static size_t mutate_bytes(uint8_t *data, size_t size, size_t max_size, enum mla_op op, bool reject,
                           struct mla_rng *rng)
{
    struct mla_case test;
    size = LLVMFuzzerMutate(data, size, max_size);
    mla_case_decode(data, size, op, reject, &test);
    mla_search_renew(&test, rng);
    return emit(&test, data, max_size);
}

size_t mla_target_mutate(uint8_t *data, size_t size, size_t max_size, unsigned int seed,
                         enum mla_op op, bool reject)
{
    struct mla_case test;
    struct mla_rng rng = {mla_number_mix(seed), 0};
    if (mla_target_guidance_is_random())
        return size;
    if (mla_rng_chance(&rng, 1, MLA_SEARCH_FRESH)) {
        mla_search_draw(&test, op, reject, &rng);
        return emit(&test, data, max_size);
    }
    mla_case_decode(data, size, op, reject, &test);
    if (mla_rng_chance(&rng, 1, 16))
        return mutate_bytes(data, emit(&test, data, max_size), max_size, op, reject, &rng);
    mla_search_vary(&test, NULL, &rng);
    return emit(&test, data, max_size);
}

size_t mla_target_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                        uint8_t *out, size_t out_size, unsigned int seed, enum mla_op op,
                        bool reject)
{
    struct mla_case test, other;
    struct mla_rng rng = {mla_number_mix(seed), 0};
    mla_case_decode(a, a_size, op, reject, &test);
    mla_case_decode(b, b_size, op, reject, &other);
    mla_search_vary(&test, &other, &rng);
    return emit(&test, out, out_size);
}
