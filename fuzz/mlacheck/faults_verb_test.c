/* SPDX-License-Identifier: Apache-2.0
 *
 * faults_verb_test.c - `mlacheck faults` on planted tables: what it makes of a canary that lives, a control
 * that is wrong, a fault that cannot be reached, one that does no harm, one that crashes.
 *
 * The linker puts this file's tables in the place of the real ones (--wrap).
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fuzz/faults/plain.h"
#include "fuzz/mlacheck/faults.h"

volatile int mla_interrupted;

/* ---- tables ---- */

#define ROWS_MAX 4

struct planted {
    struct mla_fault rows[ROWS_MAX];
    size_t n;
};
static struct planted faults, controls, canaries;

const struct mla_fault *__real_mla_faults(size_t *n);
const struct mla_fault *__real_mla_fault_controls(size_t *n);
const struct mla_fault *__real_mla_fault_canaries(size_t *n);
const struct mla_fault *__wrap_mla_faults(size_t *n);
const struct mla_fault *__wrap_mla_fault_controls(size_t *n);
const struct mla_fault *__wrap_mla_fault_canaries(size_t *n);

const struct mla_fault *__wrap_mla_faults(size_t *n)
{
    *n = faults.n;
    return faults.rows;
}

const struct mla_fault *__wrap_mla_fault_controls(size_t *n)
{
    *n = controls.n;
    return controls.rows;
}

const struct mla_fault *__wrap_mla_fault_canaries(size_t *n)
{
    *n = canaries.n;
    return canaries.rows;
}

static void plant(struct planted *table, const char *name, const struct mla_kernel *kernel,
                  const char *hidden)
{
    static struct mla_kernel renamed[16];
    static size_t renamed_n;
    struct mla_kernel *own = &renamed[renamed_n++ % 16];
    *own = *kernel;
    own->name = name;
    assert_true(table->n < ROWS_MAX);
    table->rows[table->n++] = (struct mla_fault){.name = name,
                                                 .class = "M08_CAUSAL_OFFSET",
                                                 .reports = "",
                                                 .operations = MLA_FAULT_ON_RING,
                                                 .kernel = own,
                                                 .what = "Planted.",
                                                 .hidden = hidden};
}

static const struct mla_kernel *real_fault(const char *name)
{
    size_t n;
    const struct mla_fault *rows = __real_mla_faults(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].kernel;
    fail_msg("no fault %s", name);
    return NULL;
}

static const struct mla_kernel *right(void)
{
    size_t n;
    return __real_mla_fault_controls(&n)[0].kernel;
}

static const struct mla_kernel *canary(void)
{
    size_t n;
    return __real_mla_fault_canaries(&n)[0].kernel;
}

static int32_t marked(const struct mla_ring_args *args, char *message, size_t bytes)
{
    const struct mla_plain_variant fault = {MLA_FAULT_ROPE_IGNORED, MLA_PLAIN_ONLINE};
    (void)mla_plain_has(fault, MLA_FAULT_ROPE_IGNORED);
    return right()->ring(args, message, bytes);
}

static int32_t crashing(const struct mla_ring_args *args, char *message, size_t bytes)
{
    (void)args;
    (void)message;
    (void)bytes;
    (void)mla_plain_has((struct mla_plain_variant){MLA_FAULT_ROPE_IGNORED, MLA_PLAIN_ONLINE},
                        MLA_FAULT_ROPE_IGNORED);
    raise(SIGSEGV);
    return MLA_OK;
}

static int32_t shirking(const struct mla_ring_args *args, char *message, size_t bytes)
{
    (void)args;
    (void)snprintf(message, bytes, "not today");
    return MLA_ERR_UNSUPPORTED;
}

static struct mla_kernel kernel_of(int32_t (*ring)(const struct mla_ring_args *, char *, size_t))
{
    struct mla_kernel kernel = *right();
    kernel.ring = ring;
    return kernel;
}

static char folder[64];

static int setup(void **state)
{
    (void)state;
    faults.n = controls.n = canaries.n = 0;
    mla_interrupted = 0;
    snprintf(folder, sizeof folder, "/tmp/mla-faults-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    plant(&controls, "right", right(), NULL);
    plant(&canaries, "canary", canary(), NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    static const char *const names[] = {"x.db", "x.db-wal", "x.db-shm", "out"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder);
}

/* ---- the command ---- */

static char output[65536];

/* Its exit code; what it prints goes to `output`. */
static int call(const char *seconds, const char *kernel)
{
    char db[128], path[128];
    snprintf(db, sizeof db, "%s/x.db", folder);
    snprintf(path, sizeof path, "%s/out", folder);
    char *argv[] = {"faults", "--db", db,         "--json",       "--time", (char *)seconds,
                    "--jobs", "1",    "--kernel", (char *)kernel, NULL};
    fflush(NULL);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), own = dup(STDOUT_FILENO);
    assert_true(file >= 0 && own >= 0);
    dup2(file, STDOUT_FILENO);
    int code = mla_verb_faults(10, argv);
    fflush(NULL);
    dup2(own, STDOUT_FILENO);
    ssize_t n = pread(file, output, sizeof output - 1, 0);
    close(file);
    close(own);
    assert_true(n >= 0);
    output[n] = '\0';
    return code;
}

/* The last line. */
static const char *json(void)
{
    size_t n = strlen(output);
    assert_true(n > 0 && output[n - 1] == '\n');
    output[n - 1] = '\0';
    char *line = strrchr(output, '\n');
    return line == NULL ? output : line + 1;
}

/* ---- JSON, strictly: no spaces, no escapes, no duplicate keys ---- */

static const char *value_end(const char *at);

static const char *name_end(const char *at)
{
    if (*at != '"')
        return NULL;
    at += 1 + strcspn(at + 1, "\"\\\n");
    return *at == '"' ? at + 1 : NULL;
}

/* Members or elements up to the closing bracket; at stands behind the opening one. */
static const char *list_end(const char *at, char close, bool named)
{
    const char *keys[64];
    size_t keys_n = 0;
    if (*at == close)
        return at + 1;
    for (;; at++) {
        if (named) {
            const char *end = name_end(at);
            if (end == NULL || *end != ':' || keys_n == 64)
                return NULL;
            for (size_t i = 0; i < keys_n; i++)
                if (strncmp(keys[i], at, (size_t)(end - at)) == 0)
                    return NULL;
            keys[keys_n++] = at;
            at = end + 1;
        }
        at = value_end(at);
        if (at == NULL || (*at != ',' && *at != close))
            return NULL;
        if (*at == close)
            return at + 1;
    }
}

static const char *value_end(const char *at)
{
    static const char *const words[] = {"true", "false", "null"};
    char *end;
    if (*at == '{' || *at == '[')
        return list_end(at + 1, *at == '{' ? '}' : ']', *at == '{');
    if (*at == '"')
        return name_end(at);
    for (size_t i = 0; i < 3; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0)
            return at + strlen(words[i]);
    if (strspn(at, "-0123456789") == 0)
        return NULL;
    (void)strtod(at, &end);
    return end;
}

static void expect_json(const char *line, const char *beginning)
{
    const char *end = value_end(line);
    if (end == NULL || *end != '\0')
        fail_msg("no JSON: %s", line);
    if (strncmp(line, beginning, strlen(beginning)) != 0)
        fail_msg("%s\n  does not begin with %s", line, beginning);
}

static void test_the_checker(void **state)
{
    (void)state;
    static const char *const bad[] = {"{\"a\":1,\"a\":2}", "{\"a\":}", "{a:1}", "[1,]", "[1",
                                      "{\"a\" :1}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_null(value_end(bad[i]));
    expect_json("{\"a\":[1,\"x\"],\"b\":{},\"c\":-1.5e-3,\"d\":true}", "{\"a\"");
}

/* ---- outcomes ---- */

static void test_killed(void **state)
{
    (void)state;
    plant(&faults, "deaf", real_fault("rope-ignored"), NULL);
    plant(&faults, "causal", real_fault("causal-one-more"), NULL);
    assert_int_equal(call("600", "fault:[!r]*"), MLA_EXIT_PASSED);
    assert_non_null(strstr(output, "2 faults: 2 killed"));
    assert_non_null(strstr(output, "1 of 1 classes"));
    const char *line = json();
    expect_json(line, "{\"faults\":2,\"killed\":2,\"survived\":[],\"not_applied\":[],\"honest\":0,"
                      "\"accused\":0,\"canary\":true,\"median_execs\":{\"deaf\":");
    assert_non_null(strstr(line, "\"criteria\":{\"ring_full\":"));
    assert_non_null(strstr(line, "\"detectors\":{\"tier1\":2,"));
    assert_non_null(strstr(line, "\"random\":false"));
}

static void test_canary_lives(void **state)
{
    (void)state;
    plant(&faults, "rope", real_fault("rope-ignored"), NULL);
    plant(&canaries, "mute", right(), NULL);
    assert_int_equal(call("600", "fault:*"), MLA_EXIT_ENVIRONMENT);
    assert_non_null(strstr(output, "VOID the canary fault:mute lives on ring"));
    const char *line = json();
    expect_json(line, "{\"faults\":1,\"killed\":0,\"survived\":[],\"not_applied\":[],"
                      "\"honest\":0,\"accused\":0,\"canary\":false,\"median_execs\":{}");
    assert_non_null(strstr(line, "\"not_run\":[\"rope\"],\"idle_controls\":1,"));
}

/* It must die on every case, not only sometimes. */
static void test_canary_lives_now_and_then(void **state)
{
    (void)state;
    canaries.n = 0;
    plant(&canaries, "drowsy", real_fault("keys-past-end"), NULL);
    assert_int_equal(call("600", "fault:*"), MLA_EXIT_ENVIRONMENT);
    assert_non_null(strstr(output, "VOID"));
}

static void test_control_accused(void **state)
{
    (void)state;
    plant(&controls, "wrong", real_fault("rope-ignored"), NULL);
    plant(&faults, "causal", real_fault("causal-one-more"), NULL);
    assert_int_equal(call("600", "fault:[!r]*"), MLA_EXIT_FAULT);
    assert_non_null(strstr(output, "ACCUSED ring/fault:wrong fail-certain"));
    assert_non_null(strstr(output, "repro: mlacheck run --kernel fault:wrong --case 'ring v="));
    const char *line = json();
    expect_json(line, "{\"faults\":1,\"killed\":1,\"survived\":[],\"not_applied\":[],\"honest\":1,"
                      "\"accused\":1,\"canary\":true,");
    assert_non_null(strstr(line, "\"accused_controls\":[\"wrong\"]"));
}

static void test_control_passes(void **state)
{
    (void)state;
    assert_int_equal(call("1", "fault:right"), MLA_EXIT_PASSED);
    const char *line = json();
    expect_json(line, "{\"faults\":0,\"killed\":0,\"survived\":[],\"not_applied\":[],\"honest\":1,"
                      "\"accused\":0,\"canary\":true,");
    assert_non_null(strstr(line, "\"accused_controls\":[]"));
}

/* A control of which nothing was judged has shown nothing. */
static void test_control_idle(void **state)
{
    (void)state;
    struct mla_kernel idle = kernel_of(shirking);
    idle.promises &= ~(uint64_t)(MLA_PROMISE_REFUSES | MLA_PROMISE_INDEX_CHECKED);
    plant(&controls, "shirker", &idle, NULL);
    plant(&faults, "causal", real_fault("causal-one-more"), NULL);
    assert_int_equal(call("60", "fault:*"), MLA_EXIT_ENVIRONMENT);
    assert_non_null(strstr(output, "not judged: the control shirker on ring"));
    const char *line = json();
    expect_json(line, "{\"faults\":1,\"killed\":1,\"survived\":[],\"not_applied\":[],\"honest\":1,"
                      "\"accused\":0,\"canary\":true,");
    assert_non_null(strstr(line, "\"idle_controls\":1,\"accused_controls\":[]"));
}

static void test_survivors(void **state)
{
    (void)state;
    struct mla_kernel harmless = kernel_of(marked);
    plant(&faults, "unreached", right(), NULL);
    assert_int_equal(call("1", "fault:unreached"), MLA_EXIT_FAULT);
    assert_non_null(strstr(output, "not applied: unreached on ring"));
    const char *line = json();
    expect_json(line,
                "{\"faults\":1,\"killed\":0,\"survived\":[],\"not_applied\":[\"unreached\"],");
    assert_non_null(strstr(line, "\"not_run\":[]"));
    plant(&faults, "harmless", &harmless, NULL);
    assert_int_equal(call("1", "fault:harmless"), MLA_EXIT_FAULT);
    assert_non_null(strstr(output, "survived: harmless on ring"));
    expect_json(json(), "{\"faults\":1,\"killed\":0,\"survived\":[\"harmless\"],\"not_applied\":[],"
                        "\"honest\":0,\"accused\":0,\"canary\":true,\"median_execs\":{},"
                        "\"median_seconds\":{},");
}

/* Time that is up before it begins is no proof of anything. */
static void test_no_time(void **state)
{
    (void)state;
    plant(&faults, "rope", real_fault("rope-ignored"), NULL);
    assert_int_equal(call("0.000001", "fault:rope"), MLA_EXIT_FAULT);
    assert_non_null(strstr(output, "not run: rope on ring"));
    assert_non_null(strstr(output, "0 not applied, 1 not run"));
    const char *line = json();
    expect_json(line, "{\"faults\":1,\"killed\":0,\"survived\":[],\"not_applied\":[],");
    assert_non_null(strstr(line, "\"not_run\":[\"rope\"]"));
}

static void test_crash(void **state)
{
    (void)state;
    struct mla_kernel fatal = kernel_of(crashing);
    plant(&faults, "fatal", &fatal, NULL);
    assert_int_equal(call("600", "fault:fatal"), MLA_EXIT_PASSED);
    const char *line = json();
    expect_json(line, "{\"faults\":1,\"killed\":1,");
    assert_non_null(strstr(line, "\"median_execs\":{\"fatal\":1}"));
    assert_non_null(strstr(line, "\"crash\":1}"));
    assert_non_null(strstr(line, "\"ring_full\":0,")); /* a published rule saw no output */
}

static void test_hidden(void **state)
{
    (void)state;
    plant(&faults, "shy", right(), "Nothing differs.");
    assert_int_equal(call("600", "fault:shy"), MLA_EXIT_PASSED);
    assert_non_null(strstr(output, "Nothing differs."));
    const char *line = json();
    expect_json(line, "{\"faults\":0,\"killed\":0,");
    assert_non_null(strstr(line, "\"hidden\":1,\"exposed\":[]"));
    plant(&faults, "seen", real_fault("rope-ignored"), "Nobody looks.");
    assert_int_equal(call("600", "fault:s*"), MLA_EXIT_FAULT);
    assert_non_null(strstr(output, "exposed: seen on ring"));
    line = json();
    expect_json(line, "{\"faults\":0,\"killed\":0,");
    assert_non_null(strstr(line, "\"hidden\":2,\"exposed\":[\"seen\"]"));
}

/* A mark that is not set where the fault does its harm. */
static void test_unmarked(void **state)
{
    (void)state;
    plant(&faults, "unmarked", canary(), NULL);
    assert_int_equal(call("600", "fault:unmarked"), MLA_EXIT_FAULT);
    assert_non_null(strstr(output, "unmarked: unmarked on ring"));
}

static void interrupt(int signal_number)
{
    (void)signal_number;
    mla_interrupted = 1;
}

/* Right, and after some calls it presses Ctrl-C where the command runs. */
static int32_t interrupting(const struct mla_ring_args *args, char *message, size_t bytes)
{
    static int calls;
    if (++calls == 20)
        kill(getppid(), SIGUSR1);
    return marked(args, message, bytes);
}

static void test_interrupted(void **state)
{
    (void)state;
    struct mla_kernel loud = kernel_of(interrupting);
    plant(&faults, "deaf", real_fault("rope-ignored"), NULL);
    plant(&faults, "harmless", &loud, NULL);
    plant(&faults, "late", real_fault("rope-ignored"), NULL);
    (void)signal(SIGUSR1, interrupt);
    assert_int_equal(call("600", "fault:[dhl]*"), MLA_EXIT_INTERRUPTED);
    assert_non_null(strstr(output, "; interrupted"));
    const char *line = json();
    expect_json(line, "{\"faults\":3,\"killed\":1,\"survived\":[\"harmless\"],\"not_applied\":[],");
    assert_non_null(strstr(line, "\"not_run\":[\"late\"]"));
    struct mla_options o = {.words_n = 0};
    char path[128], *rows = NULL;
    snprintf(path, sizeof path, "%s/x.db", folder);
    o.db = path;
    struct mla_store *store = mla_options_read_store(&o, "test");
    assert_non_null(store);
    assert_int_equal(mla_store_view_json(store, MLA_VIEW_FAULTS, NULL, &rows), MLA_STORE_OK);
    assert_non_null(strstr(rows, "\"fault\":\"deaf\""));
    assert_non_null(strstr(rows, "\"fault\":\"harmless\""));
    assert_non_null(strstr(rows, "\"outcome\":\"survived\""));
    assert_null(strstr(rows, "\"late\"")); /* it never began */
    free(rows);
    mla_store_close(store);
}

static void test_median(void **state)
{
    (void)state;
    double odd[] = {3, 1, 2}, even[] = {4, INFINITY, 3, 1}, one[] = {5};
    assert_true(mla_faults_median(odd, 3) == 2);
    assert_true(mla_faults_median(even, 4) == 3);
    assert_true(mla_faults_median(one, 1) == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_checker),
        cmocka_unit_test(test_median),
        cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_canary_lives, setup, teardown),
        cmocka_unit_test_setup_teardown(test_canary_lives_now_and_then, setup, teardown),
        cmocka_unit_test_setup_teardown(test_control_accused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_control_passes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_control_idle, setup, teardown),
        cmocka_unit_test_setup_teardown(test_survivors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_crash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hidden, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unmarked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_interrupted, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
