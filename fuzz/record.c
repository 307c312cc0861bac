/* SPDX-License-Identifier: Apache-2.0
 *
 * record.c - verdicts to counts, lines and rows.
 */
#include "fuzz/record.h"

#include <inttypes.h>
#include <string.h>

#include "fuzz/case_fields.h"
#include "fuzz/family.h"
#include "fuzz/kernels.h"

#define METRICS_MAX 64

void mla_counts_add(struct mla_counts *counts, const struct mla_verdict *verdict)
{
    enum mla_verdict_kind kind = verdict->kind;
    counts->rows_judged += verdict->rows_n;
    counts->rows_nonfinite += verdict->nonfinite_n;
    counts->rows_out_of_range += verdict->range_n;
    counts->rows_without_bound += verdict->no_bound_n;
    counts->rows_without_keys += verdict->no_keys_n;
    counts->oracle_failed += verdict->oracle_failed;
    counts->cases++;
    counts->passed += kind == MLA_VERDICT_PASS;
    counts->failed += kind == MLA_VERDICT_FAIL_CERTAIN;
    counts->improbable += kind == MLA_VERDICT_FAIL_IMPROBABLE;
    counts->unjudged += kind == MLA_VERDICT_UNJUDGED;
    counts->unsupported += kind == MLA_VERDICT_UNSUPPORTED;
    counts->refused += kind == MLA_VERDICT_REFUSED;
    counts->crashed += kind == MLA_VERDICT_CRASH || kind == MLA_VERDICT_TIMEOUT;
    counts->judged += kind != MLA_VERDICT_UNJUDGED && kind != MLA_VERDICT_UNSUPPORTED;
}

static void record_ring(const struct mla_ring_args *r, struct mla_store_case *row)
{
    row->heads = r->heads;
    row->threads = r->threads;
    row->ring_size = r->ring_size;
    row->batch = r->batch;
    row->q_rows = r->q_rows;
    row->kv_rows = r->kv_rows;
    row->head_dim = r->head_dim;
    row->head_dim_v = r->head_dim_v;
    row->logical_n = r->logical_n;
    row->kv_actual_isl = r->has_prior ? r->kv_actual_isl : MLA_STORE_NULL;
    row->kv_cache_batch_idx = r->has_slot ? r->kv_cache_batch_idx : MLA_STORE_NULL;
    row->is_balanced = r->is_balanced;
    row->topology = r->topology;
    row->num_links = r->num_links;
    row->q_chunk_size = r->q_chunk_size;
    row->k_chunk_size = r->k_chunk_size;
    row->queries = row->keys = row->rope = row->topk = row->topk_tiled = row->dense =
        row->q_pos_offset = row->out_order = row->cores = MLA_STORE_NULL;
}

static void record_sparse(const struct mla_sparse_args *s, struct mla_store_case *row)
{
    row->heads = s->heads;
    row->threads = s->threads;
    row->queries = s->queries;
    row->keys = s->keys;
    row->rope = s->rope;
    row->topk = s->dense ? MLA_STORE_NULL : s->topk;
    row->topk_tiled = s->topk_tiled;
    row->dense = s->dense;
    row->q_pos_offset = s->has_q_pos_offset ? s->q_pos_offset : MLA_STORE_NULL;
    row->out_order = s->out_order;
    row->cores = s->cores;
    row->ring_size = row->batch = row->q_rows = row->kv_rows = row->head_dim = row->head_dim_v =
        row->logical_n = row->kv_actual_isl = row->kv_cache_batch_idx = row->is_balanced =
            row->topology = row->num_links = row->q_chunk_size = row->k_chunk_size = MLA_STORE_NULL;
}

static const char *family_of(const struct mla_case *test)
{
    return test->data[0] != '\0' ? "file" : mla_family_name(test->family);
}

void mla_record_case(const struct mla_case *test, const char *line, struct mla_store_case *row)
{
    memset(row, 0, sizeof *row);
    mla_case_id(test, row->id);
    row->line = line;
    row->op = mla_case_op_name(test->op);
    row->family = family_of(test);
    row->region = test->data[0] != '\0' ? "" : mla_case_region_name(test->region);
    row->sign_coins = mla_case_has_sign_coins(test);
    if (test->op == MLA_OP_RING)
        record_ring(&test->ring, row);
    else
        record_sparse(&test->sparse, row);
}

void mla_record_append_word(char text[MLA_REPRO_MAX], const char *word)
{
    static const char quote[] = "'\\''"; /* within quotes */
    size_t n = strlen(text), most = MLA_REPRO_MAX - sizeof quote - 2;
    bool plain = *word != '\0' && strcspn(word, "*?[]{}'\" $;&|<>()\\`#~!\n\t\r") == strlen(word);
    if (n >= most)
        return;
    text[n++] = ' ';
    if (!plain)
        text[n++] = '\'';
    for (; *word != '\0' && n < most; word++) {
        if (*word == '\'') {
            memcpy(text + n, quote, sizeof quote - 1);
            n += sizeof quote - 1;
        } else {
            text[n++] = *word;
        }
    }
    if (!plain)
        text[n++] = '\'';
    text[n] = '\0';
}

const char *mla_record_repro(const char *spec, const char *line, bool plain_oracle,
                             char text[MLA_REPRO_MAX])
{
    snprintf(text, MLA_REPRO_MAX, "mlacheck run --kernel");
    mla_record_append_word(text, spec);
    size_t n = strlen(text);
    snprintf(text + n, MLA_REPRO_MAX - n, "%s --case", plain_oracle ? " --oracle definition" : "");
    mla_record_append_word(text, line);
    return text;
}

/* Of a verdict: with --relations where only that makes the calls that failed. */
static const char *repro_of(const char *spec, const char *line, const struct mla_verdict *verdict,
                            char text[MLA_REPRO_MAX])
{
    if (verdict->repro != NULL) {
        snprintf(text, MLA_REPRO_MAX, "%s", verdict->repro);
        return text;
    }
    mla_record_repro(spec, line, verdict->plain_oracle, text);
    size_t n = strlen(text);
    if (verdict->all_relations)
        snprintf(text + n, MLA_REPRO_MAX - n, " --relations");
    return text;
}

void mla_record_print(FILE *file, const struct mla_case *test, const char *spec,
                      const struct mla_verdict *verdict)
{
    char line[MLA_CASE_LINE_MAX], repro[MLA_REPRO_MAX], id[MLA_CASE_ID_BYTES];
    mla_case_format(test, line);
    mla_case_id(test, id);
    fprintf(file, "FAIL %s/%s case=%.12s %s", mla_case_op_name(test->op), mla_kernels_name(spec),
            id, mla_verdict_name(verdict->kind));
    /* Where a whole row is accused the reason names it: its worst element is no fault. */
    bool has_element = verdict->element[0] != '\0' && verdict->kind != MLA_VERDICT_FAIL_IMPROBABLE;
    if (has_element && verdict->relation[0] == '\0')
        fprintf(file, " %s got=%a allowed=[%a,%a] err/bound=%.3g", verdict->element, verdict->got,
                verdict->lo, verdict->hi, verdict->max_ratio);
    else if (has_element)
        fprintf(file, " %s", verdict->element);
    fprintf(file, ": %s\n  repro: %s\n", verdict->reason, repro_of(spec, line, verdict, repro));
}

/* The counts, and the figures of the elements that have any. Returns how many. */
static size_t collect_metrics(const struct mla_verdict *verdict,
                              struct mla_store_metric metrics[METRICS_MAX])
{
    struct mla_metrics_figure figure;
    size_t n = 0;
    metrics[n++] = (struct mla_store_metric){"rows_judged", (double)verdict->rows_n};
    metrics[n++] = (struct mla_store_metric){"rows_unspecified", (double)verdict->unspecified_n};
    metrics[n++] = (struct mla_store_metric){"rows_nonfinite", (double)verdict->nonfinite_n};
    metrics[n++] = (struct mla_store_metric){"rows_out_of_range", (double)verdict->range_n};
    metrics[n++] = (struct mla_store_metric){"rows_without_bound", (double)verdict->no_bound_n};
    metrics[n++] = (struct mla_store_metric){"relations", (double)verdict->relations};
    if (verdict->no_keys_n > 0)
        metrics[n++] = (struct mla_store_metric){"rows_without_keys", (double)verdict->no_keys_n};
    if (verdict->max_energy >= 0)
        metrics[n++] = (struct mla_store_metric){"energy_over_threshold", verdict->max_energy};
    if (verdict->output_hash != 0)
        metrics[n++] = (struct mla_store_metric){"output_hash", (double)verdict->output_hash};
    if (verdict->metrics.elements_n == 0)
        return n;
    for (size_t i = 0; n < METRICS_MAX && mla_metrics_figure(&verdict->metrics, i, &figure); i++)
        metrics[n++] = (struct mla_store_metric){figure.name, figure.value};
    return n;
}

int32_t mla_record_store(struct mla_store *store, const struct mla_case *test, const char *spec,
                         const struct mla_verdict *verdict)
{
    char line[MLA_CASE_LINE_MAX], repro[MLA_REPRO_MAX], got[40], lo[40], hi[40];
    struct mla_store_case row;
    struct mla_store_metric metrics[METRICS_MAX];
    bool valued = verdict->elements_n > 0;
    mla_case_format(test, line);
    mla_record_case(test, line, &row);
    snprintf(got, sizeof got, "%a", verdict->got);
    snprintf(lo, sizeof lo, "%a", verdict->lo);
    snprintf(hi, sizeof hi, "%a", verdict->hi);
    struct mla_store_verdict stored = {
        .testcase = &row,
        .kernel = mla_kernels_name(spec),
        .verdict = mla_verdict_name(verdict->kind),
        .relation = verdict->relation,
        .reason = verdict->reason,
        .max_ratio = valued ? verdict->max_ratio : -1.0, /* negative: none */
        .elements_n = verdict->elements_n,
        .element = verdict->element,
        .got = valued ? got : NULL,
        .lo = valued ? lo : NULL,
        .hi = valued ? hi : NULL,
        .kernel_seconds = verdict->kernel_seconds,
        .oracle_seconds = verdict->oracle_seconds,
        .metrics = metrics,
        .metrics_n = valued ? collect_metrics(verdict, metrics) : 0,
        .repro = repro_of(spec, line, verdict, repro),
    };
    return mla_store_verdict(store, &stored);
}

int32_t mla_record_tally(struct mla_store *store, const struct mla_case *test, const char *spec,
                         const struct mla_verdict *verdict)
{
    return mla_store_tally(store, mla_case_op_name(test->op), mla_kernels_name(spec),
                           family_of(test), mla_verdict_name(verdict->kind), 1,
                           verdict->elements_n > 0 ? verdict->max_ratio : -1.0);
}
