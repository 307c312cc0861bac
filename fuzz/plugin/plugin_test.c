/* SPDX-License-Identifier: Apache-2.0
 *
 * plugin_test.c - loading a plug-in, every reason to refuse one, and the example that authors copy.
 *
 * Each refusal is provoked by a file or a shared object made for it. The bad kernels are also shown
 * to be as bad as their names say, since the tests of isolation rely on them.
 */
#include "fuzz/faults/tiny.h"
#include "fuzz/plugin/plugin.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const char *bad(const char *what)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/mla_bad_%s.so", MLA_TEST_BAD, what);
    return path;
}

/* Loading must be refused; the message names the path and contains the reason. */
static void check_refused(const char *path, const char *reason)
{
    const struct mla_kernel *const *kernels = (const struct mla_kernel *const *)&kernels;
    size_t kernels_n = 77;
    char message[1024] = "unset";
    int32_t status = mla_plugin_load(path, &kernels, &kernels_n, message, sizeof message);
    if (status != MLA_ERR_PARAM || !strstr(message, path) || !strstr(message, reason)) {
        fail_msg("%s: status %d, message '%s', expected '%s'", path, status, message, reason);
    }
    assert_null(kernels);
    assert_int_equal(kernels_n, 0);
}

static const struct mla_kernel *load_one(const char *path, const char *name)
{
    const struct mla_kernel *const *kernels = NULL;
    size_t kernels_n = 0;
    char message[1024] = "unset";
    int32_t status = mla_plugin_load(path, &kernels, &kernels_n, message, sizeof message);
    if (status != MLA_OK) {
        fail_msg("%s", message);
    }
    assert_string_equal(message, "");
    assert_int_equal(kernels_n, 1);
    assert_string_equal(kernels[0]->name, name);
    return kernels[0];
}

/* ---- descriptors ------------------------------------------------------------------------------*/

static int32_t some_ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    (void)args;
    (void)message;
    (void)message_bytes;
    return MLA_ERR_UNSUPPORTED;
}

static struct mla_kernel good(const char *name)
{
    return (struct mla_kernel){.abi = MLA_KERNEL_ABI,
                               .struct_size = sizeof(struct mla_kernel),
                               .name = name,
                               .promises = MLA_PROMISE_ALL,
                               .ring = some_ring};
}

static void check_descriptors(const struct mla_kernel *const *kernels, size_t n, const char *reason)
{
    char message[512] = "unset";
    int32_t status = mla_plugin_check(kernels, n, message, sizeof message);
    assert_int_equal(status, reason[0] ? MLA_ERR_PARAM : MLA_OK);
    if (reason[0] ? !strstr(message, reason) : message[0] != '\0') {
        fail_msg("'%s' does not contain '%s'", message, reason);
    }
    assert_int_equal(mla_plugin_check(kernels, n, NULL, 0), status);
}

static void check_descriptor(struct mla_kernel kernel, const char *reason)
{
    const struct mla_kernel *const kernels[] = {&kernel};
    check_descriptors(kernels, 1, reason);
}

static void test_descriptors(void **state)
{
    (void)state;
    char long_name[80];
    memset(long_name, 'a', sizeof long_name);
    long_name[63] = '\0';
    check_descriptor(good("a-9"), "");
    check_descriptor(good(long_name), "");
    long_name[63] = 'a';
    long_name[79] = '\0';
    check_descriptor(good(long_name), "1 to 63 characters");
    check_descriptor(good(""), "name = ''");
    check_descriptor(good("Big"), "name = 'Big'");
    check_descriptor(good("a b"), "[a-z0-9-]");
    check_descriptor(good("a_b"), "[a-z0-9-]");
    check_descriptor(good(NULL), "name = 0");

    struct mla_kernel kernel = good("x");
    kernel.abi = 7;
    kernel.struct_size = 1; /* the ABI is named first */
    check_descriptor(kernel, "ABI 7, this program has ABI 1");
    kernel = good("x");
    kernel.struct_size -= 1;
    check_descriptor(kernel, "struct_size = ");
    /* Built when mla_model did not end in shard_block_keys: both sizes are named. */
    char sizes[128];
    kernel = good("x");
    kernel.struct_size -=
        2 * (uint32_t)(sizeof(struct mla_model) - offsetof(struct mla_model, shard_block_keys));
    snprintf(sizes, sizeof sizes, "struct_size = %" PRIu32 ", this program has %zu",
             kernel.struct_size, sizeof kernel);
    check_descriptor(kernel, sizes);
    kernel = good("x");
    kernel.promises |= (uint64_t)1 << 40;
    check_descriptor(kernel, "unknown bits 0x10000000000");
    kernel = good("x");
    kernel.ring = NULL;
    check_descriptor(kernel, "neither ring nor sparse");
}

static void test_descriptor_lists(void **state)
{
    (void)state;
    struct mla_kernel first = good("one");
    struct mla_kernel second = good("two");
    const struct mla_kernel *kernels[] = {&first, &second, NULL};
    check_descriptors(kernels, 2, "");
    check_descriptors(kernels, 3, "kernel 2 is a null pointer");
    second.name = "one";
    check_descriptors(kernels, 2, "kernel 1 has name = 'one': used twice");
    check_descriptors(kernels, 0, "zero kernels");
    check_descriptors(NULL, 2, "null pointer");
    check_descriptors(kernels, 1025, "1025 kernels: at most 1024");
}

/* ---- files ------------------------------------------------------------------------------------*/

static char directory[] = "/tmp/mla-plugin-test-XXXXXX";

static const char *in_directory(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_directory(name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_files_that_are_no_plugin(void **state)
{
    (void)state;
    check_refused("/nowhere/at/all.so", "No such file");
    check_refused(directory, "not a regular file");
    write_file("text.so", "this is no shared object\n");
    check_refused(in_directory("text.so"), "not an ELF");
    write_file("empty.so", "");
    check_refused(in_directory("empty.so"), "not an ELF");
    write_file("short.so", "\177ELF and then nothing");
    check_refused(in_directory("short.so"), "cannot be loaded");
    assert_int_equal(mkfifo(in_directory("fifo.so"), 0600), 0);
    check_refused(in_directory("fifo.so"), "not a regular file");
    check_refused("", "No such file");
}

static void test_arguments(void **state)
{
    (void)state;
    const struct mla_kernel *const *kernels = NULL;
    size_t kernels_n = 0;
    char message[1024] = "unset";
    assert_int_equal(mla_plugin_load(NULL, &kernels, &kernels_n, message, sizeof message),
                     MLA_ERR_PARAM);
    assert_non_null(strstr(message, "path = 0"));
    assert_int_equal(mla_plugin_load("/nowhere.so", &kernels, &kernels_n, NULL, 0), MLA_ERR_PARAM);
    char tiny[8];
    memset(tiny, 'x', sizeof tiny);
    mla_plugin_load("/nowhere.so", &kernels, &kernels_n, tiny, 4);
    assert_string_equal(tiny, "plu");
    assert_int_equal(tiny[4], 'x');
    static const double refused[] = {0.0, -1.0, 3601.0, (double)__builtin_nanf("")};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        int32_t status = mla_plugin_probe(MLA_TEST_EXAMPLE, refused[i], message, sizeof message);
        assert_int_equal(status, MLA_ERR_PARAM);
        assert_non_null(strstr(message, "seconds = "));
    }
}

static void test_bad_plugins_are_refused(void **state)
{
    (void)state;
    check_refused(bad("abi"), "ABI 99, this program has ABI 1");
    check_refused(bad("struct_size"), "struct_size = ");
    check_refused(bad("no_symbol"), "does not export mla_plugin_kernels");
    check_refused(bad("zero_kernels"), "zero kernels");
    check_refused(bad("undefined"), "mla_bad_nobody_defines_this");
    check_refused(bad("ctor_crash"), "crashed while loading: signal 11");
    check_refused(bad("ctor_exit"), "exited with status "); /* a sanitizer may change it */
}

static void test_hanging_plugin_is_given_up(void **state)
{
    (void)state;
    char message[1024] = "unset";
    time_t start = time(NULL);
    int32_t status = mla_plugin_probe(bad("ctor_hang"), 0.25, message, sizeof message);
    assert_int_equal(status, MLA_ERR_PARAM);
    assert_non_null(strstr(message, "mla_bad_ctor_hang.so: still loading after 0.25 s"));
    assert_true(time(NULL) - start < 10);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left behind */
}

/* A caller that ignores SIGCHLD cannot wait for its children; the outcome must still arrive. */
static void test_ignored_children(void **state)
{
    (void)state;
    char message[1024] = "unset";
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    int32_t right = mla_plugin_probe(MLA_TEST_EXAMPLE, 10.0, message, sizeof message);
    assert_string_equal(message, "");
    int32_t crash = mla_plugin_probe(bad("ctor_crash"), 10.0, message, sizeof message);
    signal(SIGCHLD, before);
    assert_int_equal(right, MLA_OK);
    assert_int_equal(crash, MLA_ERR_INTERNAL);
}

/* ---- the example ------------------------------------------------------------------------------*/

static void check_example_on_ring(const struct mla_kernel *kernel)
{
    size_t n = 0;
    const struct mla_tiny_ring_shape *shapes = mla_tiny_ring_shapes(&n);
    for (size_t i = 0; i < n; i++) {
        char message[64] = "unset";
        struct mla_tiny_ring *tiny = mla_tiny_ring_new(&shapes[i].args);
        int32_t status = kernel->ring(&tiny->args, message, sizeof message);
        if (shapes[i].args.is_balanced) {
            assert_false(kernel->ring_supports(&tiny->args));
            assert_int_equal(status, MLA_ERR_UNSUPPORTED);
            assert_string_equal(message, "is_balanced = 1: not offered");
        } else {
            assert_true(kernel->ring_supports(&tiny->args));
            assert_int_equal(status, MLA_OK);
            /* One rounding of a double: no slack but the reference's own 1e-12. */
            assert_int_equal(mla_tiny_ring_wrong(tiny, 1e-12, false), 0);
        }
        assert_true(mla_tiny_ring_scratch_allowed(tiny));
        mla_tiny_ring_free(tiny);
    }
}

static void check_example_on_sparse(const struct mla_kernel *kernel)
{
    size_t n = 0;
    const struct mla_tiny_sparse_shape *shapes = mla_tiny_sparse_shapes(&n);
    for (size_t i = 0; i < n; i++) {
        struct mla_tiny_sparse *tiny = mla_tiny_sparse_new(&shapes[i].args);
        assert_int_equal(kernel->sparse(&tiny->args, NULL, 0), MLA_OK);
        assert_int_equal(mla_tiny_sparse_wrong(tiny, 1e-12, false, 43), 0);
        mla_tiny_sparse_free(tiny);
    }
}

static void test_example_is_right(void **state)
{
    (void)state;
    const struct mla_kernel *kernel = load_one(MLA_TEST_EXAMPLE, "example");
    assert_true(load_one(MLA_TEST_EXAMPLE, "example") == kernel);
    check_example_on_ring(kernel);
    check_example_on_sparse(kernel);
    struct mla_tiny_ring *tiny = mla_tiny_ring_one_key();
    assert_int_equal(kernel->ring(&tiny->args, NULL, 0), MLA_OK);
    assert_true(mla_tiny_ring_is_copy(tiny));
    mla_tiny_ring_free(tiny);
}

static void test_example_builds_from_its_readme(void **state)
{
    (void)state;
    char command[8192];
    snprintf(command, sizeof command,
             "CC='%s' sh '%s/fuzz/plugin/example/build_from_readme.sh' '%s' '%s'", MLA_TEST_CC,
             MLA_TEST_PROJECT, MLA_TEST_PROJECT, directory);
    int built = system(command);
    assert_int_equal(built, 0);
    const struct mla_kernel *kernel = load_one(in_directory("example_plugin.so"), "example");
    check_example_on_ring(kernel);
    /* A bare name means the working directory. */
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(directory), 0);
    assert_true(load_one("example_plugin.so", "example") == kernel);
    assert_int_equal(chdir(before), 0);
}

/* ---- bad calls --------------------------------------------------------------------------------*/

/* Call the kernel in a child; returns the wait status, the child killed after a quarter second. */
static int call_in_child(const struct mla_kernel *kernel, const struct mla_ring_args *ring,
                         const struct mla_sparse_args *sparse)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit((ring ? kernel->ring(ring, NULL, 0) : kernel->sparse(sparse, NULL, 0)) == MLA_OK ? 0
                                                                                               : 1);
    }
    assert_true(child > 0);
    for (int i = 0; i < 25; i++) {
        if (waitpid(child, &status, WNOHANG) == child) {
            return status;
        }
        usleep(10000);
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void check_death(const char *what, const char *name, int expected_signal)
{
    size_t n = 0;
    const struct mla_kernel *kernel = load_one(bad(what), name);
    struct mla_tiny_ring *ring = mla_tiny_ring_new(&mla_tiny_ring_shapes(&n)[0].args);
    struct mla_sparse_args shape = mla_tiny_sparse_shapes(&n)[0].args;
    shape.queries = 1;
    struct mla_tiny_sparse *sparse = mla_tiny_sparse_new(&shape);
    int status = call_in_child(kernel, &ring->args, NULL);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), expected_signal);
    status = call_in_child(kernel, NULL, &sparse->args);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), expected_signal);
    mla_tiny_sparse_free(sparse);
    mla_tiny_ring_free(ring);
}

static void test_bad_calls_crash_and_hang(void **state)
{
    (void)state;
    check_death("call_crash", "bad-call-crash", SIGSEGV);
    check_death("call_hang", "bad-call-hang", SIGKILL);
}

static void test_bad_call_writes_its_input(void **state)
{
    (void)state;
    size_t n = 0;
    const struct mla_kernel *kernel = load_one(bad("writes_input"), "bad-writes-input");
    struct mla_tiny_ring *ring = mla_tiny_ring_new(&mla_tiny_ring_shapes(&n)[0].args);
    uint16_t before = ring->q[0][0];
    assert_int_equal(kernel->ring(&ring->args, NULL, 0), MLA_OK);
    assert_int_equal(ring->q[0][0], before ^ 0x8000);
    ring->q[0][0] = before;
    assert_int_equal(mla_tiny_ring_wrong(ring, 1e-12, false), 0);
    mla_tiny_ring_free(ring);
    struct mla_tiny_sparse *sparse = mla_tiny_sparse_new(&mla_tiny_sparse_shapes(&n)[0].args);
    before = sparse->q_lift[0];
    assert_int_equal(kernel->sparse(&sparse->args, NULL, 0), MLA_OK);
    assert_int_equal(sparse->q_lift[0], before ^ 0x8000);
    mla_tiny_sparse_free(sparse);
}

/* One element more behind the output than the call says, so that the write is legal here. */
static void test_bad_call_writes_past_its_output(void **state)
{
    (void)state;
    size_t n = 0;
    const struct mla_kernel *kernel = load_one(bad("writes_past"), "bad-writes-past");
    struct mla_tiny_ring *ring = mla_tiny_ring_new(&mla_tiny_ring_shapes(&n)[0].args);
    int64_t last = ring->args.ring_size - 1;
    uint16_t *longer = realloc(ring->out[last], (ring->out_n + 1) * sizeof(uint16_t));
    assert_non_null(longer);
    ring->out[last] = longer;
    longer[ring->out_n] = 0x1234;
    assert_int_equal(kernel->ring(&ring->args, NULL, 0), MLA_OK);
    assert_int_equal(longer[ring->out_n], 0x3f80);
    assert_int_equal(mla_tiny_ring_wrong(ring, 1e-12, false), 0);
    mla_tiny_ring_free(ring);
    struct mla_tiny_sparse *sparse = mla_tiny_sparse_new(&mla_tiny_sparse_shapes(&n)[0].args);
    longer = realloc(sparse->out, (sparse->out_n + 1) * sizeof(uint16_t));
    assert_non_null(longer);
    sparse->out = longer;
    sparse->args.out = longer;
    longer[sparse->out_n] = 0x1234;
    assert_int_equal(kernel->sparse(&sparse->args, NULL, 0), MLA_OK);
    assert_int_equal(longer[sparse->out_n], 0x3f80);
    mla_tiny_sparse_free(sparse);
}

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    static const char *const names[] = {
        "text.so",      "empty.so", "short.so",         "fifo.so",          "mla.h",
        "mla_kernel.h", "build.sh", "example_plugin.c", "example_plugin.o", "example_plugin.so"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unlink(in_directory(names[i]));
    }
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_descriptor_lists),
        cmocka_unit_test(test_files_that_are_no_plugin),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_bad_plugins_are_refused),
        cmocka_unit_test(test_hanging_plugin_is_given_up),
        cmocka_unit_test(test_ignored_children),
        cmocka_unit_test(test_example_is_right),
        cmocka_unit_test(test_example_builds_from_its_readme),
        cmocka_unit_test(test_bad_calls_crash_and_hang),
        cmocka_unit_test(test_bad_call_writes_its_input),
        cmocka_unit_test(test_bad_call_writes_past_its_output),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
