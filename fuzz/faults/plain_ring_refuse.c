/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_refuse.c - the refusals, and kernels that get one of them wrong.
 *
 * Who accepts what must be refused goes on with a call of which everything else is right.
 */
#include "fuzz/faults/plain_ring.h"

#include "impl/validate.h"

#include <stdio.h>
#include <string.h>

/* The call with the one thing mended that the fault does not mind, false where that is not broken. */
static bool mended(const struct mla_ring_args *args, enum mla_plain_fault fault,
                   struct mla_ring_args *call)
{
    *call = *args;
    switch (fault) {
    case MLA_FAULT_SLOT_UNCHECKED:
        call->kv_cache_batch_idx = 0;
        return args->has_slot != 0;
    case MLA_FAULT_LENGTH_BY_GATHERED:
        /* Sizes whose product overflows are refused before the length is looked at. */
        if (__builtin_mul_overflow(args->ring_size, args->kv_rows, &call->logical_n)) {
            call->logical_n = INT64_MAX;
        }
        return args->logical_n <= args->gathered_rows;
    case MLA_FAULT_TOPOLOGY_UNKNOWN_LINEAR:
        call->topology = MLA_TOPOLOGY_LINEAR;
        return true;
    case MLA_FAULT_KV_HEADS_ACCEPTED:
        call->kv_heads = 1;
        return args->kv_heads >= 1;
    case MLA_FAULT_UNEVEN_HALVES_ACCEPTED:
        call->q_chunk_size = MLA_TILE;
        return args->is_balanced != 0 && args->q_chunk_size >= MLA_TILE &&
               args->q_chunk_size % MLA_TILE == 0;
    default:
        return false;
    }
}

/* Is everything broken in what is tested first? Then what comes later in the table is named. */
static int32_t refuse_late(const struct mla_ring_args *args, char *message, size_t bytes)
{
    struct mla_ring_args call = *args;
    call.num_links = 1;
    call.threads = 0;
    call.dim = 2;
    call.topology = MLA_TOPOLOGY_RING;
    return mla_validate_ring(&call, message, bytes);
}

/* "field = value: rule" without the value. */
static void cut_value(char *message)
{
    char *value = strstr(message, " = ");
    char *rule = value ? strstr(value, ": ") : NULL;
    if (rule) {
        memmove(value, rule, strlen(rule) + 1);
    }
}

static bool names(const char *message, const char *field)
{
    size_t n = strlen(field);
    return strncmp(message, field, n) == 0 && message[n] == ' ';
}

/* A refusal that is due, spoilt. */
static int32_t spoilt(const struct mla_ring_args *args, struct mla_plain_variant variant,
                      int32_t status, char *text, size_t bytes)
{
    char late[512];
    if (names(text, "num_links") && mla_plain_has(variant, MLA_FAULT_STATUS_SHAPE)) {
        return MLA_ERR_SHAPE;
    }
    if (variant.fault == MLA_FAULT_REFUSAL_ORDER &&
        refuse_late(args, late, sizeof late) == MLA_ERR_SHAPE && status == MLA_ERR_PARAM &&
        mla_plain_has(variant, MLA_FAULT_REFUSAL_ORDER)) {
        snprintf(text, bytes, "%s", late);
        return MLA_ERR_SHAPE;
    }
    if (strstr(text, " = ") && mla_plain_has(variant, MLA_FAULT_RING_MESSAGE_WITHOUT_VALUE)) {
        cut_value(text);
    }
    if (args->out && args->ring_size >= 1 && args->out[0] &&
        mla_plain_has(variant, MLA_FAULT_WRITES_BEFORE_REFUSING)) {
        args->out[0][0] = 0;
    }
    return status;
}

int32_t mla_plain_ring_refuse(const struct mla_ring_args *args, struct mla_plain_variant variant,
                              struct mla_ring_args *call, char *message, size_t message_bytes)
{
    char text[512];
    int32_t status = mla_validate_ring(args, text, sizeof text);
    bool is_whole = args && args->struct_size == sizeof *args;
    if (status != MLA_OK && is_whole && mended(args, variant.fault, call) &&
        mla_validate_ring(call, NULL, 0) == MLA_OK && mla_plain_has(variant, variant.fault)) {
        bool as_given = variant.fault == MLA_FAULT_SLOT_UNCHECKED ||
                        variant.fault == MLA_FAULT_LENGTH_BY_GATHERED;
        *call = as_given ? *args : *call;
        status = MLA_OK;
        text[0] = '\0';
    } else if (status != MLA_OK) {
        status = is_whole ? spoilt(args, variant, status, text, sizeof text) : status;
    } else {
        *call = *args;
        if (args->k_chunk_size > args->kv_rows &&
            mla_plain_has(variant, MLA_FAULT_LARGE_CHUNK_REFUSED)) {
            snprintf(text, sizeof text, "k_chunk_size = %lld: must not exceed kv_rows",
                     (long long)args->k_chunk_size);
            status = MLA_ERR_SHAPE;
        }
    }
    if (message && message_bytes > 0) {
        snprintf(message, message_bytes, "%s", text);
    }
    return status;
}
