/* SPDX-License-Identifier: Apache-2.0
 *
 * faults_verb.c - `mlacheck faults`: what the harness itself is worth, in planted faults.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/call.h"
#include "fuzz/criteria.h"
#include "fuzz/mlacheck/build.h"
#include "fuzz/mlacheck/faults.h"
#include "fuzz/number.h"

static const char help[] =
    "usage: mlacheck faults [flags]\n\n"
    "Hunts every planted fault on every operation it is planted in, from nothing, and prints the\n"
    "kill matrix: fault x check x published rule, with the median executions and processor seconds "
    "to\n"
    "the kill. Canaries must die first, or the run is void. Honest controls may not be accused.\n\n"
    "  --trials N         searches for each fault, each from another seed (default 1)\n"
    "  --time S           seconds in all (default 600); a run ends earlier when all faults are "
    "dead\n"
    "  --random           fresh draws only, without feedback\n"
    "  --jobs N           processes at once (default: the processors)\n"
    "  --seed S           default 1\n"
    "  --kernel fault:NAME|GLOB   only these faults and controls\n"
    "  --op ring|sparse   only this operation (default all)\n"
    "  --limit S          seconds one case may take before it is a hang (default 20)\n"
    "  --db FILE          default results/mlacheck.db\n"
    "  --json             end with one JSON object\n"
    "  --verbose          the case of every kill, with the line that repeats it\n"
    "  --quiet            no progress on stderr\n\n"
    "example: mlacheck faults --trials 5 --time 600 --kernel 'fault:causal*'\n";

/* ---- input ---- */

static int check_options(struct mla_faults *f)
{
    struct mla_options *o = &f->options;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (o->words_n > 0)
        return mla_options_fail(MLA_EXIT_USAGE, "faults", "unexpected word '%s'", o->words[0]);
    if (o->op != NULL && (strcmp(o->op, "reject") == 0 || strcmp(o->op, "oracle") == 0))
        return mla_options_fail(MLA_EXIT_USAGE, "faults", "--op '%s': must be ring, sparse or all",
                                o->op);
    o->number = o->number < 0 ? 1 : o->number;
    o->seconds = o->seconds > 0 ? o->seconds : 600;
    o->jobs = o->jobs > 0 ? o->jobs : processors > 0 && processors <= 256 ? processors : 2;
    return o->number <= 1000
               ? 0
               : mla_options_fail(MLA_EXIT_USAGE, "faults", "--trials: must be at most 1000");
}

static int read_kernels(struct mla_faults *f)
{
    char error[1024];
    int n = f->options.kernels_n;
    for (int i = 0; i < (n == 0 ? 1 : n); i++) {
        const char *spec = n == 0 ? "fault:*" : f->options.kernels[i];
        if (strncmp(spec, "fault:", strlen("fault:")) != 0)
            return mla_options_fail(MLA_EXIT_USAGE, "faults", "--kernel '%s': must be fault:NAME",
                                    spec);
        if (mla_kernels_add(&f->kernels, spec, error, sizeof error) != MLA_OK)
            return mla_options_fail(MLA_EXIT_USAGE, "faults", "--kernel: %s", error);
    }
    return 0;
}

/* ---- cells ---- */

static bool is_chosen(const struct mla_faults *f, const struct mla_fault *fault)
{
    for (size_t i = 0; i < f->kernels.n; i++)
        if (f->kernels.list[i].kernel == fault->kernel)
            return true;
    return false;
}

/* A function of the fault's name, not of its place: neither the table's order nor a filter changes what
 * is drawn. */
static uint64_t seed_of(const struct mla_faults *f, const struct mla_faults_cell *cell,
                        int64_t trial)
{
    uint64_t name = 0;
    for (const char *c = cell->fault->name; *c != '\0'; c++)
        name = mla_number_mix(name ^ (unsigned char)*c);
    uint64_t key = mla_number_at(f->options.seed, name, (uint64_t)cell->op, (uint64_t)trial);
    return key >> 1; /* fits the database's integers */
}

static bool add_cell(struct mla_faults *f, const struct mla_fault *fault, enum mla_faults_role role,
                     int32_t op)
{
    bool once = role == MLA_ROLE_CANARY || role == MLA_ROLE_CONTROL;
    struct mla_faults_cell *cell = &f->cells[f->cells_n];
    *cell = (struct mla_faults_cell){
        .fault = fault, .role = role, .op = op, .attempts_n = once ? 1 : f->options.number};
    cell->attempts = calloc((size_t)cell->attempts_n, sizeof *cell->attempts);
    if (cell->attempts == NULL)
        return false;
    for (int64_t t = 0; t < cell->attempts_n; t++)
        cell->attempts[t].seed = seed_of(f, cell, t);
    f->cells_n++;
    return true;
}

/* The rows of a table that are chosen and play this role. */
static bool add_table(struct mla_faults *f, const struct mla_fault *table, size_t n,
                      enum mla_faults_role role)
{
    const char *op = f->options.op == NULL ? "all" : f->options.op;
    bool wanted[MLA_OP_N] = {
        [MLA_OP_RING] = strcmp(op, "sparse") != 0, [MLA_OP_SPARSE] = strcmp(op, "ring") != 0};
    for (size_t i = 0; i < n; i++) {
        bool hidden = table[i].hidden != NULL;
        bool canary = role == MLA_ROLE_CANARY;
        if (hidden != (role == MLA_ROLE_HIDDEN) || (!canary && !is_chosen(f, &table[i])))
            continue;
        for (int k = 0; k < MLA_OP_N; k++)
            if ((table[i].operations >> k & 1u) != 0 && wanted[k] &&
                !add_cell(f, &table[i], role, k))
                return false;
    }
    return true;
}

static int make_cells(struct mla_faults *f)
{
    size_t faults_n, controls_n, canaries_n;
    const struct mla_fault *faults = mla_faults(&faults_n);
    const struct mla_fault *controls = mla_fault_controls(&controls_n);
    const struct mla_fault *canaries = mla_fault_canaries(&canaries_n);
    f->cells = calloc(MLA_OP_N * (faults_n + controls_n + canaries_n), sizeof *f->cells);
    if (f->cells == NULL || !add_table(f, canaries, canaries_n, MLA_ROLE_CANARY) ||
        !add_table(f, controls, controls_n, MLA_ROLE_CONTROL) ||
        !add_table(f, faults, faults_n, MLA_ROLE_FAULT) ||
        !add_table(f, faults, faults_n, MLA_ROLE_HIDDEN))
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "faults", "out of memory");
    size_t rules_n;
    (void)mla_criteria(&rules_n);
    if (rules_n > MLA_TRIAL_RULES_MAX)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "faults", "more than %d published rules",
                                MLA_TRIAL_RULES_MAX);
    return 0;
}

/* ---- the run ---- */

static int begin(struct mla_faults *f, int argc, char **argv)
{
    int64_t id;
    const char *kernels = f->options.kernels_n > 0 ? f->options.kernels[0] : "fault:*";
    f->store = mla_options_store(&f->options, "faults");
    if (f->store == NULL)
        return MLA_EXIT_ENVIRONMENT;
    if (mla_build_begin_run(f->store, argc, argv, kernels, (int64_t)f->options.seed, &id) !=
        MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "faults", "%s", mla_store_message(f->store));
    printf("mlacheck faults, run %" PRId64 ": %zu kernels on their operations, %" PRId64
           " trials, %g s, %" PRId64 " jobs, seed %" PRIu64 ", %s\n",
           id, f->kernels.n, f->options.number, f->options.seconds, f->options.jobs,
           f->options.seed, f->options.draws ? "random draws" : "guided search");
    fflush(stdout);
    f->began = mla_call_clock();
    return 0;
}

static int exit_code(const struct mla_faults_totals *t, bool died)
{
    if (!died)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "faults",
                                "a canary lives: this run says nothing");
    if (t->troubled + t->oracle_failed > 0)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "faults",
                                "%" PRId64 " trials could not work, and in %" PRId64
                                " cases the oracle contradicted itself",
                                t->troubled, t->oracle_failed);
    if (t->accused + t->hidden_killed + t->unmarked > 0)
        return MLA_EXIT_FAULT;
    if (mla_interrupted)
        return MLA_EXIT_INTERRUPTED;
    if (t->idle > 0)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "faults",
                                "%" PRId64 " honest controls were not judged on every operation",
                                t->idle);
    if (t->killed < t->faults)
        return MLA_EXIT_FAULT;
    return t->faults + t->honest + t->hidden == 0 ? MLA_EXIT_NOTHING : MLA_EXIT_PASSED;
}

static int finish(struct mla_faults *f, bool died)
{
    struct mla_faults_totals totals = mla_faults_total(f);
    if (f->code != 0)
        return f->code;
    if (mla_build_end_run(f->store, !mla_interrupted) != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "faults", "%s", mla_store_message(f->store));
    if (died)
        mla_faults_print(f, &totals);
    if (f->options.json)
        mla_faults_print_json(f, &totals, died);
    return exit_code(&totals, died);
}

static void free_cells(struct mla_faults *f)
{
    for (size_t i = 0; i < f->cells_n; i++)
        free(f->cells[i].attempts);
    free(f->cells);
}

int mla_verb_faults(int argc, char **argv)
{
    static struct mla_faults f; /* large, and one a process */
    memset(&f, 0, sizeof f);
    int code = mla_options_parse(&f.options, "faults", "kADtjSoldJvqh", argc, argv);
    if (code != 0 || f.options.help) {
        if (code == 0)
            fputs(help, stdout);
        return code;
    }
    code = check_options(&f);
    code = code != 0 ? code : read_kernels(&f);
    code = code != 0 ? code : make_cells(&f);
    code = code != 0 ? code : begin(&f, argc, argv);
    if (code == 0) {
        bool died = mla_faults_hunt(&f);
        code = finish(&f, died);
    }
    free_cells(&f);
    if (mla_store_close(f.store) != MLA_STORE_OK)
        code =
            mla_options_fail(MLA_EXIT_ENVIRONMENT, "faults", "the database could not be written");
    return code;
}
