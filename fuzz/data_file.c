/* SPDX-License-Identifier: Apache-2.0
 *
 * data_file.c - tensors from files named by their contents, and into them.
 */
#include "fuzz/data_file.h"

#include <errno.h>
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/exchange.h"
#include "fuzz/indices.h"

static const char *folder(void)
{
    const char *own = getenv("MLACHECK_DATA");
    return own != NULL && own[0] != '\0' ? own : "results/data";
}

static bool path_of(const char *name, char path[MLA_DATA_PATH_MAX])
{
    return snprintf(path, MLA_DATA_PATH_MAX, "%s/%s.safetensors", folder(), name) <
           MLA_DATA_PATH_MAX;
}

static void hash_of(const struct mla_safetensors *file, char hash[MLA_CASE_ID_BYTES])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, file->bytes_n, file->bytes);
    sha256_digest(&context, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hash + 2 * i, 3, "%02x", digest[i]);
}

/* ---- from a file ---- */

static void copy(struct mla_tensors *t, const struct mla_safetensors *file)
{
    char name[MLA_EXCHANGE_NAME_MAX];
    for (size_t i = 0; i < t->n; i++) {
        if (t->list[i].role != MLA_TENSOR_INPUT)
            continue;
        mla_exchange_name(&t->test, t->list[i].name, t->list[i].rank, name);
        memcpy(t->list[i].guard.data, mla_safetensors_find(file, name)->data,
               t->list[i].guard.bytes);
    }
}

/* Who calls with an index that names no row must be refused, and this is a valid call. */
static int32_t check_indices(const struct mla_tensors *t, char error[MLA_CASE_ERROR_MAX])
{
    const struct mla_sparse_args *s = &t->sparse;
    for (int64_t q = 0; t->test.op == MLA_OP_SPARSE && !s->dense && q < s->queries; q++)
        for (int64_t j = 0; j < s->topk; j++) {
            int32_t index = s->topk_indices[mla_indices_place(s, q, j)];
            if (index >= 0 && index < s->keys)
                continue;
            snprintf(error, MLA_CASE_ERROR_MAX,
                     "data: topk_indices[%" PRId64 ", %" PRId64 "] = %" PRId32
                     ": must lie in 0 .. %" PRId64,
                     q, j, index, s->keys - 1);
            return MLA_ERR_PARAM;
        }
    return MLA_OK;
}

int32_t mla_data_fill(struct mla_tensors *t, char error[MLA_CASE_ERROR_MAX])
{
    char path[MLA_DATA_PATH_MAX], hash[MLA_CASE_ID_BYTES], why[MLA_EXCHANGE_ERROR_MAX];
    struct mla_safetensors file;
    if (!path_of(t->test.data, path)) {
        snprintf(error, MLA_CASE_ERROR_MAX, "MLACHECK_DATA: the path is too long");
        return MLA_ERR_PARAM;
    }
    int32_t status = mla_safetensors_read(path, &file, why, sizeof why);
    if (status != MLA_OK) {
        snprintf(error, MLA_CASE_ERROR_MAX, "data: %.400s (mlacheck import)", why);
        return status;
    }
    hash_of(&file, hash);
    status = MLA_ERR_PARAM;
    if (strcmp(hash, t->test.data) != 0)
        snprintf(error, MLA_CASE_ERROR_MAX, "data: %.300s: was changed, its SHA-256 is %s", path,
                 hash);
    else if (mla_exchange_mismatch(&t->test, &file, why) != NULL)
        snprintf(error, MLA_CASE_ERROR_MAX, "data: %.200s: %.200s", path, why);
    else {
        copy(t, &file);
        status = check_indices(t, error);
    }
    mla_safetensors_free(&file);
    return status;
}

/* ---- into a file ---- */

static int32_t cannot(const char *path, char *error, size_t error_bytes)
{
    snprintf(error, error_bytes, "%.300s: %s; MLACHECK_DATA names another folder", path,
             strerror(errno));
    return MLA_SAFETENSORS_DISK;
}

int32_t mla_data_store(const struct mla_safetensors *file, char hash[MLA_CASE_ID_BYTES],
                       char *error, size_t error_bytes)
{
    char name[64], beside[MLA_DATA_PATH_MAX], path[MLA_DATA_PATH_MAX];
    struct mla_safetensors written;
    uint64_t own = 0; /* in containers that share the folder all processes may have one number */
    if (getrandom(&own, sizeof own, 0) != (ssize_t)sizeof own)
        return cannot("getrandom", error, error_bytes);
    snprintf(name, sizeof name, "import-%jd-%016" PRIx64, (intmax_t)getpid(), own);
    if (!path_of(name, beside)) {
        snprintf(error, error_bytes, "MLACHECK_DATA: the path is too long");
        return MLA_ERR_PARAM;
    }
    if (mkdir(folder(), 0777) != 0 && errno != EEXIST)
        return cannot(folder(), error, error_bytes);
    int32_t status = mla_safetensors_write(beside, file, error, error_bytes);
    if (status == MLA_OK)
        status = mla_safetensors_read(beside, &written, error, error_bytes);
    if (status != MLA_OK) {
        unlink(beside);
        return status;
    }
    hash_of(&written, hash);
    mla_safetensors_free(&written);
    if (path_of(hash, path) && rename(beside, path) == 0)
        return MLA_OK;
    status = cannot(path, error, error_bytes);
    unlink(beside);
    return status;
}
