/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect_config.c - which settings make the difference between a configuration that is good and one that
 * is bad.
 *
 * Delta debugging (Zeller and Hildebrandt, 2002) at its finest grain, for there are few settings: begin with
 * all that differ, and take each back that the fault does not need, until no single one can be. The answer is
 * one-minimal: the good configuration with these settings is bad, and with any one less of them it is not.
 * It need not be the only such set, nor the smallest. A mixture that cannot be judged (no legal case, no
 * build, no quorum) does not count as bad, and is shown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/mlacheck/bisect.h"
#include "fuzz/record.h"
#include "results/report_text.h"

#define SETTINGS_MAX 16

struct setting {
    char key[24];
    char values[2][256]; /* of the good configuration, of the bad one */
};

struct configuration {
    struct mla_bisect *b;
    struct setting settings[SETTINGS_MAX];
    int n;
    bool builds;
};

/* ---- reading ---- */

static struct setting *find(struct configuration *c, const char *key, size_t key_n)
{
    for (int i = 0; i < c->n; i++)
        if (strlen(c->settings[i].key) == key_n && strncmp(c->settings[i].key, key, key_n) == 0)
            return &c->settings[i];
    return NULL;
}

/* The value of a field in a case line: where it begins, NULL if there is no such field. */
static const char *field_in(const char *line, const char *key)
{
    char pattern[32];
    snprintf(pattern, sizeof pattern, " %s=", key);
    const char *at = strstr(line, pattern);
    return at == NULL ? NULL : at + strlen(pattern);
}

/* false: no text, or no room. */
static bool copy_value(char *value, size_t bytes, const char *text, size_t n)
{
    if (text == NULL || n >= bytes)
        return false;
    memcpy(value, text, n);
    value[n] = '\0';
    return true;
}

/* What holds where a configuration does not say. false: there is no such setting, or no room. */
static bool default_of(const struct configuration *c, const char *key, char *value, size_t bytes)
{
    char line[MLA_CASE_LINE_MAX];
    const char *text = c->b->kernel;
    if (strcmp(key, "cc") == 0 || strcmp(key, "cflags") == 0) {
        text = getenv(key[1] == 'c' ? "CC" : "CFLAGS");
        text = text == NULL ? "" : text;
    } else if (strcmp(key, "kernel") != 0) {
        mla_case_format(&c->b->test, line);
        text = field_in(line, key);
        return copy_value(value, bytes, text, text == NULL ? 0 : strcspn(text, " "));
    }
    return copy_value(value, bytes, text, strlen(text));
}

static int add(struct configuration *c, int which, const char *text, size_t n)
{
    size_t key_n = strcspn(text, "=");
    struct setting *s = key_n < n ? find(c, text, key_n) : NULL;
    if (s == NULL && key_n > 0 && key_n < n && key_n < sizeof s->key && c->n < SETTINGS_MAX) {
        s = &c->settings[c->n];
        snprintf(s->key, sizeof s->key, "%.*s", (int)key_n, text);
        bool known = default_of(c, s->key, s->values[0], sizeof s->values[0]);
        memcpy(s->values[1], s->values[0], sizeof s->values[1]);
        if (!known || strcmp(s->key, "v") == 0)
            return mla_options_fail(
                MLA_EXIT_USAGE, "bisect",
                "--config '%s': must be kernel, cc, cflags or a field of the case", s->key);
        c->n++;
    }
    if (s == NULL || n - key_n - 1 >= sizeof s->values[0])
        return mla_options_fail(MLA_EXIT_USAGE, "bisect",
                                "--config '%.*s': must be KEY=VALUE, at most %d of them", (int)n,
                                text, SETTINGS_MAX);
    snprintf(s->values[which], sizeof s->values[0], "%.*s", (int)(n - key_n - 1), text + key_n + 1);
    return 0;
}

static int read_settings(struct configuration *c)
{
    int code = 0;
    for (int which = 0; which < 2; which++)
        for (const char *text = c->b->options.configs[which]; code == 0 && *text != '\0';) {
            size_t n = strcspn(text, ",");
            code = add(c, which, text, n);
            text += n + (text[n] == ',');
        }
    return code;
}

/* ---- one configuration ---- */

static bool differs(const struct setting *s)
{
    return strcmp(s->values[0], s->values[1]) != 0;
}

/* "a=1,b=2" of the settings in the mask, or of all that differ, with their values there. */
static void describe(const struct configuration *c, unsigned mask, bool all, char *text,
                     size_t bytes)
{
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < c->n; i++) {
        bool bad = (mask >> i & 1) != 0;
        if (differs(&c->settings[i]) && (all || bad) && n < bytes)
            n += (size_t)snprintf(text + n, bytes - n, "%s%s=%s", n == 0 ? "" : ",",
                                  c->settings[i].key, c->settings[i].values[bad]);
    }
}

/* The case's line with a field replaced. false: no room. */
static bool replace(char line[MLA_CASE_LINE_MAX], const char *key, const char *value)
{
    char text[MLA_CASE_LINE_MAX];
    const char *at = field_in(line, key);
    const char *rest = at + strcspn(at, " ");
    int n = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - line), line, value, rest);
    if (n < 0 || (size_t)n >= sizeof text)
        return false;
    memcpy(line, text, sizeof text);
    return true;
}

/* Case, kernel and environment of a mixture. false: no legal case, with the reason. */
static bool compose(const struct configuration *c, unsigned mask, struct mla_case *test,
                    char *kernel, size_t kernel_bytes, char error[MLA_CASE_ERROR_MAX])
{
    char line[MLA_CASE_LINE_MAX];
    mla_case_format(&c->b->test, line);
    snprintf(kernel, kernel_bytes, "%s", c->b->kernel);
    for (int i = 0; i < c->n; i++) {
        const struct setting *s = &c->settings[i];
        const char *value = s->values[mask >> i & 1];
        if (strcmp(s->key, "kernel") == 0)
            snprintf(kernel, kernel_bytes, "%s", value);
        else if (strcmp(s->key, "cc") == 0 || strcmp(s->key, "cflags") == 0)
            setenv(s->key[1] == 'c' ? "CC" : "CFLAGS", value, 1);
        else if (!replace(line, s->key, value)) {
            snprintf(error, MLA_CASE_ERROR_MAX, "the line would be too long");
            return false;
        }
    }
    return mla_case_parse(line, strlen(line), test, error) == MLA_OK &&
           mla_case_problem(test, INT64_MAX, error) == NULL;
}

/* As `run` would be given it: "PATH:NAME", or the kernel itself. path "": it cannot be built. */
static int find_kernel(const struct configuration *c, const char *kernel, char *spec,
                       size_t spec_bytes, char *why, size_t why_bytes)
{
    char path[MLA_BISECT_PATH];
    snprintf(spec, spec_bytes, "%s", kernel);
    if (!c->builds)
        return 0;
    int code = mla_bisect_build(c->b, c->b->bad, path, why, why_bytes);
    snprintf(spec, spec_bytes, "%s%s%s", path, kernel[0] == '\0' ? "" : ":", kernel);
    if (path[0] == '\0')
        spec[0] = '\0';
    return code;
}

static int judge(const struct configuration *c, unsigned mask, bool sure,
                 struct mla_store_step *step, char *repro, bool is_bad_end)
{
    struct mla_case test;
    char kernel[256], spec[MLA_BISECT_PATH + 260], error[MLA_CASE_ERROR_MAX] = "",
                                                   line[MLA_CASE_LINE_MAX];
    int code = 0;
    if (!compose(c, mask, &test, kernel, sizeof kernel, error)) {
        snprintf(step->text, sizeof step->text, "%s", error);
        return 0;
    }
    code = find_kernel(c, kernel, spec, sizeof spec, step->text, sizeof step->text);
    mla_case_format(&test, line);
    mla_record_repro(spec, line, c->b->options.plain_oracle, repro);
    if (code != 0 || spec[0] == '\0')
        return code;
    return is_bad_end ? mla_bisect_decide_bad(c->b, spec, &test, step)
                      : mla_bisect_decide(c->b, spec, &test, sure, step);
}

/* Ask the mixture of settings: the bad one's where the mask has a bit. */
static int ask(const struct configuration *c, unsigned mask, bool sure, bool is_bad_end,
               enum mla_store_outcome *outcome, char repro[MLA_REPRO_MAX])
{
    static const char *const names[] = {"good", "bad", "skip"};
    char all[MLA_STORE_CONFIGURATION_BYTES], text[700];
    describe(c, mask, true, all, sizeof all);
    struct mla_store_step *step = mla_bisect_step(c->b, c->b->bad, all);
    if (step == NULL)
        return MLA_EXIT_ENVIRONMENT;
    int64_t before = step->tries;
    int code = judge(c, mask, sure, step, repro, is_bad_end);
    if (code != 0)
        return code;
    *outcome = step->outcome;
    mla_bisect_describe(step, text, sizeof text);
    printf("%-4s ", names[step->outcome]);
    mla_text_plain(stdout, all);
    fputs("\n     ", stdout);
    mla_text_plain(stdout, text);
    putchar('\n');
    fflush(stdout);
    return step->tries == before && before > 0 ? 0 : mla_bisect_store(c->b, step);
}

/* ---- the search ---- */

static int verify_ends(const struct configuration *c, unsigned all)
{
    enum mla_store_outcome outcome = MLA_STORE_SKIP;
    char repro[MLA_REPRO_MAX];
    int code = ask(c, 0, true, false, &outcome, repro);
    if (code == 0 && outcome != MLA_STORE_GOOD)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect", "the first --config is not good");
    code = code != 0 ? code : ask(c, all, true, true, &outcome, repro);
    if (code == 0 && outcome != MLA_STORE_BAD)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect", "the second --config is not bad");
    if (code != 0 || c->b->passes == 0)
        return code;
    code = ask(c, 0, true, false, &outcome, repro);
    if (code == 0 && outcome != MLA_STORE_GOOD)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect", "the first --config is not good");
    return code;
}

/* Take settings back until none can be. */
static int minimise(const struct configuration *c, unsigned *mask)
{
    char repro[MLA_REPRO_MAX];
    bool smaller = true;
    while (smaller) {
        smaller = false;
        for (int i = 0; i < c->n; i++) {
            enum mla_store_outcome outcome = MLA_STORE_GOOD;
            unsigned less = *mask & ~(1u << i);
            if (less == *mask || less == 0) /* without any it is the good end */
                continue;
            int code = ask(c, less, true, false, &outcome, repro);
            if (code != 0)
                return code;
            smaller = smaller || outcome == MLA_STORE_BAD;
            *mask = outcome == MLA_STORE_BAD ? less : *mask;
        }
    }
    return 0;
}

static int report(const struct configuration *c, unsigned mask)
{
    char text[MLA_STORE_CONFIGURATION_BYTES], repro[MLA_REPRO_MAX] = "";
    enum mla_store_outcome outcome;
    const char *comma = "";
    describe(c, mask, false, text, sizeof text);
    printf("\nit takes %s: together they are bad, without any one of them they are not\n", text);
    for (int i = 0; i < c->n; i++)
        if ((mask >> i & 1) != 0)
            printf("  %-9s %s -> %s\n", c->settings[i].key, c->settings[i].values[0],
                   c->settings[i].values[1]);
    int code = ask(c, mask, true, false, &outcome, repro);
    printf("  repro: %s%s\n", repro, c->b->options.all_relations ? " --relations" : "");
    if (code == 0 && mla_store_bisect_end(c->b->store, c->b->id, text) != MLA_STORE_OK)
        code =
            mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "%s", mla_store_message(c->b->store));
    if (code != 0 || !c->b->options.json)
        return code;
    printf("{\"found\":true,\"settings\":[");
    for (int i = 0; i < c->n; i++)
        if ((mask >> i & 1) != 0) {
            printf("%s", comma);
            mla_text_json(stdout, c->settings[i].key);
            comma = ",";
        }
    printf("],\"steps\":%zu,\"steady\":%s}\n", c->b->steps_n, c->b->passes == 0 ? "true" : "false");
    return 0;
}

int mla_bisect_configuration(struct mla_bisect *b)
{
    static struct configuration c;
    char good[MLA_STORE_CONFIGURATION_BYTES], bad[MLA_STORE_CONFIGURATION_BYTES];
    unsigned mask = 0;
    c.b = b;
    c.builds = b->repo[0] != '\0';
    int code = read_settings(&c);
    if (code != 0)
        return code;
    for (int i = 0; i < c.n; i++)
        mask |= (unsigned)differs(&c.settings[i]) << i;
    describe(&c, 0, true, good, sizeof good);
    describe(&c, mask, true, bad, sizeof bad);
    if (mask == 0 || strlen(good) + 1 >= sizeof good || strlen(bad) + 1 >= sizeof bad)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect",
                                "--config: the two must differ, in less than %zu bytes",
                                sizeof good);
    code = mla_bisect_begin(b, good, bad);
    if (code == 0) {
        const struct mla_store_step *first = mla_bisect_step(b, b->bad, good);
        if (first != NULL)
            snprintf(b->reference, sizeof b->reference, "%s", first->bits);
    }
    code = code != 0 ? code : verify_ends(&c, mask);
    code = code != 0 ? code : minimise(&c, &mask);
    code = code != 0 ? code : report(&c, mask);
    return code != 0 ? code : MLA_EXIT_FAULT;
}
