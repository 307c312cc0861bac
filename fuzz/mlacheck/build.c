/* SPDX-License-Identifier: Apache-2.0
 *
 * build.c - the build's description, the CPU's name and instruction sets, library versions.
 */
#include "fuzz/mlacheck/build.h"

#include <nettle/sha2.h>
#include <nettle/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build_info.h"
#include "fuzz/kernels.h"
#include "fuzz/safetensors.h"
#include "oracle/oracle.h"

static const char *isa(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return "x86-64 avx2 fma avx512f";
    if (__builtin_cpu_supports("avx2"))
        return "x86-64 avx2 fma";
    return "x86-64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "generic";
#endif
}

struct mla_store_build mla_build_describe(void)
{
    return (struct mla_store_build){.commit = MLA_BUILD_COMMIT,
                                    .dirty = MLA_BUILD_DIRTY,
                                    .compiler = MLA_BUILD_COMPILER,
                                    .flags = MLA_BUILD_FLAGS,
                                    .sanitizer = MLA_BUILD_SANITIZER,
                                    .isa = isa()};
}

void mla_build_cpu(char *text, size_t text_bytes)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(text, text_bytes, "unknown");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *value = strstr(line, ": ");
        if (strncmp(line, "model name", 10) != 0 || value == NULL)
            continue;
        snprintf(text, text_bytes, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
        break;
    }
    if (file != NULL)
        fclose(file);
}

bool mla_build_hash_file(const char *path, char hex[65])
{
    struct sha256_ctx hash;
    uint8_t bytes[65536], digest[SHA256_DIGEST_SIZE];
    FILE *file = fopen(path, "rbe");
    size_t n;
    hex[0] = '\0';
    if (file == NULL)
        return false;
    sha256_init(&hash);
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0)
        sha256_update(&hash, n, bytes);
    bool fine = ferror(file) == 0;
    fclose(file);
    sha256_digest(&hash, sizeof digest, digest);
    for (size_t i = 0; fine && i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return fine;
}

/* One kernel of the list by its name: a plug-in's with "@" and its hash behind, as its file is no part of any
 * commit. */
static void write_kernel(FILE *out, const char *spec)
{
    char path[sizeof((struct mla_kernel_choice *)NULL)->spec], hex[65];
    size_t n = mla_kernels_plugin(spec);
    fputs(mla_kernels_name(spec), out);
    snprintf(path, sizeof path, "%.*s", (int)n, spec);
    if (n > 0 && mla_build_hash_file(path, hex))
        fprintf(out, "@%.*s", MLA_STORE_FILE_BYTES - 1, hex);
}

char *mla_build_kernels(const struct mla_kernel_list *kernels)
{
    char *text = NULL;
    size_t bytes = 0, n = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    for (size_t k = 0; k < kernels->n; k++) {
        if (!mla_kernel_is_usable(kernels->list[k].kernel))
            continue;
        fputs(n++ == 0 ? "" : ",", out);
        write_kernel(out, kernels->list[k].spec);
    }
    fputs(n == 0 ? "none" : "", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

int32_t mla_build_begin_run(struct mla_store *store, int argc, char **argv, const char *kernels,
                            int64_t seed, int64_t *run_id)
{
    char cpu[128], command[1024] = "";
    struct mla_store_build build = mla_build_describe();
    mla_build_cpu(cpu, sizeof cpu);
    for (int i = 0; i < argc; i++)
        snprintf(command + strlen(command), sizeof command - strlen(command), "%s%s",
                 i == 0 ? "" : " ", argv[i]);
    const struct mla_store_run row = {command, cpu, kernels, seed};
    return mla_store_begin_run(store, &build, &row, run_id);
}

int32_t mla_build_end_run(struct mla_store *store, bool is_whole)
{
    return is_whole ? mla_store_end_run(store) : mla_store_flush(store);
}

bool mla_build_versions(char *text, size_t text_bytes)
{
    char oracle[128], store[128], json[64];
    bool oracle_ok = mla_oracle_versions(oracle, sizeof oracle);
    bool store_ok = mla_store_versions(store, sizeof store);
    bool json_ok = mla_safetensors_versions(json, sizeof json);
    int major = nettle_version_major(), minor = nettle_version_minor();
    snprintf(text, text_bytes, "%s, %s, %s, nettle %d.%d (header %d.%d)", oracle, store, json,
             major, minor, NETTLE_VERSION_MAJOR, NETTLE_VERSION_MINOR);
    return oracle_ok && store_ok && json_ok && major == NETTLE_VERSION_MAJOR &&
           minor == NETTLE_VERSION_MINOR;
}
