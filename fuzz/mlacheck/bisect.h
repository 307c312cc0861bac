/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect.h - what the files of `mlacheck bisect` share.
 *
 * bisect.c reads the command; bisect_search.c looks for a commit, bisect_config.c for settings.
 * bisect_commits.c lists the commits that are left, bisect_answer.c tells which one it is. Both searches ask
 * bisect_decide.c for an outcome, which repeats single tries (bisect_try.c) until it is sure enough, and
 * keep it in bisect_steps.c. bisect_build.c makes the plug-in of a commit in the work tree of bisect_tree.c,
 * bisect_git.c asks git, bisect_child.c runs programs.
 *
 * Functions that return int return 0, or an exit code of the command after saying why on stderr.
 */
#ifndef MLA_MLACHECK_BISECT_H
#define MLA_MLACHECK_BISECT_H

#include "fuzz/case.h"
#include "fuzz/mlacheck/options.h"

#define MLA_BISECT_PATH 1024

/* --where: bad is a figure for which `figure op number` holds. */
struct mla_bisect_condition {
    char metric[48];
    char op[3]; /* ">", ">=", "<", "<=" */
    double number;
};

struct mla_bisect {
    struct mla_options options;
    struct mla_store *store;
    struct mla_case test;
    char kernel[256];   /* its name in the plug-in, or (no build) what `run` takes */
    char question[128]; /* "fails", "bits", or the condition */
    struct mla_bisect_condition condition;
    char reference[24]; /* bits: fingerprint of the good end, once known */

    char repo[MLA_BISECT_PATH]; /* absolute; "": nothing is built */
    const char *build, *plugin;
    char good[MLA_STORE_COMMIT_BYTES], bad[MLA_STORE_COMMIT_BYTES];

    int64_t tries;  /* of a commit in the search; five times as many where it counts */
    int64_t passes; /* 0: the fault is steady; else it is not, and so many passes make a good one */

    int64_t id; /* of the search in the store */
    struct mla_store_step *steps;
    size_t steps_n, steps_room;
    int64_t builds_n; /* made by this process */

    /* bisect_tree.c: where commits are built. */
    char folder[MLA_BISECT_PATH]; /* "": not opened */
    int lock;                     /* -1: not held, and no work tree */
};

/* ---- bisect_child.c ---- */

enum mla_child_end {
    MLA_CHILD_ENDED,
    MLA_CHILD_TIMED_OUT,
    MLA_CHILD_STOPPED,
    MLA_CHILD_NOT_STARTED
};

struct mla_child {
    const char *const *argv; /* NULL at the end; found in PATH */
    const char *folder;      /* to work in; NULL: ours */
    int out, error;          /* descriptors for its output; -1: ours */
    double seconds;          /* limit; 0: none */
    bool modest;             /* give way to others */
};
/*
 * Run a program in a process group of its own and wait. *code is its exit code, 128 + signal if it died.
 * After the limit, or on Ctrl-C, the group is killed; what it leaves running in any case too.
 */
enum mla_child_end mla_child_run(const struct mla_child *child, int *code);

/* ---- bisect_git.c ---- */

/* git in the repository: its output (malloc) and exit code. */
int mla_bisect_git(const struct mla_bisect *b, const char *const *arguments, char **text,
                   int *git_code);
/* The hash of a revision that the user gave with that flag. */
int mla_bisect_resolve(const struct mla_bisect *b, const char *flag, const char *revision,
                       char hash[MLA_STORE_COMMIT_BYTES]);
/* Set repo: the absolute path of the repository's root. */
int mla_bisect_find_repo(struct mla_bisect *b, const char *folder);
/* The first line of a commit's message; "" where it cannot be had. */
void mla_bisect_subject(const struct mla_bisect *b, const char *commit, char *text,
                        size_t text_bytes);

/* ---- bisect_build.c ---- */

/* How this project's own kernels become a plug-in, in a work tree of any of its commits. */
extern const char mla_bisect_recipe[];
extern const char mla_bisect_recipe_plugin[];

/*
 * The plug-in of a commit, from the cache or built now. path: of the file, "" where the commit cannot be
 * built, with the reason in why. CC and CFLAGS of the environment are part of what names it.
 */
int mla_bisect_build(struct mla_bisect *b, const char *commit, char path[MLA_BISECT_PATH],
                     char *why, size_t why_bytes);
/* SHA-256 in hex of texts, NULL at the end. */
void mla_bisect_hash(char hex[65], ...) __attribute__((sentinel));

/* ---- bisect_tree.c ---- */

/* Make the folder, once it is needed. */
int mla_bisect_folder(struct mla_bisect *b);
/* The path of a file in it. */
void mla_bisect_inside(const struct mla_bisect *b, const char *name, char path[MLA_BISECT_PATH]);
/* Take the folder's lock (waiting for it) and make the work tree at tree/, unless that is done. */
int mla_bisect_tree(struct mla_bisect *b);
/* Remove the work tree, give the lock back. */
void mla_bisect_tree_end(struct mla_bisect *b);
/* "what 'path': the system's reason"; returns the exit code. */
int mla_bisect_trouble(const char *what, const char *path);

/* ---- bisect_try.c ---- */

enum mla_try_end { MLA_TRY_GOOD, MLA_TRY_BAD, MLA_TRY_NOTHING, MLA_TRY_STOPPED, MLA_TRY_FAILED };

struct mla_try {
    enum mla_try_end end; /* NOTHING: no verdict, not judged, no such kernel */
    char bits[24];        /* of --bits */
    char text[512];       /* the verdict in a line */
};
/* Judge a kernel (as `run` names it) on a case, in a process that has loaded no other plug-in. */
void mla_bisect_try(const struct mla_bisect *b, const char *spec, const struct mla_case *test,
                    struct mla_try *answer);
/* NULL, or what is wrong with the text of --where. */
const char *mla_bisect_condition_parse(const char *text, struct mla_bisect_condition *condition,
                                       char *error, size_t error_bytes);

/* ---- bisect_decide.c ---- */

/*
 * Add tries to the step until it has an outcome. sure: as many as an end of the search, or its answer,
 * needs. Nothing is stored. 0, or the exit code after a stop or a failure of ours.
 */
int mla_bisect_decide(struct mla_bisect *b, const char *spec, const struct mla_case *test,
                      bool sure, struct mla_store_step *step);
/* Does the step need no more tries? */
bool mla_bisect_is_settled(const struct mla_bisect *b, bool sure,
                           const struct mla_store_step *step);
/* Ask the bad end as often as needed to know how often it fails: sets passes if the fault is unsteady.
 * The step's outcome is SKIP if it fails too seldom to be looked for. */
int mla_bisect_decide_bad(struct mla_bisect *b, const char *spec, const struct mla_case *test,
                          struct mla_store_step *step);
/* The step of that commit and configuration, a new one (no tries) if there is none. NULL: no memory. */
struct mla_store_step *mla_bisect_step(struct mla_bisect *b, const char *commit,
                                       const char *configuration);
/* Begin the search of the store: read the steps of an earlier call of the same command. */
int mla_bisect_begin(struct mla_bisect *b, const char *good, const char *bad);
int mla_bisect_store(struct mla_bisect *b, const struct mla_store_step *step);
/* "3 of 3 fail: reason" */
void mla_bisect_describe(const struct mla_store_step *step, char *text, size_t text_bytes);

/* ---- bisect_commits.c ---- */

/* Commits that may be the first bad one, best cut first. */
struct mla_bisect_candidates {
    char *text; /* git's, cut into hashes */
    char **list;
    size_t n;
};
/* Fill c; to be freed. */
int mla_bisect_list_candidates(const struct mla_bisect *b, struct mla_bisect_candidates *c);
void mla_bisect_free_candidates(struct mla_bisect_candidates *c);
/* The next one to ask; NULL when none is left. */
const char *mla_bisect_choose(const struct mla_bisect *b, const struct mla_bisect_candidates *c);
/* The last bad commit asked, the bad end if there is none. */
const char *mla_bisect_last_bad(const struct mla_bisect *b);
/* That commit was just asked: if it is bad, its step becomes the last. */
void mla_bisect_put_last(struct mla_bisect *b, const char *commit);

/* ---- bisect_answer.c ---- */

/* Tell and store what was found. */
int mla_bisect_answer(struct mla_bisect *b, const struct mla_bisect_candidates *c);

/* ---- the two searches ---- */

/* What a kernel of that plug-in is called by, as `run` has it. */
void mla_bisect_spec(const struct mla_bisect *b, const char *path, char *spec, size_t spec_bytes);

int mla_bisect_search(struct mla_bisect *b);
int mla_bisect_configuration(struct mla_bisect *b);

#endif
