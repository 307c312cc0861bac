/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect_build.c - the plug-in of a commit: built in a work tree of our own, kept in a cache.
 *
 * The cache is a folder for each (repository, build command, plug-in) beside the database:
 *     COMMIT.so      the plug-in, copied out of the work tree
 *     COMMIT.failed  why it cannot be built, in a line
 *     COMMIT.log     what the build printed
 *     tree/          the work tree, only while it is used
 *     lock           held while it is, by us and by what we started
 * (COMMIT-HASH where CC or CFLAGS are set.) Whoever wants a commit built anew removes its files. Every
 * build begins with exactly what is committed: whatever an earlier one left is removed first, because a
 * verdict on a mixture of two commits names neither.
 */
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/mlacheck/bisect.h"

#define BUILD_SECONDS 1800.0 /* unless --time says otherwise */
#define SKIP_CODE     125 /* of a build: this commit cannot be tested, as with `git bisect run` */

const char mla_bisect_recipe_plugin[] = "build/bisect/plugin.so";
const char mla_bisect_recipe[] =
    "set -e\n"
    "cmake -S . -B build/bisect -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMLA_WERROR=OFF "
    "-DMLA_PEERS=OFF\n"
    "cmake --build build/bisect --target mla_impl\n"
    "cat >build/bisect/plugin.c <<'END'\n"
    "#include \"impl/registry.h\"\n"
    "const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n)\n"
    "{\n"
    "    return mla_registry_kernels(kernels_n);\n"
    "}\n"
    "END\n"
    "${CC:-cc} $CFLAGS -std=c17 -fPIC -shared -I. -o build/bisect/plugin.so build/bisect/plugin.c "
    "build/bisect/impl/libmla_impl.a -Wl,--exclude-libs,ALL -lm -lpthread\n";

void mla_bisect_hash(char hex[65], ...)
{
    struct sha256_ctx hash;
    uint8_t digest[SHA256_DIGEST_SIZE];
    va_list list;
    sha256_init(&hash);
    va_start(list, hex);
    for (const char *text = va_arg(list, const char *); text != NULL;
         text = va_arg(list, const char *))
        sha256_update(&hash, strlen(text) + 1, (const uint8_t *)text);
    va_end(list);
    sha256_digest(&hash, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value == NULL ? "" : value;
}

/* ---- one build ---- */

/* Copy into a new file that has its name only once it is whole. */
static bool copy(const char *from, const char *to)
{
    char part[MLA_BISECT_PATH + 8], buffer[65536];
    snprintf(part, sizeof part, "%s.part", to);
    FILE *in = fopen(from, "rbe"), *out = in == NULL ? NULL : fopen(part, "wbe");
    size_t n;
    bool ok = out != NULL;
    while (ok && (n = fread(buffer, 1, sizeof buffer, in)) > 0)
        ok = fwrite(buffer, 1, n, out) == n;
    ok = ok && !ferror(in);
    if (in != NULL)
        fclose(in);
    if (out != NULL)
        ok = fclose(out) == 0 && ok;
    return ok && rename(part, to) == 0;
}

static bool write_line(const char *path, const char *line)
{
    FILE *file = fopen(path, "we");
    bool ok = file != NULL && fprintf(file, "%s\n", line) > 0;
    if (file != NULL)
        ok = fclose(file) == 0 && ok;
    return ok;
}

static bool read_line(const char *path, char *text, size_t text_bytes)
{
    FILE *file = fopen(path, "re");
    bool ok = file != NULL && fgets(text, (int)text_bytes, file) != NULL;
    if (file != NULL)
        fclose(file);
    if (ok)
        text[strcspn(text, "\n")] = '\0';
    return ok;
}

/* Is the tree still one of git's? A build may have removed that. */
static bool has_git(const char *tree)
{
    char path[MLA_BISECT_PATH + 8];
    snprintf(path, sizeof path, "%s/.git", tree);
    return access(path, F_OK) == 0;
}

/* Exactly the commit, nothing else. why: "", or that git cannot make its files (a filter that is not
 * installed, an object that is missing): other commits may do. */
static int check_out(const char *tree, const char *commit, int log, char *why, size_t why_bytes)
{
    why[0] = '\0';
    /* git leaves alone what lies in submodules, so what an earlier build left goes first, by hand. A sparse
     * checkout of the user's is not wanted here. */
    const char *const commands[3][16] = {{"find", tree, "-mindepth", "1", "-maxdepth", "1", "!",
                                          "-name", ".git", "-exec", "rm", "-rf", "{}", "+", NULL},
                                         {"git", "-C", tree, "-c", "core.hooksPath=/dev/null", "-c",
                                          "core.sparseCheckout=false", "checkout", "--quiet",
                                          "--force", "--detach", commit, NULL},
                                         {"git", "-C", tree, "clean", "-ffdx", "--quiet", NULL}};
    for (int i = 0; i < 3; i++) {
        int code = 0;
        struct mla_child git = {.argv = commands[i], .out = log, .error = log};
        enum mla_child_end end = mla_child_run(&git, &code);
        if (end == MLA_CHILD_STOPPED)
            return MLA_EXIT_INTERRUPTED;
        if (end == MLA_CHILD_ENDED && code != 0 && i == 1 && has_git(tree)) {
            snprintf(why, why_bytes, "cannot be checked out");
            return 0;
        }
        if (end != MLA_CHILD_ENDED || code != 0)
            return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect",
                                    "commit %.12s could not be checked out in %s", commit, tree);
    }
    return 0;
}

/* why: "" when the plug-in is there. */
static int run_build(const struct mla_bisect *b, const char *tree, int log, char *why,
                     size_t why_bytes)
{
    int code = 0;
    double limit = b->options.seconds > 0 ? b->options.seconds : BUILD_SECONDS;
    struct mla_child build = {.argv = (const char *[]){"sh", "-c", b->build, NULL},
                              .folder = tree,
                              .out = log,
                              .error = log,
                              .seconds = limit,
                              .modest = true};
    enum mla_child_end end = mla_child_run(&build, &code);
    why[0] = '\0';
    if (end == MLA_CHILD_STOPPED)
        return MLA_EXIT_INTERRUPTED;
    if (end == MLA_CHILD_NOT_STARTED)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "no process for the build");
    if (end == MLA_CHILD_TIMED_OUT)
        snprintf(why, why_bytes, "the build took longer than %g s", limit);
    else if (code == SKIP_CODE)
        snprintf(why, why_bytes, "the build asked to skip it (exit %d)", code);
    else if (code != 0)
        snprintf(why, why_bytes, "does not build (exit %d)", code);
    return 0;
}

static int build_commit(struct mla_bisect *b, const char *commit, const char *base,
                        const char *plugin, char *why, size_t why_bytes)
{
    char tree[MLA_BISECT_PATH], made[2 * MLA_BISECT_PATH], path[MLA_BISECT_PATH], name[128];
    int code = mla_bisect_tree(b);
    if (code != 0)
        return code;
    mla_bisect_inside(b, "tree", tree);
    snprintf(name, sizeof name, "%s.log", base);
    mla_bisect_inside(b, name, path);
    int log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (log < 0)
        return mla_bisect_trouble("cannot write", path);
    code = check_out(tree, commit, log, why, why_bytes);
    bool is_there = code == 0 && why[0] == '\0';
    if (is_there && isatty(STDERR_FILENO))
        fprintf(stderr, "building %.12s\n", commit);
    if (is_there) {
        code = run_build(b, tree, log, why, why_bytes);
        b->builds_n++;
    }
    close(log);
    if (code != 0)
        return code;
    snprintf(made, sizeof made, "%s/%s", tree, b->plugin);
    struct stat info;
    bool is_file = stat(made, &info) == 0 && S_ISREG(info.st_mode) && access(made, R_OK) == 0;
    if (why[0] == '\0' && !is_file)
        snprintf(why, why_bytes, "the build made no %.200s", b->plugin);
    if (why[0] == '\0')
        return copy(made, plugin) ? 0 : mla_bisect_trouble("cannot write", plugin);
    snprintf(name, sizeof name, "%s.failed", base);
    mla_bisect_inside(b, name, path);
    return write_line(path, why) ? 0 : mla_bisect_trouble("cannot write", path);
}

int mla_bisect_build(struct mla_bisect *b, const char *commit, char path[MLA_BISECT_PATH],
                     char *why, size_t why_bytes)
{
    char hex[65], base[100], name[128], failed[MLA_BISECT_PATH];
    const char *cc = variable("CC"), *cflags = variable("CFLAGS");
    int code = mla_bisect_folder(b);
    if (code != 0)
        return code;
    mla_bisect_hash(hex, cc, cflags, NULL);
    bool plain = cc[0] == '\0' && cflags[0] == '\0';
    snprintf(base, sizeof base, "%.64s%s%.*s", commit, plain ? "" : "-", plain ? 0 : 12, hex);
    snprintf(name, sizeof name, "%s.so", base);
    mla_bisect_inside(b, name, path);
    snprintf(name, sizeof name, "%s.failed", base);
    mla_bisect_inside(b, name, failed);
    why[0] = '\0';
    if (access(path, R_OK) == 0)
        return 0;
    if (!read_line(failed, why, why_bytes))
        code = build_commit(b, commit, base, path, why, why_bytes);
    if (code == 0 && why[0] != '\0') {
        size_t n = strlen(why);
        snprintf(why + n, why_bytes - n, ", see %s/%s.log", b->folder, base);
    }
    if (why[0] != '\0')
        path[0] = '\0';
    return code;
}
