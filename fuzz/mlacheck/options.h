/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h - the command's verbs, flags and exit codes.
 */
#ifndef MLA_MLACHECK_OPTIONS_H
#define MLA_MLACHECK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "results/store.h"

enum mla_exit {
    MLA_EXIT_PASSED = 0,
    MLA_EXIT_FAULT = 1,        /* a fault was found */
    MLA_EXIT_USAGE = 2,        /* bad usage or input */
    MLA_EXIT_ENVIRONMENT = 3,  /* database, plug-in, disk, memory */
    MLA_EXIT_NOTHING = 77,     /* nothing could be judged */
    MLA_EXIT_INTERRUPTED = 130 /* Ctrl-C, and no fault until then */
};

#define MLA_OPTIONS_LIST_MAX    64
#define MLA_OPTIONS_THREADS_MAX 8

/* All flags of all verbs: options_flags.c has the table of them, a verb says which it takes. */
struct mla_options {
    const char *kernels[MLA_OPTIONS_LIST_MAX];
    int kernels_n;
    const char *sets[MLA_OPTIONS_LIST_MAX];
    int sets_n;
    const char *cases[MLA_OPTIONS_LIST_MAX];
    int cases_n;
    const char *ids[MLA_OPTIONS_LIST_MAX];
    int ids_n;
    const char *op;     /* "ring", "sparse", "reject", "oracle", "all"; NULL: not given */
    const char *db;     /* database path */
    int64_t random;     /* cases to draw; -1: not given */
    int64_t number;     /* --cases, --trials or --tries; -1: not given */
    uint64_t seed;      /* default 1 */
    double seconds;     /* --time: of a fuzz run in all, of each thing timed; 0: not given */
    double limit;       /* --limit: seconds of one kernel call or input; 0: not given */
    int64_t jobs;       /* 0: not given */
    const char *golden; /* --golden: a file; NULL: not given */
    const char *out;    /* --out: a file to append to, or to write; NULL: not given */
    const char *result; /* --result: outputs of a kernel elsewhere */
    const char *model;  /* --model: its arithmetic */
    const char *params[MLA_OPTIONS_LIST_MAX]; /* --param NAME=VALUE of an import */
    int params_n;
    bool masked;                          /* --pad-index masked */
    const char *shape;                    /* --shape, a glob; NULL: not given */
    int threads[MLA_OPTIONS_THREADS_MAX]; /* --threads */
    int threads_n;                        /* 0: not given */
    const char *format;                   /* --format of a report; NULL: not given */
    bool github;                          /* --github: annotations too */
    bool report;                          /* --report: write one afterwards */
    bool draws;                           /* --random of faults: without feedback */
    bool peers;                           /* --peers: time other libraries too */
    bool merge;                           /* --merge: corpora, whatever their size */
    const char *repo, *build, *plugin;    /* of bisect: what is built */
    const char *good, *bad;               /* --good, --bad: its ends */
    const char *where;                    /* --where: a condition on a figure */
    const char *configs[2];               /* --config */
    int configs_n;
    bool bits;         /* --bits */
    bool plain_oracle; /* --oracle definition */
    bool no_oracle;    /* --oracle none */
    bool slow;
    bool blame;         /* --blame: say in words what is wrong */
    bool relations;     /* default true */
    bool all_relations; /* --relations: the dear ones too, and on slow cases */
    bool in_process;    /* call kernels without a child */
    bool json;
    bool verbose;
    bool quiet;  /* --quiet: no progress */
    bool update; /* --update: write the golden file */
    bool help;
    /* What follows the flags: two, more if allowed has '*'. */
    const char *words[MLA_OPTIONS_LIST_MAX];
    int words_n;
};

/*
 * Parse the flags of a verb. 0, or MLA_EXIT_USAGE after saying on stderr which flag is wrong and
 * what it takes.
 */
int mla_options_parse(struct mla_options *options, const char *verb, const char *allowed, int argc,
                      char **argv);

/* Complain on stderr: "mlacheck VERB: text". Returns code. */
__attribute__((format(printf, 3, 4))) int mla_options_fail(int code, const char *verb,
                                                           const char *format, ...);

/* Open the database of the options; NULL after complaining. What opening has to tell is told. */
struct mla_store *mla_options_store(const struct mla_options *options, const char *verb);
/* The same for verbs that only read: a database that is not there is an error, not made. */
struct mla_store *mla_options_read_store(const struct mla_options *options, const char *verb);
/* The same for verbs that never write, not a result either: it need not be writable. */
struct mla_store *mla_options_look_store(const struct mla_options *options, const char *verb);
/* Are both there, and one file by whatever names? */
bool mla_options_same_file(const char *a, const char *b);
/* What opening a store has to tell (mla_store_notice), on stderr. */
void mla_options_print_notice(const struct mla_store *store, const char *verb);

/* The verbs. argv[0] is the verb. */
int mla_verb_run(int argc, char **argv);
int mla_verb_fuzz(int argc, char **argv);
int mla_verb_list(int argc, char **argv);
int mla_verb_show(int argc, char **argv);
int mla_verb_bench(int argc, char **argv);
int mla_verb_selfcheck(int argc, char **argv);
int mla_verb_faults(int argc, char **argv);
int mla_verb_shrink(int argc, char **argv);
int mla_verb_merge(int argc, char **argv);
int mla_verb_bisect(int argc, char **argv);
int mla_verb_compare(int argc, char **argv);
int mla_verb_completion(int argc, char **argv);

/* The table of verbs (main.c). */
struct mla_verb {
    const char *name;
    const char *what;
    int (*run)(int argc, char **argv);
};
const struct mla_verb *mla_verbs(size_t *n);

/*
 * Which flags a verb takes: called with each, in the order of the table of flags. The verb is asked to parse
 * its flags, which is the first thing it does, and goes no further.
 */
typedef void mla_options_flag_fn(void *context, const char *name, bool has_value);
void mla_options_each_flag(const struct mla_verb *verb, mla_options_flag_fn *flag, void *context);
int mla_verb_report(int argc, char **argv);

/* Write the HTML report of the options' database beside it and print its path; a code of enum
 * mla_exit, after saying why. */
int mla_report_after(const struct mla_options *options);
int mla_verb_export(int argc, char **argv);
int mla_verb_judge(int argc, char **argv);
int mla_verb_import(int argc, char **argv);

/* Set by Ctrl-C: finish the case, store, report. */
extern volatile int mla_interrupted;

#endif
