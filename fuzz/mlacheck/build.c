/* SPDX-License-Identifier: Apache-2.0
 *
 * build.c - the build's description, the CPU's name and instruction sets, library versions.
 */
#include "fuzz/mlacheck/build.h"

#include <nettle/version.h>
#include <stdio.h>
#include <string.h>

#include "build_info.h"
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
