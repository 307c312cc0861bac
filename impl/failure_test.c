/* SPDX-License-Identifier: Apache-2.0
 *
 * failure_test.c - a call whose n-th allocation or thread cannot be had, for every n.
 *
 * The program is linked with --wrap for the functions below, so that every request the library
 * makes passes through here. The n-th is refused; the call must then return MLA_ERR_NOMEM with a
 * message, have written nothing, released everything and joined its threads, in a number of steps
 * that its threads bound: that it ends at once is not left to a clock. A call that never comes to
 * its n-th request must succeed, which ends the loop.
 */
#include "impl/registry.h"
#include "impl/test_data.h"
#include "impl/test_kernels.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *memory);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
int __real_pthread_join(pthread_t thread, void **result);
int __real_pthread_mutex_lock(pthread_mutex_t *lock);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *memory);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

static const struct mla_kernel *kernel; /* whose turn it is */
static atomic_bool watching;
static atomic_llong left;      /* requests until the one that is refused */
static atomic_llong refused_n; /* requests refused */
static atomic_llong held_n;    /* allocations not yet freed, threads not yet joined */
static atomic_llong asked_n;   /* bytes requested */
static atomic_llong after_n;   /* requests after the one that was refused */
static atomic_llong locked_n;  /* times a lock was asked for */

static bool refuse(void)
{
    if (!atomic_load(&watching)) {
        return false;
    }
    const long long turn = atomic_fetch_sub(&left, 1);
    if (turn != 0) {
        atomic_fetch_add(&after_n, turn < 0 ? 1 : 0);
        return false;
    }
    atomic_fetch_add(&refused_n, 1);
    return true;
}

static void *hold(void *memory)
{
    if (atomic_load(&watching) && memory != NULL) {
        atomic_fetch_add(&held_n, 1);
    }
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    atomic_fetch_add(&asked_n, (long long)bytes);
    return refuse() ? NULL : hold(__real_malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    atomic_fetch_add(&asked_n, (long long)(n * bytes));
    return refuse() ? NULL : hold(__real_calloc(n, bytes));
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    atomic_fetch_add(&asked_n, (long long)bytes);
    return refuse() ? NULL : hold(__real_aligned_alloc(alignment, bytes));
}

void __wrap_free(void *memory)
{
    if (atomic_load(&watching) && memory != NULL) {
        atomic_fetch_sub(&held_n, 1);
    }
    __real_free(memory);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
    if (refuse()) {
        return EAGAIN;
    }
    const int error = __real_pthread_create(thread, attributes, start, argument);
    if (atomic_load(&watching) && error == 0) {
        atomic_fetch_add(&held_n, 1);
    }
    return error;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    if (atomic_load(&watching)) {
        atomic_fetch_sub(&held_n, 1);
    }
    return __real_pthread_join(thread, result);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    atomic_fetch_add(&locked_n, atomic_load(&watching) ? 1 : 0);
    return __real_pthread_mutex_lock(lock);
}

/* ---- the calls --------------------------------------------------------------------------------*/

#define RANKS 3

struct buffers {
    uint16_t q[RANKS][64 * 64];
    uint16_t kv[RANKS][64 * 64];
    int32_t indices[2 * 128];
    uint16_t lift[2 * 48 * 512];
    uint16_t cache[128 * 512];
    struct {
        uint16_t gathered[RANKS][RANKS * 64 * 64];
        uint16_t out[RANKS][64 * 32];
        float stats[RANKS][2 * 64];
        uint16_t sparse_out[2 * 48 * 512];
        float sparse_stats[2 * 48 * 2];
    } written;
};

static int64_t q_rows = 64; /* of a rank's ring call, 64 at most */

static void call_ring(struct buffers *b, int64_t threads, int32_t *status, char *message,
                      size_t message_bytes)
{
    const uint16_t *q[RANKS];
    const uint16_t *kv[RANKS];
    uint16_t *gathered[RANKS];
    uint16_t *out[RANKS];
    float *stats[RANKS];
    const struct mla_ring_args args = {.struct_size = sizeof args,
                                       .ring_size = RANKS,
                                       .batch = 1,
                                       .heads = 1,
                                       .q_rows = q_rows,
                                       .kv_rows = 64,
                                       .kv_batch = 1,
                                       .kv_heads = 1,
                                       .kv_head_dim = 64,
                                       .gathered_rows = RANKS * 64,
                                       .gathered_batch = 1,
                                       .head_dim = 64,
                                       .head_dim_v = 32,
                                       .logical_n = RANKS * 64,
                                       .num_links = 2,
                                       .q_chunk_size = 32,
                                       .k_chunk_size = 32,
                                       .dim = 2,
                                       .threads = threads,
                                       .q = q,
                                       .kv = kv,
                                       .gathered = gathered,
                                       .out = out,
                                       .stats = stats};
    for (int i = 0; i < RANKS; i++) {
        q[i] = b->q[i];
        kv[i] = b->kv[i];
        gathered[i] = b->written.gathered[i];
        out[i] = b->written.out[i];
        stats[i] = b->written.stats[i];
    }
    *status = kernel->ring(&args, message, message_bytes);
}

static void call_sparse(struct buffers *b, int64_t threads, int32_t *status, char *message,
                        size_t message_bytes)
{
    const struct mla_sparse_args args = {.struct_size = sizeof args,
                                         .batch = 1,
                                         .queries = 2,
                                         .keys = 128,
                                         .heads = 48,
                                         .latent = 512,
                                         .rope = 64,
                                         .topk = 128,
                                         .cores = 1,
                                         .threads = threads,
                                         .softmax_scale = 0.0416667f,
                                         .q_lift = b->lift,
                                         .q_pe = b->lift,
                                         .c_kv = b->cache,
                                         .k_pe = b->cache,
                                         .topk_indices = b->indices,
                                         .out = b->written.sparse_out,
                                         .stats = b->written.sparse_stats};
    *status = kernel->sparse(&args, message, message_bytes);
}

static void every_failure(void (*call)(struct buffers *, int64_t, int32_t *, char *, size_t),
                          int64_t threads, int64_t requests_n)
{
    int64_t n = 0;
    for (bool is_over = false; !is_over; n++) {
        struct buffers *b = test_alloc(sizeof *b);
        int32_t status = MLA_OK;
        char message[200] = "";
        memset(b, 0, sizeof *b);
        memset(&b->written, 0x5a, sizeof b->written);
        struct buffers *before = test_copy(b, sizeof *b);

        atomic_store(&left, n);
        atomic_store(&refused_n, 0);
        atomic_store(&held_n, 0);
        atomic_store(&after_n, 0);
        atomic_store(&locked_n, 0);
        atomic_store(&watching, true);
        alarm(60); /* a call that never ends fails here */
        call(b, threads, &status, message, sizeof message);
        alarm(0);
        atomic_store(&watching, false);

        assert_int_equal(atomic_load(&held_n), 0);
        is_over = atomic_load(&refused_n) == 0;
        if (is_over) {
            assert_int_equal(status, MLA_OK);
            assert_string_equal(message, "");
        } else {
            assert_int_equal(status, MLA_ERR_NOMEM);
            assert_memory_equal(message, "threads = ", 10);
            assert_non_null(strstr(message, "could not be had"));
            assert_memory_equal(&b->written, &before->written, sizeof b->written);
            /* How soon it ends does not depend on the call's size: no work was begun, each thread
             * asks for no more than its desk and reports once, the last to open the gate besides. */
            assert_true(atomic_load(&after_n) < 4 * threads);
            assert_true(atomic_load(&locked_n) <= threads + 1);
        }
        free(before);
        free(b);
        assert_true(n < 200);
    }
    assert_int_equal(n - 1, requests_n); /* and one call that met no refusal */
}

static void test_ring(void **state)
{
    size_t n;
    const struct mla_kernel *const *kernels = test_kernels(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        kernel = kernels[i];
        for (int64_t threads = 1; threads <= 8; threads++) {
            /* pieces, list of desks, list of workers; per worker 3 of a desk and its thread */
            every_failure(call_ring, threads, 3 + 3 * threads + threads - 1);
        }
    }
}

static void test_sparse(void **state)
{
    size_t n;
    const struct mla_kernel *const *kernels = test_kernels(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        kernel = kernels[i];
        for (int64_t threads = 1; threads <= 6; threads++) { /* the same without pieces */
            every_failure(call_sparse, threads, 2 + 3 * threads + threads - 1);
        }
    }
}

/* A ring call of twice as many query rows needs no byte more: memory is for threads, not rows. */
static void expect_no_growth(struct buffers *b)
{
    for (int64_t threads = 1; threads <= 4; threads++) {
        int64_t asked[2];
        for (int turn = 0; turn < 2; turn++) {
            int32_t status = MLA_OK;
            char message[200] = "";
            q_rows = 32 + 32 * turn;
            atomic_store(&asked_n, 0);
            call_ring(b, threads, &status, message, sizeof message);
            asked[turn] = atomic_load(&asked_n);
            assert_int_equal(status, MLA_OK);
        }
        assert_true(asked[0] > 0);
        assert_int_equal(asked[0], asked[1]);
    }
}

static void test_memory(void **state)
{
    size_t n;
    const struct mla_kernel *const *kernels = test_kernels(&n);
    struct buffers *b = test_alloc(sizeof *b);
    memset(b, 0, sizeof *b);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        kernel = kernels[i];
        expect_no_growth(b);
    }
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests_name("failure", tests, NULL, NULL);
}
