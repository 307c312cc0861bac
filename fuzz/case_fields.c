/* SPDX-License-Identifier: Apache-2.0
 *
 * case_fields.c - the fields of a case line and the names of their values.
 *
 * Order is canonical order; it may only grow at the end, with a new version and a default for lines
 * of the old one, because stored cases are named by the hash of this text.
 */
#include "fuzz/case_fields.h"

#include "fuzz/family.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define AT(member)   offsetof(struct mla_case, member)

static const char *const op_names[] = {"ring", "sparse"};
static const char *const topology_names[] = {"ring", "linear"};
static const char *const order_names[] = {"mx4", "natural"};
static const char *const region_names[MLA_REGION_N] = {
    "none",    "normal",       "outlier",  "ramp",     "flat",  "geometric", "first",
    "last",    "edge",         "rising",   "falling",  "half",  "deep",      "under",
    "spread",  "equal-maxima", "clusters", "select",   "tiny",  "subnormal", "huge",
    "copies",  "binade",       "stairs",   "one-edge", "lofty", "sunk",      "saturated",
    "abyss",   "raw",          "heads",    "zeros",    "ties",  "cancel",    "large",
    "largest", "ones",         "faint",    "beneath",  "chasm", "creeping"};
static const char *const indices_names[MLA_INDICES_N] = {
    "uniform", "distinct", "sorted",  "reversed", "causal",   "one-row",  "few-rows",
    "repeat",  "edges",    "odd-one", "leading",  "interior", "trailing", "ends"};
static const char *const poison_names[MLA_POISON_N] = {"nan", "inf", "huge", "noise", "mixed"};

static const char *pick(const char *const *names, size_t names_n, int32_t value)
{
    return value >= 0 && (size_t)value < names_n ? names[value] : NULL;
}

const char *mla_case_op_name(int32_t op)
{
    return pick(op_names, COUNT(op_names), op);
}

static const char *topology_name(int32_t topology)
{
    return pick(topology_names, COUNT(topology_names), topology);
}

static const char *order_name(int32_t order)
{
    return pick(order_names, COUNT(order_names), order);
}

const char *mla_case_region_name(int32_t region)
{
    return pick(region_names, COUNT(region_names), region);
}

const char *mla_case_indices_name(int32_t indices)
{
    return pick(indices_names, COUNT(indices_names), indices);
}

const char *mla_case_poison_name(int32_t poison)
{
    return pick(poison_names, COUNT(poison_names), poison);
}

static const struct mla_field ring_fields[] = {
    {"v", MLA_FIELD_INT, AT(version), 0, NULL},
    {"R", MLA_FIELD_INT, AT(ring.ring_size), 0, NULL},
    {"B", MLA_FIELD_INT, AT(ring.batch), 0, NULL},
    {"H", MLA_FIELD_INT, AT(ring.heads), 0, NULL},
    {"Nq", MLA_FIELD_INT, AT(ring.q_rows), 0, NULL},
    {"Nk", MLA_FIELD_INT, AT(ring.kv_rows), 0, NULL},
    {"Bk", MLA_FIELD_INT, AT(ring.kv_batch), 0, NULL},
    {"G", MLA_FIELD_INT, AT(ring.gathered_rows), 0, NULL},
    {"Bg", MLA_FIELD_INT, AT(ring.gathered_batch), 0, NULL},
    {"DH", MLA_FIELD_INT, AT(ring.head_dim), 0, NULL},
    {"DV", MLA_FIELD_INT, AT(ring.head_dim_v), 0, NULL},
    {"L", MLA_FIELD_INT, AT(ring.logical_n), 0, NULL},
    {"scale", MLA_FIELD_OPTIONAL_FLOAT, AT(ring.scale), AT(ring.has_scale), NULL},
    {"balanced", MLA_FIELD_FLAG, AT(ring.is_balanced), 0, NULL},
    {"slot", MLA_FIELD_OPTIONAL_INT, AT(ring.kv_cache_batch_idx), AT(ring.has_slot), NULL},
    {"P", MLA_FIELD_OPTIONAL_INT, AT(ring.kv_actual_isl), AT(ring.has_prior), NULL},
    {"topology", MLA_FIELD_NAME, AT(ring.topology), 0, topology_name},
    {"links", MLA_FIELD_INT, AT(ring.num_links), 0, NULL},
    {"q_chunk", MLA_FIELD_INT, AT(ring.q_chunk_size), 0, NULL},
    {"k_chunk", MLA_FIELD_INT, AT(ring.k_chunk_size), 0, NULL},
    {"threads", MLA_FIELD_INT, AT(ring.threads), 0, NULL},
    {"family", MLA_FIELD_NAME, AT(family), 0, mla_family_name},
    {"region", MLA_FIELD_NAME, AT(region), 0, mla_case_region_name},
    {"amount", MLA_FIELD_INT, AT(amount), 0, NULL},
    {"poison", MLA_FIELD_NAME, AT(poison), 0, mla_case_poison_name},
    {"future", MLA_FIELD_OPTIONAL_INT, AT(future), AT(has_future), NULL},
    {"stats", MLA_FIELD_FLAG, AT(stats), 0, NULL},
    {"seed", MLA_FIELD_SEED, AT(seed), 0, NULL},
    {"rows", MLA_FIELD_INT, AT(rows), 0, NULL},
    {"row_seed", MLA_FIELD_SEED, AT(row_seed), 0, NULL},
    {"slow", MLA_FIELD_FLAG, AT(slow), 0, NULL},
    {"set", MLA_FIELD_SET, AT(set), 0, NULL},
    {"put", MLA_FIELD_PUT, AT(put), 0, NULL},
    {"bits", MLA_FIELD_INT, AT(bits), 0, NULL},  /* since version 2 */
    {"data", MLA_FIELD_DATA, AT(data), 0, NULL}, /* since version 3 */
};

static const struct mla_field sparse_fields[] = {
    {"v", MLA_FIELD_INT, AT(version), 0, NULL},
    {"S", MLA_FIELD_INT, AT(sparse.queries), 0, NULL},
    {"S_kv", MLA_FIELD_INT, AT(sparse.keys), 0, NULL},
    {"H", MLA_FIELD_INT, AT(sparse.heads), 0, NULL},
    {"Rr", MLA_FIELD_INT, AT(sparse.rope), 0, NULL},
    {"K", MLA_FIELD_INT, AT(sparse.topk), 0, NULL},
    {"tiled", MLA_FIELD_FLAG, AT(sparse.topk_tiled), 0, NULL},
    {"dense", MLA_FIELD_FLAG, AT(sparse.dense), 0, NULL},
    {"offset", MLA_FIELD_OPTIONAL_INT, AT(sparse.q_pos_offset), AT(sparse.has_q_pos_offset), NULL},
    {"order", MLA_FIELD_NAME, AT(sparse.out_order), 0, order_name},
    {"cores", MLA_FIELD_INT, AT(sparse.cores), 0, NULL},
    {"threads", MLA_FIELD_INT, AT(sparse.threads), 0, NULL},
    {"scale", MLA_FIELD_FLOAT, AT(sparse.softmax_scale), 0, NULL},
    {"family", MLA_FIELD_NAME, AT(family), 0, mla_family_name},
    {"region", MLA_FIELD_NAME, AT(region), 0, mla_case_region_name},
    {"amount", MLA_FIELD_INT, AT(amount), 0, NULL},
    {"indices", MLA_FIELD_NAME, AT(indices), 0, mla_case_indices_name},
    {"poison", MLA_FIELD_NAME, AT(poison), 0, mla_case_poison_name},
    {"stats", MLA_FIELD_FLAG, AT(stats), 0, NULL},
    {"seed", MLA_FIELD_SEED, AT(seed), 0, NULL},
    {"rows", MLA_FIELD_INT, AT(rows), 0, NULL},
    {"row_seed", MLA_FIELD_SEED, AT(row_seed), 0, NULL},
    {"slow", MLA_FIELD_FLAG, AT(slow), 0, NULL},
    {"set", MLA_FIELD_SET, AT(set), 0, NULL},
    {"put", MLA_FIELD_PUT, AT(put), 0, NULL},
    {"bits", MLA_FIELD_INT, AT(bits), 0, NULL},  /* since version 2 */
    {"data", MLA_FIELD_DATA, AT(data), 0, NULL}, /* since version 3 */
};

/* How many of the fields at the end came after version 1, and after version 2. */
#define SINCE_2 2
#define SINCE_3 1

const struct mla_field *mla_case_fields_of(enum mla_op op, int64_t version, size_t *fields_n)
{
    *fields_n = op == MLA_OP_RING ? COUNT(ring_fields) : COUNT(sparse_fields);
    *fields_n -= version < 2 ? SINCE_2 : version < 3 ? SINCE_3 : 0;
    return op == MLA_OP_RING ? ring_fields : sparse_fields;
}

const struct mla_field *mla_case_fields(enum mla_op op, size_t *fields_n)
{
    return mla_case_fields_of(op, 1, fields_n);
}
