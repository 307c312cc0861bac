/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c - mlacheck: one command, a table of verbs.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/mlacheck/build.h"
#include "fuzz/mlacheck/options.h"
#include "results/report_text.h"

volatile int mla_interrupted;

static const struct mla_verb verbs[] = {
    {"run", "judge kernels on cases", mla_verb_run},
    {"fuzz", "hunt for faults with libFuzzer", mla_verb_fuzz},
    {"faults", "hunt the planted faults: the kill matrix", mla_verb_faults},
    {"shrink", "the smallest case with the same fault", mla_verb_shrink},
    {"merge", "several databases into one", mla_verb_merge},
    {"bisect", "the commit, or the setting, that broke a case", mla_verb_bisect},
    {"bench", "speed of kernels and the oracle, against the CPU's peak and peers", mla_verb_bench},
    {"report", "one file for people or CI: regressions, accuracy, plots", mla_verb_report},
    {"export", "a case's tensors as a safetensors file", mla_verb_export},
    {"judge", "a verdict on output that was computed elsewhere", mla_verb_judge},
    {"import", "a case of tensors from outside", mla_verb_import},
    {"list", "kernels, families, relations, faults, runs, findings", mla_verb_list},
    {"show", "one run, case or kernel in full", mla_verb_show},
    {"selfcheck", "hold the verdict against kernels that do all their models allow",
     mla_verb_selfcheck},
    {"compare", "what moved between two runs, commits or databases", mla_verb_compare},
    {"completion", "flags and verbs for the shell to complete", mla_verb_completion},
};
#define VERBS_N (sizeof(verbs) / sizeof(verbs[0]))

const struct mla_verb *mla_verbs(size_t *n)
{
    *n = VERBS_N;
    return verbs;
}

static void interrupt(int signal_number)
{
    (void)signal_number;
    mla_interrupted = 1;
}

static void usage(FILE *file)
{
    fprintf(file, "mlacheck decides whether an MLA attention kernel computes what it claims.\n\n"
                  "usage: mlacheck VERB [flags]    (mlacheck VERB --help)\n\n");
    for (size_t i = 0; i < VERBS_N; i++)
        fprintf(file, "  %-10s %s\n", verbs[i].name, verbs[i].what);
    fprintf(file,
            "\nexit: 0 all passed, 1 a fault was found, 2 bad usage or input, 3 environment,\n"
            "77 nothing could be judged, 130 interrupted\n");
}

/* Has who read it gone, as `| head` does? */
static bool is_pipe_closed(void)
{
    struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

/* What could not be printed must not look like success. Nobody wants to be told of a pipe that he closed:
 * then a success ends by SIGPIPE, as any filter. */
static int end_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (is_pipe_closed()) {
        (void)signal(SIGPIPE, SIG_DFL);
        return code == MLA_EXIT_PASSED ? raise(SIGPIPE) : code;
    }
    fprintf(stderr, "mlacheck: standard output could not be written\n");
    return code == MLA_EXIT_FAULT ? code : MLA_EXIT_ENVIRONMENT;
}

int main(int argc, char **argv)
{
    char versions[256];
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    if (argc < 2) {
        usage(stderr);
        return MLA_EXIT_USAGE;
    }
    if (!mla_build_versions(versions, sizeof versions)) {
        fprintf(stderr, "mlacheck: header and library versions disagree: %s\n", versions);
        return MLA_EXIT_ENVIRONMENT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return end_output(MLA_EXIT_PASSED);
    }
    if (strcmp(argv[1], "--version") == 0) {
        struct mla_store_build build = mla_build_describe();
        printf("mlacheck, commit %.12s%s, %s, %s\n", build.commit, build.dirty ? " (dirty)" : "",
               build.compiler, versions);
        return MLA_EXIT_PASSED;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an output error, not the kernel's death */
    for (size_t i = 0; i < VERBS_N; i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return end_output(verbs[i].run(argc - 1, argv + 1));
    fputs("mlacheck: verb '", stderr);
    mla_text_plain(stderr, argv[1]);
    fputs("' is not known\n", stderr);
    usage(stderr);
    return MLA_EXIT_USAGE;
}
