/* SPDX-License-Identifier: Apache-2.0
 *
 * report_internal.h - what the files of the report share; nobody else includes it.
 *
 * report_read.c fills a struct mla_report in passes over the database, report_rule.c decides what
 * regressed, and one file a format writes it. Runs are named by their rank, their place in order of
 * time.
 */
#ifndef MLA_RESULTS_REPORT_INTERNAL_H
#define MLA_RESULTS_REPORT_INTERNAL_H

#include "results/report.h"

#include <stdbool.h>

#define MLA_REPORT_BINS    64  /* half octaves of a parameter */
#define MLA_REPORT_ULPS    33  /* octaves of ulp: up to 2^-8, 2^-7, .., beyond 2^23 */
#define MLA_REPORT_CHANGES 100 /* cases that fail or got worse and are named */
#define MLA_REPORT_STATES  60  /* of the trend: the last ones */
#define MLA_SHAPE_X        22  /* octaves of keys */
#define MLA_SHAPE_Y        12  /* octaves of ranks or heads */

/* Verdicts by gravity, as in the view outcome. */
enum mla_grade {
    MLA_GRADE_NONE = 0,
    MLA_GRADE_UNSUPPORTED,
    MLA_GRADE_PASS,
    MLA_GRADE_UNJUDGED,
    MLA_GRADE_REFUSED, /* as it had to be */
    MLA_GRADE_IMPROBABLE,
    MLA_GRADE_TIMEOUT,
    MLA_GRADE_CRASH,
    MLA_GRADE_CERTAIN,
    MLA_GRADES_N
};
enum mla_grade mla_grade_of(const char *verdict);
static inline bool mla_grade_is_good(enum mla_grade grade)
{
    return grade == MLA_GRADE_PASS || grade == MLA_GRADE_REFUSED;
}
static inline bool mla_grade_is_bad(enum mla_grade grade)
{
    return grade >= MLA_GRADE_IMPROBABLE;
}

/* One kernel on one case in one run: the gravest verdict, the worst err/B (negative: none). */
struct mla_outcome {
    size_t rank;
    enum mla_grade grade;
    double ratio;
    int64_t verdict; /* row of the worst verdict */
    int64_t plain;   /* row of the verdict without a relation, 0: none */
    double seconds;  /* of its kernel */
};

/* BROKEN: it fails, and no earlier run passed it. */
enum mla_change_kind { MLA_SAME = 0, MLA_LOST, MLA_GREW, MLA_BROKEN, MLA_FAILS };

struct mla_change {
    enum mla_change_kind kind;
    size_t subject;
    int64_t testcase;
    size_t good, since, now; /* ranks: the last run that did better, the first after it, the last */
    double before;           /* err/B of good, negative: none */
    double ratio;            /* err/B of now */
    int64_t verdict;         /* row of now */
    int64_t failed_n, runs_n; /* of the runs that judged the same state: those that it failed in */
};
/* It failed in some of those runs, not in all. */
static inline bool mla_change_is_flaky(const struct mla_change *change)
{
    return change->failed_n > 0 && change->failed_n < change->runs_n;
}
/* "passed, now fails", .. */
const char *mla_change_text(enum mla_change_kind kind);
/* The rule of report.h on outcomes in order of time, n >= 1. Fills all but subject and testcase. */
struct mla_change mla_report_rule(const struct mla_outcome *outcomes, size_t n);

/* The worst of its bin. */
struct mla_point {
    double x, y;
    int64_t n; /* cases in the bin; 0: an empty point */
    int64_t testcase;
    bool over; /* some belong beyond the last bin, this one */
};
void mla_point_add(struct mla_point *point, double x, double y, int64_t testcase);

enum mla_parameter { MLA_BY_KEYS = 0, MLA_BY_RANKS, MLA_BY_SCALE, MLA_PARAMETERS_N };
enum mla_ulp { MLA_ULP_MAX = 0, MLA_ULP_P99, MLA_ULPS_N };

struct mla_subject {
    char *kernel, *sanitizer;
    bool ring;                   /* else sparse */
    bool planted;                /* wrong on purpose: in the tables, but no answer is made of it */
    size_t state;                /* of its last run: the one that counts */
    size_t rank;                 /* of its last run */
    int64_t cases[MLA_GRADES_N]; /* by their present state, whatever commit judged them last */
    int64_t tallied, tallied_good, tallied_bad; /* cases counted at that commit without a verdict */
    int64_t now_judged, now_unsupported, now_unjudged; /* at that commit, with the tallied */
    int64_t idle_verdict;                              /* row of one of the not judged; 0: none */
    int64_t compared, fails, grew, lost, broken, flaky;
    double growth;                  /* of err/B, the largest where it grew */
    double worst_before, worst_now; /* of the cases compared; negative: none */
    size_t since;           /* the earliest run that a case fails since; none: whose error grew */
    struct mla_point worst; /* err/B */
    /* The case to look at first: the worst of those that fail, or of all where none fails. */
    struct mla_point gravest;          /* y: err/B, infinite where it fails without one */
    bool gravest_fails, gravest_known; /* has it an err/B? */
    int64_t gravest_verdict;           /* its row */
    struct mla_point max_ulp, p99_ulp;
    int64_t measured;                             /* cases with statistics */
    int64_t rounded_n, bias_up_n, bias_outward_n; /* with this one: old runs may lack some */
    double rounded_sum, rounded_least;            /* percent */
    double bias_up, bias_outward;                 /* standard errors, the farthest from 0 */
    double kernel_seconds;
    int64_t timed;
    struct mla_point ulps[MLA_ULPS_N][MLA_REPORT_ULPS];
    struct mla_point by[MLA_PARAMETERS_N][MLA_REPORT_BINS];
    struct mla_point shapes[MLA_SHAPE_X][MLA_SHAPE_Y];
    struct mla_point trend[MLA_REPORT_STATES]; /* y: worst err/B, -1 none */
    int64_t trend_bad[MLA_REPORT_STATES];
};

/*
 * What was judged: a commit, changed or not, and of a plug-in its file, which changes while this program's
 * commit stays. In order of time; the trend has a place for each.
 */
struct mla_state {
    char *commit;
    bool dirty;
    char file
        [MLA_STORE_FILE_BYTES]; /* beginning of the plug-in's SHA-256; "": built in, or not known */
};

/* A plug-in that a run loaded. */
struct mla_run_file {
    char *path;
    size_t state;
};

struct mla_run_row {
    int64_t id;
    char *command, *started, *ended, *cpu, *commit, *sanitizer;
    bool dirty;
    double seconds; /* negative: not ended */
    char *kernels;  /* comma separated */
    int64_t cases;  /* kernels times cases; executions of faults */
    int64_t trials; /* of these, executions of faults */
    int64_t judged, failed, failed_planted;
    size_t state; /* of what is built in; MLA_STATE_NONE: only plug-ins ran */
    struct mla_run_file *files;
    size_t files_n;
};
#define MLA_STATE_NONE SIZE_MAX

struct mla_case_row {
    int64_t num;
    char id[13];
    char *line;
    char *op;
};

struct mla_report {
    struct mla_store *store;
    struct mla_run_row *runs; /* by rank */
    size_t runs_n;
    size_t *by_id; /* ranks in order of run ids */
    struct mla_subject *subjects;
    size_t subjects_n;
    struct mla_state *states;
    size_t states_n, states_first; /* of all; index of the first in the trend */
    struct mla_change changes[MLA_REPORT_CHANGES];
    size_t changes_n;
    int64_t changes_all; /* those beyond the list, too */
    struct mla_report_answer answer;
    struct mla_case_row *cases; /* loaded so far */
    size_t cases_n;
};

/* A case by its row, loaded once; NULL on error. */
const struct mla_case_row *mla_report_case(struct mla_report *report, int64_t num);
/* verdict and reason of a row, to be freed; "" when it is not there. */
void mla_report_reason(struct mla_report *report, int64_t verdict, char **word, char **reason);
/* What a run judged of this kernel. */
size_t mla_report_state(const struct mla_report *report, size_t rank, const char *kernel);
/*
 * "1a2b3c4d5e6f-dirty, file 0123456789ab": what tells builds of the kernel apart beside its name; of a run
 * (subject NULL) "1a2b3c4d5e6f-dirty [address]". To be freed; NULL without memory.
 */
char *mla_report_build(const struct mla_report *report, size_t rank,
                       const struct mla_subject *subject);
/* "scalar", with a sanitizer "scalar [address]"; to be freed. */
char *mla_subject_name(const struct mla_subject *subject);
/*
 * The line that shows the case again: of a fault the one kept with its finding, which may take --relations or
 * be another command; else `mlacheck run`, with --relations where one of them accused the kernel last. To be
 * freed; NULL of NULL or without memory.
 */
char *mla_report_repro(struct mla_report *report, const struct mla_subject *subject,
                       const struct mla_case_row *row);
/* The subject with the gravest case of all: a failing one first, then by err/B; NULL: none. */
const struct mla_subject *mla_report_worst(const struct mla_report *report);
/* Cases that passed, failed or were refused as due, with those that were only counted; of these the bad. */
int64_t mla_subject_judged(const struct mla_subject *subject);
int64_t mla_subject_failing(const struct mla_subject *subject);
/* It ran at its last commit, and none of its cases was judged. */
static inline bool mla_subject_is_idle(const struct mla_subject *s)
{
    return s->now_judged == 0 && s->now_unsupported + s->now_unjudged > 0;
}
/* "none of its 6 cases was judged: 4 unsupported, ..", with the reason of one; plain text, to be freed. */
char *mla_report_idle(struct mla_report *report, const struct mla_subject *subject);
/* The plural's ending. */
static inline const char *mla_s(int64_t n)
{
    return n == 1 ? "" : "s";
}
/* The latest run, if it has no end: it was interrupted or killed, or is at work still. NULL: it has one. */
const struct mla_run_row *mla_report_cut_off(const struct mla_report *report);

static inline const char *mla_subject_op(const struct mla_subject *subject)
{
    return subject->ring ? "ring" : "sparse";
}

int32_t mla_report_html(struct mla_report *report, FILE *file);
void mla_report_markdown(struct mla_report *report, FILE *file);
void mla_report_csv(struct mla_report *report, FILE *file);
void mla_report_json(struct mla_report *report, FILE *file);
void mla_report_junit(struct mla_report *report, FILE *file);
void mla_report_sarif(struct mla_report *report, FILE *file);

#endif
