/* SPDX-License-Identifier: Apache-2.0
 *
 * plain.c - which fault is planted, and the mark that it has made a difference.
 */
#include "fuzz/faults/plain.h"

#include <stdatomic.h>

#include "fuzz/faults/faults.h"

static atomic_bool applied;

bool mla_plain_has(struct mla_plain_variant variant, enum mla_plain_fault fault)
{
    if (variant.fault != fault) {
        return false;
    }
    atomic_store_explicit(&applied, true, memory_order_relaxed);
    return true;
}

void mla_fault_reset_applied(void)
{
    atomic_store(&applied, false);
}

bool mla_fault_is_applied(void)
{
    return atomic_load(&applied);
}
