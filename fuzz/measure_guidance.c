/* SPDX-License-Identifier: Apache-2.0
 *
 * measure_guidance.c - one hunt of our own search, for measuring it.
 *
 *   mla_measure_guidance OP KERNEL ARM SEED SECONDS      ring|sparse, guided|shapes|random
 *   mla_measure_guidance OP KERNEL ARM SEED rss N        resident memory every N/10 of N executions
 *   mla_measure_guidance OP KERNEL offers                exit code 0: the kernel offers the operation
 *
 * The first ends after so many processor seconds or at the first failure, and prints the line of
 * watch.h. The second takes the smallest cases, so that a million of them are a matter of minutes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/kernels.h"
#include "fuzz/search.h"
#include "fuzz/watch.h"

static struct mla_watch watch;
static uint8_t counters[MLA_GUIDANCE_COUNTERS];

static int usage(void)
{
    fprintf(stderr, "usage: mla_measure_guidance ring|sparse KERNEL guided|shapes|random SEED "
                    "SECONDS | rss N\n"
                    "       mla_measure_guidance ring|sparse KERNEL offers\n");
    return 2;
}

static bool run(const struct mla_case *test, const struct mla_kernel *kernel,
                struct mla_verdict *verdict)
{
    struct mla_subject *subject;
    struct mla_judge_options options = {.oracle_threads = 1};
    char error[MLA_CASE_ERROR_MAX];
    if (mla_subject_make(test, &subject, error) != MLA_OK)
        return false; /* no memory: says nothing about the kernel */
    mla_subject_judge(subject, kernel, &options, verdict);
    mla_subject_free(subject);
    return true;
}

static void hunt(struct mla_search *search, const struct mla_kernel *kernel, double seconds)
{
    mla_watch_begin(&watch, seconds);
    while (!mla_watch_is_over(&watch)) {
        struct mla_case test;
        struct mla_verdict verdict;
        mla_search_next(search, &test);
        if (!run(&test, kernel, &verdict))
            continue;
        mla_search_learn(search, &test, &verdict);
        memset(counters, 0, sizeof counters);
        mla_guidance_note(&test, &verdict, counters);
        mla_watch_learn(&watch, &verdict, counters);
    }
    mla_watch_print(&watch, stdout);
}

/* Pages in memory, in KB; 0 where the system does not say. */
static long resident_kb(void)
{
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL)
        return 0;
    int got = fscanf(file, "%ld %ld", &all, &resident);
    fclose(file);
    return got == 2 ? resident * (sysconf(_SC_PAGESIZE) / 1024) : 0;
}

/* As little work as a case can be, with every step of making and judging it. */
static void make_small(struct mla_case *test)
{
    test->ring.ring_size = 1 + test->ring.ring_size % 2;
    test->ring.heads = 1;
    test->ring.q_rows = test->ring.kv_rows = MLA_TILE;
    test->ring.head_dim = 64;
    test->ring.threads = test->sparse.threads = 1;
    test->sparse.heads = 16;
    test->sparse.topk = 128;
    test->sparse.queries = 1;
    test->seed |= 1;
    test->rows = test->op == MLA_OP_RING ? -1 : 1;
    mla_case_fix(test);
}

static void stay(struct mla_search *search, const struct mla_kernel *kernel, int64_t n)
{
    for (int64_t i = 1; i <= n; i++) {
        struct mla_case test;
        struct mla_verdict verdict;
        mla_search_next(search, &test);
        make_small(&test);
        if (run(&test, kernel, &verdict))
            mla_search_learn(search, &test, &verdict);
        if (i % (n / 10 > 0 ? n / 10 : 1) != 0)
            continue;
        printf("executions=%" PRId64 " rss_kb=%ld kept=%zu cpu_seconds=%.1f\n", i, resident_kb(),
               mla_search_kept(search), mla_watch_clock());
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    static const char *const arms[] = {"random", "guided", "shapes"};
    static struct mla_kernel_list kernels;
    char error[MLA_CASE_ERROR_MAX];
    int arm = 0;
    if (argc < 4 || (strcmp(argv[1], "ring") != 0 && strcmp(argv[1], "sparse") != 0))
        return usage();
    bool is_ring = strcmp(argv[1], "ring") == 0;
    if (mla_kernels_add(&kernels, argv[2], error, sizeof error) != MLA_OK) {
        fprintf(stderr, "mla_measure_guidance: %s\n", error);
        return 2;
    }
    const struct mla_kernel *kernel = kernels.list[0].kernel;
    if (argc == 4 && strcmp(argv[3], "offers") == 0)
        return is_ring ? kernel->ring == NULL : kernel->sparse == NULL;
    if (argc < 6)
        return usage();
    while (arm < 3 && strcmp(argv[3], arms[arm]) != 0)
        arm++;
    double seconds = strtod(argv[5], NULL);
    int64_t n = argc == 7 && strcmp(argv[5], "rss") == 0 ? strtoll(argv[6], NULL, 10) : 0;
    if (arm == 3 || (n <= 0 && !(seconds > 0)))
        return usage();
    struct mla_search *search =
        mla_search_begin(is_ring ? MLA_OP_RING : MLA_OP_SPARSE, false, (enum mla_search_kind)arm,
                         strtoull(argv[4], NULL, 10));
    if (search == NULL)
        return 3;
    if (n > 0)
        stay(search, kernel, n);
    else
        hunt(search, kernel, seconds);
    mla_search_end(search);
    return 0;
}
