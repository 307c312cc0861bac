/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h - what the database says, for people and for CI: is it getting worse, which case is the
 * worst, how is it run.
 *
 * A subject is a kernel on an operation, in builds of one sanitizer (sanitizers compute on other
 * paths). Its figures are of the commit it was last judged at: of every case the last verdict.
 *
 * Counts are of cases by their present state, whatever commit judged them last: a case that passed at an
 * earlier commit and was not met since still passes, one that failed still fails. So "n of m failing" has n
 * among m. Figures (errors, times) are of the last commit only, as errors of two commits make no mean.
 *
 * The rule of regression pairs cases by id. The last run that judged a case is held against the
 * earlier ones of the same subject; it got worse if some earlier run did better:
 *   fails:  it fails now and did pass (or was refused as due): it regressed;
 *   grew:   it passes, but its err/B is more than MLA_REPORT_GROWTH above that of an earlier pass;
 *   lost:   it passed and is no longer judged (unsupported, unjudged).
 * Only the first is a regression, as for `mlacheck compare`. (That also takes for one what needs two
 * whole sides to be seen: a kernel that failed nowhere in A fails on a case that A did not judge.)
 * It got worse since the first run after the last better one. A case that no earlier run passed
 * cannot regress: if it fails, it is among the failing.
 *
 * A failure stays one until something else passes the case: a run that does not judge it takes nothing back,
 * and neither does another run of the same clean commit (and the same file of a plug-in). Where some of those
 * failed and others passed, the case counts as failed and is called flaky, m of n runs, as for `mlacheck
 * compare`. A changed work tree has no name, so its runs are not each other's repetitions: the last counts.
 */
#ifndef MLA_RESULTS_REPORT_H
#define MLA_RESULTS_REPORT_H

#include "results/store.h"

#include <stdio.h>

/* In units of the allowed error. The same build gives the same err/B: a tenth of the bound is no
 * noise, and more than another order of the same sums moves it. */
#define MLA_REPORT_GROWTH 0.1

enum mla_report_format {
    MLA_REPORT_HTML = 0, /* one file, nothing fetched, no script; needs gnuplot */
    MLA_REPORT_MARKDOWN,
    MLA_REPORT_CSV,   /* a row a subject */
    MLA_REPORT_JSON,  /* one object */
    MLA_REPORT_JUNIT, /* XML: a suite a subject, a test case for each case that is bad */
    MLA_REPORT_SARIF, /* 2.1.0 */
    MLA_REPORT_FORMATS_N
};
/* "html", "md", ...; NULL beyond the last. */
const char *mla_report_format_name(enum mla_report_format format);

struct mla_report;

/* The answer in numbers. */
struct mla_report_answer {
    int64_t verdicts; /* stored or tallied, of all runs */
    int64_t cases;  /* kernels times cases, none of planted faults; whatever commit met them last */
    int64_t judged; /* of these, those whose state is a pass, a refusal that was due or a failure */
    int64_t compared; /* of the cases, met by an earlier run too */
    int64_t fails;    /* regressed */
    int64_t grew;     /* pass with a larger error: no regression */
    int64_t lost;     /* judged no longer */
    int64_t failing;  /* of the judged, those failing now, regressed or not */
    int64_t flaky; /* of these: failed in some runs of what was last judged, and passed in others */
    int64_t idle;  /* kernels and operations none of whose cases was judged at their last commit */
};

/*
 * Read what a report says: one pass over the verdicts; memory grows with kernels and runs, not with
 * verdicts. On error *report is NULL and the store has the message. The report keeps the store, which
 * must outlive it. Not thread-safe.
 */
int32_t mla_report_read(struct mla_store *store, struct mla_report **report);
void mla_report_free(struct mla_report *report);
/* No run at all. */
bool mla_report_is_empty(const struct mla_report *report);
struct mla_report_answer mla_report_answer(const struct mla_report *report);
/* What was run last and what it found: one sentence, plain text, to be freed; NULL without run or memory. */
char *mla_report_last(const struct mla_report *report);
/* The same as a member of a JSON object, "last_run". */
void mla_report_last_json(const struct mla_report *report, FILE *file);
/* "2 of 7 judged results failing now, ..", plain text, to be freed; NULL without memory. */
char *mla_report_counts(const struct mla_report *report);
/* "Failing: ring/scalar 3 (2 regressed since run 12), ..": the same; NULL too if nothing fails. */
char *mla_report_failing(const struct mla_report *report);

/*
 * Write it. ERR_OPEN when gnuplot cannot be run or does not draw every plot (HTML only): nothing was
 * written then. Whether the file took it is the caller's to ask (ferror).
 */
int32_t mla_report_write(struct mla_report *report, enum mla_report_format format, FILE *file);
/* The answer as GitHub workflow commands: first the answer itself, then cases and kernels that were not
 * judged. GitHub shows ten errors and ten warnings of a step: no more cases are told than leave room. */
void mla_report_github(struct mla_report *report, FILE *file);

#endif
