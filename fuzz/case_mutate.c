/* SPDX-License-Identifier: Apache-2.0
 *
 * case_mutate.c - changing cases: the custom mutator's core.
 *
 * Mutation works on fields, never on bytes: it redraws a part (data, geometry, sample), nudges one
 * length by a unit, or takes a part from another case. mla_case_fix restores every rule afterwards,
 * so the value targets never see an invalid case.
 */
#include "fuzz/case.h"

#include <string.h>

#include "fuzz/case_fields.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* The recipe (data), leaving the geometry alone. */
static void take_recipe(struct mla_case *test, const struct mla_case *from)
{
    test->family = from->family;
    test->region = from->region;
    test->amount = from->amount;
    test->indices = from->indices;
    test->poison = from->poison;
    test->seed = from->seed;
    test->stats = from->stats;
}

static void take_geometry(struct mla_case *test, const struct mla_case *from)
{
    test->ring = from->ring;
    test->sparse = from->sparse;
    test->has_future = from->has_future;
    test->future = from->future;
}

/* Move one integer field by a unit, a tile, or a factor of two; fix clamps what is out of range. */
static void nudge(struct mla_case *test, struct mla_rng *rng)
{
    static const int64_t steps[] = {1, -1, 1, -1, 32, -32, 32, -32, 128, -128};
    size_t fields_n;
    const struct mla_field *fields = mla_case_fields((enum mla_op)test->op, &fields_n);
    const struct mla_field *field = &fields[1 + mla_rng_below(rng, (int64_t)fields_n - 1)];
    char *at = (char *)test + field->offset;
    if (field->kind == MLA_FIELD_INT || field->kind == MLA_FIELD_OPTIONAL_INT) {
        int64_t value;
        memcpy(&value, at, sizeof value);
        value = clamp(value, INT64_MIN / 4, INT64_MAX / 4);
        value = mla_rng_chance(rng, 1, 8) ? value * 2 : value + steps[mla_rng_below(rng, 10)];
        memcpy(at, &value, sizeof value);
    }
    if (field->kind == MLA_FIELD_FLAG)
        memcpy(at, &(int32_t){mla_rng_chance(rng, 1, 2)}, sizeof(int32_t));
    if (field->kind == MLA_FIELD_OPTIONAL_INT && mla_rng_chance(rng, 1, 2)) {
        int32_t has = mla_rng_chance(rng, 1, 2);
        memcpy((char *)test + field->has_offset, &has, sizeof has);
    }
}

void mla_case_mutate(struct mla_case *test, struct mla_rng *rng)
{
    bool reject = test->set_n > 0;
    struct mla_case fresh;
    for (int64_t n = 1 + mla_rng_below(rng, 3); n > 0; n--) {
        mla_case_draw(&fresh, (enum mla_op)test->op, rng);
        switch (mla_rng_below(rng, 8)) {
        case 0:
            take_recipe(test, &fresh);
            break;
        case 1:
            take_geometry(test, &fresh);
            break;
        case 2:
            test->seed = fresh.seed;
            break;
        case 3:
            test->rows = fresh.rows;
            test->row_seed = fresh.row_seed;
            break;
        case 4:
            test->poison = fresh.poison;
            test->indices = fresh.indices;
            break;
        default:
            nudge(test, rng);
            break;
        }
    }
    test->put_n = 0; /* overrides name elements of the old shape */
    mla_case_fix(test);
    if (reject)
        mla_case_draw_violation(test, rng);
}

void mla_case_cross(struct mla_case *test, const struct mla_case *other, struct mla_rng *rng)
{
    if (mla_rng_chance(rng, 1, 2) || other->op != test->op)
        take_recipe(test, other);
    else
        take_geometry(test, other);
    bool reject = test->set_n > 0;
    test->put_n = 0;
    mla_case_fix(test);
    if (reject)
        mla_case_draw_violation(test, rng);
}
