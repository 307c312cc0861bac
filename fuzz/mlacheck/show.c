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

static const char help[] =
    "usage: mlacheck show run [NUMBER]      a run and its summary (default: the latest)\n"
    "       mlacheck show case HASH         a stored case: its line and every verdict\n"
    "       mlacheck show kernel NAME       promises and arithmetic models\n"
    "flags: --db FILE, --json\n";

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

static int show_run(const struct mla_options *o, struct mla_store *store)
{
    const char *key = o->words_n > 1 ? o->words[1] : NULL;
    int code = o->json ? 0 : print_view(o, store, MLA_VIEW_RUN, key, MLA_EXIT_USAGE);
    return code != 0 ? code : print_view(o, store, MLA_VIEW_SUMMARY, key, MLA_EXIT_USAGE);
}

static int show_case(const struct mla_options *o, struct mla_store *store)
{
    char *line;
    if (o->words_n < 2)
        return mla_options_fail(MLA_EXIT_USAGE, "show", "case needs the beginning of an id");
    if (mla_store_find_line(store, o->words[1], &line) != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_USAGE, "show", "%s", mla_store_message(store));
    if (!o->json)
        printf("%s\n", line);
    free(line);
    return print_view(o, store, MLA_VIEW_CASE, o->words[1], MLA_EXIT_USAGE);
}

static void print_depth(const char *name, const struct mla_depth *d)
{
    printf("  %-18s %g + %g*width + %g*keys + %g*blocks of %" PRId32 "\n", name, d->constant,
           d->per_width, d->per_key, d->per_block, d->block_keys);
}

static void print_model(const char *op, const struct mla_model *m)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"add_u", m->add_u},
                   {"product_u", m->product_u},
                   {"score_u", m->score_u},
                   {"exp_error", m->exp_error},
                   {"exp_floor", m->exp_floor},
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
                   {"weights_ignore_v", m->weights_ignore_v}};
    printf("%s model\n", op);
    print_depth("score_depth", &m->score_depth);
    print_depth("rescales", &m->rescales);
    print_depth("acc_depth", &m->acc_depth);
    print_depth("acc_extra", &m->acc_extra);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        printf("  %-18s %a\n", numbers[i].name, numbers[i].value);
}

static void print_promises(uint64_t promises)
{
    static const char *const names[] = {"REFUSES",    "INDEX_CHECKED",  "PAD_ZERO",
                                        "STATS",      "NO_FUTURE_LEAK", "SCRATCH_UNTOUCHED",
                                        "BIT_REPEAT", "BIT_THREADS",    "BIT_LAYOUT"};
    printf("promises");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((promises >> i & 1) != 0)
            printf(" %s", names[i]);
    printf("\n");
}

static int show_kernel(const struct mla_options *o)
{
    static struct mla_kernel_list kernels;
    char error[1024];
    if (o->words_n < 2)
        return mla_options_fail(MLA_EXIT_USAGE, "show", "kernel needs a name");
    if (o->json)
        return mla_options_fail(MLA_EXIT_USAGE, "show", "--json: not offered for kernel");
    if (mla_kernels_add(&kernels, o->words[1], error, sizeof error) != MLA_OK)
        return mla_options_fail(MLA_EXIT_USAGE, "show", "%s", error);
    for (size_t i = 0; i < kernels.n; i++) {
        const struct mla_kernel *kernel = kernels.list[i].kernel;
        printf("kernel %s\n", kernels.list[i].spec);
        print_promises(kernel->promises);
        if (kernel->ring != NULL)
            print_model("ring", &kernel->ring_model);
        if (kernel->sparse != NULL)
            print_model("sparse", &kernel->sparse_model);
    }
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
    bool is_run = strcmp(o.words[0], "run") == 0;
    if (!is_run && strcmp(o.words[0], "case") != 0)
        return mla_options_fail(MLA_EXIT_USAGE, "show", "'%s': must be run, case or kernel",
                                o.words[0]);
    struct mla_store *store = mla_options_store(&o, "show");
    if (store == NULL)
        return MLA_EXIT_ENVIRONMENT;
    code = is_run ? show_run(&o, store) : show_case(&o, store);
    mla_store_close(store);
    return code;
}
