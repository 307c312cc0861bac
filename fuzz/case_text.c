/* SPDX-License-Identifier: Apache-2.0
 *
 * case_text.c - a case to its canonical line and back, and its name.
 *
 * Parsing is strict by one rule: what was parsed, formatted again, must give the same bytes. So
 * every case has exactly one line and one id, and a damaged line cannot slip through.
 */
#include "fuzz/case.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/case_fields.h"
#include "fuzz/family.h"

/* ---- format ---- */

struct writer {
    char *text;
    size_t n; /* bytes written, never above MLA_CASE_LINE_MAX - 1 */
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(w->text + w->n, MLA_CASE_LINE_MAX - w->n, format, list);
    va_end(list);
    size_t room = MLA_CASE_LINE_MAX - 1 - w->n;
    w->n += (size_t)n < room ? (size_t)n : room;
}

static void put_violations(struct writer *w, const struct mla_case *test)
{
    for (size_t i = 0; i < test->set_n; i++) {
        const struct mla_violation *v = &test->set[i];
        put(w, "%s%s@%" PRId64 ":%s", i == 0 ? "" : ";", v->field, v->at, v->value);
    }
    if (test->set_n == 0)
        put(w, "-");
}

static void put_overrides(struct writer *w, const struct mla_case *test)
{
    for (size_t i = 0; i < test->put_n; i++) {
        const struct mla_override *o = &test->put[i];
        put(w, "%s%s.%" PRId64 "@%" PRId64 ":%" PRIx32, i == 0 ? "" : ";", o->tensor, o->rank,
            o->at, o->bits);
    }
    if (test->put_n == 0)
        put(w, "-");
}

static void put_field(struct writer *w, const struct mla_case *test, const struct mla_field *field)
{
    const char *at = (const char *)test + field->offset;
    bool optional =
        field->kind == MLA_FIELD_OPTIONAL_INT || field->kind == MLA_FIELD_OPTIONAL_FLOAT;
    put(w, " %s=", field->key);
    if (optional && *(const int32_t *)(const void *)((const char *)test + field->has_offset) == 0) {
        put(w, "-");
        return;
    }
    switch (field->kind) {
    case MLA_FIELD_INT:
    case MLA_FIELD_OPTIONAL_INT:
        put(w, "%" PRId64, *(const int64_t *)(const void *)at);
        break;
    case MLA_FIELD_FLAG:
        put(w, "%" PRId32, *(const int32_t *)(const void *)at);
        break;
    case MLA_FIELD_NAME: {
        const char *name = field->name(*(const int32_t *)(const void *)at);
        put(w, "%s", name == NULL ? "?" : name);
        break;
    }
    case MLA_FIELD_SEED:
        put(w, "%" PRIu64, *(const uint64_t *)(const void *)at);
        break;
    case MLA_FIELD_FLOAT:
    case MLA_FIELD_OPTIONAL_FLOAT:
        put(w, "%a", (double)*(const float *)(const void *)at);
        break;
    case MLA_FIELD_SET:
        put_violations(w, test);
        break;
    case MLA_FIELD_PUT:
        put_overrides(w, test);
        break;
    case MLA_FIELD_DATA:
        put(w, "file:%s", at);
        break;
    }
}

size_t mla_case_format(const struct mla_case *test, char line[MLA_CASE_LINE_MAX])
{
    size_t fields_n;
    const struct mla_field *fields =
        mla_case_fields_of((enum mla_op)test->op, test->version, &fields_n);
    struct writer w = {line, 0};
    put(&w, "%s", mla_case_op_name(test->op));
    for (size_t i = 0; i < fields_n; i++)
        put_field(&w, test, &fields[i]);
    return w.n;
}

void mla_case_id(const struct mla_case *test, char id[MLA_CASE_ID_BYTES])
{
    char line[MLA_CASE_LINE_MAX];
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx hash;
    sha256_init(&hash);
    sha256_update(&hash, mla_case_format(test, line), (const uint8_t *)line);
    sha256_digest(&hash, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(id + 2 * i, 3, "%02x", digest[i]);
}

/* ---- parse ---- */

/* A piece of the line being parsed. */
struct span {
    const char *at;
    size_t n;
};

static bool span_is(struct span s, const char *text)
{
    return strlen(text) == s.n && memcmp(s.at, text, s.n) == 0;
}

/* The text up to the separator; *rest is what follows it (empty at the end). */
static struct span span_cut(struct span *rest, char separator)
{
    struct span head = *rest;
    const char *cut = memchr(rest->at, separator, rest->n);
    if (cut == NULL) {
        rest->at += rest->n;
        rest->n = 0;
        return head;
    }
    head.n = (size_t)(cut - head.at);
    rest->n -= head.n + 1;
    rest->at = cut + 1;
    return head;
}

/* Copies at most bytes-1 characters; false when it does not fit. */
static bool span_copy(struct span s, char *text, size_t bytes)
{
    if (s.n >= bytes)
        return false;
    memcpy(text, s.at, s.n);
    text[s.n] = '\0';
    return true;
}

static bool parse_int(struct span s, int64_t *value)
{
    char text[32], *end;
    if (!span_copy(s, text, sizeof text) || s.n == 0 || isspace((unsigned char)text[0]))
        return false;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool parse_seed(struct span s, uint64_t *value)
{
    char text[32], *end;
    if (!span_copy(s, text, sizeof text) || !isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool parse_float(struct span s, float *value)
{
    char text[40], *end;
    if (!span_copy(s, text, sizeof text) || s.n == 0 || isspace((unsigned char)text[0]))
        return false;
    *value = strtof(text, &end);
    return *end == '\0';
}

static bool parse_violation(struct span s, struct mla_violation *v)
{
    struct span field = span_cut(&s, '@');
    struct span at = span_cut(&s, ':');
    return field.n > 0 && s.n > 0 && span_copy(field, v->field, sizeof v->field) &&
           parse_int(at, &v->at) && span_copy(s, v->value, sizeof v->value);
}

static bool parse_override(struct span s, struct mla_override *o)
{
    struct span tensor = span_cut(&s, '.');
    struct span rank = span_cut(&s, '@');
    struct span at = span_cut(&s, ':');
    char bits[16], *end;
    if (tensor.n == 0 || !span_copy(tensor, o->tensor, sizeof o->tensor) ||
        !parse_int(rank, &o->rank) || !parse_int(at, &o->at) || !span_copy(s, bits, sizeof bits) ||
        !isxdigit((unsigned char)bits[0]))
        return false;
    unsigned long long value = strtoull(bits, &end, 16);
    o->bits = (uint32_t)value;
    return *end == '\0' && value <= UINT32_MAX;
}

static bool parse_violations(struct span s, struct mla_case *test)
{
    if (span_is(s, "-"))
        return true;
    while (s.n > 0) {
        if (test->set_n == MLA_CASE_SET_MAX ||
            !parse_violation(span_cut(&s, ';'), &test->set[test->set_n]))
            return false;
        test->set_n++;
    }
    return test->set_n > 0;
}

static bool parse_overrides(struct span s, struct mla_case *test)
{
    if (span_is(s, "-"))
        return true;
    while (s.n > 0) {
        if (test->put_n == MLA_CASE_PUT_MAX ||
            !parse_override(span_cut(&s, ';'), &test->put[test->put_n]))
            return false;
        test->put_n++;
    }
    return test->put_n > 0;
}

static bool parse_data(struct span s, char data[MLA_CASE_ID_BYTES])
{
    struct span kind = span_cut(&s, ':');
    return span_is(kind, "file") && s.n == MLA_CASE_ID_BYTES - 1 &&
           span_copy(s, data, MLA_CASE_ID_BYTES) &&
           strspn(data, "0123456789abcdef") == MLA_CASE_ID_BYTES - 1;
}

static bool parse_name(struct span s, const struct mla_field *field, int32_t *value)
{
    const char *name;
    for (int32_t i = 0; (name = field->name(i)) != NULL; i++)
        if (span_is(s, name)) {
            *value = i;
            return true;
        }
    return false;
}

/* NULL, or what the field must be. */
static const char *parse_field(struct span s, const struct mla_field *field, struct mla_case *test)
{
    void *at = (char *)test + field->offset;
    if (field->kind == MLA_FIELD_OPTIONAL_INT || field->kind == MLA_FIELD_OPTIONAL_FLOAT) {
        int32_t *has = (int32_t *)(void *)((char *)test + field->has_offset);
        *has = !span_is(s, "-");
        if (!*has)
            return NULL;
    }
    switch (field->kind) {
    case MLA_FIELD_INT:
    case MLA_FIELD_OPTIONAL_INT:
        return parse_int(s, at) ? NULL : "a decimal integer";
    case MLA_FIELD_FLAG:
        *(int32_t *)at = span_is(s, "1");
        return span_is(s, "0") || span_is(s, "1") ? NULL : "0 or 1";
    case MLA_FIELD_NAME:
        return parse_name(s, field, at) ? NULL : "one of its listed names (mlacheck list names)";
    case MLA_FIELD_SEED:
        return parse_seed(s, at) ? NULL : "an unsigned 64-bit integer";
    case MLA_FIELD_FLOAT:
    case MLA_FIELD_OPTIONAL_FLOAT:
        return parse_float(s, at) ? NULL : "a number in C99 hexadecimal (%a)";
    case MLA_FIELD_SET:
        return parse_violations(s, test) ? NULL : "- or field@position:value[;..], at most 2";
    case MLA_FIELD_PUT:
        return parse_overrides(s, test) ? NULL : "- or tensor.rank@element:hex[;..], at most 8";
    case MLA_FIELD_DATA:
        return parse_data(s, at) ? NULL : "file: and a SHA-256, 64 digits 0-9 a-f";
    }
    return "of a known kind";
}

static int32_t refuse(char error[MLA_CASE_ERROR_MAX], const char *field, struct span s,
                      const char *rule)
{
    int n = s.n < 80 ? (int)s.n : 80;
    snprintf(error, MLA_CASE_ERROR_MAX, "%s = '%.*s': must be %s", field, n, s.at, rule);
    return MLA_ERR_PARAM;
}

static int32_t parse_fields(struct span rest, struct mla_case *test, char error[MLA_CASE_ERROR_MAX])
{
    size_t fields_n;
    const struct mla_field *fields = mla_case_fields((enum mla_op)test->op, &fields_n);
    for (size_t i = 0; i < fields_n; i++) {
        struct span value = span_cut(&rest, ' ');
        struct span whole = value;
        struct span key = span_cut(&value, '=');
        if (!span_is(key, fields[i].key)) {
            char rule[80];
            snprintf(rule, sizeof rule, "field '%s', the next in canonical order", fields[i].key);
            return refuse(error, "field", whole, rule);
        }
        const char *rule = parse_field(value, &fields[i], test);
        if (rule != NULL)
            return refuse(error, fields[i].key, value, rule);
        if (i == 0 && (test->version < 1 || test->version > MLA_CASE_VERSION))
            return refuse(error, "v", value, "1, 2 or 3, the versions this program reads");
        if (i == 0)
            fields = mla_case_fields_of((enum mla_op)test->op, test->version, &fields_n);
        if (fields[i].offset == offsetof(struct mla_case, bits) &&
            (test->bits < 1 || test->bits > MLA_CASE_BITS_ALL ||
             (test->bits == MLA_CASE_BITS_ALL && test->version < 3)))
            return refuse(error, "bits", value, "1 .. 7 (all 8 is what v=1 says)");
    }
    return rest.n == 0 ? MLA_OK : refuse(error, "line", rest, "at its end after the last field");
}

int32_t mla_case_parse(const char *line, size_t line_bytes, struct mla_case *test,
                       char error[MLA_CASE_ERROR_MAX])
{
    struct span rest = {line, line_bytes};
    if (line_bytes >= MLA_CASE_LINE_MAX)
        return refuse(error, "line", rest, "shorter than 2048 bytes");
    struct span op = span_cut(&rest, ' ');
    if (!span_is(op, "ring") && !span_is(op, "sparse"))
        return refuse(error, "op", op, "'ring' or 'sparse'");
    mla_case_init(test, span_is(op, "ring") ? MLA_OP_RING : MLA_OP_SPARSE);
    test->put_n = test->set_n = 0;
    int32_t status = parse_fields(rest, test, error);
    if (status != MLA_OK)
        return status;
    char again[MLA_CASE_LINE_MAX];
    size_t n = mla_case_format(test, again);
    if (n == line_bytes && memcmp(again, line, n) == 0)
        return MLA_OK;
    size_t same = 0;
    while (same < n && same < line_bytes && again[same] == line[same])
        same++;
    while (same > 0 && line[same - 1] != ' ')
        same--;
    struct span bad = {line + same, line_bytes - same}, tail = bad;
    bad = span_cut(&tail, ' ');
    char rule[120];
    snprintf(rule, sizeof rule, "spelt canonically: '%.60s'", again + same);
    return refuse(error, "field", bad, rule);
}
