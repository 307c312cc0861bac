/* SPDX-License-Identifier: Apache-2.0
 *
 * rules.c - the first broken rule of a call and its message.
 *
 * Products are formed in 128 bits, one factor at a time with a test between: below 2^62 times below
 * 2^63 cannot wrap.
 */
#include "impl/rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define VALUE_BYTES 128

static void word(struct mla_rules *rules, int32_t status, const char *field, const char *value,
                 const char *format, va_list arguments)
{
    rules->status = status;
    if (rules->message == NULL || rules->message_bytes == 0) {
        return;
    }
    const int length = snprintf(rules->message, rules->message_bytes, "%s = %s: ", field, value);
    if (length >= 0 && (size_t)length < rules->message_bytes) {
        vsnprintf(rules->message + length, rules->message_bytes - (size_t)length, format,
                  arguments);
    }
}

void mla_rules_expect_text(struct mla_rules *rules, bool holds, int32_t status, const char *field,
                           const char *value, const char *format, ...)
{
    va_list arguments;
    if (holds || rules->status != MLA_OK) {
        return;
    }
    va_start(arguments, format);
    word(rules, status, field, value, format, arguments);
    va_end(arguments);
}

void mla_rules_expect(struct mla_rules *rules, bool holds, int32_t status, const char *field,
                      int64_t value, const char *format, ...)
{
    char text[VALUE_BYTES];
    va_list arguments;
    if (holds || rules->status != MLA_OK) {
        return;
    }
    snprintf(text, sizeof text, "%" PRId64, value);
    va_start(arguments, format);
    word(rules, status, field, text, format, arguments);
    va_end(arguments);
}

void mla_rules_expect_pointer(struct mla_rules *rules, const char *field, const void *pointer)
{
    mla_rules_expect(rules, pointer != NULL, MLA_ERR_PARAM, field, 0, "must not be a null pointer");
}

static void expect_range(struct mla_rules *rules, const struct mla_rules_range *range)
{
    const bool holds = range->value >= range->min && range->value <= range->max;
    if (range->min == range->max) {
        mla_rules_expect(rules, holds, MLA_ERR_PARAM, range->field, range->value,
                         "must be %" PRId64, range->min);
    } else if (range->max == INT64_MAX) {
        mla_rules_expect(rules, holds, MLA_ERR_PARAM, range->field, range->value,
                         "must be at least %" PRId64, range->min);
    } else {
        mla_rules_expect(rules, holds, MLA_ERR_PARAM, range->field, range->value,
                         "must lie in %" PRId64 " .. %" PRId64, range->min, range->max);
    }
}

void mla_rules_expect_ranges(struct mla_rules *rules, const struct mla_rules_range *ranges,
                             size_t ranges_n)
{
    for (size_t i = 0; i < ranges_n; i++) {
        expect_range(rules, &ranges[i]);
    }
}

static bool fits(const struct mla_rules_tensor *tensor)
{
    __int128 bytes = tensor->element_bytes;
    for (int i = 0; i < 4; i++) {
        bytes *= tensor->extents[i].value;
        if (bytes > MLA_RULES_BYTES_MAX) {
            return false;
        }
    }
    return true;
}

void mla_rules_expect_sizes(struct mla_rules *rules, const struct mla_rules_tensor *tensors,
                            size_t tensors_n)
{
    for (size_t t = 0; t < tensors_n; t++) {
        const struct mla_rules_tensor *tensor = &tensors[t];
        char value[VALUE_BYTES];
        char names[VALUE_BYTES];
        size_t value_n = 0;
        size_t names_n = 0;
        for (int i = 0; i < 4 && tensor->extents[i].field != NULL; i++) {
            const char *times = i == 0 ? "" : "*";
            value_n += (size_t)snprintf(value + value_n, sizeof value - value_n, "%s%" PRId64,
                                        times, tensor->extents[i].value);
            names_n += (size_t)snprintf(names + names_n, sizeof names - names_n, "%s%s", times,
                                        tensor->extents[i].field);
        }
        mla_rules_expect_text(rules, fits(tensor), MLA_ERR_SHAPE, tensor->field, value,
                              "%s elements of %" PRId64 " bytes must not exceed %" PRId64
                              " bytes in all",
                              names, tensor->element_bytes, (int64_t)MLA_RULES_BYTES_MAX);
    }
}

void mla_rules_expect_scale(struct mla_rules *rules, const char *field, float scale)
{
    char value[VALUE_BYTES];
    const bool holds = isfinite(scale) && scale > 0.0f;
    snprintf(value, sizeof value, "%.9g", (double)scale);
    mla_rules_expect_text(rules, holds, MLA_ERR_PARAM, field, value, "must be finite and above 0");
}
