/* SPDX-License-Identifier: Apache-2.0
 *
 * store_check.c - refuse what the schema would refuse, before it is queued.
 *
 * The enumerations stand here a second time (the first is the CHECKs of schema.sql): a test feeds
 * every one of these names through to the database.
 */
#include "results/store_queue.h"

#include "results/store_internal.h"

#include <string.h>

static const char *const ops[] = {"ring", "sparse", NULL};
static const char *const failures[] = {"fail-certain", "fail-improbable", "crash", "timeout", NULL};
static const char *const harmless[] = {"pass", "unjudged", "unsupported", "refused", NULL};

static bool is_one_of(const char *text, const char *const *list)
{
    for (; text != NULL && *list != NULL; list++) {
        if (strcmp(text, *list) == 0) {
            return true;
        }
    }
    return false;
}

bool mla_queue_is_failure(const char *verdict)
{
    return is_one_of(verdict, failures);
}

static const char *shown(const char *text)
{
    return text == NULL ? "(null)" : text;
}

static bool is_case_id(const char id[65])
{
    for (int i = 0; i < 64; i++) {
        bool digit = id[i] >= '0' && id[i] <= '9';
        bool letter = id[i] >= 'a' && id[i] <= 'f';
        if (!digit && !letter) {
            return false;
        }
    }
    return id[64] == '\0';
}

static int32_t check_case(struct mla_store *store, const struct mla_store_case *testcase)
{
    if (testcase == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "testcase is (null)");
    }
    if (!is_case_id(testcase->id)) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE,
                              "testcase id '%.65s' is not 64 lower-case hex digits", testcase->id);
    }
    if (testcase->line == NULL || testcase->line[0] == '\0') {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "testcase %.12s has no line",
                              testcase->id);
    }
    if (!is_one_of(testcase->op, ops)) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE,
                              "testcase %.12s: op '%s' is neither ring nor sparse", testcase->id,
                              shown(testcase->op));
    }
    return MLA_STORE_OK;
}

static int32_t check_kernel_and_verdict(struct mla_store *store, const char *kernel,
                                        const char *verdict)
{
    if (kernel == NULL || kernel[0] == '\0') {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "kernel '%s' is not a name",
                              shown(kernel));
    }
    if (!is_one_of(verdict, failures) && !is_one_of(verdict, harmless)) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE,
                              "verdict '%s' is none of pass, fail-certain, fail-improbable, "
                              "unjudged, unsupported, refused, crash, timeout",
                              shown(verdict));
    }
    return MLA_STORE_OK;
}

static int32_t check_metrics(struct mla_store *store, const struct mla_store_verdict *verdict)
{
    const struct mla_store_metric *metrics = verdict->metrics;
    if (verdict->metrics_n > 0 && metrics == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "metrics is (null), metrics_n is %zu",
                              verdict->metrics_n);
    }
    if (verdict->metrics_n > 10000) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "metrics_n is %zu, above 10000",
                              verdict->metrics_n);
    }
    for (size_t i = 0; i < verdict->metrics_n; i++) {
        if (metrics[i].name == NULL || metrics[i].name[0] == '\0') {
            return mla_store_fail(store, MLA_STORE_ERR_WRITE, "metric %zu has no name", i);
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(metrics[i].name, metrics[j].name) == 0) {
                return mla_store_fail(store, MLA_STORE_ERR_WRITE, "metric '%s' is given twice",
                                      metrics[i].name);
            }
        }
    }
    return MLA_STORE_OK;
}

int32_t mla_queue_check_verdict(struct mla_store *store, const struct mla_store_verdict *verdict)
{
    if (verdict == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "verdict is (null)");
    }
    int32_t status = check_case(store, verdict->testcase);
    if (status != MLA_STORE_OK) {
        return status;
    }
    status = check_kernel_and_verdict(store, verdict->kernel, verdict->verdict);
    if (status != MLA_STORE_OK) {
        return status;
    }
    if (verdict->elements_n < 0 && verdict->elements_n != MLA_STORE_NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "elements_n is %lld, below 0",
                              (long long)verdict->elements_n);
    }
    return check_metrics(store, verdict);
}

int32_t mla_queue_check_tally(struct mla_store *store, const char *op, const char *kernel,
                              const char *verdict, int64_t n)
{
    if (!is_one_of(op, ops)) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE,
                              "tally op '%s' is neither ring nor sparse", shown(op));
    }
    if (n < 0) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "tally n is %lld, below 0", (long long)n);
    }
    return check_kernel_and_verdict(store, kernel, verdict);
}
