/* SPDX-License-Identifier: Apache-2.0
 *
 * faults_record.c - a trial that is done: its row in the store, and its lines for people.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/case_fields.h"
#include "fuzz/criteria.h"
#include "fuzz/mlacheck/faults.h"
#include "fuzz/record.h"

static const char *const role_names[MLA_ROLES_N] = {"canary", "control", "fault", "hidden"};

static size_t collect_catches(const struct mla_trial_result *r, struct mla_store_catch *catches)
{
    size_t n = 0, rules_n;
    const struct mla_criterion *rules = mla_criteria(&rules_n);
    for (int i = 0; i < MLA_DETECTORS_N; i++) {
        int64_t cases = r->detectors[i] == 0 && (r->detected >> i & 1u) != 0 ? 1 : r->detectors[i];
        if (cases > 0)
            catches[n++] = (struct mla_store_catch){false, mla_detector_name(i), cases};
    }
    for (size_t i = 0; i < rules_n; i++)
        if (r->rules[i] > 0)
            catches[n++] = (struct mla_store_catch){true, rules[i].name, r->rules[i]};
    return n;
}

int32_t mla_faults_store(struct mla_faults *f, const struct mla_faults_entry *e)
{
    const struct mla_trial_result *r = &e->attempt->result;
    bool killed = r->outcome == MLA_TRIAL_KILLED;
    struct mla_store_catch catches[MLA_DETECTORS_N + MLA_TRIAL_RULES_MAX];
    struct mla_store_case row;
    struct mla_case test;
    char error[MLA_CASE_ERROR_MAX];
    struct mla_store_trial stored = {.role = role_names[e->cell->role],
                                     .fault = e->cell->fault->name,
                                     .class = e->cell->fault->class,
                                     .op = mla_case_op_name(e->cell->op),
                                     .search = f->options.draws ? "random" : "guided",
                                     .trial = e->number,
                                     .seed = (int64_t)e->attempt->seed,
                                     .outcome = mla_trial_outcome_name(r->outcome),
                                     .executions = r->executions,
                                     .applied = r->applied,
                                     .cpu_seconds = r->cpu_seconds,
                                     .verdict = killed ? mla_verdict_name(r->verdict) : NULL,
                                     .relation = killed ? r->relation : NULL,
                                     .reason = killed ? r->reason : NULL,
                                     .surveyed = r->surveyed,
                                     .catches = catches,
                                     .catches_n = collect_catches(r, catches)};
    if (killed && mla_case_parse(r->line, strlen(r->line), &test, error) == MLA_OK) {
        mla_record_case(&test, r->line, &row);
        stored.testcase = &row;
    }
    return mla_store_trial(f->store, &stored);
}

void mla_faults_print_kill(const struct mla_faults_entry *e)
{
    char repro[MLA_REPRO_MAX], spec[128];
    const struct mla_trial_result *r = &e->attempt->result;
    snprintf(spec, sizeof spec, "fault:%s", e->cell->fault->name);
    printf("%s %s/%s %s after %" PRId64 " executions, %.3f s: %s%s%s\n  repro: %s\n",
           e->cell->role == MLA_ROLE_CONTROL ? "ACCUSED" : "KILLED", mla_case_op_name(e->cell->op),
           spec, mla_verdict_name(r->verdict), r->executions, r->cpu_seconds, r->relation,
           r->relation[0] == '\0' ? "" : ": ", r->reason,
           mla_record_repro(spec, r->line, false, repro));
}
