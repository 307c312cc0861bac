/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_report.c - rows as a table, as JSON and in the store.
 *
 * Names are of kernels, shapes and peers: nothing in JSON to escape but a plug-in's path.
 */
#include <inttypes.h>
#include <stdio.h>

#include "fuzz/mlacheck/bench.h"

static void print_oracle(const struct mla_bench_row *r)
{
    double work = r->flops / 2;
    printf("  %-16s %3d thread%s %9.4g s +-%2.0f%%  %6.1f x definition, %.2f x first, "
           "%.3f ns per multiply-add%s\n",
           r->name, r->threads, r->threads == 1 ? " " : "s", r->seconds, 50 * r->spread,
           r->times_definition, r->times_first, 1e9 * r->seconds / work,
           r->noisy ? "  (noisy)" : "");
}

static void print_row(const struct mla_bench_row *r)
{
    printf("  %-16s %3d thread%s %9.4g s +-%2.0f%% %8.1f GFLOP/s %6.1f GB/s  %5.1f%% of peak "
           "%.0f",
           r->name, r->threads, r->threads == 1 ? " " : "s", r->seconds, 50 * r->spread,
           r->flops / r->seconds / 1e9, r->bytes / r->seconds / 1e9, 100 * r->of_peak,
           r->peak / 1e9);
    if (r->has_own)
        printf(", %.1f%% of %s's", 100 * r->of_own, mla_peak_name(r->own));
    printf(", %.2f x first", r->times_first);
    if (r->against != NULL)
        printf(", %.2f x the time of %s", r->ratio, r->against);
    if (r->left_out > 0)
        printf(", %d disturbed", r->left_out);
    printf("%s%s\n", r->reps < 5 ? ", few repetitions" : "", r->noisy ? "  (noisy)" : "");
}

static int store_row(const struct mla_bench *bench, const struct mla_bench_row *r)
{
    const struct mla_store_bench row = {
        .op = r->op,
        .shape = r->shape,
        .testcase = r->id,
        .kernel = r->name,
        .is_peer = r->is_peer,
        .threads = r->threads,
        .seconds = r->seconds,
        .spread = r->spread,
        .flops = r->flops,
        .bytes = r->bytes,
        .peak = r->peak,
        .of_peak = r->of_peak,
        .isa = mla_peak_name(bench->isa),
        .own_isa = r->has_own ? mla_peak_name(r->own) : NULL,
        .of_own_peak = r->of_own,
        .noisy = r->noisy,
        .reps = r->reps,
    };
    if (mla_store_bench(bench->store, &row) == MLA_STORE_OK)
        return 0;
    return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench", "%s", mla_store_message(bench->store));
}

int mla_bench_report(const struct mla_bench *bench, size_t first)
{
    int code = 0;
    for (size_t i = first; i < bench->rows_n && code == 0; i++) {
        const struct mla_bench_row *r = &bench->rows[i];
        bool oracle = r->op[0] == 'o';
        if (i == first && oracle)
            printf("%s: %s, %" PRId64 " rows x %" PRId64 " keys\n", r->op, r->shape, r->rows_n,
                   r->keys_n);
        else if (i == first)
            printf("%s: %s, %.4g GFLOP and %.3g GB a call\n", r->op, r->shape, r->flops / 1e9,
                   r->bytes / 1e9);
        if (oracle)
            print_oracle(r);
        else
            print_row(r);
        code = store_row(bench, r);
    }
    fflush(stdout);
    return code;
}

/* ---- JSON ---- */

static void put_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar((unsigned char)*text < 0x20 ? '?' : *text);
    }
    putchar('"');
}

static void put_own(const struct mla_bench_row *r)
{
    if (r->has_own)
        printf(",\"own_isa\":\"%s\",\"of_own_peak\":%.4g", mla_peak_name(r->own), r->of_own);
    else
        printf(",\"own_isa\":null,\"of_own_peak\":null");
}

static void put_row(const struct mla_bench_row *r, const char *comma)
{
    printf("%s{\"op\":\"%s\",\"shape\":\"%s\",\"kernel\":", comma, r->op, r->shape);
    put_text(r->name);
    printf(",\"threads\":%d,\"gflops\":%.6g,\"of_peak\":%.4g,\"spread\":%.3g,\"seconds\":%.6g,"
           "\"reps\":%d,\"left_out\":%d,\"times_first\":%.4g,\"peak_gflops\":%.6g,\"noisy\":%s,"
           "\"case\":\"%.12s\"",
           r->threads, r->flops / r->seconds / 1e9, r->of_peak, r->spread, r->seconds, r->reps,
           r->left_out, r->times_first, r->peak / 1e9, r->noisy ? "true" : "false", r->id);
    if (r->op[0] == 'o')
        printf(",\"rows\":%" PRId64 ",\"keys\":%" PRId64 ",\"times_definition\":%.4g", r->rows_n,
               r->keys_n, r->times_definition);
    else
        printf(",\"gflop\":%.6g,\"gbytes\":%.6g", r->flops / 1e9, r->bytes / r->seconds / 1e9);
    put_own(r);
    printf("}");
}

static void put_peer(const struct mla_bench_row *r, const char *comma)
{
    printf("%s{\"peer\":\"%s\",\"shape\":\"%s\",\"threads\":%d,\"ratio\":", comma, r->name,
           r->shape, r->threads);
    if (r->against == NULL) {
        printf("null,\"kernel\":null");
    } else {
        printf("%.4g,\"kernel\":", r->ratio);
        put_text(r->against);
    }
    printf(",\"gflops\":%.6g,\"of_peak\":%.4g,\"spread\":%.3g,\"seconds\":%.6g,\"reps\":%d,"
           "\"left_out\":%d,\"times_first\":%.4g,\"cores\":%.3g,\"noisy\":%s}",
           r->flops / r->seconds / 1e9, r->of_peak, r->spread, r->seconds, r->reps, r->left_out,
           r->times_first, r->cores, r->noisy ? "true" : "false");
}

void mla_bench_report_json(struct mla_bench *bench)
{
    double peak = bench->peaks_n > 0 ? mla_bench_median(bench->peaks, (int)bench->peaks_n) : 0;
    int n = 0;
    printf("{\"peak_gflops\":%.6g,\"isa\":\"%s\",\"rows\":[", peak / 1e9,
           mla_peak_name(bench->isa));
    for (size_t i = 0; i < bench->rows_n; i++)
        if (!bench->rows[i].is_peer)
            put_row(&bench->rows[i], n++ == 0 ? "" : ",");
    printf("],\"peers\":[");
    n = 0;
    for (size_t i = 0; i < bench->rows_n; i++)
        if (bench->rows[i].is_peer)
            put_peer(&bench->rows[i], n++ == 0 ? "" : ",");
    printf("]}\n");
}
