/* SPDX-License-Identifier: Apache-2.0
 *
 * peer.c - the table of peers, their streams on threads, and what all of them do.
 */
#include "fuzz/mlacheck/peer.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/mlacheck/crew.h"

static const struct mla_peer peers[] = {
    {"onednn",
     "oneDNN: gather, bf16 matmul, softmax, bf16 matmul",
     "libdnnl-dev, 2.6 or a later 2",
     {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ONEDNN_CPU_ISA_HINTS", "DNNL_CPU_ISA_HINTS"}},
    {"openblas",
     "OpenBLAS: gather and widen, sgemm, softmax, sgemm",
     "libopenblas-dev",
     {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}},
};
#define PEERS_N (sizeof peers / sizeof peers[0])

/* OpenMP, which comes with a library, would bind the thread that loads it to one core, and so all
 * threads that this one makes: the kernels', the peers' and the peak's. */
static const char *const binding[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"};

const struct mla_peer *mla_peers(size_t *peers_n)
{
    *peers_n = PEERS_N;
    return peers;
}

/* mla_peer_NAME.so in the folder of this program. */
static bool module_path(const char *name, char *path, size_t bytes)
{
    ssize_t n = readlink("/proc/self/exe", path, bytes - 1);
    if (n <= 0)
        return false;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    size_t room = slash == NULL ? 0 : bytes - (size_t)(slash + 1 - path);
    return slash != NULL && (size_t)snprintf(slash + 1, room, "mla_peer_%s.so", name) < room;
}

/* A peer that is held back would flatter the kernel: the library shall choose for this CPU. */
static void forget(const struct mla_peer *peer, const char *variable)
{
    const char *value = getenv(variable);
    if (value == NULL)
        return;
    printf("%s: %s=%s of the environment is ignored\n", peer->name, variable, value);
    (void)unsetenv(variable);
}

const struct mla_peer_code *mla_peer_load(const struct mla_peer *peer, char *error,
                                          size_t error_bytes)
{
    static const struct mla_peer_code *loaded[PEERS_N];
    const struct mla_peer_code **code = &loaded[peer - peers];
    char path[4096];
    if (*code != NULL)
        return *code;
    if (!module_path(peer->name, path, sizeof path) || access(path, R_OK) != 0) {
        snprintf(error, error_bytes,
                 "this build is without it (%s): scripts/setup --peers "
                 "installs it, then build again",
                 peer->package);
        return NULL;
    }
    for (int i = 0; i < MLA_PEER_VARIABLES && peer->variables[i] != NULL; i++)
        forget(peer, peer->variables[i]);
    for (size_t i = 0; i < sizeof binding / sizeof binding[0]; i++)
        forget(peer, binding[i]);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *code = module == NULL ? NULL : dlsym(module, "mla_peer_module");
    if (*code == NULL)
        snprintf(error, error_bytes, "%s", dlerror());
    return *code;
}

bool mla_peer_fits(const struct mla_sparse_args *args)
{
    return !args->dense && !args->topk_tiled && !args->has_q_pos_offset;
}

/* ---- streams ---- */

struct mla_peer_job {
    const struct mla_peer_code *code;
    const struct mla_sparse_args *args;
    uint16_t *out;
    void *streams[MLA_CREW_MAX];
    int streams_n;
    int threads; /* of the call being made */
    bool failed[MLA_CREW_MAX];
    double before[MLA_CREW_MAX]; /* processor time of each thread until its work began */
};

struct mla_peer_job *mla_peer_job_make(const struct mla_peer *peer,
                                       const struct mla_sparse_args *args, int threads_n,
                                       char *error, size_t error_bytes)
{
    const struct mla_peer_code *code = mla_peer_load(peer, error, error_bytes);
    struct mla_peer_job *job = code == NULL ? NULL : calloc(1, sizeof *job);
    if (code == NULL)
        return NULL;
    if (job == NULL) {
        snprintf(error, error_bytes, "out of memory");
        return NULL;
    }
    job->code = code;
    job->args = args;
    job->out = malloc((size_t)(args->queries * args->heads * args->latent) * sizeof *job->out);
    bool ok = job->out != NULL;
    if (!ok)
        snprintf(error, error_bytes, "out of memory");
    for (; ok && job->streams_n < threads_n; job->streams_n += ok) {
        job->streams[job->streams_n] = code->open(args, error, error_bytes);
        ok = job->streams[job->streams_n] != NULL;
    }
    if (ok)
        return job;
    mla_peer_job_free(job);
    return NULL;
}

void mla_peer_job_free(struct mla_peer_job *job)
{
    if (job == NULL)
        return;
    for (int i = 0; i < job->streams_n; i++)
        job->code->close(job->streams[i]);
    free(job->out);
    free(job);
}

static double processor_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void member(void *context, int number)
{
    struct mla_peer_job *job = context;
    job->before[number] = processor_seconds(CLOCK_THREAD_CPUTIME_ID);
    int64_t n = job->args->queries, first = n * number / job->threads;
    job->failed[number] = !job->code->run(job->streams[number], job->args, first,
                                          n * (number + 1) / job->threads - first, job->out);
}

double mla_peer_job_run(struct mla_peer_job *job, int threads, double *cores)
{
    job->threads = threads;
    double start = processor_seconds(CLOCK_PROCESS_CPUTIME_ID);
    double seconds = mla_crew_run(threads, false, member, job);
    double used = processor_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    for (int i = 0; i < threads && seconds >= 0; i++)
        used -= job->before[i];
    *cores = used / (seconds * threads);
    for (int i = 0; i < threads; i++)
        seconds = job->failed[i] ? -1 : seconds;
    return seconds;
}

/* ---- the same thing? ---- */

static double value_of(uint16_t bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return (double)value;
}

double mla_peer_job_difference(const struct mla_peer_job *job, const uint16_t *kernel_out)
{
    const struct mla_sparse_args *a = job->args;
    double off = 0, all = 0;
    for (int64_t row = 0; row < a->queries * a->heads; row++)
        for (int64_t l = 0; l < a->latent; l++) {
            int64_t column = a->out_order == MLA_OUT_MX4 ? l % 4 * (a->latent / 4) + l / 4 : l;
            double mine = value_of(job->out[row * a->latent + l]);
            double due = value_of(kernel_out[row * a->latent + column]);
            off += (mine - due) * (mine - due);
            all += due * due;
        }
    return sqrt(off / all);
}
