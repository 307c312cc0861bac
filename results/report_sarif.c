/* SPDX-License-Identifier: Apache-2.0
 *
 * report_sarif.c - the report as SARIF 2.1.0, for tools that show findings and remember them.
 *
 * What is wrong is a kernel, named as a logical location; the database does not know its source. Where the
 * results are shown they must have a file (GitHub's code scanning refuses a run without): a plug-in's own, or the
 * table that lists the built-in kernels. A result is the same one in the next report if operation, kernel, sanitizer and case are the
 * same: that is its fingerprint. Rules by number; a number keeps its meaning.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "results/report_page.h"
#include "results/report_text.h"

enum rule {
    PASSED_NOW_FAILS = 0,
    ERROR_GREW,
    NEVER_PASSED,
    NO_LONGER_JUDGED,
    NOTHING_JUDGED,
    RULES
};

static const struct {
    const char *id, *name, *level, *text;
} rules[RULES] = {
    {"MLA1001", "PassedNowFails", "error", "A case that passed fails."},
    {"MLA1002", "ErrorGrew", "warning",
     "The case passes, but its error over bound grew by more than a tenth of the bound."},
    {"MLA1003", "FailsNeverPassed", "error", "A case fails that no earlier run passed."},
    {"MLA1004", "NoLongerJudged", "warning", "Cases that passed once are no longer judged."},
    {"MLA1005", "NothingJudged", "warning", "A kernel ran, and none of its cases was judged."},
};

static void member_text(FILE *f, const char *name, const char *text)
{
    fprintf(f, "\"%s\":", name);
    mla_text_json(f, text);
}

/* The file of a kernel: "k.so" of "k.so:name" where that needs no quoting in a URI. */
static void file_of(const char *kernel, char *file, size_t file_bytes)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const char *end = strstr(kernel, ".so:");
    size_t n = end == NULL ? 0 : (size_t)(end - kernel) + strlen(".so");
    if (n > 0 && n < file_bytes && strspn(kernel, plain) >= n)
        snprintf(file, file_bytes, "%.*s", (int)n, kernel);
    else
        snprintf(file, file_bytes, "impl/registry.c");
}

/* One result; case_id "" for the subject as a whole. Takes the text. */
static void write_result(FILE *f, bool *first, enum rule rule, const struct mla_subject *s,
                         const char *case_id, char *text)
{
    char *print = NULL, file[128];
    size_t bytes = 0;
    FILE *parts = open_memstream(&print, &bytes);
    file_of(s->kernel, file, sizeof file);
    if (parts != NULL) {
        fprintf(parts, "%s/%s/%s/%s", mla_subject_op(s), s->kernel, s->sanitizer, case_id);
        (void)fclose(parts);
    }
    fprintf(f, "%s\n{\"ruleId\":\"%s\",\"ruleIndex\":%d,\"level\":\"%s\",\"message\":{",
            *first ? "" : ",", rules[rule].id, (int)rule, rules[rule].level);
    member_text(f, "text", text);
    fputs("},\"locations\":[{\"physicalLocation\":{\"artifactLocation\":{", f);
    member_text(f, "uri", file);
    fputs("},\"region\":{\"startLine\":1}},\"logicalLocations\":[{\"kind\":\"function\",", f);
    member_text(f, "name", s->kernel);
    fputs("}]}],\"partialFingerprints\":{", f);
    member_text(f, "opKernelSanitizerCase/v1", print);
    fputs("}}", f);
    *first = false;
    free(print);
    free(text);
}

static void write_change(struct mla_report *r, FILE *f, bool *first, const struct mla_change *c)
{
    const struct mla_subject *s = &r->subjects[c->subject];
    const struct mla_case_row *row = mla_report_case(r, c->testcase);
    char *repro = mla_report_repro(r, s, row), *build = mla_report_build(r, c->since, s);
    char *name = mla_subject_name(s), *text = NULL;
    size_t bytes = 0;
    FILE *message = open_memstream(&text, &bytes);
    if (message != NULL) {
        fprintf(message, "%s/%s: %s, since run %" PRId64 " (commit %s)", mla_subject_op(s), name,
                mla_change_text(c->kind), r->runs[c->since].id, build);
        if (mla_change_is_flaky(c)) {
            fprintf(message, ", flaky: in %" PRId64 " of %" PRId64 " run%s", c->failed_n, c->runs_n,
                    mla_s(c->runs_n));
        }
        if (c->ratio >= 0) {
            fprintf(message, ": err/B %.3g", c->ratio);
        } else {
            char *word, *reason;
            mla_report_reason(r, c->verdict, &word, &reason);
            fprintf(message, ": %s, %s", word, reason);
            free(word);
            free(reason);
        }
        fprintf(message, ". Run it: %s", repro != NULL ? repro : "");
        (void)fclose(message);
    }
    enum rule rule = c->kind == MLA_FAILS  ? PASSED_NOW_FAILS
                     : c->kind == MLA_GREW ? ERROR_GREW
                                           : NEVER_PASSED;
    write_result(f, first, rule, s, row != NULL ? row->id : "", text);
    free(repro);
    free(build);
    free(name);
}

/* What no single case says. */
static void write_subject(struct mla_report *r, FILE *f, bool *first, const struct mla_subject *s)
{
    char *name = mla_subject_name(s), text[512];
    if (s->lost > 0) {
        (void)snprintf(text, sizeof text, "%s/%s: %" PRId64 " case%s passed once, not judged now",
                       mla_subject_op(s), name, s->lost, mla_s(s->lost));
        write_result(f, first, NO_LONGER_JUDGED, s, "", strdup(text));
    }
    if (mla_subject_is_idle(s)) {
        char *idle = mla_report_idle(r, s);
        (void)snprintf(text, sizeof text, "%s/%s: %s", mla_subject_op(s), name,
                       idle != NULL ? idle : "");
        free(idle);
        write_result(f, first, NOTHING_JUDGED, s, "", strdup(text));
    }
    free(name);
}

void mla_report_sarif(struct mla_report *r, FILE *f)
{
    bool first = true;
    fputs("{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\","
          "\"runs\":[{\"tool\":{\"driver\":{\"name\":\"mlacheck\",\"rules\":[",
          f);
    for (int i = 0; i < RULES; i++) {
        fprintf(f,
                "%s\n{\"id\":\"%s\",\"name\":\"%s\",\"shortDescription\":{\"text\":\"%s\"},"
                "\"defaultConfiguration\":{\"level\":\"%s\"}}",
                i == 0 ? "" : ",", rules[i].id, rules[i].name, rules[i].text, rules[i].level);
    }
    fputs("]}},\"results\":[", f);
    for (size_t i = 0; i < r->changes_n; i++) {
        write_change(r, f, &first, &r->changes[i]);
    }
    for (size_t i = 0; i < r->subjects_n; i++) {
        if (mla_page_shows(&r->subjects[i]) && !r->subjects[i].planted) {
            write_subject(r, f, &first, &r->subjects[i]);
        }
    }
    fputs("]}]}\n", f);
}
