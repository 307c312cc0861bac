/* SPDX-License-Identifier: Apache-2.0
 *
 * list.c - `mlacheck list`: what there is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/adversary/adversary.h"
#include "fuzz/case_fields.h"
#include "fuzz/criteria.h"
#include "fuzz/family.h"
#include "fuzz/faults/faults.h"
#include "fuzz/kernels.h"
#include "fuzz/mlacheck/options.h"
#include "fuzz/mlacheck/table.h"
#include "fuzz/relations.h"
#include "impl/registry.h"

static const char help[] =
    "usage: mlacheck list WHAT [--db FILE] [--json]\n\n"
    "  kernels    built-in kernels        faults     planted faults (class, operations, cause), "
    "controls,\n"
    "                                                canaries\n"
    "  families   data families           relations  checks that need no oracle\n"
    "  criteria   published accuracy rules, for comparison\n"
    "  names      names used in cases     runs       stored runs\n"
    "  findings   stored faults           worst      stored cases with the largest err/bound\n"
    "  adversaries   kernels that use all the freedom of a model, and cheats\n\n"
    "example: mlacheck list findings --db nightly.db --json\n";

/* One thing of a list: a name, and what it is. Names are plain words, texts hold no quotes. */
struct printer {
    bool json;
    int n;
};

static void item(struct printer *p, const char *name, const char *what)
{
    if (p->json)
        printf("%s{\"name\":\"%s\",\"what\":\"%s\"}", p->n == 0 ? "[" : ",", name, what);
    else
        printf("%-32s %s\n", name, what);
    p->n++;
}

static void list_kernels(struct printer *p)
{
    size_t n;
    const struct mla_kernel *const *kernels = mla_registry_kernels(&n);
    for (size_t i = 0; i < n; i++) {
        bool usable = mla_kernel_is_usable(kernels[i]);
        char what[64];
        snprintf(what, sizeof what, "%s%s%s", kernels[i]->ring != NULL ? "ring " : "",
                 kernels[i]->sparse != NULL ? "sparse" : "",
                 usable ? "" : ", not usable on this CPU");
        item(p, kernels[i]->name, what);
    }
}

static void list_families(struct printer *p)
{
    size_t n;
    const struct mla_family *const *families = mla_families(&n);
    for (size_t i = 0; i < n; i++)
        item(p, families[i]->name, families[i]->what);
}

/* "bits with BIT_REPEAT": of kernels that promise less, the interval. */
static const char *promise_text(uint64_t promise, char text[128])
{
    int n = snprintf(text, 128, "bits with");
    for (int i = 0; mla_promise_name(i) != NULL; i++)
        if ((promise >> i & 1) != 0)
            n += snprintf(text + n, 128 - (size_t)n, " %s", mla_promise_name(i));
    return text;
}

static void list_relations(struct printer *p)
{
    size_t n;
    const struct mla_relation *relations = mla_relations(&n);
    for (size_t i = 0; i < n; i++) {
        const struct mla_relation *r = &relations[i];
        char what[512], promise[128];
        snprintf(what, sizeof what, "%s%s%s [%s; %s]", r->operations & MLA_ON_RING ? "ring " : "",
                 r->operations & MLA_ON_SPARSE ? "sparse " : "", r->what,
                 r->promise == 0 ? "within the interval" : promise_text(r->promise, promise),
                 r->dear ? "dear" : "cheap");
        item(p, r->name, what);
    }
}

static void list_fault_table(struct printer *p, const struct mla_fault *faults, size_t n)
{
    static const char *const operations[] = {"", "ring", "sparse", "ring sparse"};
    for (size_t i = 0; i < n; i++) {
        const struct mla_fault *f = &faults[i];
        const char *on = operations[f->operations & 3u], *cause = mla_cause_name(f->cause);
        if (p->json) {
            printf(
                "%s{\"name\":\"fault:%s\",\"class\":\"%s\",\"operations\":\"%s\",\"cause\":\"%s\""
                ",\"hidden\":\"%s\",\"what\":\"%s\"}",
                p->n == 0 ? "[" : ",", f->name, f->class, on, cause,
                f->hidden == NULL ? "" : f->hidden, f->what);
        } else {
            printf("fault:%-26s %-28s %-11s %-14s %s\n", f->name,
                   f->class[0] == '\0' ? "-" : f->class, on, f->class[0] == '\0' ? "-" : cause,
                   f->what);
            if (f->hidden != NULL)
                printf("%-32s hidden: %s\n", "", f->hidden);
        }
        p->n++;
    }
}

static void list_faults(struct printer *p)
{
    size_t n;
    const struct mla_fault *faults = mla_faults(&n);
    list_fault_table(p, faults, n);
    faults = mla_fault_controls(&n);
    list_fault_table(p, faults, n);
    faults = mla_fault_canaries(&n);
    list_fault_table(p, faults, n);
}

static void list_adversaries(struct printer *p)
{
    size_t n[2];
    const struct mla_adversary *const *tables[2] = {mla_adversaries(&n[0]),
                                                    mla_adversary_cheats(&n[1])};
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < n[t]; i++) {
            char name[80];
            snprintf(name, sizeof name, "adversary:%s", tables[t][i]->kernel.name);
            item(p, name, tables[t][i]->what);
        }
}

static void list_names(struct printer *p)
{
    const struct {
        const char *what;
        const char *(*name)(int32_t);
    } lists[] = {{"op", mla_case_op_name},
                 {"family", mla_family_name},
                 {"region", mla_case_region_name},
                 {"indices", mla_case_indices_name},
                 {"poison", mla_case_poison_name}};
    const char *name;
    for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++)
        for (int32_t i = 0; (name = lists[k].name(i)) != NULL; i++)
            item(p, name, lists[k].what);
}

static void list_criteria(struct printer *p)
{
    size_t n;
    const struct mla_criterion *criteria = mla_criteria(&n);
    for (size_t i = 0; i < n; i++) {
        char what[512];
        snprintf(what, sizeof what, "%s (%s)", criteria[i].what, criteria[i].source);
        item(p, criteria[i].name, what);
    }
}

static int list_view(const struct mla_options *options, enum mla_store_view view)
{
    char *json = NULL;
    struct mla_store *store = mla_options_look_store(options, "list");
    if (store == NULL)
        return MLA_EXIT_ENVIRONMENT;
    int32_t status = options->json ? mla_store_view_json(store, view, NULL, &json)
                                   : mla_table_print(stdout, store, view, NULL);
    int code = status == MLA_STORE_OK
                   ? 0
                   : mla_options_fail(MLA_EXIT_ENVIRONMENT, "list", "%s", mla_store_message(store));
    if (json != NULL)
        puts(json);
    free(json);
    mla_store_close(store);
    return code;
}

int mla_verb_list(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(struct printer *);
    } lists[] = {
        {"kernels", list_kernels}, {"families", list_families},       {"relations", list_relations},
        {"faults", list_faults},   {"adversaries", list_adversaries}, {"criteria", list_criteria},
        {"names", list_names}};
    static const struct {
        const char *name;
        enum mla_store_view view;
    } views[] = {
        {"runs", MLA_VIEW_RUNS}, {"findings", MLA_VIEW_FINDINGS}, {"worst", MLA_VIEW_WORST}};
    struct mla_options options;
    int code = mla_options_parse(&options, "list", "dJh", argc, argv);
    if (code != 0)
        return code;
    if (options.help || options.words_n != 1) {
        fputs(help, options.help ? stdout : stderr);
        return options.help ? 0 : MLA_EXIT_USAGE;
    }
    struct printer p = {.json = options.json};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (strcmp(options.words[0], lists[i].name) == 0) {
            lists[i].print(&p);
            if (p.json)
                puts(p.n == 0 ? "[]" : "]");
            return 0;
        }
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
        if (strcmp(options.words[0], views[i].name) == 0)
            return list_view(&options, views[i].view);
    return mla_options_fail(MLA_EXIT_USAGE, "list", "'%s' is not a list (mlacheck list --help)",
                            options.words[0]);
}
