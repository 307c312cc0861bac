/* SPDX-License-Identifier: Apache-2.0
 *
 * measure_report.c - how long a report of many verdicts takes: mla_measure_report FOLDER [VERDICTS].
 *
 * Writes a database of so many verdicts (1000000), half of them of a second run that judges the same
 * cases again, with the statistics that a real one has, and times the report. Not a test: CI has no
 * steady clock. The database stays, to be looked at.
 */
#include "results/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const char *const kernels[] = {
    "scalar", "avx2", "emulate-nki",
    "./plugins/of/another/project/build/release/my_kernels.so:\"x\"",
    "<u>&amp;</u><script>document.title=1</script>"};
#define KERNELS_N 5

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Numbers that look drawn, the same every time. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

static struct mla_store_case make_case(int64_t i, char *line, size_t bytes)
{
    uint64_t x = mix((uint64_t)i);
    bool ring = (i & 1) == 0;
    int64_t size = INT64_C(32) << x % 12;
    (void)snprintf(
        line, bytes,
        "%s v=1 scale=0x1p-%d seed=%" PRId64
        " and as much text as a real case line has, which is some three hundred bytes of "
        "fields like family=profile region=last amount=3 poison=nan future=- stats=1 "
        "rows=8 row_seed=1 slow=0 set=- put=- q_chunk=32 k_chunk=64 threads=0 links=1",
        ring ? "ring" : "sparse", (int)(x >> 20 & 7), i);
    struct mla_store_case c;
    memset(&c, 0, sizeof c);
    (void)snprintf(c.id, sizeof c.id, "%016" PRIx64 "%048" PRIx64, x, (uint64_t)i);
    c.line = line;
    c.op = ring ? "ring" : "sparse";
    c.family = "profile";
    c.region = "last";
    c.heads = INT64_C(16) << (x >> 8) % 4;
    c.ring_size = 1 + (int64_t)((x >> 12) % 8);
    c.logical_n = size;
    c.topk = c.keys = size;
    c.head_dim = 64;
    return c;
}

static bool write_run(struct mla_store *store, int64_t cases_n, int number)
{
    static const char *const names[] = {"max_err_over_bound",
                                        "max_ulp",
                                        "p50_ulp",
                                        "p99_ulp",
                                        "rms_relative",
                                        "bias_se",
                                        "bias_outward_se",
                                        "correctly_rounded_percent",
                                        "chi_square_ratio",
                                        "rows_judged",
                                        "would_pass_allclose_1e2",
                                        "would_pass_allclose_2e2",
                                        "would_pass_calc_diff_1e3",
                                        "would_pass_calc_diff_1e5",
                                        "would_pass_flashmla",
                                        "would_pass_pcc"};
    enum { NAMES_N = sizeof names / sizeof names[0] };
    char commit[41], line[512];
    (void)snprintf(commit, sizeof commit, "%040d", number);
    struct mla_store_build build = {commit, false, "cc", "-O2", "", "any"};
    struct mla_store_run run = {"run --synthetic", "a CPU", "all", 1};
    int64_t id;
    if (mla_store_begin_run(store, &build, &run, &id) != MLA_STORE_OK) {
        return false;
    }
    for (int64_t i = 0; i < cases_n; i++) {
        struct mla_store_case testcase = make_case(i, line, sizeof line);
        for (int k = 0; k < KERNELS_N; k++) {
            struct mla_store_metric metrics[NAMES_N];
            uint64_t x = mix((uint64_t)(i * KERNELS_N + k));
            bool worse = number == 2 && x % 1000 == 0;
            double ratio = (double)(x % 997) / 1100 + (worse ? 0.5 : 0);
            for (int m = 0; m < NAMES_N; m++) {
                metrics[m] =
                    (struct mla_store_metric){names[m], (double)(mix(x + (uint64_t)m) % 1000) / 10};
            }
            struct mla_store_verdict v = {.testcase = &testcase,
                                          .kernel = kernels[k],
                                          .verdict = ratio > 1 ? "fail-certain" : "pass",
                                          .relation = "",
                                          .max_ratio = ratio,
                                          .elements_n = 1000,
                                          .element = "out[d=0,b=0,h=0,r=0,c=0]",
                                          .kernel_seconds = 1e-3,
                                          .oracle_seconds = 1e-2,
                                          .metrics = metrics,
                                          .metrics_n = NAMES_N};
            if (mla_store_verdict(store, &v) != MLA_STORE_OK) {
                return false;
            }
        }
    }
    return mla_store_end_run(store) == MLA_STORE_OK;
}

static bool measure(struct mla_store *store, const char *path)
{
    struct mla_report *report;
    struct stat info;
    double begin = now();
    if (mla_report_read(store, &report) != MLA_STORE_OK) {
        return false;
    }
    double read = now();
    FILE *file = fopen(path, "w");
    bool fine = file != NULL && mla_report_write(report, MLA_REPORT_HTML, file) == MLA_STORE_OK &&
                fclose(file) == 0 && stat(path, &info) == 0;
    struct mla_report_answer a = mla_report_answer(report);
    mla_report_free(report);
    if (fine) {
        printf("%" PRId64 " verdicts: read in %.2f s, written in %.2f s, %.2f MB, %" PRId64
               " regressed\n",
               a.verdicts, read - begin, now() - read, (double)info.st_size / 1e6, a.fails);
    }
    return fine;
}

int main(int argc, char **argv)
{
    char db[4096], html[4096], message[512] = "";
    int64_t verdicts_n = argc > 2 ? strtoll(argv[2], NULL, 10) : 1000000;
    struct stat info;
    struct mla_store *store;
    if (argc < 2 || verdicts_n < 1) {
        (void)fprintf(stderr, "usage: mla_measure_report FOLDER [VERDICTS]\n");
        return 2;
    }
    (void)snprintf(db, sizeof db, "%s/report.db", argv[1]);
    (void)snprintf(html, sizeof html, "%s/report.html", argv[1]);
    bool there = stat(db, &info) == 0;
    if (mla_store_open(db, &store, message, sizeof message) != MLA_STORE_OK) {
        (void)fprintf(stderr, "%s\n", message);
        return 3;
    }
    int64_t cases_n = verdicts_n / (2 * KERNELS_N);
    bool fine = there || (write_run(store, cases_n, 1) && write_run(store, cases_n, 2));
    fine = fine && measure(store, html);
    if (!fine) {
        (void)fprintf(stderr, "%s\n", mla_store_message(store));
    }
    mla_store_close(store);
    return fine ? 0 : 3;
}
