/* SPDX-License-Identifier: Apache-2.0
 *
 * peer.h - what one would use without a kernel of one's own: unfused pipelines of public libraries.
 *
 * For each query row: gather the listed cache rows into a dense matrix, multiply, softmax, multiply.
 * A peer runs one stream a core; query rows are split over the streams. Its output is not judged.
 */
#ifndef MLA_MLACHECK_PEER_H
#define MLA_MLACHECK_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "impl/mla.h"

/*
 * A library behind three functions, in a module of its own (mla_peer_NAME.so beside the command) that
 * is loaded when it is asked for: the command itself needs none of them. A stream belongs to one
 * thread at a time and has its memory and plans; run computes query rows first .. first+n-1 into
 * out, [queries][heads][latent] in natural order, and returns false when the library reports an
 * error.
 */
struct mla_peer_code {
    void *(*open)(const struct mla_sparse_args *args, char *error, size_t error_bytes);
    bool (*run)(void *stream, const struct mla_sparse_args *args, int64_t first, int64_t n,
                uint16_t *out);
    void (*close)(void *stream);
};
/* The one symbol of a module. */
extern const struct mla_peer_code mla_peer_module;

#define MLA_PEER_VARIABLES 4

struct mla_peer {
    const char *name;
    const char *what;
    const char *package;                       /* that provides the library, on Debian */
    const char *variables[MLA_PEER_VARIABLES]; /* of the environment, that could hold it back; NULL
                                                  ends */
};

/* All of them. */
const struct mla_peer *mla_peers(size_t *peers_n);
/* The module's functions; NULL, and error says why, where there is none. */
const struct mla_peer_code *mla_peer_load(const struct mla_peer *peer, char *error,
                                          size_t error_bytes);

/* The calls peers are written for: a flat list, nothing left out of it. */
bool mla_peer_fits(const struct mla_sparse_args *args);

/* A peer on a call, with its streams. */
struct mla_peer_job;
/* NULL, and error says why. threads_n: most threads it will be run with. */
struct mla_peer_job *mla_peer_job_make(const struct mla_peer *peer,
                                       const struct mla_sparse_args *args, int threads_n,
                                       char *error, size_t error_bytes);
/*
 * One call on so many threads: seconds, or negative when something failed. *cores: processor time
 * over that time and the threads; one core a stream is 1 at most.
 */
double mla_peer_job_run(struct mla_peer_job *job, int threads, double *cores);
/*
 * Root mean square of the difference between its output and a kernel's (of the call's out_order),
 * over that of the kernel's.
 */
double mla_peer_job_difference(const struct mla_peer_job *job, const uint16_t *kernel_out);
void mla_peer_job_free(struct mla_peer_job *job);

#endif
