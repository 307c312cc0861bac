/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_company.c - a call of the same kind made at the same time: a kernel's static scratch, or a lock
 * it forgot, shows only then.
 *
 * Both calls are repeated, so that any moment of the one meets any of the other: a number that is used
 * soon after it was put down is overwritten in one call of many. The first outputs that are not those
 * of the call made alone are the ones that stay, for the judge. The other call's outputs are nobody's.
 */
#include <string.h>
#include <time.h>

#include "fuzz/call.h"
#include "fuzz/judge_sequence.h"

static void *keep_calling(void *context)
{
    struct mla_sequence *sequence = context;
    struct mla_call call;
    atomic_store(&sequence->has_begun, true);
    while (!atomic_load(&sequence->is_over))
        mla_call_make(sequence->kernel, sequence->earlier[0], 0, &call);
    return NULL;
}

void mla_company_begin(void *context)
{
    struct mla_sequence *sequence = context;
    atomic_store(&sequence->has_begun, false);
    atomic_store(&sequence->is_over, false);
    sequence->has_company = pthread_create(&sequence->company, NULL, keep_calling, sequence) == 0;
    while (sequence->has_company && !atomic_load(&sequence->has_begun))
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

static bool same_outputs(const struct mla_tensors *a, const struct mla_tensors *b)
{
    bool same = true;
    for (size_t i = 0; same && i < a->n; i++)
        same = a->list[i].role != MLA_TENSOR_OUTPUT ||
               memcmp(a->list[i].guard.data, b->list[i].guard.data, a->list[i].guard.bytes) == 0;
    return same;
}

void mla_company_end(void *context)
{
    struct mla_sequence *sequence = context;
    struct mla_call call;
    for (int64_t i = 1; sequence->has_company && i < sequence->repeats &&
                        same_outputs(sequence->first, sequence->last);
         i++) {
        mla_tensors_reset(sequence->last);
        mla_call_make(sequence->kernel, sequence->last, 0, &call);
    }
    atomic_store(&sequence->is_over, true);
    if (sequence->has_company)
        pthread_join(sequence->company, NULL);
}
