/* SPDX-License-Identifier: Apache-2.0
 *
 * call.h - one call of a kernel on the tensors of a case, in this process or in a forked child.
 */
#ifndef MLA_FUZZ_CALL_H
#define MLA_FUZZ_CALL_H

#include <sys/types.h>

#include "fuzz/tensors.h"
#include "impl/mla_kernel.h"

/* Does a sanitizer look at threads? It starts one of its own when it sees fit, and ends the process at
 * a race, also one that a planted fault is there to have. */
#if defined(__SANITIZE_THREAD__)
#define MLA_THREADS_ARE_WATCHED true
#elif defined(__has_feature)
#define MLA_THREADS_ARE_WATCHED __has_feature(thread_sanitizer)
#else
#define MLA_THREADS_ARE_WATCHED false
#endif

enum mla_call_end {
    MLA_CALL_RETURNED = 0,
    MLA_CALL_CRASHED,   /* a signal, or the process ended inside the kernel */
    MLA_CALL_TIMED_OUT, /* killed after the limit */
    MLA_CALL_NOT_MADE   /* no child could be had: says nothing about the kernel */
};

struct mla_call {
    enum mla_call_end end;
    int signal_or_exit;       /* crashed: the signal, or minus the exit code */
    int32_t status;           /* returned: what the kernel returned */
    char message[512];        /* and said; always terminated */
    double seconds;           /* wall time inside the kernel */
    bool changed_environment; /* it left another rounding or flushing mode (put right again) */
    bool left_process;        /* it left a process running (ended since) */
    /* Seen in a forked child only: */
    bool left_thread;  /* it left a thread running */
    int input_written; /* place in the list of tensors of an input that was written, be it with the
                          number that was there; -1: none, or not looked for */
};

/*
 * Call the kernel's operation. A kernel that does not promise stats is called without.
 * seconds_limit > 0: in a forked child that is killed after that time (tensors are shared mappings,
 * so its writes are seen here). seconds_limit <= 0: directly; a crash is then this process's own.
 */
void mla_call_make(const struct mla_kernel *kernel, struct mla_tensors *tensors,
                   double seconds_limit, struct mla_call *call);

/* What is done in the very process the kernel is called in: earlier calls, say, that may leave
 * something behind. Either may be NULL. */
struct mla_call_around {
    void (*before)(void *context);
    void (*after)(void *context);
    void *context;
};

/* The same amid something; the limit is for all of it. */
void mla_call_make_amid(const struct mla_call_around *around, const struct mla_kernel *kernel,
                        struct mla_tensors *tensors, double seconds_limit, struct mla_call *call);

/* What is wrong with the way a message was written. */
enum mla_message_fault {
    MLA_MESSAGE_FITS = 0,
    MLA_MESSAGE_UNTERMINATED, /* no zero among the bytes given for it */
    MLA_MESSAGE_OVERRUN       /* bytes behind those were written */
};

/* Calls with little room for a message, or none: how the last of them ended. */
struct mla_cramped {
    struct mla_call call;
    size_t room; /* bytes it was given; 0: and no pointer either */
    enum mla_message_fault fault;
};

/* The same call with room for 8 bytes of message, for 1, and without: until one of them has a fault or
 * another status than due. All in one child, if in any. */
void mla_call_make_cramped(const struct mla_kernel *kernel, struct mla_tensors *tensors,
                           int32_t due, double seconds_limit, struct mla_cramped *cramped);

/*
 * Have every direct call of this process announced: watch(kernel) just before it, watch(NULL) just after,
 * so that whoever finds the process dead knows whether a kernel was at work.
 * Earlier calls of a sequence are announced as well, calls in a forked child are not. NULL: no more.
 * Set it while no call is made.
 */
void mla_call_watch(void (*watch)(const struct mla_kernel *kernel));

/*
 * In a process just forked to run kernels: signals do what they do by default (a handler of the parent's
 * would take a crash for its own), it leads a group of its own, ends with its parent, and keeps only the
 * standard streams and `keep`, which becomes descriptor 3: everything else, a database above all, is out
 * of a kernel's reach.
 */
void mla_call_seclude(int keep, pid_t parent);

/* Seconds of the monotonic clock, for durations. */
double mla_call_clock(void);

#endif
