/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - `mlacheck report`: what the database says, as one file.
 *
 * The file appears whole or not at all: it is written beside its place and renamed.
 */
#include "results/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/link_end.h"
#include "fuzz/mlacheck/options.h"
#include "results/report_text.h"

static const char help[] =
    "usage: mlacheck report [--format html|md|csv|json|junit|sarif] [flags]\n"
    "Did anything regress, which kernel, how much, since when; accuracy of each kernel, plots, the "
    "kill\n"
    "matrix, time. HTML is one file without script that opens offline; it needs gnuplot.\n\n"
    "  --format F   html (default), md, csv (a row a kernel and operation), json, junit, sarif\n"
    "  --out FILE   default: html beside the database (results/mlacheck.html), the others to "
    "standard\n"
    "               output; - is standard output\n"
    "  --github     also print the answer as GitHub annotations (::error ..)\n"
    "  --db FILE    default results/mlacheck.db\n"
    "  --json       last line: one object with the counts; like --github, not beside a report on\n"
    "               standard output\n\n"
    "example: mlacheck report --db results/mlacheck.db --out report.html\n\n"
    "exit: 0 the report is written, whatever it says (regressed in --json tells; mlacheck compare "
    "exits\n"
    "with 1); 2 bad usage; 3 no database, no gnuplot, no room; 77 nothing is stored\n";

struct place {
    char path[4096]; /* as it was named */
    char end[4096];  /* what is replaced: of a link, the file it leads to */
    char temporary[4112];
    bool is_stdout, was_interrupted;
    bool is_kept; /* a device or a pipe, which no file may take the place of */
    bool is_told; /* the answer on standard output, too */
    FILE *file;
};

static int cannot_write(const struct place *place)
{
    return mla_options_fail(MLA_EXIT_ENVIRONMENT, "report", "--out: '%s': %s", place->path,
                            strerror(errno));
}

/* Where the report goes. "results/mlacheck.db" makes "results/mlacheck.html". */
static int choose_place(const struct mla_options *o, enum mla_report_format format,
                        struct place *place)
{
    const char *dot = strrchr(o->db, '.'), *slash = strrchr(o->db, '/');
    size_t stem = dot != NULL && dot > (slash != NULL ? slash : o->db) + 1 ? (size_t)(dot - o->db)
                                                                           : strlen(o->db);
    place->is_stdout = o->out != NULL ? strcmp(o->out, "-") == 0 : format != MLA_REPORT_HTML;
    if (place->is_stdout && (o->json || o->github))
        return mla_options_fail(MLA_EXIT_USAGE, "report",
                                "--%s prints to standard output, where the report goes too: give "
                                "--out FILE",
                                o->json ? "json" : "github");
    int n = o->out != NULL
                ? snprintf(place->path, sizeof place->path, "%s", o->out)
                : snprintf(place->path, sizeof place->path, "%.*s.html", (int)stem, o->db);
    if (n < 0 || (size_t)n >= sizeof place->path)
        return mla_options_fail(MLA_EXIT_USAGE, "report",
                                "--out: the path is longer than %zu bytes", sizeof place->path - 1);
    if (mla_options_same_file(place->path, o->db)) /* the report must not take its place */
        return mla_options_fail(MLA_EXIT_USAGE, "report",
                                "--out: '%s' is the database itself: give another file",
                                place->path);
    if (!mla_link_end(place->path, place->end, sizeof place->end))
        return cannot_write(place);
    snprintf(place->temporary, sizeof place->temporary, "%s.XXXXXX", place->end);
    return 0;
}

static int open_place(struct place *place)
{
    if (place->is_stdout) {
        place->file = stdout;
        return 0;
    }
    struct stat there;
    place->is_kept = stat(place->path, &there) == 0 && !S_ISREG(there.st_mode);
    if (place->is_kept) {
        place->file = fopen(place->path, "w");
        return place->file != NULL ? 0 : cannot_write(place);
    }
    int fd = mkstemp(place->temporary);
    if (fd < 0)
        return cannot_write(place);
    mode_t mask = umask(0);
    umask(mask);
    (void)fchmod(fd, 0666 & ~mask);
    place->file = fdopen(fd, "w");
    if (place->file != NULL)
        return 0;
    int code = cannot_write(place);
    close(fd);
    unlink(place->temporary);
    return code;
}

/* Rename what is complete, remove what is not. */
static int close_place(struct place *place, int code)
{
    if (place->is_stdout)
        return code; /* main looks after its errors */
    if (code == 0 && (ferror(place->file) || fflush(place->file) != 0 ||
                      (!place->is_kept && fsync(fileno(place->file)) != 0)))
        code = cannot_write(place);
    if (fclose(place->file) != 0 && code == 0)
        code = cannot_write(place);
    if (code == 0 && mla_interrupted && !place->was_interrupted)
        code = MLA_EXIT_INTERRUPTED;
    if (place->is_kept)
        return code;
    if (code == 0 && rename(place->temporary, place->end) != 0)
        code = cannot_write(place);
    if (code != 0)
        unlink(place->temporary);
    return code;
}

static void say(const struct mla_options *o, const struct mla_report *report,
                const struct place *place)
{
    struct mla_report_answer answer = mla_report_answer(report), *a = &answer;
    char *counts = mla_report_counts(report), *last = mla_report_last(report);
    char *kernels = mla_report_failing(report);
    if (a->compared == 0)
        printf("nothing to compare: no case was judged by two runs; ");
    else
        printf("%" PRId64 " of %" PRId64 " result%s compared regressed; ", a->fails, a->compared,
               a->compared == 1 ? "" : "s");
    mla_text_plain(stdout, counts);
    fputc('\n', stdout);
    if (kernels != NULL) {
        mla_text_plain(stdout, kernels);
        fputc('\n', stdout);
    }
    mla_text_plain(stdout, last);
    printf("\nreport: %s\n", place->path);
    free(kernels);
    free(counts);
    free(last);
    if (o->json) {
        printf("{\"regressed\":%" PRId64 ",\"fails\":%" PRId64 ",\"grew\":%" PRId64
               ",\"lost\":%" PRId64 ",\"failing\":%" PRId64 ",\"compared\":%" PRId64
               ",\"cases\":%" PRId64 ",\"verdicts\":%" PRId64 ",\"flaky\":%" PRId64
               ",\"judged\":%" PRId64 ",\"idle\":%" PRId64 ",",
               a->fails, a->fails, a->grew, a->lost, a->failing, a->compared, a->cases, a->verdicts,
               a->flaky, a->judged, a->idle);
        mla_report_last_json(report, stdout);
        printf("}\n");
    }
}

static int write_report(const struct mla_options *o, struct mla_store *store,
                        enum mla_report_format format, struct place *place)
{
    struct mla_report *report;
    if (mla_report_read(store, &report) != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "report", "%s", mla_store_message(store));
    int code = 0;
    if (mla_report_is_empty(report))
        code = mla_options_fail(MLA_EXIT_NOTHING, "report", "'%s' holds no run: nothing to report",
                                o->db);
    code = code != 0 ? code : open_place(place);
    if (code == 0) {
        if (mla_report_write(report, format, place->file) != MLA_STORE_OK)
            code = mla_interrupted && !place->was_interrupted
                       ? MLA_EXIT_INTERRUPTED
                       : mla_options_fail(MLA_EXIT_ENVIRONMENT, "report", "%s",
                                          mla_store_message(store));
        code = close_place(place, code);
    }
    if (code == 0 && o->github)
        mla_report_github(report, stdout);
    if (code == 0 && place->is_told)
        say(o, report, place);
    mla_report_free(report);
    return code;
}

int mla_report_after(const struct mla_options *options)
{
    static struct place place;
    struct mla_options o = {.db = options->db};
    place.was_interrupted = mla_interrupted;
    int code = choose_place(&o, MLA_REPORT_HTML, &place);
    struct mla_store *store = code == 0 ? mla_options_look_store(&o, "report") : NULL;
    if (store == NULL)
        return code != 0 ? code : MLA_EXIT_ENVIRONMENT;
    fflush(stdout);
    place.is_told = false;
    code = write_report(&o, store, MLA_REPORT_HTML, &place);
    mla_store_close(store);
    if (code == 0)
        fprintf(options->json ? stderr : stdout, "report: %s\n", place.path);
    return code;
}

int mla_verb_report(int argc, char **argv)
{
    static struct place place;
    struct mla_options o;
    int format = 0, code = mla_options_parse(&o, "report", "dJhuFG", argc, argv);
    if (code != 0 || o.help) {
        if (code == 0)
            fputs(help, stdout);
        return code;
    }
    if (o.words_n > 0)
        return mla_options_fail(MLA_EXIT_USAGE, "report", "unexpected word '%s'", o.words[0]);
    while (o.format != NULL && format < MLA_REPORT_FORMATS_N &&
           strcmp(o.format, mla_report_format_name((enum mla_report_format)format)) != 0)
        format++;
    if (format == MLA_REPORT_FORMATS_N)
        return mla_options_fail(MLA_EXIT_USAGE, "report",
                                "--format '%s': must be html, md, csv, json, junit or sarif",
                                o.format);
    code = choose_place(&o, (enum mla_report_format)format, &place);
    struct mla_store *store = code == 0 ? mla_options_look_store(&o, "report") : NULL;
    if (store == NULL)
        return code != 0 ? code : MLA_EXIT_ENVIRONMENT;
    place.is_told = !place.is_stdout;
    code = write_report(&o, store, (enum mla_report_format)format, &place);
    mla_store_close(store);
    return code;
}
