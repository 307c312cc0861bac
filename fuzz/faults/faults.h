/* SPDX-License-Identifier: Apache-2.0
 *
 * faults.h - kernels with planted faults, honest kernels beside them, and canaries.
 *
 * Three tables that test the verdict itself. A fault is a right kernel with one thing wrong, taken
 * from public reports of attention kernels (reports.csv); the share of them that is caught is what
 * the harness is worth. A control is right and must never be accused. A canary must be caught on
 * every case that is judged at all; one that survives means that nothing is being compared.
 */
#ifndef MLA_FAULTS_FAULTS_H
#define MLA_FAULTS_FAULTS_H

#include <stdatomic.h>

#include "fuzz/cause.h"
#include "impl/mla_kernel.h"

enum mla_fault_operation { MLA_FAULT_ON_RING = 1, MLA_FAULT_ON_SPARSE = 2 };

struct mla_fault {
    const char *name;    /* the kernel's own name; canaries: canary-*; controls: plain, plain-* */
    const char *class;   /* class code of reports.csv; "" for controls and canaries */
    const char *reports; /* ids in reports.csv it stands for, separated by blanks; may be "" */
    uint32_t operations; /* enum mla_fault_operation, or-ed: where the kernel offers an operation */
    const struct mla_kernel *kernel;
    const char *what;     /* one sentence */
    enum mla_cause cause; /* what an explanation of the verdict should name */
    const char *hidden;   /* NULL; else why no input of the two operations can expose it */
    int method; /* how the honest kernel around it works: the control with the same number gives the
                   same bits but for the fault; canaries: -1 */
    bool race; /* threads that do not wait for one another: a sanitizer of threads ends the process,
                  and what the call gives may differ from one time to the next */
};

/*
 * The tables and how many rows they have. Names are unique over all three. Every kernel is a plain
 * descriptor with a model that is true for the kernel around the fault, and the promises that
 * kernel keeps (all). Faults of memory may crash on any call; the others never. Static; any thread.
 */
const struct mla_fault *mla_faults(size_t *faults_n);
const struct mla_fault *mla_fault_controls(size_t *controls_n);
const struct mla_fault *mla_fault_canaries(size_t *canaries_n);

/*
 * Has a planted fault made a difference to what its kernel did since the last reset? One mark for the
 * whole process and for children forked after the first reset, set by every call that comes by an
 * active site: a fault that no case has reached was never put to the test, and that is not
 * surviving. Any thread.
 */
void mla_fault_reset_applied(void);
bool mla_fault_is_applied(void);
/* From now on the mark is kept there: in memory shared with a parent it outlives this process. Before
 * any thread; place must stay. */
void mla_fault_keep_mark_in(atomic_bool *place);

#endif
