/* SPDX-License-Identifier: Apache-2.0
 *
 * judge.h - a case made ready, and the verdict on a kernel's call of it.
 *
 * Order of the checks, first failure wins: the call ends; it returns the status that is due;
 * inputs, surroundings and scratch are as they must be; every output was written; every judged row
 * lies in the oracle's interval; statistics too; no row's errors taken together are beyond chance
 * (where value signs are coins); the relations hold. A NaN fails where the definition gives a
 * number.
 */
#ifndef MLA_FUZZ_JUDGE_H
#define MLA_FUZZ_JUDGE_H

#include "fuzz/case.h"
#include "fuzz/metrics.h"
#include "impl/mla_kernel.h"

enum mla_verdict_kind {
    MLA_VERDICT_PASS = 0,
    MLA_VERDICT_FAIL_CERTAIN,
    MLA_VERDICT_FAIL_IMPROBABLE,
    MLA_VERDICT_UNJUDGED,    /* nothing could be decided, with the reason; never a pass */
    MLA_VERDICT_UNSUPPORTED, /* the kernel does not offer or promise this */
    MLA_VERDICT_REFUSED,     /* rightly refused: status, message and untouched bytes as due */
    MLA_VERDICT_CRASH,
    MLA_VERDICT_TIMEOUT,
    MLA_VERDICTS_N
};

/* The reason of `unsupported` where the machine is to blame, not the kernel: who compares tells them apart. */
#define MLA_REASON_NOT_USABLE "the kernel is not usable on this CPU"

/* What speaks against a kernel. The first one gives the verdict; all that were asked are kept. */
enum mla_detector {
    MLA_DETECTOR_TIER1 = 1,    /* an element or statistic outside its certified interval */
    MLA_DETECTOR_TIER2 = 2,    /* a row's errors beyond chance */
    MLA_DETECTOR_RELATION = 4, /* two calls that must agree do not */
    MLA_DETECTOR_STATUS = 8,   /* accepted, refused or worded wrongly */
    MLA_DETECTOR_MEMORY = 16,  /* inputs, surroundings, scratch, unwritten outputs, environment */
    MLA_DETECTOR_CRASH = 32    /* a signal, a sanitizer's report, an exit, a hang */
};
#define MLA_DETECTORS_N 6
/* "tier1", "tier2", ...: of bit i. */
const char *mla_detector_name(int i);

struct mla_verdict {
    enum mla_verdict_kind kind;
    uint32_t detected;    /* enum mla_detector, or-ed */
    uint32_t relations;   /* bit i: relation i applied and was looked at */
    const char *relation; /* name of the relation that failed, else "" */
    const char *repro;  /* the command that repeats it; NULL: `run` with the kernel and the case */
    bool all_relations; /* whoever repeats it must ask for all relations */
    char reason[256];   /* one line; "" for a plain pass */
    char element[96];   /* the first offending or the worst element, out[..] */
    bool has_row;       /* the failure is one of values: of this row */
    struct mla_row row;
    double got, lo, hi; /* its value and accepted interval */
    double max_ratio;   /* worst err/B over all judged elements, 0 if all exact; of the statistics
                              where these fail */
    double max_value_ratio; /* the same of the elements alone, -1: none judged */
    double max_stats_ratio; /* and of the statistics alone, -1: none judged */
    int64_t elements_n;     /* elements judged */
    int64_t rows_n;         /* rows judged */
    int64_t unspecified_n;  /* rows drawn but not judged, by the four reasons below */
    int64_t nonfinite_n;    /* NaN or Inf takes part */
    int64_t range_n;        /* a sum may leave the range of float32 */
    int64_t no_bound_n;     /* the declared error is too large for an interval */
    int64_t no_keys_n;      /* no keys, and what stands there then is not promised (PAD_ZERO) */
    bool plain_oracle;  /* judged by the definition in MPFR: whoever repeats it must ask for that */
    bool oracle_failed; /* the oracle contradicted itself: its fault, and the row's verdict none */
    double max_energy;  /* worst energy/threshold of the row-energy tests, -1: none made */
    struct mla_metrics metrics;
    int64_t
        output_hash; /* mla_output_hash of a call that ended as it must; 0: none, or not asked for */
    double kernel_seconds, oracle_seconds;
};

const char *mla_verdict_name(enum mla_verdict_kind kind);
/* Is this a fault of the kernel? */
bool mla_verdict_is_failure(enum mla_verdict_kind kind);

/*
 * Row-energy tests a run is taken to make where nobody counts them beforehand. A hunt does not know
 * its length when it starts, so the number is fixed for any: at 3000 rows a second it lasts ten
 * years. Fixing it costs little: the threshold grows with its logarithm.
 */
#define MLA_JUDGE_ROW_TESTS 1e12

struct mla_judge_options {
    double seconds_limit;  /* of one call in a forked child; <= 0: in this process */
    int oracle_threads;    /* >= 1 */
    bool plain_oracle;     /* the definition in MPFR instead of the fast certified evaluation */
    bool no_oracle;        /* only what needs no truths: memory, status, equal bits; never a pass */
    uint32_t relations;    /* bit i: relation i of mla_relations() */
    int64_t relation_rows; /* most rows judged of the second call of a relation that promises no
                              bits; <= 0: all that match drawn rows */
    bool every_check;      /* go on after a failure, to learn what else detects it; else the first
                             failure ends the judging. It changes `detected`, never the kind */
    bool output_hash;      /* keep a hash of all outputs, for comparisons with later commits */
    double row_tests;      /* row-energy tests of the whole run, fixed before its first case;
                             <= 0: MLA_JUDGE_ROW_TESTS */
};

struct mla_tensors;
/* A case with tensors made, rows drawn and (once asked for) their truths. */
struct mla_subject;

/* The case must have no problem. On error error says why (memory, an override). */
int32_t mla_subject_make(const struct mla_case *test, struct mla_subject **subject,
                         char error[MLA_CASE_ERROR_MAX]);
void mla_subject_free(struct mla_subject *subject);

/* Judge one kernel. May be called for many kernels; truths are computed once. */
void mla_subject_judge(struct mla_subject *subject, const struct mla_kernel *kernel,
                       const struct mla_judge_options *options, struct mla_verdict *verdict);

/*
 * Judge results that are there already, in the subject's outputs (mla_exchange_result_load), against the
 * model and the promises of a kernel that is not called: values, statistics and the energy of rows. Of
 * the options oracle_threads, plain_oracle, every_check and row_tests count.
 */
void mla_subject_judge_results(struct mla_subject *subject, const struct mla_kernel *kernel,
                               const struct mla_judge_options *options,
                               struct mla_verdict *verdict);
/* The tensors of a subject, to put results into. */
struct mla_tensors *mla_subject_tensors(struct mla_subject *subject);

/* All rows that a call of the case has: pairs of a head and a query row. */
int64_t mla_rows_all(const struct mla_case *test);

/* Row-energy tests that judging one kernel on this case can make; 0 where signs are no coins. */
double mla_judge_row_tests(const struct mla_case *test);

#endif
