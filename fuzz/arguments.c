/* SPDX-License-Identifier: Apache-2.0
 *
 * arguments.c - argument structures from a case, and the table of their fields by ABI name.
 */
#include "fuzz/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array)   (sizeof(array) / sizeof((array)[0]))
#define RING(member)   offsetof(struct mla_ring_args, member)
#define SPARSE(member) offsetof(struct mla_sparse_args, member)

static const struct mla_argument ring_arguments[] = {
    {"struct_size", MLA_ARGUMENT_U32, RING(struct_size)},
    {"ring_size", MLA_ARGUMENT_I64, RING(ring_size)},
    {"batch", MLA_ARGUMENT_I64, RING(batch)},
    {"heads", MLA_ARGUMENT_I64, RING(heads)},
    {"q_rows", MLA_ARGUMENT_I64, RING(q_rows)},
    {"kv_rows", MLA_ARGUMENT_I64, RING(kv_rows)},
    {"kv_batch", MLA_ARGUMENT_I64, RING(kv_batch)},
    {"kv_heads", MLA_ARGUMENT_I64, RING(kv_heads)},
    {"kv_head_dim", MLA_ARGUMENT_I64, RING(kv_head_dim)},
    {"gathered_rows", MLA_ARGUMENT_I64, RING(gathered_rows)},
    {"gathered_batch", MLA_ARGUMENT_I64, RING(gathered_batch)},
    {"head_dim", MLA_ARGUMENT_I64, RING(head_dim)},
    {"head_dim_v", MLA_ARGUMENT_I64, RING(head_dim_v)},
    {"logical_n", MLA_ARGUMENT_I64, RING(logical_n)},
    {"has_scale", MLA_ARGUMENT_I32, RING(has_scale)},
    {"scale", MLA_ARGUMENT_FLOAT, RING(scale)},
    {"is_balanced", MLA_ARGUMENT_I32, RING(is_balanced)},
    {"has_slot", MLA_ARGUMENT_I32, RING(has_slot)},
    {"kv_cache_batch_idx", MLA_ARGUMENT_I64, RING(kv_cache_batch_idx)},
    {"has_prior", MLA_ARGUMENT_I32, RING(has_prior)},
    {"kv_actual_isl", MLA_ARGUMENT_I64, RING(kv_actual_isl)},
    {"topology", MLA_ARGUMENT_I32, RING(topology)},
    {"num_links", MLA_ARGUMENT_I64, RING(num_links)},
    {"q_chunk_size", MLA_ARGUMENT_I64, RING(q_chunk_size)},
    {"k_chunk_size", MLA_ARGUMENT_I64, RING(k_chunk_size)},
    {"dim", MLA_ARGUMENT_I64, RING(dim)},
    {"threads", MLA_ARGUMENT_I64, RING(threads)},
    {"q", MLA_ARGUMENT_RANKED, RING(q)},
    {"kv", MLA_ARGUMENT_RANKED, RING(kv)},
    {"gathered", MLA_ARGUMENT_RANKED, RING(gathered)},
    {"out", MLA_ARGUMENT_RANKED, RING(out)},
    {"stats", MLA_ARGUMENT_RANKED, RING(stats)},
};

static const struct mla_argument sparse_arguments[] = {
    {"struct_size", MLA_ARGUMENT_U32, SPARSE(struct_size)},
    {"batch", MLA_ARGUMENT_I64, SPARSE(batch)},
    {"queries", MLA_ARGUMENT_I64, SPARSE(queries)},
    {"keys", MLA_ARGUMENT_I64, SPARSE(keys)},
    {"heads", MLA_ARGUMENT_I64, SPARSE(heads)},
    {"latent", MLA_ARGUMENT_I64, SPARSE(latent)},
    {"rope", MLA_ARGUMENT_I64, SPARSE(rope)},
    {"topk", MLA_ARGUMENT_I64, SPARSE(topk)},
    {"topk_tiled", MLA_ARGUMENT_I32, SPARSE(topk_tiled)},
    {"dense", MLA_ARGUMENT_I32, SPARSE(dense)},
    {"has_q_pos_offset", MLA_ARGUMENT_I32, SPARSE(has_q_pos_offset)},
    {"q_pos_offset", MLA_ARGUMENT_I64, SPARSE(q_pos_offset)},
    {"out_order", MLA_ARGUMENT_I32, SPARSE(out_order)},
    {"cores", MLA_ARGUMENT_I64, SPARSE(cores)},
    {"threads", MLA_ARGUMENT_I64, SPARSE(threads)},
    {"softmax_scale", MLA_ARGUMENT_FLOAT, SPARSE(softmax_scale)},
    {"q_lift", MLA_ARGUMENT_POINTER, SPARSE(q_lift)},
    {"q_pe", MLA_ARGUMENT_POINTER, SPARSE(q_pe)},
    {"c_kv", MLA_ARGUMENT_POINTER, SPARSE(c_kv)},
    {"k_pe", MLA_ARGUMENT_POINTER, SPARSE(k_pe)},
    {"topk_indices", MLA_ARGUMENT_POINTER, SPARSE(topk_indices)},
    {"out", MLA_ARGUMENT_POINTER, SPARSE(out)},
    {"stats", MLA_ARGUMENT_POINTER, SPARSE(stats)},
};

const struct mla_argument *mla_arguments(enum mla_op op, size_t *arguments_n)
{
    *arguments_n = op == MLA_OP_RING ? COUNT(ring_arguments) : COUNT(sparse_arguments);
    return op == MLA_OP_RING ? ring_arguments : sparse_arguments;
}

struct mla_ring_args mla_arguments_ring(const struct mla_case *test)
{
    struct mla_ring_args args = test->ring;
    args.struct_size = sizeof args;
    args.kv_heads = 1;
    args.kv_head_dim = args.head_dim;
    args.dim = 2;
    return args;
}

struct mla_sparse_args mla_arguments_sparse(const struct mla_case *test)
{
    struct mla_sparse_args args = test->sparse;
    args.struct_size = sizeof args;
    args.batch = 1;
    args.latent = MLA_LATENT;
    return args;
}

/*
 * The table row for "q[2]" is "q"; *rank becomes 2, or -1 without brackets. Brackets hold one or two
 * digits and belong to per-rank pointers only.
 */
static const struct mla_argument *find(enum mla_op op, const char *field, int64_t *rank)
{
    size_t arguments_n, name_n = strcspn(field, "[");
    const struct mla_argument *arguments = mla_arguments(op, &arguments_n);
    *rank = -1;
    if (field[name_n] == '[') {
        size_t digits_n = strspn(field + name_n + 1, "0123456789");
        if (digits_n < 1 || digits_n > 2 || strcmp(field + name_n + 1 + digits_n, "]") != 0)
            return NULL;
        *rank = strtoll(field + name_n + 1, NULL, 10);
    }
    for (size_t i = 0; i < arguments_n; i++)
        if (strlen(arguments[i].name) == name_n && memcmp(arguments[i].name, field, name_n) == 0)
            return *rank >= 0 && arguments[i].kind != MLA_ARGUMENT_RANKED ? NULL : &arguments[i];
    return NULL;
}

static bool set_integer(char *at, enum mla_argument_kind kind, const char *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (errno != 0 || *end != '\0' || end == value)
        return false;
    if (kind == MLA_ARGUMENT_I64) {
        memcpy(at, &(int64_t){number}, sizeof(int64_t));
        return true;
    }
    if (kind == MLA_ARGUMENT_U32) {
        memcpy(at, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
        return number >= 0 && number <= UINT32_MAX;
    }
    memcpy(at, &(int32_t){(int32_t)number}, sizeof(int32_t));
    return number >= INT32_MIN && number <= INT32_MAX;
}

static bool set_null(char *at, const struct mla_argument *argument, int64_t rank)
{
    void *null = NULL, **entries;
    if (argument->kind == MLA_ARGUMENT_POINTER || rank < 0) {
        memcpy(at, &null, sizeof null);
        return true;
    }
    memcpy(&entries, at, sizeof(void *));
    if (entries == NULL || argument->kind != MLA_ARGUMENT_RANKED || rank >= MLA_RING_SIZE_MAX)
        return false;
    entries[rank] = NULL;
    return true;
}

bool mla_arguments_set(enum mla_op op, void *args, const struct mla_violation *violation)
{
    int64_t rank;
    const struct mla_argument *argument = find(op, violation->field, &rank);
    if (argument == NULL)
        return false;
    char *at = (char *)args + argument->offset;
    if (argument->kind == MLA_ARGUMENT_POINTER || argument->kind == MLA_ARGUMENT_RANKED)
        return strcmp(violation->value, "null") == 0 && set_null(at, argument, rank);
    if (argument->kind == MLA_ARGUMENT_FLOAT) {
        char *end;
        float number = strtof(violation->value, &end);
        memcpy(at, &number, sizeof number);
        return *end == '\0' && end != violation->value;
    }
    return set_integer(at, argument->kind, violation->value);
}
