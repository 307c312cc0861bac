/* SPDX-License-Identifier: Apache-2.0
 *
 * draw_weights.c - how often what is drawn: every weighted choice of case drawing, as one table.
 *
 * A row is {weight, value}; a value's probability is its weight over the sum of its list's. Plain
 * random data is nearly blind to the faults such kernels have had, so weight goes to the edges of
 * geometry and to shaped data; cost is kept down by making small things likely (case_fix.c then
 * enforces the budgets). When a weight changes, look at kill_test and at executions a second.
 */
#include "fuzz/draw.h"

struct weight {
    int32_t weight;
    int64_t value;
};

/* ---- data ---- */

struct recipe {
    int32_t weight;
    const struct mla_family *family;
    enum mla_region region;
};

static const struct recipe recipes[] = {
    /* the public tests' inputs: for comparability */
    {20, &mla_family_upstream, MLA_REGION_NORMAL},
    {20, &mla_family_upstream, MLA_REGION_OUTLIER},
    {10, &mla_family_upstream, MLA_REGION_RAMP},
    /* every score region */
    {12, &mla_family_profile, MLA_REGION_FLAT},
    {8, &mla_family_profile, MLA_REGION_GEOMETRIC},
    {8, &mla_family_profile, MLA_REGION_FIRST},
    {8, &mla_family_profile, MLA_REGION_LAST},
    {8, &mla_family_profile, MLA_REGION_EDGE},
    {8, &mla_family_profile, MLA_REGION_ONE_EDGE},
    {20, &mla_family_profile, MLA_REGION_RISING},
    {8, &mla_family_profile, MLA_REGION_FALLING},
    {8, &mla_family_profile, MLA_REGION_HALF},
    {8, &mla_family_profile, MLA_REGION_DEEP},
    {8, &mla_family_profile, MLA_REGION_SUNK},
    {6, &mla_family_profile, MLA_REGION_LOFTY},
    {8, &mla_family_profile, MLA_REGION_UNDER},
    {8, &mla_family_profile, MLA_REGION_SPREAD},
    {8, &mla_family_profile, MLA_REGION_EQUAL_MAXIMA},
    {8, &mla_family_profile, MLA_REGION_CLUSTERS},
    {8, &mla_family_profile, MLA_REGION_SATURATED},
    {4, &mla_family_profile, MLA_REGION_ABYSS},
    {9, &mla_family_profile, MLA_REGION_CHASM},
    {8, &mla_family_profile, MLA_REGION_RAW},
    {8, &mla_family_profile, MLA_REGION_HEADS},
    {8, &mla_family_profile, MLA_REGION_CREEPING},
    /* the whole width takes part in the scores */
    {60, &mla_family_full, MLA_REGION_NORMAL},
    /* exact answers, and values that say where they come from */
    {30, &mla_family_exact, MLA_REGION_FLAT},
    {30, &mla_family_exact, MLA_REGION_SELECT},
    {50, &mla_family_coded, MLA_REGION_SELECT},
    /* the ends of arithmetic */
    {1, &mla_family_extreme, MLA_REGION_TINY},
    {1, &mla_family_extreme, MLA_REGION_SUBNORMAL}, /* dear: faint costs a sixteenth */
    {5, &mla_family_extreme, MLA_REGION_HUGE},
    {4, &mla_family_extreme, MLA_REGION_COPIES},
    {5, &mla_family_extreme, MLA_REGION_BINADE},
    {8, &mla_family_extreme, MLA_REGION_STAIRS},
    {4, &mla_family_special, MLA_REGION_ZEROS},
    {5, &mla_family_special, MLA_REGION_TIES},
    {6, &mla_family_special, MLA_REGION_CANCEL},
    {8, &mla_family_special, MLA_REGION_LARGE},
    {5, &mla_family_special, MLA_REGION_LARGEST},
    {5, &mla_family_special, MLA_REGION_ONES},
    {8, &mla_family_special, MLA_REGION_FAINT},
    {12, &mla_family_special, MLA_REGION_BENEATH},
    /* what a block-float-8 cache holds */
    {15, &mla_family_bfp8, MLA_REGION_NORMAL},
    {10, &mla_family_bfp8, MLA_REGION_OUTLIER},
};

static const struct weight indices[] = {
    {3, MLA_INDICES_UNIFORM},  {4, MLA_INDICES_DISTINCT}, {3, MLA_INDICES_SORTED},
    {2, MLA_INDICES_REVERSED}, {2, MLA_INDICES_CAUSAL},   {1, MLA_INDICES_ONE_ROW},
    {2, MLA_INDICES_FEW_ROWS}, {2, MLA_INDICES_REPEAT},   {1, MLA_INDICES_EDGES},
    {2, MLA_INDICES_ODD_ONE},  {2, MLA_INDICES_LEADING},  {2, MLA_INDICES_INTERIOR},
    {1, MLA_INDICES_TRAILING}, {1, MLA_INDICES_ENDS},
};

/* Whole query rows (negative), or all: heads are not sampled. mla_case_fix takes back what is too
 * much. */
static const struct weight rows[] = {{2, 0}, {1, -1}, {2, -2}, {1, -4}, {1, -8}, {1, -16}};

/* How far from an edge. */
static const struct weight near[] = {{6, 0}, {2, -1}, {2, 1}, {1, -31}, {1, -32}, {1, 32}};

/* ---- ring ---- */

static const struct weight ring_size[] = {{2, 1}, {8, 2}, {5, 3}, {5, 4},
                                          {2, 5}, {1, 6}, {2, 7}, {2, 8}};
/* where a case may be large */
static const struct weight ring_size_wide[] = {{2, 9},  {1, 12}, {2, 15}, {3, 16},
                                               {1, 17}, {1, 24}, {2, 31}, {4, 32}};
static const struct weight ring_large[] = {{4, MLA_RING_WIDE},
                                           {2, MLA_RING_MANY_HEADS},
                                           {2, MLA_RING_FULL_WIDTH},
                                           {1, MLA_RING_STRADDLING}};
static const struct weight ring_batch[] = {{36, 1}, {10, 2}, {2, 3}, {2, 4}, {1, 5}};
static const struct weight ring_heads[] = {{6, 1}, {2, 2}, {2, 3}, {2, 4}, {1, 5}};
/* head_dim * 1024 + head_dim_v */
static const struct weight ring_widths[] = {
    {6, 64 * 1024 + 32},  {2, 96 * 1024 + 64},   {2, 128 * 1024 + 32}, {1, 96 * 1024 + 32},
    {2, 160 * 1024 + 96}, {2, 576 * 1024 + 128}, {2, 576 * 1024 + 512}};
static const struct weight ring_widths_large[] = {
    {3, 576 * 1024 + 512}, {1, 640 * 1024 + 544}, {2, 1056 * 1024 + 64}, {2, 1088 * 1024 + 1024}};
static const struct weight ring_q_tiles[] = {{8, 1}, {6, 2}, {2, 3}, {2, 4}, {1, 5}, {1, 6}};
static const struct weight ring_q_chunk_tiles[] = {{3, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}};
static const struct weight ring_k_chunk_tiles[] = {{4, 1}, {2, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 8}};
static const struct weight ring_mode[] = {{6, MLA_MODE_CONTIGUOUS},
                                          {4, MLA_MODE_BALANCED},
                                          {4, MLA_MODE_CHUNKED},
                                          {5, MLA_MODE_ROTATED},
                                          {2, MLA_MODE_SPLIT}};
/* slabs of a chunked cache: kv_rows / q_rows */
static const struct weight ring_slabs[] = {{6, 2}, {3, 3}, {3, 4}, {1, 5}, {1, 6}};
static const struct weight ring_slabs_long[] = {{1, 17}, {1, 18}, {2, 24}, {2, 32}};
static const struct weight ring_topology[] = {{2, MLA_TOPOLOGY_RING}, {1, MLA_TOPOLOGY_LINEAR}};
static const struct weight ring_links[] = {{2, 1}, {2, 2}, {1, 3}, {1, 4}, {1, 7}, {1, 33}};
/* A thread costs more than the work of most cases, but without them nothing can race. */
static const struct weight ring_threads[] = {{8, 0},
                                             {32, 1},
                                             {16, 2},
                                             {8, 3},
                                             {8, MLA_THREADS_RANKS},
                                             {8, MLA_THREADS_ONE_MORE},
                                             {8, MLA_THREADS_TWICE},
                                             {1, MLA_THREADS_MAX}};
/* rows of gathered beyond those that are needed */
static const struct weight ring_spare_rows[] = {{4, 0}, {2, 1}, {2, 32}, {2, 45}};
static const struct weight ring_slot[] = {
    {93, MLA_SLOT_NONE}, {31, MLA_SLOT_FEW}, {1, MLA_SLOT_HUGE}};
static const struct weight ring_slots[] = {{5, 1}, {10, 2}, {5, 3}, {1, 9}, {1, 17}};
/* logical_n, contiguous; near[] is added */
static const struct weight ring_length[] = {
    {1, MLA_EDGE_ONE},        {1, MLA_EDGE_TILE},       {1, MLA_EDGE_TWO_TILES},
    {1, MLA_EDGE_K_CHUNK},    {1, MLA_EDGE_RING_TILES}, {1, MLA_EDGE_TWO_RING_TILES},
    {1, MLA_EDGE_SHARD},      {1, MLA_EDGE_TWO_SHARDS}, {2, MLA_EDGE_LAST_SHARD},
    {1, MLA_EDGE_SOME_CHUNK}, {3, MLA_EDGE_CAPACITY},   {2, MLA_EDGE_ANY},
};
/* logical_n, chunked without P; near[] is added */
static const struct weight ring_length_chunked[] = {
    {3, MLA_EDGE_SLAB},       {2, MLA_EDGE_SOME_SLAB}, {1, MLA_EDGE_SOME_RANK},
    {1, MLA_EDGE_SOME_CHUNK}, {1, MLA_EDGE_SHARD},     {1, MLA_EDGE_LAST_SHARD},
    {3, MLA_EDGE_CAPACITY},   {2, MLA_EDGE_ANY},
};
/* P; sometimes a tile less or more */
static const struct weight ring_prior[] = {
    {2, MLA_EDGE_ZERO},      {1, MLA_EDGE_TILE},       {2, MLA_EDGE_K_CHUNK},
    {2, MLA_EDGE_RANK},      {2, MLA_EDGE_SLAB},       {2, MLA_EDGE_SOME_SLAB},
    {2, MLA_EDGE_SOME_RANK}, {1, MLA_EDGE_SOME_CHUNK}, {1, MLA_EDGE_LAST_SHARD},
    {1, MLA_EDGE_CAPACITY},  {3, MLA_EDGE_ANY},
};
/* L - P */
static const struct weight ring_fresh[] = {{2, MLA_EDGE_TILE},
                                           {1, MLA_EDGE_RANK},
                                           {1, MLA_EDGE_RING_TILES},
                                           {5, MLA_EDGE_SLAB},
                                           {3, MLA_EDGE_ANY}};

/* ---- sparse ---- */

static const struct weight sparse_queries[] = {{3, 1}, {2, 2}, {1, 3}, {1, 4},
                                               {1, 7}, {1, 8}, {1, 9}, {1, 12}};
/* where keys are not few */
static const struct weight sparse_queries_few[] = {{18, 1}, {10, 2}, {1, 3},
                                                   {1, 4},  {1, 7},  {1, 9}};
/* where a row keeps few of its list, so that many rows are cheap */
static const struct weight sparse_queries_dropped[] = {{2, 3}, {3, 4}, {1, 5},  {2, 6},
                                                       {2, 8}, {2, 9}, {2, 10}, {2, 12}};
static const struct weight sparse_topk[] = {{6, 128}, {4, 256}};
static const struct weight sparse_heads[] = {{7, 16}, {1, 32}};
static const struct weight sparse_rope[] = {{1, 1},  {1, 2},   {1, 63}, {3, 64},
                                            {1, 65}, {1, 127}, {1, 128}};
/* keys; near[] is added to some */
static const struct weight sparse_keys[] = {{1, MLA_EDGE_ONE},
                                            {1, MLA_EDGE_TWO},
                                            {5, MLA_EDGE_LIST},
                                            {1, MLA_EDGE_BLOCK},
                                            {5, MLA_EDGE_ANY}};
/* beyond 2^31 and 2^32 elements of 512 a row */
static const struct weight sparse_keys_huge[] = {{1, (1 << 22) + 1},   {1, (1 << 22) + 2},
                                                 {1, (1 << 22) + 129}, {1, (1 << 23) + 1},
                                                 {2, (1 << 23) + 129}, {2, (1 << 24) + 1}};
/* q_pos_offset */
static const struct weight sparse_offset[] = {
    {2, MLA_EDGE_ZERO},    {2, MLA_EDGE_ONE}, {3, MLA_EDGE_KEYS}, {3, MLA_EDGE_HALF},
    {2, MLA_EDGE_FOREVER}, {1, MLA_EDGE_INT}, {2, MLA_EDGE_ANY},  {1, MLA_EDGE_BLOCK}};
static const struct weight sparse_order[] = {{3, MLA_OUT_MX4}, {1, MLA_OUT_NATURAL}};
static const struct weight sparse_threads[] = {{12, 0}, {36, 1}, {12, 2},
                                               {12, 3}, {12, 5}, {1, MLA_THREADS_MAX}};
static const struct weight sparse_large[] = {{8, MLA_SPARSE_LONG},
                                             {7, MLA_SPARSE_MANY_HEADS},
                                             {6, MLA_SPARSE_TALL},
                                             {3, MLA_SPARSE_DEEP},
                                             {3, MLA_SPARSE_WIDE_CACHE}};
static const struct weight sparse_medium[] = {{6, MLA_SPARSE_LONG},
                                              {1, MLA_SPARSE_STAIRS},
                                              {1, MLA_SPARSE_WIDE_CACHE},
                                              {2, MLA_SPARSE_TALL},
                                              {3, MLA_SPARSE_PAIR}};

/* ---- mutation: see case_mutate.c for what each number does ---- */

static const struct weight mutation[] = {{2, 0}, {2, 1}, {2, 2}, {1, 3}, {1, 4},
                                         {4, 5}, {3, 6}, {2, 7}, {2, 8}, {2, 9}};

const struct mla_draw_chances mla_draw_chances = {.ring_long = 64,
                                                  .future = 64,
                                                  .default_scale = 341,
                                                  .extreme_scale = 16,
                                                  .extreme_chunk = 8,
                                                  .aim = 512,
                                                  .sparse_huge = 18,
                                                  .sparse_dense = 170,
                                                  .long_is_flat = 512,
                                                  .long_creeps = 256,
                                                  .second_rule = 341,
                                                  .tall_list = 32,
                                                  .sparse_dropped = 80};

#define LIST(array)                                                                                \
    {                                                                                              \
        array, sizeof(array) / sizeof((array)[0])                                                  \
    }

static const struct {
    const struct weight *list;
    size_t n;
} choices[MLA_CHOICE_N] = {
    [MLA_CHOICE_RING_SIZE] = LIST(ring_size),
    [MLA_CHOICE_RING_SIZE_WIDE] = LIST(ring_size_wide),
    [MLA_CHOICE_RING_LARGE] = LIST(ring_large),
    [MLA_CHOICE_RING_BATCH] = LIST(ring_batch),
    [MLA_CHOICE_RING_HEADS] = LIST(ring_heads),
    [MLA_CHOICE_RING_WIDTHS] = LIST(ring_widths),
    [MLA_CHOICE_RING_WIDTHS_LARGE] = LIST(ring_widths_large),
    [MLA_CHOICE_RING_Q_TILES] = LIST(ring_q_tiles),
    [MLA_CHOICE_RING_Q_CHUNK_TILES] = LIST(ring_q_chunk_tiles),
    [MLA_CHOICE_RING_K_CHUNK_TILES] = LIST(ring_k_chunk_tiles),
    [MLA_CHOICE_RING_MODE] = LIST(ring_mode),
    [MLA_CHOICE_RING_SLABS] = LIST(ring_slabs),
    [MLA_CHOICE_RING_SLABS_LONG] = LIST(ring_slabs_long),
    [MLA_CHOICE_RING_TOPOLOGY] = LIST(ring_topology),
    [MLA_CHOICE_RING_LINKS] = LIST(ring_links),
    [MLA_CHOICE_RING_THREADS] = LIST(ring_threads),
    [MLA_CHOICE_RING_SPARE_ROWS] = LIST(ring_spare_rows),
    [MLA_CHOICE_RING_SLOT] = LIST(ring_slot),
    [MLA_CHOICE_RING_SLOTS] = LIST(ring_slots),
    [MLA_CHOICE_RING_LENGTH] = LIST(ring_length),
    [MLA_CHOICE_RING_LENGTH_CHUNKED] = LIST(ring_length_chunked),
    [MLA_CHOICE_RING_PRIOR] = LIST(ring_prior),
    [MLA_CHOICE_RING_FRESH] = LIST(ring_fresh),
    [MLA_CHOICE_SPARSE_QUERIES] = LIST(sparse_queries),
    [MLA_CHOICE_SPARSE_QUERIES_FEW] = LIST(sparse_queries_few),
    [MLA_CHOICE_SPARSE_QUERIES_DROPPED] = LIST(sparse_queries_dropped),
    [MLA_CHOICE_SPARSE_TOPK] = LIST(sparse_topk),
    [MLA_CHOICE_SPARSE_HEADS] = LIST(sparse_heads),
    [MLA_CHOICE_SPARSE_ROPE] = LIST(sparse_rope),
    [MLA_CHOICE_SPARSE_KEYS] = LIST(sparse_keys),
    [MLA_CHOICE_SPARSE_KEYS_HUGE] = LIST(sparse_keys_huge),
    [MLA_CHOICE_SPARSE_OFFSET] = LIST(sparse_offset),
    [MLA_CHOICE_SPARSE_ORDER] = LIST(sparse_order),
    [MLA_CHOICE_SPARSE_THREADS] = LIST(sparse_threads),
    [MLA_CHOICE_SPARSE_LARGE] = LIST(sparse_large),
    [MLA_CHOICE_SPARSE_MEDIUM] = LIST(sparse_medium),
    [MLA_CHOICE_INDICES] = LIST(indices),
    [MLA_CHOICE_ROWS] = LIST(rows),
    [MLA_CHOICE_NEAR] = LIST(near),
    [MLA_CHOICE_MUTATION] = LIST(mutation),
};

int64_t mla_draw_choice(struct mla_rng *rng, enum mla_choice choice)
{
    const struct weight *list = choices[choice].list;
    int64_t sum = 0;
    size_t i = 0;
    for (size_t k = 0; k < choices[choice].n; k++)
        sum += list[k].weight;
    for (int64_t at = mla_rng_below(rng, sum); at >= list[i].weight; i++)
        at -= list[i].weight;
    return list[i].value;
}

void mla_draw_recipe(struct mla_case *test, struct mla_rng *rng)
{
    const size_t recipes_n = sizeof recipes / sizeof recipes[0];
    size_t families_n, i = 0;
    int64_t sum = 0;
    for (size_t k = 0; k < recipes_n; k++)
        sum += recipes[k].weight;
    for (int64_t at = mla_rng_below(rng, sum); at >= recipes[i].weight; i++)
        at -= recipes[i].weight;
    const struct mla_family *family = recipes[i].family;
    const struct mla_family *const *all = mla_families(&families_n);
    test->family = 0;
    while (all[test->family] != family)
        test->family++;
    test->region = (int32_t)recipes[i].region;
    test->amount =
        family->amount_min + mla_rng_below(rng, family->amount_max - family->amount_min + 1);
}

bool mla_draw_chance(struct mla_rng *rng, int32_t of_1024)
{
    return mla_rng_below(rng, 1024) < of_1024;
}
