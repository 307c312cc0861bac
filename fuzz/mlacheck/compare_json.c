/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_json.c - what moved as one line of JSON.
 */
#include <inttypes.h>
#include <math.h>

#include "fuzz/mlacheck/compare.h"
#include "results/report_text.h"

/* JSON has no inf and no nan: texts, as everywhere in mlacheck. */
static void json_ratio(double ratio)
{
    if (ratio < 0)
        printf("null");
    else
        printf(isfinite(ratio) ? "%.6g" : "\"%g\"", ratio);
}

/* ,"name":"text" */
static void json_member(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    mla_text_json(stdout, text);
}

static void json_shift(const struct mla_compare_shift *shift, bool first)
{
    const struct mla_compare_sample *a = shift->samples[0];
    printf("%s{\"op\":\"%s\"", first ? "" : ",", a->op);
    json_member("kernel", a->kernel);
    json_member("sanitizer", a->sanitizer);
    json_member("isa", a->isa);
    json_member("metric", a->name);
    printf(",\"runs\":[%zu,%zu],\"medians\":[", shift->runs[0], shift->runs[1]);
    for (int s = 0; s < 2; s++)
        printf(isfinite(shift->medians[s]) ? "%s%.6g" : "%s\"%g\"", s == 0 ? "" : ",",
               shift->medians[s]);
    printf("],\"p\":%.6g,\"exact\":%s}", shift->test.p, shift->test.exact ? "true" : "false");
}

static void json_item(const struct mla_compare *c, const struct mla_moved_item *item)
{
    const struct mla_compare_group *g = &c->groups[item->group];
    printf("{\"case\":\"%s\",\"op\":\"%s\"", item->id, g->op);
    json_member("kernel", g->kernel);
    json_member("sanitizer", g->sanitizer);
    printf(",\"before\":");
    printf(item->before == NULL ? "null" : "\"%s\"", item->before);
    printf(",\"after\":");
    printf(item->after == NULL ? "null" : "\"%s\"", item->after);
    printf(",\"err_over_bound\":[");
    json_ratio(item->ratios[0]);
    putchar(',');
    json_ratio(item->ratios[1]);
    printf("],\"judged\":[%" PRId64 ",%" PRId64 "],\"failed\":[%" PRId64 ",%" PRId64
           "],\"unseen_relation\":",
           item->judged[0], item->judged[1], item->failed[0], item->failed[1]);
    printf(item->unseen == NULL ? "null" : "\"%s\"", item->unseen);
    printf(",\"regression\":%s,\"reason\":", mla_compare_is_regression(c, item) ? "true" : "false");
    mla_text_json(stdout, item->reason);
    printf(",\"repro\":");
    if (item->repro == NULL)
        printf("null");
    else
        mla_text_json(stdout, item->repro);
    putchar('}');
}

/* Verdicts that turned are listed to the last, the rest as for people: there may be a million. */
static void json_items(const struct mla_compare *c, enum mla_moved moved)
{
    int64_t n = 0;
    bool all = c->options.verbose || moved <= MLA_MOVED_FIXED;
    printf("\"%s\":[", mla_moved_words[moved].plural);
    for (size_t i = 0; i < c->items_n && (all || n < MLA_COMPARE_SHOWN); i++) {
        if (c->items[i].moved != moved)
            continue;
        printf("%s", n++ == 0 ? "" : ",");
        json_item(c, &c->items[i]);
    }
    printf("],");
}

static void json_group(const struct mla_compare_group *g)
{
    printf("{\"op\":\"%s\"", g->op);
    json_member("kernel", g->kernel);
    json_member("sanitizer", g->sanitizer);
    json_member("isa", g->isa);
    printf(",\"kernel_file_changed\":%s", mla_compare_is_rebuilt(g) ? "true" : "false");
    printf(",\"paired\":%" PRId64 ",\"only_a\":%" PRId64 ",\"only_b\":%" PRId64
           ",\"failed\":[%" PRId64 ",%" PRId64 "],\"same_bits\":%" PRId64
           ",\"changed_bits\":%" PRId64 ",\"unknown_bits\":%" PRId64 ",\"worst\":[",
           g->paired, g->only[0], g->only[1], g->failed[0], g->failed[1], g->same_bits,
           g->count[MLA_MOVED_BITS], g->no_bits);
    json_ratio(g->worst[0]);
    putchar(',');
    json_ratio(g->worst[1]);
    printf("],\"new_worst\":");
    printf(mla_compare_is_new_worst(g) ? "\"%s\"" : "null", g->worst_id[1]);
    putchar('}');
}

void mla_compare_print_json(const struct mla_compare *c, int64_t paired, int64_t regressions)
{
    struct mla_compare_shift shift;
    int64_t tests = 0, shifts = 0;
    printf("{\"paired\":%" PRId64 ",\"regressed\":%" PRId64 ",\"moved\":{", paired, regressions);
    for (int m = 0; m < MLA_MOVED_N; m++)
        printf("%s\"%s\":%" PRId64, m == 0 ? "" : ",", mla_moved_words[m].plural,
               mla_compare_count(c, (enum mla_moved)m));
    printf("},");
    for (int m = 0; m < MLA_MOVED_N; m++)
        json_items(c, (enum mla_moved)m);
    printf("\"shifts\":[");
    for (size_t at = 0; mla_compare_next_shift(c, &at, &shift); tests++)
        if (shift.is_told)
            json_shift(&shift, shifts++ == 0);
    printf("],\"shift_tests\":%" PRId64 ",\"kernels\":[", tests);
    for (size_t i = 0; i < c->groups_n; i++) {
        printf("%s", i == 0 ? "" : ",");
        json_group(&c->groups[i]);
    }
    printf("],\"runs_not_ended\":[%" PRId64 ",%" PRId64 "],\"interrupted\":%s}\n",
           mla_store_side_facts(c->sides[0]).cut_off_n, mla_store_side_facts(c->sides[1]).cut_off_n,
           mla_interrupted ? "true" : "false");
}
