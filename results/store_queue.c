/* SPDX-License-Identifier: Apache-2.0
 *
 * store_queue.c - accept verdicts and tallies: copy, and flush when the batch is due.
 *
 * A verdict is copied into one allocation (struct, metrics, texts). Tallies of the same key are
 * added up here, so that a fuzzer that counts every case costs one row a flush and not one a case.
 */
#include "results/store_queue.h"

#include "results/store_fields.h"
#include "results/store_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t mla_queue_clock_ns(void)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static size_t text_bytes(const char *text)
{
    return text == NULL ? 0 : strlen(text) + 1;
}

/* Move *text to its copy at *end, and *end past it. NULL stays NULL. */
static void copy_text(const char **text, char **end)
{
    size_t bytes = text_bytes(*text);
    if (bytes > 0) {
        memcpy(*end, *text, bytes);
        *text = *end;
        *end += bytes;
    }
}

static struct mla_queued_verdict *copy_verdict(int64_t run, const struct mla_store_verdict *verdict)
{
    size_t metrics_bytes = verdict->metrics_n * sizeof verdict->metrics[0];
    size_t bytes = sizeof(struct mla_queued_verdict) + metrics_bytes;
    for (int i = 0; i < MLA_VERDICT_TEXTS_N; i++) {
        bytes += text_bytes(mla_verdict_text_of(verdict, i));
    }
    for (int i = 0; i < MLA_CASE_TEXTS_N; i++) {
        bytes += text_bytes(mla_case_text_of(verdict->testcase, i));
    }
    for (size_t i = 0; i < verdict->metrics_n; i++) {
        bytes += text_bytes(verdict->metrics[i].name);
    }
    struct mla_queued_verdict *copy = malloc(bytes);
    if (copy == NULL) {
        return NULL;
    }
    copy->run = run;
    copy->verdict = *verdict;
    copy->testcase = *verdict->testcase;
    if (metrics_bytes > 0) {
        memcpy(copy->metrics, verdict->metrics, metrics_bytes);
    }
    copy->verdict.testcase = &copy->testcase;
    copy->verdict.metrics = copy->metrics;
    char *end = (char *)(copy->metrics + verdict->metrics_n);
    for (int i = 0; i < MLA_VERDICT_TEXTS_N; i++) {
        copy_text(mla_verdict_text(&copy->verdict, i), &end);
    }
    for (int i = 0; i < MLA_CASE_TEXTS_N; i++) {
        copy_text(mla_case_text(&copy->testcase, i), &end);
    }
    for (size_t i = 0; i < verdict->metrics_n; i++) {
        copy_text(&copy->metrics[i].name, &end);
    }
    return copy;
}

/* Room for one more element; false when out of memory. */
static bool make_room(void **array, size_t used_n, size_t *room, size_t element_bytes)
{
    if (used_n < *room) {
        return true;
    }
    size_t wanted = *room == 0 ? MLA_QUEUE_ROWS : *room * 2;
    void *grown = realloc(*array, wanted * element_bytes);
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *room = wanted;
    return true;
}

static int32_t check_running(struct mla_store *store)
{
    int32_t status = mla_store_usable(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    if (store->run == 0) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "no run was begun or joined");
    }
    return MLA_STORE_OK;
}

/* When the batch is full or old enough. A failure leaves everything queued. */
static int32_t flush_if_due(struct mla_store *store)
{
    struct mla_queue *queue = &store->queue;
    if (queue->fresh_n == 0) {
        return MLA_STORE_OK;
    }
    if (queue->fresh_n < MLA_QUEUE_ROWS && mla_queue_clock_ns() - queue->tried_ns < MLA_QUEUE_NS) {
        return MLA_STORE_OK;
    }
    return mla_store_flush(store);
}

int32_t mla_store_verdict(struct mla_store *store, const struct mla_store_verdict *verdict)
{
    int32_t status = check_running(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    status = mla_queue_check_verdict(store, verdict);
    if (status != MLA_STORE_OK) {
        return status;
    }
    struct mla_queue *queue = &store->queue;
    void *array = queue->verdicts;
    bool room =
        make_room(&array, queue->verdicts_n, &queue->verdicts_room, sizeof queue->verdicts[0]);
    queue->verdicts = array;
    struct mla_queued_verdict *copy = room ? copy_verdict(store->run, verdict) : NULL;
    if (copy == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory to queue a verdict");
    }
    queue->verdicts[queue->verdicts_n++] = copy;
    queue->fresh_n++;
    return flush_if_due(store);
}

/* The worse of two ratios: NaN above infinity above numbers; negative means none. */
static double worse(double a, double b)
{
    if (isnan(a) || isnan(b)) {
        return (double)NAN;
    }
    return a > b ? a : b;
}

static struct mla_queued_tally *find_tally(struct mla_queue *queue, int64_t run, const char *op,
                                           const char *kernel, const char *family,
                                           const char *verdict)
{
    for (size_t i = 0; i < queue->tallies_n; i++) {
        struct mla_queued_tally *tally = &queue->tallies[i];
        if (tally->run == run && strcmp(tally->verdict, verdict) == 0 &&
            strcmp(tally->family, family) == 0 && strcmp(tally->kernel, kernel) == 0 &&
            strcmp(tally->op, op) == 0) {
            return tally;
        }
    }
    return NULL;
}

/* A new tally of nothing; NULL when out of memory. */
static struct mla_queued_tally *add_tally(struct mla_queue *queue, int64_t run, const char *op,
                                          const char *kernel, const char *family,
                                          const char *verdict)
{
    void *array = queue->tallies;
    if (!make_room(&array, queue->tallies_n, &queue->tallies_room, sizeof queue->tallies[0])) {
        return NULL;
    }
    queue->tallies = array;
    const char *texts[4] = {op, kernel, family, verdict};
    size_t bytes = 0;
    for (int i = 0; i < 4; i++) {
        bytes += text_bytes(texts[i]);
    }
    char *end = malloc(bytes);
    if (end == NULL) {
        return NULL;
    }
    struct mla_queued_tally *tally = &queue->tallies[queue->tallies_n++];
    char **copies[4] = {&tally->op, &tally->kernel, &tally->family, &tally->verdict};
    for (int i = 0; i < 4; i++) {
        *copies[i] = end;
        memcpy(end, texts[i], text_bytes(texts[i]));
        end += text_bytes(texts[i]);
    }
    tally->run = run;
    tally->n = 0;
    tally->max_ratio = -1.0;
    queue->fresh_n++;
    return tally;
}

int32_t mla_store_tally(struct mla_store *store, const char *op, const char *kernel,
                        const char *family, const char *verdict, int64_t n, double max_ratio)
{
    int32_t status = check_running(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    status = mla_queue_check_tally(store, op, kernel, verdict, n);
    if (status != MLA_STORE_OK) {
        return status;
    }
    family = family == NULL ? "" : family;
    struct mla_queue *queue = &store->queue;
    struct mla_queued_tally *tally = find_tally(queue, store->run, op, kernel, family, verdict);
    if (tally == NULL) {
        tally = add_tally(queue, store->run, op, kernel, family, verdict);
    }
    if (tally == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory to queue a tally");
    }
    tally->n = n > MLA_TALLY_MAX - tally->n ? MLA_TALLY_MAX : tally->n + n;
    tally->max_ratio = worse(tally->max_ratio, max_ratio);
    return flush_if_due(store);
}

void mla_queue_clear(struct mla_queue *queue)
{
    for (size_t i = 0; i < queue->verdicts_n; i++) {
        free(queue->verdicts[i]);
    }
    for (size_t i = 0; i < queue->tallies_n; i++) {
        free(queue->tallies[i].op);
    }
    queue->verdicts_n = 0;
    queue->tallies_n = 0;
    queue->fresh_n = 0;
}
