/* SPDX-License-Identifier: Apache-2.0
 *
 * report_states.c - what a run judged: the commit, and the files of plug-ins, which are named with the
 * run's kernels as "my.so:name@0123456789ab".
 */
#include <stdlib.h>
#include <string.h>

#include "results/report_read.h"

/* The same state met before, or a new one; MLA_STATE_NONE without memory. */
static size_t find_state(struct mla_report *report, const struct mla_run_row *run, const char *file)
{
    for (size_t i = report->states_n; i-- > 0;) {
        const struct mla_state *s = &report->states[i];
        if (s->dirty == run->dirty && strcmp(s->commit, run->commit) == 0 &&
            strcmp(s->file, file) == 0) {
            return i;
        }
    }
    struct mla_state *list =
        realloc(report->states, (report->states_n + 1) * sizeof report->states[0]);
    if (list == NULL) {
        return MLA_STATE_NONE;
    }
    report->states = list;
    struct mla_state *state = &list[report->states_n];
    *state = (struct mla_state){.commit = strdup(run->commit), .dirty = run->dirty};
    (void)snprintf(state->file, sizeof state->file, "%s", file);
    return state->commit != NULL ? report->states_n++ : MLA_STATE_NONE;
}

/* The bytes of a kernel's name that are its plug-in's path, up to the last ".so" that no slash follows; 0: it is
 * built in. */
static size_t path_length(const char *kernel, size_t n)
{
    for (size_t i = n; i >= 3 && (i == n || kernel[i] != '/'); i--) {
        if (strncmp(&kernel[i - 3], ".so", 3) == 0 && (i == n || strchr(":@", kernel[i]) != NULL)) {
            return i;
        }
    }
    return 0;
}

/* The bytes of the first kernel of a list. A comma may belong to a plug-in's path: so it does where there is a
 * slash before it and no name yet. */
static size_t item_length(const char *list)
{
    size_t n = strcspn(list, ",");
    for (size_t at = 0, slash = 0; list[n] == ',' && path_length(list, n) == 0;
         n += 1 + strcspn(&list[n + 1], ",")) {
        for (; at < n; at++) {
            slash = list[at] == '/' ? at : slash;
        }
        if (list[slash] != '/' || memchr(&list[slash], ':', n - slash) != NULL) {
            break;
        }
    }
    return n;
}

/* The hash at the end of one of the run's kernels; false: there is none. */
static bool read_file(const char *item, size_t n, char file[MLA_STORE_FILE_BYTES])
{
    size_t digits = MLA_STORE_FILE_BYTES - 1;
    if (n <= digits || item[n - digits - 1] != '@' ||
        strspn(&item[n - digits], "0123456789abcdef") < digits) {
        return false;
    }
    (void)snprintf(file, MLA_STORE_FILE_BYTES, "%.*s", (int)digits, &item[n - digits]);
    return true;
}

static bool add_file(struct mla_report *report, struct mla_run_row *run, const char *path, size_t n,
                     const char *file)
{
    struct mla_run_file *files = realloc(run->files, (run->files_n + 1) * sizeof run->files[0]);
    if (files == NULL) {
        return false;
    }
    run->files = files;
    struct mla_run_file *last = &files[run->files_n++];
    *last = (struct mla_run_file){strndup(path, n), find_state(report, run, file)};
    return last->path != NULL && last->state != MLA_STATE_NONE;
}

bool mla_report_add_states(struct mla_report *report, struct mla_run_row *run, const char *kernels)
{
    bool fine = true, only_files = true;
    run->state = MLA_STATE_NONE;
    for (const char *item = kernels; fine; item++) {
        size_t n = item_length(item), path = path_length(item, n);
        char file[MLA_STORE_FILE_BYTES];
        if (path > 0 && read_file(item, n, file)) {
            fine = add_file(report, run, item, path, file);
        } else {
            only_files = false;
        }
        item += n;
        if (*item == '\0') {
            break;
        }
    }
    if (!only_files) {
        run->state = find_state(report, run, "");
        fine = fine && run->state != MLA_STATE_NONE;
    }
    return fine;
}

size_t mla_report_state(const struct mla_report *report, size_t rank, const char *kernel)
{
    const struct mla_run_row *run = &report->runs[rank];
    size_t n = run->files_n > 0 ? path_length(kernel, strlen(kernel)) : 0;
    for (size_t i = 0; n > 0 && i < run->files_n; i++) {
        if (strlen(run->files[i].path) == n && strncmp(run->files[i].path, kernel, n) == 0) {
            return run->files[i].state;
        }
    }
    return run->state != MLA_STATE_NONE ? run->state : run->files[0].state;
}

char *mla_report_build(const struct mla_report *report, size_t rank,
                       const struct mla_subject *subject)
{
    const struct mla_run_row *run = &report->runs[rank];
    const char *file =
        subject != NULL ? report->states[mla_report_state(report, rank, subject->kernel)].file : "";
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) {
        return NULL;
    }
    fprintf(out, "%.12s%s", run->commit, run->dirty ? "-dirty" : "");
    if (subject == NULL && run->sanitizer[0] != '\0') {
        fprintf(out, " [%s]", run->sanitizer);
    }
    if (file[0] != '\0') {
        fprintf(out, ", file %s", file);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
