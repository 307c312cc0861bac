/* SPDX-License-Identifier: Apache-2.0
 *
 * family.c - the table of data families.
 */
#include "fuzz/family.h"

#include <string.h>

static const struct mla_family *const families[] = {
    &mla_family_upstream, &mla_family_profile, &mla_family_full,    &mla_family_exact,
    &mla_family_coded,    &mla_family_extreme, &mla_family_special, &mla_family_bfp8,
};
#define FAMILIES_N (sizeof(families) / sizeof(families[0]))

const struct mla_family *const *mla_families(size_t *families_n)
{
    *families_n = FAMILIES_N;
    return families;
}

const char *mla_family_name(int32_t family)
{
    return family >= 0 && (size_t)family < FAMILIES_N ? families[family]->name : NULL;
}

int32_t mla_family_find(const char *name)
{
    for (size_t i = 0; i < FAMILIES_N; i++)
        if (strcmp(families[i]->name, name) == 0)
            return (int32_t)i;
    return -1;
}

bool mla_case_has_sign_coins(const struct mla_case *test)
{
    if (mla_family_name(test->family) == NULL || !families[test->family]->sign_coins ||
        test->data[0] != '\0')
        return false;
    for (size_t i = 0; i < test->put_n; i++)
        if (strcmp(test->put[i].tensor, "topk_indices") != 0)
            return false;
    return true;
}

bool mla_family_knows(int32_t family, int32_t region)
{
    if (mla_family_name(family) == NULL)
        return false;
    for (size_t i = 0; i < families[family]->regions_n; i++)
        if ((int32_t)families[family]->regions[i] == region)
            return true;
    return false;
}
