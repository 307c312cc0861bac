/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_company.c - a call of the same kind made at the same time: a kernel's static scratch, or a lock it
 * forgot, shows only then.
 *
 * The other call is repeated until the judged one has returned, so that any moment of the one meets any
 * of the other. Its outputs are nobody's: its numbers are judged elsewhere, alone.
 */
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

void mla_company_end(void *context)
{
    struct mla_sequence *sequence = context;
    atomic_store(&sequence->is_over, true);
    if (sequence->has_company)
        pthread_join(sequence->company, NULL);
}
