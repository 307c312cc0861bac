/* SPDX-License-Identifier: Apache-2.0
 *
 * model_file.c - a declared arithmetic from text, by a table of its members.
 */
#include "fuzz/model_file.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/whole_file.h"
#include "oracle/oracle.h"

#define FILE_MAX ((uint64_t)64 << 10)

#define FIELD(member) offsetof(struct mla_model_file, member)
#define MODEL(member) FIELD(model.member)

enum kind { TEXT, BASE, FLAG, LSE_ROUNDINGS, INTEGER, NUMBER, DEPTH, ENUM };

/* The words of an enumeration, in its order. */
struct words {
    const char *rule;
    const char *list[4];
};

static const struct words arg_forms = {"difference, scaled or mixed",
                                       {"difference", "scaled", "mixed"}};
static const struct words p_frames = {"unknown, row or blocks", {"unknown", "row", "blocks"}};
static const struct words out_rounds = {"nearest or truncate", {"nearest", "truncate"}};
static const struct words stats_maxima = {"shift, rounded or other", {"shift", "rounded", "other"}};
static const struct words acc_stores = {"unknown or blocks", {"unknown", "blocks"}};
static const struct words lse_empties = {"minus-inf or plus-inf", {"minus-inf", "plus-inf"}};

static const struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    const struct words *words; /* ENUM */
} keys[] = {
    {"name", TEXT, FIELD(name), NULL},
    {"base", BASE, 0, NULL},
    {"pad_zero", FLAG, FIELD(promises), NULL},
    {"lse_roundings", LSE_ROUNDINGS, FIELD(lse_roundings), NULL},
    {"lse_empty", ENUM, FIELD(lse_empty), &lse_empties},
    {"add_u", NUMBER, MODEL(add_u), NULL},
    {"score_depth", DEPTH, MODEL(score_depth), NULL},
    {"product_u", NUMBER, MODEL(product_u), NULL},
    {"score_u", NUMBER, MODEL(score_u), NULL},
    {"arg_form", ENUM, MODEL(arg_form), &arg_forms},
    {"arg_roundings", INTEGER, MODEL(arg_roundings), NULL},
    {"exp_error", NUMBER, MODEL(exp_error), NULL},
    {"exp_floor", NUMBER, MODEL(exp_floor), NULL},
    {"exp_slope", NUMBER, MODEL(exp_slope), NULL},
    {"p_u", NUMBER, MODEL(p_u), NULL},
    {"p_frame", ENUM, MODEL(p_frame), &p_frames},
    {"p_block_keys", INTEGER, MODEL(p_block_keys), NULL},
    {"sum_rounded", INTEGER, MODEL(sum_rounded), NULL},
    {"rescales", DEPTH, MODEL(rescales), NULL},
    {"alpha_u", NUMBER, MODEL(alpha_u), NULL},
    {"rescale_scale_u", NUMBER, MODEL(rescale_scale_u), NULL},
    {"acc_depth", DEPTH, MODEL(acc_depth), NULL},
    {"acc_u", NUMBER, MODEL(acc_u), NULL},
    {"acc_extra", DEPTH, MODEL(acc_extra), NULL},
    {"pv_product_u", NUMBER, MODEL(pv_product_u), NULL},
    {"div_roundings", INTEGER, MODEL(div_roundings), NULL},
    {"flush", INTEGER, MODEL(flush), NULL},
    {"out_round", ENUM, MODEL(out_round), &out_rounds},
    {"stats_max", ENUM, MODEL(stats_max), &stats_maxima},
    {"weights_ignore_v", INTEGER, MODEL(weights_ignore_v), NULL},
    {"acc_stores", ENUM, MODEL(acc_stores), &acc_stores},
    {"shard_block_keys", INTEGER, MODEL(shard_block_keys), NULL},
};
#define KEYS_N (sizeof(keys) / sizeof(keys[0]))

/* Where in which file something is wrong. */
struct place {
    const char *path;
    int line;
    char *error;
};

__attribute__((format(printf, 2, 3))) static int32_t refuse(const struct place *p,
                                                            const char *format, ...)
{
    va_list list;
    int n = snprintf(p->error, MLA_MODEL_ERROR_MAX, "%.300s:%d: ", p->path, p->line);
    va_start(list, format);
    vsnprintf(p->error + n, MLA_MODEL_ERROR_MAX - (size_t)n, format, list);
    va_end(list);
    return MLA_ERR_PARAM;
}

bool mla_model_name_is_valid(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return n > 0 && n < MLA_MODEL_NAME_MAX && name[n] == '\0';
}

/* ---- values ---- */

/* A finite number; *end is what follows it. */
static bool number(const char *text, double *value, char **end)
{
    *value = strtod(text, end);
    return *end != text && isfinite(*value);
}

static bool parse_number(const char *text, double *value)
{
    char *end;
    return number(text, value, &end) && *end == '\0';
}

static bool parse_integer(const char *text, int32_t *value)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    *value = (int32_t)n;
    return errno == 0 && end != text && *end == '\0' && n >= 0 && n <= INT32_MAX;
}

static bool is_count(double value)
{
    return value >= 0 && value <= INT32_MAX && value == floor(value);
}

static bool parse_depth(char *text, struct mla_depth *depth)
{
    double values[6];
    for (int i = 0; i < 6; i++) {
        if (!number(text, &values[i], &text))
            return false;
        text += strspn(text, " \t");
        if (*text == ',' && i < 5)
            text++;
    }
    if (*text != '\0' || !is_count(values[4]) || !is_count(values[5]))
        return false;
    *depth = (struct mla_depth){values[0], values[1],          values[2],
                                values[3], (int32_t)values[4], (int32_t)values[5]};
    return true;
}

static bool parse_enum(const char *text, const struct words *words, int32_t *value)
{
    int32_t n = 0;
    for (; words->list[n] != NULL; n++)
        if (strcmp(words->list[n], text) == 0) {
            *value = n;
            return true;
        }
    return parse_integer(text, value) && *value < n;
}

/* NULL, or what the value must be. */
static const char *parse_value(const struct key *key, char *text, struct mla_model_file *model)
{
    void *at = (char *)model + key->offset;
    int32_t flag;
    switch (key->kind) {
    case TEXT:
        if (!mla_model_name_is_valid(text))
            return "letters, digits, '.', '_' and '-', at most 63";
        memcpy(at, text, strlen(text) + 1);
        return NULL;
    case FLAG:
        if (!parse_integer(text, &flag) || flag > 1)
            return "0 or 1";
        *(uint64_t *)at |= flag == 1 ? MLA_PROMISE_PAD_ZERO : 0;
        return NULL;
    case LSE_ROUNDINGS:
        return parse_integer(text, at) && *(int32_t *)at <= MLA_BOUND_LSE_ROUNDINGS_MAX
                   ? NULL
                   : "an integer in 0 .. 1000";
    case INTEGER:
        return parse_integer(text, at) ? NULL : "an integer in 0 .. 2^31-1";
    case NUMBER:
        return parse_number(text, at) ? NULL : "a finite number";
    case DEPTH:
        return parse_depth(text, at) ? NULL
                                     : "constant, per_width, per_key, per_block, block_keys, "
                                       "most_keys";
    case ENUM:
        return parse_enum(text, key->words, at) ? NULL : key->words->rule;
    default:
        return "known";
    }
}

/* ---- lines ---- */

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t n = strlen(text);
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        text[--n] = '\0';
    return text;
}

static int32_t take_base(const struct place *p, const char *spec, enum mla_op op, bool *seen,
                         struct mla_model_file *model)
{
    struct mla_model_file base;
    char why[MLA_MODEL_ERROR_MAX];
    for (size_t i = 0; i < KEYS_N; i++)
        if (seen[i] && keys[i].offset >= FIELD(model) &&
            keys[i].offset < FIELD(model) + sizeof model->model)
            return refuse(p, "base must come before %s", keys[i].name);
    if (mla_model_of_kernel(spec, op, &base, why) != MLA_OK)
        return refuse(p, "base: %.600s", why);
    model->model = base.model;
    return MLA_OK;
}

static int32_t take_line(const struct place *p, char *line, enum mla_op op, bool seen[KEYS_N],
                         struct mla_model_file *model)
{
    char *name = trim(line), *value = strchr(name, '=');
    if (*name == '\0' || *name == '#')
        return MLA_OK;
    if (value == NULL)
        return refuse(p, "'%.80s': must be key = value", name);
    *value++ = '\0';
    name = trim(name);
    value = trim(value);
    for (size_t i = 0; i < KEYS_N; i++) {
        if (strcmp(keys[i].name, name) != 0)
            continue;
        if (seen[i])
            return refuse(p, "%s: given twice", name);
        if (keys[i].kind == BASE && take_base(p, value, op, seen, model) != MLA_OK)
            return MLA_ERR_PARAM;
        const char *rule = keys[i].kind == BASE ? NULL : parse_value(&keys[i], value, model);
        seen[i] = true;
        return rule == NULL ? MLA_OK : refuse(p, "%s = '%.80s': must be %s", name, value, rule);
    }
    return refuse(p, "'%.80s': no such key", name);
}

/* What would hide the text behind it, or change the first key. */
static const char *wrong_bytes(const uint8_t *bytes, size_t n)
{
    if (n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        return "begins with a byte-order mark: save it without";
    return memchr(bytes, 0, n) != NULL ? "holds a NUL byte: it is no text" : NULL;
}

static int32_t refuse_file(const char *path, const char *what, const char *why,
                           char error[MLA_MODEL_ERROR_MAX])
{
    snprintf(error, MLA_MODEL_ERROR_MAX, "%.300s: %s%s", path, what, why);
    return MLA_ERR_PARAM;
}

static int32_t take_lines(const char *path, char *text, enum mla_op op,
                          struct mla_model_file *model, char error[MLA_MODEL_ERROR_MAX])
{
    bool seen[KEYS_N] = {false};
    struct place p = {path, 0, error};
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        p.line++;
        if (take_line(&p, line, op, seen, model) != MLA_OK)
            return MLA_ERR_PARAM;
    }
    return MLA_OK;
}

int32_t mla_model_file_read(const char *path, enum mla_op op, struct mla_model_file *model,
                            char error[MLA_MODEL_ERROR_MAX])
{
    uint8_t *bytes;
    size_t n;
    int32_t status = mla_whole_file_read(path, FILE_MAX, &bytes, &n, error, MLA_MODEL_ERROR_MAX);
    if (status != MLA_OK)
        return status;
    *model = (struct mla_model_file){.promises = MLA_PROMISE_STATS | MLA_PROMISE_NO_FUTURE_LEAK,
                                     .lse_roundings = MLA_LSE_ROUNDINGS};
    const char *wrong = wrong_bytes(bytes, n);
    status = wrong != NULL ? refuse_file(path, "", wrong, error)
                           : take_lines(path, (char *)bytes, op, model, error);
    wrong = mla_bound_model_error(&model->model, op == MLA_OP_RING);
    if (status == MLA_OK && wrong != NULL)
        status = refuse_file(path, "an impossible model: ", wrong, error);
    free(bytes);
    return status;
}
