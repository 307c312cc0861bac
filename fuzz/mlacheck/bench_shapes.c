/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_shapes.c - the table of shapes, flops and bytes.
 *
 * The public projects' test shapes and those their users run, with their scales (576^-0.5 in tests;
 * 0.135234 of DeepSeek-V3.2; 0.0625 of GLM-5). Lists are drawn without order from the whole cache:
 * the tests' own (even positions up to the row) would stay in the first-level cache.
 */
#include "fuzz/mlacheck/bench_shapes.h"

#include <fnmatch.h>
#include <string.h>

#include "oracle/visible.h"

#define TESTS    "0x1.555556p-5"
#define DEEPSEEK "0x1.14f59p-3"
#define GLM      "0x1p-4"

#define SPARSE(s, s_kv, h, k, scale)                                                               \
    "sparse v=1 S=" #s " S_kv=" #s_kv " H=" #h " Rr=64 K=" #k                                      \
    " tiled=0 dense=0 offset=- order=mx4 cores=1 threads=0 scale=" scale                           \
    " family=upstream region=normal amount=0 indices=distinct poison=nan stats=0 seed=1 rows=1 "   \
    "row_seed=1 slow=0 set=- put=-"

/* 576 columns of a key; n keys a rank of two, nq queries. */
#define RING(h, nq, nk, dv, l, balanced)                                                           \
    "ring v=1 R=2 B=1 H=" #h " Nq=" #nq " Nk=" #nk " Bk=1 G=" #l " Bg=1 DH=576 DV=" #dv " L=" #l   \
    " scale=- balanced=" #balanced " slot=- P=- topology=ring links=1 q_chunk=128 k_chunk=256 "    \
    "threads=0 family=upstream region=outlier amount=0 poison=nan future=- stats=0 seed=1 rows=1 " \
    "row_seed=1 slow=0 set=- put=-"

/* The test shapes of the ring's project: small ones, 4 heads, 64/32, two ranks. */
#define RING_SMALL(nq, nk, bk, slot, prior, l)                                                     \
    "ring v=1 R=2 B=1 H=4 Nq=" #nq " Nk=" #nk " Bk=" #bk " G=" #l " Bg=1 DH=64 DV=32 L=" #l        \
    " scale=- balanced=0 slot=" slot " P=" prior                                                   \
    " topology=ring links=1 q_chunk=32 k_chunk=32 threads=0 family=upstream region=outlier "       \
    "amount=0 poison=noise future=- stats=0 seed=1 rows=1 row_seed=1 slow=0 set=- put=-"

/* The first of 32 ranks' 3200 rows each, or as many ranks as said; the published scale. */
#define MLA_100K(r, g, h)                                                                          \
    "ring v=1 R=" #r " B=1 H=" #h " Nq=3200 Nk=3200 Bk=1 G=" #g " Bg=1 DH=576 DV=128 L=" #g        \
    " scale=0x1.279a74p-4 balanced=1 slot=- P=- topology=ring links=2 q_chunk=160 k_chunk=320 "    \
    "threads=0 family=upstream region=outlier amount=0 poison=nan future=- stats=0 seed=1 rows=1 " \
    "row_seed=1 slow=1 set=- put=-"

/* The last of eleven chunks of 5120 tokens. */
#define KIMI_50K(r, nq, nk)                                                                        \
    "ring v=1 R=" #r " B=1 H=16 Nq=" #nq " Nk=" #nk " Bk=1 G=56320 Bg=1 DH=576 DV=512 L=56320 "    \
    "scale=0x1.14f572p-3 balanced=0 slot=- P=51200 topology=ring links=2 q_chunk=32 k_chunk=640 "  \
    "threads=0 family=upstream region=outlier amount=0 poison=nan future=- stats=0 seed=1 rows=1 " \
    "row_seed=1 slow=1 set=- put=-"

static const struct mla_bench_shape shapes[] = {
    {"sparse-tiny", "one query row, 16 heads, K 128: a trial", SPARSE(1, 257, 16, 128, TESTS)},
    {"upstream-tiny", "256 rows, 16 heads, K 256 of 512", SPARSE(256, 512, 16, 256, TESTS)},
    {"upstream-4k", "128 rows, 32 heads, K 512 of 4096", SPARSE(128, 4096, 32, 512, TESTS)},
    {"upstream-1k", "1024 rows, 16 heads, K 256 of 2048", SPARSE(1024, 2048, 16, 256, TESTS)},
    {"deepseek", "128 rows, 128 heads, K 2048 of 8192", SPARSE(128, 8192, 128, 2048, DEEPSEEK)},
    {"deepseek-short-2", "the same, 2 rows", SPARSE(2, 8192, 128, 2048, DEEPSEEK)},
    {"deepseek-short-16", "the same, 16 rows", SPARSE(16, 8192, 128, 2048, DEEPSEEK)},
    {"deepseek-short-32", "the same, 32 rows", SPARSE(32, 8192, 128, 2048, DEEPSEEK)},
    {"long-cache", "16 rows, 128 heads, K 2048 of 131072", SPARSE(16, 131072, 128, 2048, DEEPSEEK)},
    {"glm", "32 rows, 64 heads, K 2048 of 8192", SPARSE(32, 8192, 64, 2048, GLM)},
    {"sparse-32k", "256 rows, 128 heads, K 2048 of 32768", SPARSE(256, 32768, 128, 2048, DEEPSEEK)},
    {"sparse-4k", "256 rows, 128 heads, K 2048 of 4096", SPARSE(256, 4096, 128, 2048, DEEPSEEK)},

    {"ring-tiny", "N 256, 1 head, 576/512: a trial", RING(1, 128, 128, 512, 256, 0)},
    {"indexed-small", "N 256, 4 heads, 64/32, a slot of two",
     RING_SMALL(128, 128, 2, "1", "-", 256)},
    {"chunked-small", "the last 128 rows of 256, 64/32, a slot of two",
     RING_SMALL(64, 128, 2, "1", "-", 256)},
    {"rotation-small", "128 rows from 384 on, 64/32", RING_SMALL(64, 256, 1, "-", "384", 512)},
    {"rotation-reuse", "64 rows from 192 on, 64/32, a slot of two",
     RING_SMALL(32, 128, 2, "1", "192", 256)},
    {"ring-512", "N 512, 16 heads, 576/512", RING(16, 256, 256, 512, 512, 0)},
    {"ring-4096", "N 4096, 16 heads, 576/512", RING(16, 2048, 2048, 512, 4096, 0)},
    {"ring-4096-balanced", "the same in zig-zag order", RING(16, 2048, 2048, 512, 4096, 1)},
    {"ring-2048-128-16", "N 2048, 16 heads, 576/128", RING(16, 1024, 1024, 128, 2048, 0)},
    {"ring-2048-128-16-balanced", "the same in zig-zag order", RING(16, 1024, 1024, 128, 2048, 1)},
    {"ring-2048-128-16-chunked", "its last 1024 rows", RING(16, 512, 1024, 128, 2048, 0)},
    {"ring-2048-128-128", "N 2048, 128 heads, 576/128", RING(128, 1024, 1024, 128, 2048, 0)},
    {"ring-2048-128-128-balanced", "the same in zig-zag order",
     RING(128, 1024, 1024, 128, 2048, 1)},
    {"ring-2048-128-128-chunked", "its last 1024 rows", RING(128, 512, 1024, 128, 2048, 0)},
    {"ring-2048-512-16", "N 2048, 16 heads, 576/512", RING(16, 1024, 1024, 512, 2048, 0)},
    {"ring-2048-512-16-balanced", "the same in zig-zag order", RING(16, 1024, 1024, 512, 2048, 1)},
    {"ring-2048-512-16-chunked", "its last 1024 rows", RING(16, 512, 1024, 512, 2048, 0)},
    {"ring-2048-512-128", "N 2048, 128 heads, 576/512", RING(128, 1024, 1024, 512, 2048, 0)},
    {"ring-2048-512-128-balanced", "the same in zig-zag order",
     RING(128, 1024, 1024, 512, 2048, 1)},
    {"ring-2048-512-128-chunked", "its last 1024 rows", RING(128, 512, 1024, 512, 2048, 0)},
    {"kimi-50k-8", "eleventh chunk of 5120 tokens, 8 ranks, 16 heads, 576/512",
     KIMI_50K(8, 640, 7040)},
    {"kimi-50k-4", "the same on 4 ranks", KIMI_50K(4, 1280, 14080)},
    {"mla-100k-4", "4 ranks of 3200 rows, 29 heads, 576/128", MLA_100K(4, 12800, 29)},
    {"mla-100k-32", "all 32 ranks of 3200 rows, 29 heads, 576/128", MLA_100K(32, 102400, 29)},
};

const struct mla_bench_shape *mla_bench_shapes(size_t *shapes_n)
{
    *shapes_n = sizeof shapes / sizeof shapes[0];
    return shapes;
}

bool mla_bench_shape_is_asked(const struct mla_bench_shape *shape, bool dear, const char *asked)
{
    if (asked == NULL)
        return !dear;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (strcmp(asked, shapes[i].name) == 0)
            return strcmp(asked, shape->name) == 0;
    size_t n = strlen(asked);
    return (n > 0 && strncmp(asked, shape->name, n) == 0 && shape->name[n] == '-') ||
           (!dear && fnmatch(asked, shape->name, 0) == 0);
}

const char *mla_bench_shape_case(const char *line, struct mla_case *test,
                                 char error[MLA_CASE_ERROR_MAX])
{
    if (mla_case_parse(line, strlen(line), test, error) != MLA_OK)
        return error;
    return mla_case_problem(test, INT64_MAX, error);
}

/* Keys all query rows of a ring call see, together, of one batch and head. */
static double ring_keys(const struct mla_ring_args *a)
{
    double sum = 0;
    for (int64_t rank = 0; rank < a->ring_size; rank++)
        for (int64_t row = 0; row < a->q_rows; row++) {
            /* Every position below logical_n has exactly one key. A pad row's position is -1. */
            int64_t seen = mla_oracle_query_position(a, rank, row) + 1;
            sum += (double)(seen < a->logical_n ? seen : a->logical_n);
        }
    return sum;
}

/* The same of a sparse call. */
static double sparse_keys(const struct mla_sparse_args *a)
{
    double sum = 0;
    if (!a->dense)
        return (double)a->queries *
               (double)a->topk; /* an offset's cut is the data's: not counted */
    for (int64_t row = 0; row < a->queries; row++) {
        int64_t offset = a->has_q_pos_offset ? a->q_pos_offset : 0;
        sum += (double)(offset < a->keys - row - 1 ? offset + row + 1 : a->keys);
    }
    return sum;
}

double mla_bench_flops(const struct mla_case *test)
{
    double columns = (double)(mla_case_width(test) + mla_case_value_width(test));
    if (test->op == MLA_OP_RING)
        return ring_keys(&test->ring) * (double)(test->ring.batch * test->ring.heads) * 2 * columns;
    return sparse_keys(&test->sparse) * (double)test->sparse.heads * 2 * columns;
}

double mla_bench_bytes(const struct mla_case *test)
{
    const struct mla_ring_args *a = &test->ring;
    double width = (double)mla_case_width(test);
    if (test->op == MLA_OP_SPARSE)
        return 2 * sparse_keys(&test->sparse) * width;
    int64_t slab = a->ring_size * a->q_rows;
    int64_t moved = a->has_prior ? (a->logical_n + slab - 1) / slab * a->q_rows : a->kv_rows;
    double rows = (double)(a->batch * a->heads * a->q_rows);
    double shards = (double)(a->batch * moved * a->ring_size);
    return 2 * (double)a->ring_size * rows * (width + (double)a->head_dim_v) +
           2 * shards * width * (double)a->ring_size; /* its own, and ring_size - 1 journeys */
}
