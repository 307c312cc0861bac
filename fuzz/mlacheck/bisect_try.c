/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect_try.c - one try: one kernel judged once on one case.
 *
 * Each in a forked process, with the harness's own functions. A plug-in is never unloaded, and two builds
 * of one project share what the loader makes unique and what their constructors leave behind: a process
 * that has loaded one commit is no fair judge of the next. Starting this program anew instead would do as
 * well, but its answer would have to be read back from its text, and text has no place for a fingerprint.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/call.h"
#include "fuzz/judge.h"
#include "fuzz/kernels.h"
#include "fuzz/mlacheck/bisect.h"
#include "fuzz/relations.h"

#define LIMIT      60.0   /* seconds of one call, as `run` has it */
#define LIMIT_SLOW 3600.0 /* of a slow case */
/* Row-energy tests are granted for so many tries, so that a whole search accuses an honest kernel with
 * the chance that `run` grants one verdict. */
#define TRIES_MOST 1000.0

/* ---- --where ---- */

#define RATIO_NAME "max_err_ratio" /* of the verdict: elements and statistics */

static bool figure_of(const struct mla_verdict *verdict, const char *name, double *value)
{
    struct mla_metrics_figure figure;
    if (verdict->elements_n == 0)
        return false;
    *value = verdict->max_ratio;
    if (strcmp(name, RATIO_NAME) == 0)
        return true;
    for (size_t i = 0; mla_metrics_figure(&verdict->metrics, i, &figure); i++)
        if (strcmp(name, figure.name) == 0) {
            *value = figure.value;
            return verdict->metrics.elements_n > 0;
        }
    return false;
}

static bool is_metric(const char *name)
{
    static const struct mla_verdict any = {.elements_n = 1, .metrics = {.elements_n = 1}};
    double value;
    return figure_of(&any, name, &value);
}

static const char *list_metrics(char *error, size_t error_bytes)
{
    static const struct mla_metrics any;
    struct mla_metrics_figure figure;
    snprintf(error, error_bytes, "FIGURE>NUMBER (or >=, <, <=) with one of " RATIO_NAME);
    for (size_t i = 0; mla_metrics_figure(&any, i, &figure); i++) {
        size_t n = strlen(error);
        snprintf(error + n, error_bytes - n, " %s", figure.name);
    }
    return error;
}

const char *mla_bisect_condition_parse(const char *text, struct mla_bisect_condition *condition,
                                       char *error, size_t error_bytes)
{
    char *end;
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    const char *op = text + n + strspn(text + n, " ");
    size_t op_n = strspn(op, "<>=");
    bool ok = n > 0 && n < sizeof condition->metric && (op[0] == '<' || op[0] == '>') &&
              (op_n == 1 || (op_n == 2 && op[1] == '='));
    if (!ok)
        return list_metrics(error, error_bytes);
    snprintf(condition->metric, sizeof condition->metric, "%.*s", (int)n, text);
    snprintf(condition->op, sizeof condition->op, "%.*s", (int)op_n, op);
    condition->number = strtod(op + op_n, &end);
    ok = is_metric(condition->metric) && end != op + op_n && *end == '\0' &&
         !isnan(condition->number);
    return ok ? NULL : list_metrics(error, error_bytes);
}

/* A figure that is no number is bad whatever is asked of it. */
static bool holds(const struct mla_bisect_condition *c, double value)
{
    bool equal = c->op[1] == '=' && value == c->number;
    return isnan(value) || equal || (c->op[0] == '>' ? value > c->number : value < c->number);
}

/* ---- in the child ---- */

static struct mla_try nothing(const char *text)
{
    struct mla_try answer = {.end = MLA_TRY_NOTHING};
    snprintf(answer.text, sizeof answer.text, "%s", text);
    return answer;
}

static double limit_of(const struct mla_bisect *b, const struct mla_case *test)
{
    return b->options.limit > 0 ? b->options.limit : test->slow ? LIMIT_SLOW : LIMIT;
}

static struct mla_try try_bits(const struct mla_bisect *b, const struct mla_kernel *kernel,
                               const struct mla_case *test)
{
    struct mla_tensors *tensors;
    struct mla_call call;
    struct mla_try answer = {.end = MLA_TRY_GOOD};
    char error[MLA_CASE_ERROR_MAX];
    uint64_t hash = 0;
    if (mla_tensors_make(test, 0, &tensors, error) != MLA_OK)
        return nothing(error);
    mla_call_make(kernel, tensors, limit_of(b, test), &call);
    if (call.end != MLA_CALL_RETURNED || call.status != MLA_OK) {
        snprintf(error, sizeof error, "no output: %.400s",
                 call.end == MLA_CALL_CRASHED     ? "it crashed"
                 : call.end == MLA_CALL_TIMED_OUT ? "it took too long"
                 : call.end == MLA_CALL_NOT_MADE  ? "no process"
                                                  : call.message);
        return nothing(error);
    }
    for (size_t i = 0; i < tensors->n; i++)
        if (tensors->list[i].role == MLA_TENSOR_OUTPUT)
            hash = mla_number_mix(hash ^ mla_tensor_hash(&tensors->list[i]));
    snprintf(answer.bits, sizeof answer.bits, "%016" PRIx64, hash);
    snprintf(answer.text, sizeof answer.text, "output bits %s", answer.bits);
    if (b->reference[0] != '\0' && strcmp(b->reference, answer.bits) != 0)
        answer.end = MLA_TRY_BAD;
    return answer;
}

static void describe(const struct mla_verdict *v, char *text, size_t text_bytes)
{
    bool has_element = v->element[0] != '\0' && v->relation[0] == '\0' && v->elements_n > 0;
    snprintf(text, text_bytes, "%s", mla_verdict_name(v->kind));
    size_t n = strlen(text);
    if (has_element)
        snprintf(text + n, text_bytes - n, " err/bound=%.3g at %s", v->max_ratio, v->element);
    n = strlen(text);
    if (v->reason[0] != '\0')
        snprintf(text + n, text_bytes - n, ": %s", v->reason);
}

static struct mla_try try_verdict(const struct mla_bisect *b, const struct mla_kernel *kernel,
                                  const struct mla_case *test)
{
    static struct mla_verdict verdict;
    const struct mla_options *o = &b->options;
    struct mla_subject *subject;
    struct mla_try answer = {.end = MLA_TRY_GOOD};
    char error[MLA_CASE_ERROR_MAX];
    double value;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t cheap = test->slow ? 0 : mla_relations_cheap((enum mla_op)test->op);
    struct mla_judge_options judge = {.seconds_limit = limit_of(b, test),
                                      .oracle_threads = processors < 1 ? 1 : (int)processors,
                                      .plain_oracle = o->plain_oracle,
                                      .no_oracle = o->no_oracle,
                                      .row_tests = 1 + TRIES_MOST * mla_judge_row_tests(test),
                                      .relations = !o->relations      ? 0
                                                   : o->all_relations ? UINT32_MAX
                                                                      : cheap};
    if (mla_subject_make(test, &subject, error) != MLA_OK)
        return nothing(error);
    mla_subject_judge(subject, kernel, &judge, &verdict);
    describe(&verdict, answer.text, sizeof answer.text);
    bool failed = mla_verdict_is_failure(verdict.kind);
    if (b->condition.metric[0] != '\0') {
        if (!figure_of(&verdict, b->condition.metric, &value))
            return nothing(answer.text);
        failed = holds(&b->condition, value);
        snprintf(answer.text, sizeof answer.text, "%s=%.6g", b->condition.metric, value);
    } else if (!failed && verdict.kind != MLA_VERDICT_PASS && verdict.kind != MLA_VERDICT_REFUSED) {
        answer.end = MLA_TRY_NOTHING;
        return answer;
    }
    answer.end = failed ? MLA_TRY_BAD : MLA_TRY_GOOD;
    return answer;
}

static struct mla_try try_here(const struct mla_bisect *b, const char *spec,
                               const struct mla_case *test)
{
    static struct mla_kernel_list kernels;
    char error[1024];
    if (mla_kernels_add(&kernels, spec, error, sizeof error) != MLA_OK)
        return nothing(error);
    if (kernels.n != 1) {
        snprintf(error, sizeof error, "%zu kernels: name one with --kernel", kernels.n);
        return nothing(error);
    }
    if (!mla_kernel_is_usable(kernels.list[0].kernel))
        return nothing("not usable on this CPU");
    return strcmp(b->question, "bits") == 0 ? try_bits(b, kernels.list[0].kernel, test)
                                            : try_verdict(b, kernels.list[0].kernel, test);
}

/* What a plug-in prints is not ours; it is shown with --verbose. */
static void work(const struct mla_bisect *b, const char *spec, const struct mla_case *test, int end,
                 pid_t parent)
{
    int null = open("/dev/null", O_WRONLY);
    if (null >= 0)
        dup2(b->options.verbose ? STDERR_FILENO : null, STDOUT_FILENO);
    if (null >= 0 && !b->options.verbose)
        dup2(null, STDERR_FILENO);
    mla_call_seclude(end, parent);
    struct mla_try answer = try_here(b, spec, test);
    ssize_t sent = write(3, &answer, sizeof answer); /* less than a pipe takes at once */
    _exit(sent == (ssize_t)sizeof answer ? 0 : 1);
}

/* ---- outside ---- */

/* false: interrupted. */
static bool wait_for(pid_t pid)
{
    int status;
    bool stopped = false;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (mla_interrupted && !stopped) {
            stopped = true;
            kill(pid, SIGKILL);
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return !mla_interrupted;
}

void mla_bisect_try(const struct mla_bisect *b, const char *spec, const struct mla_case *test,
                    struct mla_try *answer)
{
    int ends[2];
    *answer = (struct mla_try){.end = MLA_TRY_FAILED, .text = "no process to judge in"};
    if (pipe(ends) != 0)
        return;
    fcntl(ends[0], F_SETFL, O_NONBLOCK); /* what a kernel left may hold the other end */
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        work(b, spec, test, ends[1], parent);
    close(ends[1]);
    if (pid > 0) {
        struct mla_try got;
        bool ended = wait_for(pid);
        if (!ended)
            answer->end = MLA_TRY_STOPPED;
        else if (read(ends[0], &got, sizeof got) == (ssize_t)sizeof got)
            *answer = got;
        else /* what it had loaded killed it, or took all memory: no verdict */
            *answer = nothing("the process that judges died");
    }
    close(ends[0]);
}
