/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_refuse.c - refusals of the sparse operation: accepted, made up, or answered wrongly.
 *
 * What is refused, and in which words, comes from impl/validate.h; a fault changes one answer. A
 * message there begins with "<field> = <value>: ".
 */
#include "fuzz/faults/plain_list.h"
#include "impl/validate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct answer {
    int32_t status;
    char text[512];
};

/* Refusals that a fault does not make: what the message must hold. */
static const struct {
    enum mla_plain_fault fault;
    const char *field;
    const char *rule;
} accepted[] = {
    {MLA_FAULT_QUERIES_REST_ACCEPTED, "queries = ", "multiple of cores"},
    {MLA_FAULT_TOPK_REST_ACCEPTED, "topk = ", "multiple of"},
    {MLA_FAULT_HEADS_REST_ACCEPTED, "heads = ", "multiple of"},
    {MLA_FAULT_OFFSET_NEGATIVE_ACCEPTED, "q_pos_offset = ", ""},
    {MLA_FAULT_SCALE_ZERO_ACCEPTED, "softmax_scale = ", ""},
    {MLA_FAULT_SCALE_NAN_ACCEPTED, "softmax_scale = ", ""},
    {MLA_FAULT_ORDER_UNKNOWN_ACCEPTED, "out_order = ", ""},
    {MLA_FAULT_SIZE_OVERFLOW_ACCEPTED, "", "bytes must not exceed"},
};

static bool is_accepted(const struct mla_sparse_args *args, const struct answer *answer,
                        struct mla_plain_variant variant)
{
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        if (accepted[i].fault != variant.fault ||
            strncmp(answer->text, accepted[i].field, strlen(accepted[i].field)) != 0 ||
            strstr(answer->text, accepted[i].rule) == NULL) {
            continue;
        }
        float scale = args->softmax_scale;
        bool meant = variant.fault == MLA_FAULT_SCALE_ZERO_ACCEPTED  ? scale == 0.0f
                     : variant.fault == MLA_FAULT_SCALE_NAN_ACCEPTED ? isnan(scale) != 0
                                                                     : true;
        return meant && mla_plain_has(variant, variant.fault);
    }
    return false;
}

/* Put another value into "<field> = <value>: <rule>". */
static void reword(struct answer *answer, const char *value)
{
    char rule[512];
    char *at = strstr(answer->text, " = ");
    const char *colon = strchr(answer->text, ':');
    if (at == NULL || colon == NULL) {
        return;
    }
    snprintf(rule, sizeof rule, "%s", colon);
    snprintf(at, sizeof answer->text - (size_t)(at - answer->text), "%s%s", value, rule);
}

/* The number of the message, if it is one. */
static bool number_in(const struct answer *answer, int64_t *number)
{
    const char *at = strstr(answer->text, " = ");
    return at != NULL && sscanf(at, " = %" SCNd64 ":", number) == 1;
}

/* A refusal whose status or words are wrong. */
static void spoil(struct answer *answer, struct mla_plain_variant variant)
{
    int64_t number = 0;
    char value[40];
    bool has_number = number_in(answer, &number);
    if (answer->status == MLA_ERR_SHAPE && mla_plain_has(variant, MLA_FAULT_SHAPE_IS_PARAM)) {
        answer->status = MLA_ERR_PARAM;
    }
    if (answer->status == MLA_ERR_INDEX && mla_plain_has(variant, MLA_FAULT_INDEX_IS_PARAM)) {
        answer->status = MLA_ERR_PARAM;
    }
    if (has_number && mla_plain_has(variant, MLA_FAULT_MESSAGE_WITHOUT_VALUE)) {
        reword(answer, "");
    }
    if (has_number && number != (int32_t)(uint32_t)(uint64_t)number &&
        mla_plain_has(variant, MLA_FAULT_MESSAGE_VALUE_INT32)) {
        snprintf(value, sizeof value, " = %" PRId32, (int32_t)(uint32_t)(uint64_t)number);
        reword(answer, value);
    }
    if (answer->status == MLA_ERR_INDEX && number < 0 &&
        mla_plain_has(variant, MLA_FAULT_MESSAGE_INDEX_UNSIGNED)) {
        snprintf(value, sizeof value, " = %" PRIu32, (uint32_t)number);
        reword(answer, value);
    }
}

/* Does a tiled list hold rubbish in the slots of rows that do not exist? */
static bool has_rubbish_slots(const struct mla_sparse_args *args)
{
    int64_t rows_n = args->topk_tiled && !args->dense ? (args->queries + 127) / 128 * 128 : 0;
    for (int64_t q = args->queries; q < rows_n; q++) {
        for (int64_t j = 0; j < args->topk; j++) {
            int64_t index = args->topk_indices[mla_plain_entry_place(args, q, j)];
            if (index < 0 || index >= args->keys) {
                return true;
            }
        }
    }
    return false;
}

/* A legal call that a fault refuses. */
static void refuse_legal(const struct mla_sparse_args *args, struct answer *answer,
                         struct mla_plain_variant variant)
{
    if (!args->dense && args->topk > args->keys &&
        mla_plain_has(variant, MLA_FAULT_TOPK_ABOVE_KEYS_REFUSED)) {
        answer->status = MLA_ERR_SHAPE;
        snprintf(answer->text, sizeof answer->text, "topk = %" PRId64 ": must not exceed keys",
                 args->topk);
    }
    if (args->has_q_pos_offset && args->q_pos_offset >= args->keys &&
        mla_plain_has(variant, MLA_FAULT_OFFSET_BEYOND_REFUSED)) {
        answer->status = MLA_ERR_PARAM;
        snprintf(answer->text, sizeof answer->text,
                 "q_pos_offset = %" PRId64 ": must be below keys", args->q_pos_offset);
    }
    if (variant.fault == MLA_FAULT_RUBBISH_SLOTS_CHECKED && has_rubbish_slots(args) &&
        mla_plain_has(variant, variant.fault)) {
        answer->status = MLA_ERR_INDEX;
        snprintf(answer->text, sizeof answer->text, "topk_indices: out of range");
    }
}

/* The answer where an index is no row: another check may find another entry, or none. */
static void check_indices(const struct mla_sparse_args *args, struct answer *answer,
                          struct mla_plain_variant variant)
{
    struct mla_plain_variant honest = {MLA_FAULT_NONE, variant.method};
    int64_t bad = mla_plain_bad_entry(args, variant);
    if (bad == mla_plain_bad_entry(args, honest)) {
        return;
    }
    answer->status = bad < 0 ? MLA_OK : MLA_ERR_INDEX;
    answer->text[0] = '\0';
    if (bad >= 0) {
        int64_t place = mla_plain_entry_place(args, bad / args->topk, bad % args->topk);
        snprintf(answer->text, sizeof answer->text,
                 "topk_indices = %" PRId32 ": must lie in 0 .. keys-1", args->topk_indices[place]);
    }
}

int32_t mla_plain_refuse(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                         char *message, size_t message_bytes, bool *ends, int64_t *rows_n)
{
    struct answer answer = {.text = ""};
    answer.status = mla_validate_sparse(args, answer.text, sizeof answer.text);
    *rows_n = 0;
    *ends = true;
    if (answer.status == MLA_ERR_INDEX) {
        struct mla_plain_variant honest = {MLA_FAULT_NONE, variant.method};
        int64_t row = mla_plain_bad_entry(args, honest) / args->topk;
        *rows_n = row > 0 && mla_plain_has(variant, MLA_FAULT_ROWS_BEFORE_REFUSAL) ? row : 0;
        check_indices(args, &answer, variant);
    } else if (answer.status != MLA_OK && is_accepted(args, &answer, variant)) {
        answer = (struct answer){.status = MLA_OK};
        goto done; /* nothing can be computed from such arguments */
    }
    if (answer.status == MLA_OK) {
        refuse_legal(args, &answer, variant);
    } else {
        spoil(&answer, variant);
    }
    *ends = answer.status != MLA_OK;
done:
    if (message && message_bytes > 0) {
        snprintf(message, message_bytes, "%s", answer.text);
    }
    return answer.status;
}
