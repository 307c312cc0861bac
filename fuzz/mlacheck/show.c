/* SPDX-License-Identifier: Apache-2.0
 *
 * show.c - `mlacheck show`: one thing in full.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/kernels.h"
#include "fuzz/mlacheck/options.h"
#include "fuzz/mlacheck/table.h"
#include "results/report_text.h"

static const char help[] =
    "usage: mlacheck show run [NUMBER]      a run and its summary (default: the latest)\n"
    "       mlacheck show accuracy [NUMBER] what a run's stored verdicts measured, by family, and "
    "what\n"
    "                                       published rules would have said (mlacheck list "
    "criteria)\n"
    "       mlacheck show bench [NUMBER]    what was timed, newest first, or in one run\n"
    "       mlacheck show faults [NUMBER]   a kill matrix (default: the latest)\n"
    "       mlacheck show case HASH         a stored case: its line and every verdict\n"
    "       mlacheck show kernel NAME       promises and arithmetic models\n"
    "flags: --db FILE, --json\n\n"
    "example: mlacheck show case 9f31c02a\n";

static int print_view(const struct mla_options *o, struct mla_store *store,
                      enum mla_store_view view, const char *key, int not_found)
{
    char *json = NULL;
    int32_t status = o->json ? mla_store_view_json(store, view, key, &json)
                             : mla_table_print(stdout, store, view, key);
    if (json != NULL)
        puts(json);
    free(json);
    if (status == MLA_STORE_OK)
        return 0;
    bool missing = status == MLA_STORE_ERR_NOT_FOUND || status == MLA_STORE_ERR_AMBIGUOUS;
    return mla_options_fail(missing ? not_found : MLA_EXIT_ENVIRONMENT, "show", "%s",
                            mla_store_message(store));
}

/* What `show` prints of a run: two views, as tables or as the members of one JSON object. */
struct pair {
    const char *word; /* of the command line */
    enum mla_store_view views[2];
    const char *members[2];
};

static const struct pair pairs[] = {
    {"run", {MLA_VIEW_RUN, MLA_VIEW_SUMMARY}, {"run", "summary"}},
    {"accuracy", {MLA_VIEW_ACCURACY, MLA_VIEW_CRITERIA}, {"accuracy", "criteria"}},
};

static int show_pair(const struct mla_options *o, struct mla_store *store, const struct pair *pair)
{
    const char *key = o->words_n > 1 ? o->words[1] : NULL;
    char *json[2] = {NULL, NULL};
    if (!o->json) {
        int code = print_view(o, store, pair->views[0], key, MLA_EXIT_USAGE);
        return code != 0 ? code : print_view(o, store, pair->views[1], key, MLA_EXIT_USAGE);
    }
    int code = 0;
    if (mla_store_view_json(store, pair->views[0], key, &json[0]) == MLA_STORE_OK &&
        mla_store_view_json(store, pair->views[1], key, &json[1]) == MLA_STORE_OK)
        printf("{\"%s\":%s,\"%s\":%s}\n", pair->members[0], json[0], pair->members[1], json[1]);
    else
        code = mla_options_fail(MLA_EXIT_USAGE, "show", "%s", mla_store_message(store));
    free(json[0]);
    free(json[1]);
    return code;
}

static int show_case(const struct mla_options *o, struct mla_store *store)
{
    char *line;
    if (o->words_n < 2)
        return mla_options_fail(MLA_EXIT_USAGE, "show", "case needs the beginning of an id");
    if (mla_store_find_line(store, o->words[1], &line) != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_USAGE, "show", "%s", mla_store_message(store));
    if (!o->json) {
        mla_text_plain(stdout, line);
        putchar('\n');
    }
    free(line);
    return print_view(o, store, MLA_VIEW_CASE, o->words[1], MLA_EXIT_USAGE);
}

/* A list of name and value, as lines for people or as the members of a JSON object. */
struct printer {
    bool json;
    int n; /* members so far */
};

static void member(struct printer *p, const char *name)
{
    if (p->json)
        printf("%s\"%s\":", p->n == 0 ? "" : ",", name);
    else
        printf("  %-18s ", name);
    p->n++;
}

static void print_depth(struct printer *p, const char *name, const struct mla_depth *d)
{
    member(p, name);
    if (p->json) {
        printf("{\"constant\":%.17g,\"per_width\":%.17g,\"per_key\":%.17g,\"per_block\":%.17g,"
               "\"block_keys\":%" PRId32 ",\"most_keys\":%" PRId32 "}",
               d->constant, d->per_width, d->per_key, d->per_block, d->block_keys, d->most_keys);
        return;
    }
    printf("%g + %g*width + %g*", d->constant, d->per_width, d->per_key);
    if (d->most_keys > 0)
        printf("min(keys, %" PRId32 ")", d->most_keys);
    else
        printf("keys");
    printf(" + %g*blocks of %" PRId32 "\n", d->per_block, d->block_keys);
}

static void print_model(bool json, const char *op, const struct mla_model *m)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"add_u", m->add_u},
                   {"product_u", m->product_u},
                   {"score_u", m->score_u},
                   {"exp_error", m->exp_error},
                   {"exp_floor", m->exp_floor},
                   {"exp_slope", m->exp_slope},
                   {"p_u", m->p_u},
                   {"alpha_u", m->alpha_u},
                   {"rescale_scale_u", m->rescale_scale_u},
                   {"acc_u", m->acc_u},
                   {"pv_product_u", m->pv_product_u},
                   {"arg_form", m->arg_form},
                   {"arg_roundings", m->arg_roundings},
                   {"p_frame", m->p_frame},
                   {"p_block_keys", m->p_block_keys},
                   {"sum_rounded", m->sum_rounded},
                   {"div_roundings", m->div_roundings},
                   {"flush", m->flush},
                   {"out_round", m->out_round},
                   {"stats_max", m->stats_max},
                   {"weights_ignore_v", m->weights_ignore_v},
                   {"acc_stores", m->acc_stores},
                   {"shard_block_keys", m->shard_block_keys}};
    struct printer p = {.json = json};
    printf(json ? ",\"%s_model\":{" : "%s model\n", op);
    print_depth(&p, "score_depth", &m->score_depth);
    print_depth(&p, "rescales", &m->rescales);
    print_depth(&p, "acc_depth", &m->acc_depth);
    print_depth(&p, "acc_extra", &m->acc_extra);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        member(&p, numbers[i].name);
        printf(json ? "%.17g" : "%a\n", numbers[i].value);
    }
    if (json)
        printf("}");
}

static void print_promises(bool json, uint64_t promises)
{
    int n = 0;
    printf(json ? "\"promises\":[" : "promises");
    for (int i = 0; mla_promise_name(i) != NULL; i++)
        if ((promises >> i & 1) != 0)
            printf(json ? "%s\"%s\"" : "%s%s",
                   json && n++ == 0 ? ""
                   : json           ? ","
                                    : " ",
                   mla_promise_name(i));
    printf(json ? "]" : "\n");
}

/* JSON gives the name: [a-z0-9-]+, nothing to escape. */
static void print_kernel(bool json, const struct mla_kernel_choice *choice)
{
    const struct mla_kernel *kernel = choice->kernel;
    printf(json ? "{\"kernel\":\"%s\"," : "kernel %s\n", json ? kernel->name : choice->spec);
    print_promises(json, kernel->promises);
    if (kernel->ring != NULL)
        print_model(json, "ring", &kernel->ring_model);
    if (kernel->sparse != NULL)
        print_model(json, "sparse", &kernel->sparse_model);
    if (json)
        printf("}");
}

static int show_kernel(const struct mla_options *o)
{
    static struct mla_kernel_list kernels;
    char error[1024];
    if (o->words_n < 2)
        return mla_options_fail(MLA_EXIT_USAGE, "show", "kernel needs a name");
    if (mla_kernels_add(&kernels, o->words[1], error, sizeof error) != MLA_OK)
        return mla_options_fail(MLA_EXIT_USAGE, "show", "%s", error);
    for (size_t i = 0; i < kernels.n; i++) {
        printf("%s", !o->json ? "" : i == 0 ? "[" : ",");
        print_kernel(o->json, &kernels.list[i]);
    }
    printf("%s", o->json ? "]\n" : "");
    return 0;
}

int mla_verb_show(int argc, char **argv)
{
    struct mla_options o;
    int code = mla_options_parse(&o, "show", "dJh", argc, argv);
    if (code != 0)
        return code;
    if (o.help || o.words_n == 0) {
        fputs(help, o.help ? stdout : stderr);
        return o.help ? 0 : MLA_EXIT_USAGE;
    }
    if (strcmp(o.words[0], "kernel") == 0)
        return show_kernel(&o);
    const struct pair *pair = NULL;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        pair = strcmp(o.words[0], pairs[i].word) == 0 ? &pairs[i] : pair;
    bool bench = strcmp(o.words[0], "bench") == 0, faults = strcmp(o.words[0], "faults") == 0;
    if (pair == NULL && !bench && !faults && strcmp(o.words[0], "case") != 0)
        return mla_options_fail(MLA_EXIT_USAGE, "show",
                                "'%s': must be run, accuracy, bench, faults, case or kernel",
                                o.words[0]);
    struct mla_store *store = mla_options_look_store(&o, "show");
    if (store == NULL)
        return MLA_EXIT_ENVIRONMENT;
    if (bench || faults)
        code = print_view(&o, store, faults ? MLA_VIEW_FAULTS : MLA_VIEW_SPEED,
                          o.words_n > 1 ? o.words[1] : NULL, MLA_EXIT_USAGE);
    else
        code = pair != NULL ? show_pair(&o, store, pair) : show_case(&o, store);
    mla_store_close(store);
    return code;
}
