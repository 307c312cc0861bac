/* SPDX-License-Identifier: Apache-2.0
 *
 * store.h - the results database: builds, runs, cases, verdicts, statistics and findings in SQLite.
 *
 * The only door to SQLite. Writes are buffered and go in in short transactions, one a batch, so
 * that several processes can share one file and kill -9 loses at most the open batch and never
 * corrupts. All functions return MLA_STORE_OK or a negative status and, on error, leave a text in
 * mla_store_message(). A store belongs to the process that opened it: never use it after fork() in
 * the child. Not thread-safe.
 */
#ifndef MLA_RESULTS_STORE_H
#define MLA_RESULTS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MLA_STORE_SCHEMA_VERSION 5
#define MLA_STORE_NULL           INT64_MIN /* an absent integer: stored as NULL */

enum mla_store_status {
    MLA_STORE_OK = 0,
    MLA_STORE_ERR_OPEN = -1,      /* cannot be opened or created, not a database, not writable */
    MLA_STORE_ERR_SCHEMA = -2,    /* written by a newer mlacheck, or not ours */
    MLA_STORE_ERR_WRITE = -3,     /* disk full, locked beyond patience, constraint */
    MLA_STORE_ERR_NOT_FOUND = -4, /* nothing stored under that key */
    MLA_STORE_ERR_AMBIGUOUS = -5, /* a shortened id fits several cases */
    MLA_STORE_ERR_NOMEM = -6,
    MLA_STORE_ERR_STOPPED = -7 /* the caller asked for it; nothing was changed */
};

struct mla_store;

/*
 * Open the database at path to read it: as mla_store_open where it and its folder can be written; where they
 * cannot (another's file, a medium that takes no files) as a temporary copy of today's schema, which takes as
 * much room again. What is written to a copy is lost, and in-flight notes stay for who may write. A file that
 * is not there is an error.
 */
int32_t mla_store_open_read(const char *path, struct mla_store **store, char *message,
                            size_t message_bytes);
/*
 * Open or create the database at path (its folder must exist) in WAL mode with foreign keys on,
 * migrate an older schema forward, and store what every in-flight note left by a process that died says
 * (see below). *store is NULL on error; message says why, naming the path.
 */
int32_t mla_store_open(const char *path, struct mla_store **store, char *message,
                       size_t message_bytes);

/*
 * The same, by a process that saw another one die and knows more than its note says: the note of
 * that pid becomes a finding of that verdict ("crash" or "timeout") and reason. death may be NULL.
 */
struct mla_store_death {
    int64_t pid;
    const char *verdict;
    const char *reason;
};
int32_t mla_store_open_after(const char *path, const struct mla_store_death *death,
                             struct mla_store **store, char *message, size_t message_bytes);
/*
 * Flush and close; NULL is allowed. The status is the flush's: what it could not write is lost
 * then, so who wants its message calls mla_store_flush first. In a forked child it only returns an
 * error.
 */
int32_t mla_store_close(struct mla_store *store);
/*
 * Write everything buffered. Also happens by itself, when a row comes in: at the 256th, or half a
 * second after the last time, so that rows that take long do not wait for each other. When it fails
 * (disk full, locked for 30 s) everything stays queued, here and in the functions that flush by
 * themselves: do not hand the same row in again, a later flush writes it.
 */
int32_t mla_store_flush(struct mla_store *store);
/* The text of the last error, never NULL. */
const char *mla_store_message(const struct mla_store *store);
/* What the user should hear of this opening, lines with their ends: cases whose judging was interrupted.
 * "" for nothing. Lives as long as the store. */
const char *mla_store_notice(const struct mla_store *store);

/* Beginning of a plug-in's SHA-256 and NUL, as it is stored with the kernels of a run. */
#define MLA_STORE_FILE_BYTES 13
/* What was built: figures without these four are not evidence. */
struct mla_store_build {
    const char *commit; /* git hash, or "unknown" */
    bool dirty;         /* work tree differs from the commit */
    const char *compiler;
    const char *flags;
    const char *sanitizer; /* "" for none */
    const char *isa;       /* what the kernels may use on this CPU */
};

struct mla_store_run {
    const char *command; /* run, fuzz, ... with its arguments */
    const char *host_cpu;
    const char
        *kernels; /* comma separated; a plug-in as FILE.so:NAME@HASH (MLA_STORE_FILE_BYTES) */
    int64_t seed;
};

/* Start a run: later verdicts belong to it. Stored at once. The end time is set by end_run. */
int32_t mla_store_begin_run(struct mla_store *store, const struct mla_store_build *build,
                            const struct mla_store_run *run, int64_t *run_id);
/* Join a run that another process began (fuzz workers). */
int32_t mla_store_join_run(struct mla_store *store, int64_t run_id);
/* Flush and store the end time; of several processes in one run the last one's stays. A run that did not do
 * all it was to do is given none: report and comparison say so. */
int32_t mla_store_end_run(struct mla_store *store);

/* A case: canonical line, its SHA-256 in hex, and the shape as columns (MLA_STORE_NULL: absent). */
struct mla_store_case {
    char id[65];
    const char *line;
    const char *op;     /* "ring" or "sparse" */
    const char *family; /* data family */
    const char *region; /* score region, "" if none */
    int64_t heads, threads;
    int64_t ring_size, batch, q_rows, kv_rows, head_dim, head_dim_v, logical_n, kv_actual_isl,
        kv_cache_batch_idx, is_balanced, topology, num_links, q_chunk_size, k_chunk_size;
    int64_t queries, keys, rope, topk, topk_tiled, dense, q_pos_offset, out_order, cores;
    int64_t sign_coins; /* 1: a statistical test may rest on the signs of the values, 0: not */
};

/* A named figure of a verdict (long form: any statistic can be added without a migration). */
struct mla_store_metric {
    const char *name; /* "max_ulp", "rms_rel", ... */
    double value;     /* may be +inf or NaN: stored so that both come back */
};

/* One kernel on one case. Texts may be NULL where they do not apply. */
struct mla_store_verdict {
    const struct mla_store_case *testcase;
    const char *kernel;
    const char *verdict;  /* pass, fail-certain, fail-improbable, unjudged, unsupported, refused,
                             crash, timeout */
    const char *relation; /* relation that failed or was the subject; "" for the plain verdict */
    const char *reason;   /* why unjudged / what failed, one line */
    double max_ratio;     /* worst err/B; +inf and NaN are kept; negative: there is none (NULL) */
    int64_t elements_n;   /* elements judged, or MLA_STORE_NULL */
    const char *element;  /* worst element, out[d=..,..] */
    const char *got, *lo, *hi; /* %a texts */
    double kernel_seconds, oracle_seconds;
    const struct mla_store_metric *metrics;
    size_t metrics_n;
    const char *repro; /* reproduction line, kept with the finding */
};

/*
 * Buffer one verdict (everything is copied). fail-certain, fail-improbable, crash and timeout also
 * create the finding (case, kernel, verdict), or move its last-seen to this run; a finding that was
 * `fixed` opens again. ERR_WRITE for what the schema does not take (an unknown verdict, a metric
 * named twice, no run begun): such a verdict is not queued. The first line stored under an id
 * stays.
 */
int32_t mla_store_verdict(struct mla_store *store, const struct mla_store_verdict *verdict);

/*
 * Count without a row per case (fuzzing): adds n to the tally (run, op, kernel, family, verdict)
 * and raises its worst max_ratio (negative: none). A case that is counted here should have no row
 * of its own by mla_store_verdict, or it counts twice.
 */
int32_t mla_store_tally(struct mla_store *store, const char *op, const char *kernel,
                        const char *family, const char *verdict, int64_t n, double max_ratio);

/*
 * Bound what hunts leave behind: of the executions stored by runs of the command fuzz, only the worst
 * worst_n (by max_ratio) and the newest newest_n stay in each cell: operation, kernel, family, region,
 * verdict and a coarse class of shape. The others move into the run's tally: every count of a summary
 * stays, and so does every finding with its case, and whatever other tables refer to. Runs of other
 * commands are not touched. Both numbers at least 1 (ERR_WRITE). removed_n (may be NULL): verdicts that
 * went. One transaction: all of it or nothing; other writers wait as long.
 */
int32_t mla_store_prune(struct mla_store *store, int64_t worst_n, int64_t newest_n,
                        int64_t *removed_n);

/* What a merge brought. */
struct mla_store_merged {
    int64_t runs_new;   /* not known here before */
    int64_t runs_later; /* known, but more has been added to them since */
    int64_t cases_new;
    int64_t verdicts; /* of those runs */
    int64_t findings_new;
};
/*
 * Bring the content of another database file in: builds, runs with all that belongs to them (verdicts,
 * metrics, tallies, timings, trials), cases, findings, searches and their steps. Idempotent, and the same
 * content in any order of merging. A run is taken as a whole if it is not here or if the other copy is the
 * later one. Of a finding: the first time it was seen, the last, and the state: known if any copy says
 * so, else that of the copy which saw it last.
 * The other file is opened read-only and never changed: what is read is a private copy, migrated if it
 * is older. It may be in use; what its writers have not flushed is not in it yet, and the notes of
 * processes that died beside it become findings only when it is opened itself. ERR_SCHEMA for a newer one
 * or another program's; ERR_OPEN for one that cannot be read, is damaged, or is this one; ERR_STOPPED once
 * *stop (may be NULL) is not 0. One transaction: all of it or nothing; other writers wait as long.
 */
int32_t mla_store_merge(struct mla_store *store, const char *from, const volatile int *stop,
                        struct mla_store_merged *merged);

/* One thing timed. flops and bytes are of one call, peak in flop/s. */
struct mla_store_bench {
    const char *op;       /* ring, sparse or oracle */
    const char *shape;    /* its name */
    const char *testcase; /* SHA-256 of the case line, in hex */
    const char *kernel;   /* or the peer, or which oracle */
    bool is_peer;
    int64_t threads;
    double seconds, spread; /* median; (slowest - fastest) / median */
    double flops, bytes;    /* useful flops > 0; bytes 0: not counted */
    double peak, of_peak;   /* of so many threads at that time; the share of it */
    const char *isa;        /* of the peak's instructions */
    const char *own_isa;    /* of the kernel's, where that is a lesser one; or NULL */
    double of_own_peak;     /* then the share of its peak */
    bool noisy;
    int64_t reps;
};
/* Store a timing of the current run, at once. ERR_WRITE for what the schema does not take. */
int32_t mla_store_bench(struct mla_store *store, const struct mla_store_bench *bench);

/* A check or a published rule that spoke against a kernel, on so many (>= 1) surveyed cases. */
struct mla_store_catch {
    bool is_rule; /* published; else a check of our own */
    const char *name;
    int64_t cases;
};

/* One search for a failing case of one kernel. */
struct mla_store_trial {
    const char *role;   /* fault, hidden, control, canary */
    const char *fault;  /* name of the kernel */
    const char *class;  /* of faults, else "" */
    const char *op;     /* ring or sparse */
    const char *search; /* random or guided */
    int64_t trial;      /* number, from 0: unique with run, fault, op and search */
    int64_t seed;
    const char *outcome; /* killed, survived, not-applied */
    int64_t executions, applied;
    double cpu_seconds;
    /* Of a kill; NULL otherwise. */
    const char *verdict, *relation, *reason;
    const struct mla_store_case *testcase;
    int64_t surveyed;
    const struct mla_store_catch *catches;
    size_t catches_n;
};
/* Store a trial of the current run, its case and its catches, at once. ERR_WRITE for what the schema
 * does not take. */
int32_t mla_store_trial(struct mla_store *store, const struct mla_store_trial *trial);

/* A search for what broke a case: the first bad commit, or the settings that matter. */
struct mla_store_bisect {
    const char *key; /* SHA-256 in hex of all that decides the outcome of a step */
    const struct mla_store_case *testcase;
    const char *kernel;
    const char *question;                            /* "fails", "bits", or a condition */
    const char *repository, *build_command, *plugin; /* "" where nothing is built */
    const char *good, *bad;                          /* commits, or configurations */
};
/* The search of that key, stored at once if it is new: *id is for the functions below. */
int32_t mla_store_bisect_begin(struct mla_store *store, const struct mla_store_bisect *bisect,
                               int64_t *id);

enum mla_store_outcome { MLA_STORE_GOOD = 0, MLA_STORE_BAD, MLA_STORE_SKIP, MLA_STORE_OUTCOMES_N };
#define MLA_STORE_COMMIT_BYTES        65  /* SHA-1 or SHA-256 in hex, with its terminator */
#define MLA_STORE_CONFIGURATION_BYTES 512 /* texts longer than their room are cut when read */

struct mla_store_step {
    char commit[MLA_STORE_COMMIT_BYTES];               /* "": none, a step of settings alone */
    char configuration[MLA_STORE_CONFIGURATION_BYTES]; /* settings changed, "": none */
    enum mla_store_outcome outcome;
    int64_t tries, failed; /* verdicts asked for, and how many were bad */
    char bits[24];         /* fingerprint of the output, "" for none */
    char text[512]; /* what the last bad verdict said, or why it was skipped; "" for nothing */
    double seconds; /* build and verdicts together */
};
/* Store a step of that search at once; one of the same commit and configuration is replaced. */
int32_t mla_store_bisect_step(struct mla_store *store, int64_t id,
                              const struct mla_store_step *step);
/* Called with every step, in the order they were first stored; it must not call the store. */
typedef void mla_store_step_fn(void *context, const struct mla_store_step *step);
int32_t mla_store_bisect_steps(struct mla_store *store, int64_t id, mla_store_step_fn *each,
                               void *context);
/* Store the answer and the time. */
int32_t mla_store_bisect_end(struct mla_store *store, int64_t id, const char *answer);

/*
 * In-flight note: which case a kernel is about to run, in a small mapped file beside the database
 * ("<db>-inflight-<pid>"), so that a process that vanishes (kill -9, out of memory, a power cut) leaves word
 * for the next open. As nobody knows why it vanished, that is no failure of the kernel: the case gets the
 * verdict unjudged, reason MLA_STORE_INTERRUPTED, and is told of once (mla_store_notice). A crash it is, with
 * a finding, if a parent saw it (mla_store_open_after) or the process itself did (mla_store_inflight_fatal).
 * Costs a memory copy. begin replaces the previous note; end clears it; close removes the file. Only the
 * process that opened the store calls these, the note survives its death.
 */
#define MLA_STORE_INTERRUPTED "interrupted: the judging process ended while this case ran"
int32_t mla_store_inflight_begin(struct mla_store *store, const struct mla_store_case *testcase,
                                 const char *kernel, const char *repro);
int32_t mla_store_inflight_end(struct mla_store *store);
/* Say in the note that a signal (1 to 127) of the kernel's own doing ends this process. For a signal handler:
 * a store to memory, nothing else. Without a note it does nothing. */
void mla_store_inflight_fatal(struct mla_store *store, int signal);

/* The line of the one case whose id begins with prefix (>= 4 hex digits); caller frees *line. */
int32_t mla_store_find_line(struct mla_store *store, const char *prefix, char **line);

/*
 * Tables a person reads. key: the number of a run as text, the beginning of a case id, or NULL.
 * NOT_FOUND when there is no such run or case; an empty table is no error. The latest run is that of a
 * command that judges, not of bench or faults. Column names are stable.
 * A case counts once a run and kernel, by the gravest of its verdicts (fail-certain, crash,
 * timeout, fail-improbable, refused, unjudged, pass, unsupported); tallies are added.
 */
enum mla_store_view {
    /* newest first; key: that run. run, started, command, kernels, commit ("-dirty" appended),
       cases, failed (all four verdicts that make a finding) */
    MLA_VIEW_RUNS = 0,
    /* of a run, NULL: the latest. op, kernel, family, cases, passed, failed, improbable, unjudged,
       unsupported, refused, crashed (with timeouts), worst_err_over_bound */
    MLA_VIEW_SUMMARY,
    /* the 50 worst of a run, NULL: of all. id (12 digits), op, kernel, verdict, err_over_bound,
       element, line */
    MLA_VIEW_WORST,
    /* open ones first; key: of a case. id (12 digits), kernel, verdict, state, first_seen,
       last_seen, reason, repro */
    MLA_VIEW_FINDINGS,
    /* verdicts of one case (key needed), newest first. run, kernel, verdict, relation,
       err_over_bound, elements, element, got, lo, hi, reason, kernel_seconds, oracle_seconds,
       metrics ("name=value ..") */
    MLA_VIEW_CASE,
    /* one run with its build as pairs, NULL: the latest. field, value */
    MLA_VIEW_RUN,
    /* of a run, NULL: the latest; of its stored verdicts that have figures. op, kernel, family, cases,
       worst_err_over_bound, worst_p50_ulp, worst_p99_ulp, max_ulp, min_rounded_percent,
       mean_rounded_percent, worst_rms_relative, worst_bias_se, worst_bias_outward_se,
       worst_chi_square */
    MLA_VIEW_ACCURACY,
    /* the same verdicts and what published rules would have said. op, kernel, criterion, cases,
       passed, failed (by the verdict), missed (of those, passed by the rule), alarms (passed by the
       verdict only) */
    MLA_VIEW_CRITERIA,
    /* timings of a run, NULL: of all, newest run first, at most 500. run, started, commit, cpu, op, shape,
       kernel, threads, seconds, spread, gflops, gbytes (a second), of_peak, of_own_peak, noisy,
       reps */
    MLA_VIEW_SPEED,
    /* the kill matrix of a run, NULL: of the latest that has one. fault, role, class, op, search, outcome
       (killed: by at least half of the trials; survived, not-applied; a control: accused), trials,
       killed (trials), executions, cpu_seconds (medians, NULL unless killed), testcase (12 digits),
       detectors, criteria (names that caught it) */
    MLA_VIEW_FAULTS,
    MLA_VIEW_N
};
/*
 * Called for every row. Non-zero stops (which is no error); values may be NULL. Strings live until
 * it returns. It must not call the store.
 */
typedef int mla_store_row_fn(void *context, int columns_n, const char *const *names,
                             const char *const *values);
int32_t mla_store_view(struct mla_store *store, enum mla_store_view view, const char *key,
                       mla_store_row_fn *row, void *context);
/* The same as one JSON array of objects, numbers as numbers (inf and nan as texts); to be freed. */
int32_t mla_store_view_json(struct mla_store *store, enum mla_store_view view, const char *key,
                            char **json);

/* "SQLite 3.40.1 (header 3.40.1)" into text; false when header and library disagree. */
bool mla_store_versions(char *text, size_t text_bytes);

#endif
