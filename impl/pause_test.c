/* SPDX-License-Identifier: Apache-2.0
 *
 * pause_test.c - the threads of a call, held up wherever they can meet, give the same bits.
 *
 * The library is linked in a build that calls mla_pause() at each such place (pause.h). There a
 * thread goes on, gives way, or sleeps, as a number drawn from the case, the place and the count of
 * its own pauses says: no clock and no chance, although the scheduler has the last word. Every
 * layout, topology, number of ranks, links and threads goes through it, and so does every kernel
 * this CPU can run: what a step reads ahead or shares is its own. Each call is compared
 * with the one that a single thread made without pauses; so are the gathered buffers with what must
 * have passed through every rank. A wakeup that is lost shows as a call that does not end. Run by the
 * thread sanitizer, which sees whether something was read before it was published.
 */
#include "impl/pause.h"

#include "impl/test_data.h"
#include "impl/test_kernels.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define RANKS_MAX    8
#define THREADS_MAX  8
#define LINKS_MAX    4
#define HEADS        2
#define ROWS         32
#define WIDTH        64
#define VALUES       32
#define PATIENCE     60 /* seconds for one call */

static atomic_ullong seed;      /* 0: nobody is held up */
static atomic_ullong threads_n; /* begun in this call */
static atomic_llong paused_n[MLA_PAUSES_N];

static _Thread_local uint64_t my_seed; /* the call this thread was last seen in */
static _Thread_local uint64_t my_number;
static _Thread_local uint64_t my_pauses_n;

void mla_pause(enum mla_pause place)
{
    const uint64_t call = atomic_load_explicit(&seed, memory_order_relaxed);
    if (call == 0) {
        return;
    }
    if (my_seed != call) {
        my_seed = call;
        my_number = atomic_fetch_add_explicit(&threads_n, 1, memory_order_relaxed);
        my_pauses_n = 0;
    }
    const uint64_t drawn = test_mix(call + (my_number << 32), my_pauses_n++ * 16 + (uint64_t)place);
    atomic_fetch_add_explicit(&paused_n[place], 1, memory_order_relaxed);
    if (drawn % 8 == 0) {
        const struct timespec nap = {.tv_nsec = 1000 << (drawn >> 8) % 8};
        nanosleep(&nap, NULL);
    } else if (drawn % 8 < 3) {
        sched_yield();
    }
}

enum mode { CONTIGUOUS, BALANCED, CHUNKED, ROTATED, MODES_N };

struct call {
    struct mla_ring_args args;
    uint16_t *q[RANKS_MAX], *kv[RANKS_MAX], *gathered[RANKS_MAX], *out[RANKS_MAX];
    const uint16_t *q_in[RANKS_MAX], *kv_in[RANKS_MAX];
    float *stats[RANKS_MAX];
    size_t gathered_bytes, out_bytes, stats_bytes;
    int64_t moved_rows;
};

static struct call *make(int64_t ranks_n, enum mode mode, int32_t topology)
{
    struct call *c = test_alloc(sizeof *c);
    const int64_t kv_rows = mode == CONTIGUOUS || mode == BALANCED ? ROWS : 3 * ROWS;
    const int64_t round = ranks_n * ROWS;
    memset(c, 0, sizeof *c);
    c->args = (struct mla_ring_args){.struct_size = sizeof c->args,
                                     .ring_size = ranks_n,
                                     .batch = 1,
                                     .heads = HEADS,
                                     .q_rows = ROWS,
                                     .kv_rows = kv_rows,
                                     .kv_batch = 1,
                                     .kv_heads = 1,
                                     .kv_head_dim = WIDTH,
                                     .gathered_rows = ranks_n * kv_rows,
                                     .gathered_batch = 1,
                                     .head_dim = WIDTH,
                                     .head_dim_v = VALUES,
                                     .logical_n = ranks_n * kv_rows,
                                     .is_balanced = mode == BALANCED,
                                     .topology = topology,
                                     .num_links = 1,
                                     .q_chunk_size = 32,
                                     .k_chunk_size = 32,
                                     .dim = 2,
                                     .threads = 1,
                                     .q = c->q_in,
                                     .kv = c->kv_in,
                                     .gathered = c->gathered,
                                     .out = c->out,
                                     .stats = c->stats};
    c->moved_rows = kv_rows;
    if (mode == BALANCED) {
        c->args.q_chunk_size = 32;
        c->args.q_rows = c->args.kv_rows = c->moved_rows = 2 * ROWS;
        c->args.gathered_rows = c->args.logical_n = ranks_n * 2 * ROWS;
    } else if (mode == ROTATED) { /* a full chunk from inside a slab on: it wraps */
        c->args.has_prior = 1;
        c->args.kv_actual_isl = round / 64 * 32;
        c->args.logical_n = c->args.kv_actual_isl + round;
        c->moved_rows = (c->args.logical_n + round - 1) / round * ROWS;
    }
    const int64_t lines_n = HEADS * c->args.q_rows;
    c->gathered_bytes = (size_t)(c->args.gathered_rows * WIDTH) * 2;
    c->out_bytes = (size_t)(lines_n * VALUES) * 2;
    c->stats_bytes = (size_t)(lines_n * 2) * 4;
    for (int64_t rank = 0; rank < ranks_n; rank++) {
        c->q_in[rank] = c->q[rank] = test_tensor(lines_n * WIDTH, 10 + (uint64_t)rank);
        c->kv_in[rank] = c->kv[rank] = test_tensor(c->args.kv_rows * WIDTH, 20 + (uint64_t)rank);
        c->gathered[rank] = test_alloc(c->gathered_bytes);
        c->out[rank] = test_alloc(c->out_bytes);
        c->stats[rank] = test_alloc(c->stats_bytes);
    }
    return c;
}

static void destroy(struct call *c)
{
    for (int64_t rank = 0; rank < c->args.ring_size; rank++) {
        free(c->q[rank]);
        free(c->kv[rank]);
        free(c->gathered[rank]);
        free(c->out[rank]);
        free(c->stats[rank]);
    }
    free(c);
}

static void run(struct call *c, const struct mla_kernel *kernel, uint64_t with_seed)
{
    char message[300] = "";
    for (int64_t rank = 0; rank < c->args.ring_size; rank++) {
        memset(c->gathered[rank], 0xff, c->gathered_bytes);
        memset(c->out[rank], 0xff, c->out_bytes);
        memset(c->stats[rank], 0xff, c->stats_bytes);
    }
    atomic_store(&threads_n, 0);
    atomic_store(&seed, with_seed);
    alarm(PATIENCE);
    const int32_t status = kernel->ring(&c->args, message, sizeof message);
    alarm(0);
    atomic_store(&seed, 0);
    if (status != MLA_OK) {
        fail_msg("status %d: %s", (int)status, message);
    }
}

static void expect_gathered(const struct call *c)
{
    const int64_t ranks_n = c->args.ring_size;
    const size_t bytes = (size_t)(c->moved_rows * WIDTH) * 2;
    for (int64_t i = 0; i < ranks_n * ranks_n && ranks_n > 1; i++) {
        const int64_t source = i % ranks_n;
        assert_memory_equal(c->gathered[i / ranks_n] + source * c->args.kv_rows * WIDTH,
                            c->kv[source], bytes);
    }
}

/* All numbers of links and threads for one ring; the seeds follow from the case. */
static void try_ring(const struct mla_kernel *kernel, int64_t ranks_n, enum mode mode,
                     int32_t topology)
{
    struct call *alone = make(ranks_n, mode, topology);
    struct call *held_up = make(ranks_n, mode, topology);
    run(alone, kernel, 0);
    expect_gathered(alone);
    for (int64_t i = 0; i < LINKS_MAX * THREADS_MAX; i++) {
        const uint64_t case_seed =
            1 + (uint64_t)(((ranks_n * MODES_N + mode) * 2 + topology) * 100 + i);
        held_up->args.num_links = 1 + i % LINKS_MAX;
        held_up->args.threads = 1 + i / LINKS_MAX;
        run(held_up, kernel, case_seed);
        for (int64_t rank = 0; rank < ranks_n; rank++) {
            assert_memory_equal(alone->out[rank], held_up->out[rank], alone->out_bytes);
            assert_memory_equal(alone->stats[rank], held_up->stats[rank], alone->stats_bytes);
        }
        expect_gathered(held_up);
    }
    destroy(held_up);
    destroy(alone);
}

static void test_ring(void **state)
{
    size_t kernels_n;
    const struct mla_kernel *const *kernels = test_kernels(&kernels_n);
    (void)state;
    for (int64_t ranks_n = 1; ranks_n <= RANKS_MAX; ranks_n++) {
        for (int i = 0; i < 2 * MODES_N; i++) { /* each kernel in turn, in every mode */
            const size_t turn = (size_t)(ranks_n + i / 2 + i % 2) % kernels_n;
            try_ring(kernels[turn], ranks_n, (enum mode)(i / 2), i % 2);
        }
    }
}

/* Few query rows with many heads, so that groups of heads are shared out; and some of both. */
static void try_sparse(const struct mla_kernel *kernel)
{
    enum { QUERIES = 6, KEYS = 64, SPARSE_HEADS = 48, LATENT = 512, ROPE = 64, TOPK = 256 };
    const size_t out_bytes = QUERIES * SPARSE_HEADS * LATENT * 2;
    uint16_t *out = test_alloc(out_bytes);
    uint16_t *want = test_alloc(out_bytes);
    int32_t *indices = test_alloc(QUERIES * TOPK * 4);
    uint16_t *q = test_tensor(QUERIES * SPARSE_HEADS * LATENT, 1);
    uint16_t *cache = test_tensor(KEYS * LATENT, 2);
    struct mla_sparse_args args = {.struct_size = sizeof args,
                                   .batch = 1,
                                   .keys = KEYS,
                                   .heads = SPARSE_HEADS,
                                   .latent = LATENT,
                                   .rope = ROPE,
                                   .topk = TOPK,
                                   .cores = 1,
                                   .softmax_scale = 0.0416667f,
                                   .q_lift = q,
                                   .q_pe = q,
                                   .c_kv = cache,
                                   .k_pe = cache,
                                   .topk_indices = indices};
    for (int64_t i = 0; i < QUERIES * TOPK; i++) {
        indices[i] = (int32_t)(test_mix(3, (uint64_t)i) % KEYS);
    }
    for (args.queries = 1; args.queries <= QUERIES; args.queries++) {
        args.threads = 1;
        args.out = want;
        memset(want, 0xff, out_bytes);
        assert_int_equal(kernel->sparse(&args, NULL, 0), MLA_OK);
        args.out = out;
        for (args.threads = 1; args.threads <= THREADS_MAX; args.threads++) {
            memset(out, 0xff, out_bytes);
            atomic_store(&threads_n, 0);
            atomic_store(&seed, (uint64_t)(100 * args.queries + args.threads));
            assert_int_equal(kernel->sparse(&args, NULL, 0), MLA_OK);
            atomic_store(&seed, 0);
            assert_memory_equal(out, want, out_bytes);
        }
    }
    free(cache);
    free(q);
    free(indices);
    free(want);
    free(out);
}

static void test_sparse(void **state)
{
    size_t kernels_n;
    const struct mla_kernel *const *kernels = test_kernels(&kernels_n);
    (void)state;
    for (size_t k = 0; k < kernels_n; k++) {
        try_sparse(kernels[k]);
    }
}

/* Every place was come by, the rare ones too: a sleeper, and someone to wake it. */
static void test_places(void **state)
{
    (void)state;
    for (size_t place = 0; place < COUNT(paused_n); place++) {
        print_message("place %zu: %lld times\n", place, (long long)atomic_load(&paused_n[place]));
    }
    for (size_t place = 0; place < COUNT(paused_n); place++) {
        assert_true(atomic_load(&paused_n[place]) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests_name("pause", tests, NULL, NULL);
}
