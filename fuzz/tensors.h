/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.h - the tensors of a case in guarded memory, filled by its recipe, and the call that uses
 * them.
 *
 * Contents depend only on (seed, tensor, place), so a variant of a case (other threads, layout,
 * poison) has the same numbers wherever they mean something. Whatever must not be read holds
 * poison: keys at positions >= logical_n, other slots, pad query rows, cache rows no row uses,
 * unused slots of tiled indices. Outputs and scratch hold a pattern that no result can be.
 */
#ifndef MLA_FUZZ_TENSORS_H
#define MLA_FUZZ_TENSORS_H

#include "fuzz/case.h"
#include "fuzz/guard.h"
#include "oracle/oracle.h"

enum mla_tensor_role { MLA_TENSOR_INPUT, MLA_TENSOR_SCRATCH, MLA_TENSOR_OUTPUT };

/* How a kernel elsewhere reports the log-sum-exp of a row without keys. */
enum mla_lse_empty { MLA_LSE_EMPTY_MINUS_INF, MLA_LSE_EMPTY_PLUS_INF };

/* Rows from .. to-1 of a cache. */
struct mla_extent {
    int64_t from, to;
};

struct mla_tensor {
    char name[16];
    int64_t rank;
    enum mla_tensor_role role;
    int64_t elements_n;
    size_t element_bytes;
    struct mla_guard guard;
    /* Of a thin cache (mla_case_is_thin), the rows that were made: all that is filled, copied,
     * hashed and checked. NULL: the whole tensor. */
    const struct mla_extent *made;
    size_t made_n;
    int64_t row_elements;
    uint64_t check; /* input: mla_tensor_check of the contents as made */
};

#define MLA_TENSORS_MAX (5 * MLA_RING_SIZE_MAX)

struct mla_tensors {
    struct mla_case test;
    bool plain;    /* in memory without guards */
    uint32_t dirt; /* which pattern outputs and scratch hold */
    size_t n;
    struct mla_tensor list[MLA_TENSORS_MAX];
    struct mla_extent *made; /* of all thin caches alike; NULL without */
    size_t made_n;
    /* The call. Per-rank arrays are this structure's own: do not copy it. */
    struct mla_ring_args ring;
    struct mla_sparse_args sparse;
    const uint16_t *q[MLA_RING_SIZE_MAX], *kv[MLA_RING_SIZE_MAX];
    uint16_t *gathered[MLA_RING_SIZE_MAX], *out[MLA_RING_SIZE_MAX];
    float *stats[MLA_RING_SIZE_MAX];
    /* Results that came from a file (exchange_result.c), by rank; NULL of a call. wide: the elements of
     * out in another format than bf16, in the same places; out holds them rounded to bf16 then. lse:
     * max + ln(sum) of rows by batch entry, head and row (sparse: row, head), in the place of stats. */
    enum mla_out_format out_format;
    float *wide[MLA_RING_SIZE_MAX], *lse[MLA_RING_SIZE_MAX];
    int32_t lse_roundings; /* that the kernel's model allows them: mla_bound_lse_accepts */
    enum mla_lse_empty lse_empty;
};

/*
 * Make and fill. The case must have no problem (mla_case_problem). On error everything is freed and
 * error says why: memory, an override that names no element, or a file of data that is not there or is
 * another one (MLA_ERR_PARAM). *tensors is NULL then.
 */
int32_t mla_tensors_make(const struct mla_case *test, uint32_t dirt, struct mla_tensors **tensors,
                         char error[MLA_CASE_ERROR_MAX]);
/* The same in memory without guards, for timing: see mla_guard_make_plain. */
int32_t mla_tensors_make_plain(const struct mla_case *test, struct mla_tensors **tensors,
                               char error[MLA_CASE_ERROR_MAX]);
/*
 * The same numbers for a case that differs from theirs only in how the call is made (threads, dirt):
 * inputs are copied as they are, which is quicker than making them. Otherwise like mla_tensors_make,
 * but nothing is written over or broken again. The case must have the same tensors, and set_n 0.
 */
int32_t mla_tensors_copy(const struct mla_tensors *from, const struct mla_case *test, uint32_t dirt,
                         struct mla_tensors **tensors, char error[MLA_CASE_ERROR_MAX]);
/*
 * Tensors of any case whose inputs are made from another call's by `arrange`, which writes every
 * element of them and returns false without memory. put and set of the case are not applied.
 */
int32_t mla_tensors_arrange(const struct mla_tensors *from, const struct mla_case *test,
                            bool (*arrange)(const struct mla_tensors *from, struct mla_tensors *to),
                            struct mla_tensors **tensors, char error[MLA_CASE_ERROR_MAX]);
void mla_tensors_free(struct mla_tensors *tensors);

/* Put the pattern into outputs and scratch again. */
void mla_tensors_reset(struct mla_tensors *tensors);

/* The bf16 / float32 pattern of outputs and scratch: both are NaN. */
uint16_t mla_tensors_pattern16(const struct mla_tensors *tensors);
uint32_t mla_tensors_pattern32(const struct mla_tensors *tensors);

/* Say which rows of the thin caches are made: extents (malloc) is the tensors' from now on. */
void mla_tensors_set_made(struct mla_tensors *tensors, struct mla_extent *extents, size_t n);

/* The tensor of that name and rank, or NULL. */
struct mla_tensor *mla_tensors_find(struct mla_tensors *tensors, const char *name, int64_t rank);
/* Its bf16 elements, of one that is there. */
uint16_t *mla_tensors_bf16(struct mla_tensors *tensors, const char *name, int64_t rank);

/* A 64-bit hash of a tensor's bytes; tests keep values of it, so it never changes. */
uint64_t mla_tensor_hash(const struct mla_tensor *tensor);
/* A quicker one, for comparison within a process: any single change of bytes changes it. */
uint64_t mla_tensor_check(const struct mla_tensor *tensor);
/* The contents of a tensor into another of the same size. */
void mla_tensor_copy(const struct mla_tensor *from, struct mla_tensor *to);

#endif
