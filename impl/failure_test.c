/* SPDX-License-Identifier: Apache-2.0
 *
 * failure_test.c - a call whose n-th allocation or thread cannot be had, for every n.
 *
 * The program is linked with --wrap for the functions below, so that every request the library
 * makes passes through here. The n-th is refused; the call must then return MLA_ERR_NOMEM with a
 * message, have written nothing, released everything and joined its threads. A call that never
 * comes to its n-th request must succeed, which ends the loop.
 */
#include "impl/registry.h"
#include "impl/test_data.h"
#include "impl/test_kernels.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *memory);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
int __real_pthread_join(pthread_t thread, void **result);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *memory);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
int __wrap_pthread_join(pthread_t thread, void **result);

static const struct mla_kernel *kernel; /* whose turn it is */
static atomic_bool watching;
static atomic_llong left;      /* requests until the one that is refused */
static atomic_llong refused_n; /* requests refused */
static atomic_llong held_n;    /* allocations not yet freed, threads not yet joined */

static bool refuse(void)
{
    if (!atomic_load(&watching) || atomic_fetch_sub(&left, 1) != 0) {
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
    return refuse() ? NULL : hold(__real_malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return refuse() ? NULL : hold(__real_calloc(n, bytes));
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
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
                                       .q_rows = 64,
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
                          int64_t threads, int64_t at_least)
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
        atomic_store(&watching, true);
        call(b, threads, &status, message, sizeof message);
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
        }
        free(before);
        free(b);
        assert_true(n < 200);
    }
    assert_true(n > at_least);
}

static void test_ring(void **state)
{
    size_t n;
    const struct mla_kernel *const *kernels = test_kernels(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        kernel = kernels[i];
        every_failure(call_ring, 1, 12); /* pieces, scratch list, team, 1 scratch, 9 of ranks */
        every_failure(call_ring, 2, 14); /* and a thread and its scratch */
        every_failure(call_ring, 3, 16);
        every_failure(call_ring, 6, 22);
    }
}

static void test_sparse(void **state)
{
    size_t n;
    const struct mla_kernel *const *kernels = test_kernels(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        kernel = kernels[i];
        every_failure(call_sparse, 1, 5); /* team, desks, and 3 of a desk */
        every_failure(call_sparse, 3, 13);
        every_failure(call_sparse, 4, 17);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_sparse),
    };
    return cmocka_run_group_tests_name("failure", tests, NULL, NULL);
}
