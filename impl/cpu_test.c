/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_test.c - the processor's features against what the compiler's own runtime finds, and, on
 * Linux, against the kernel's list.
 */
#include "impl/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Is `name` a word of the first line of /proc/cpuinfo that begins with "flags"? -1: no such line. */
static int is_listed(const char *name)
{
    static char line[16384];
    char word[64];
    int found = -1;
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(word, sizeof word, " %s ", name);
    while (file != NULL && found < 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "flags", 5) == 0) {
            line[strcspn(line, "\n")] = ' ';
            found = strstr(line, word) != NULL;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

static int are_listed(const char *const *names)
{
    int all = 1;
    for (; *names != NULL; names++) {
        const int one = is_listed(*names);
        if (one < 0) {
            return -1;
        }
        all = all && one;
    }
    return all;
}

static void test_listed(void **state)
{
    static const char *const avx2[] = {"avx2", "fma", NULL};
    static const char *const avx512bf16[] = {"avx512f",  "avx512bw",    "avx512dq",
                                             "avx512vl", "avx512_bf16", NULL};
    (void)state;
    if (are_listed(avx2) < 0) {
        print_message("no list of flags here: nothing compared\n");
        skip();
    }
    assert_int_equal(mla_cpu_has_avx2(), are_listed(avx2));
    assert_int_equal(mla_cpu_has_avx512bf16(), are_listed(avx512bf16));
    print_message("AVX2 %d, AVX512-BF16 %d\n", mla_cpu_has_avx2(), mla_cpu_has_avx512bf16());
}

static void test_runtime(void **state)
{
    (void)state;
#if defined(__x86_64__)
    assert_int_equal(mla_cpu_has_avx2(),
                     __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0);
    assert_int_equal(mla_cpu_has_avx512bf16(), __builtin_cpu_supports("avx512bw") != 0 &&
                                                   __builtin_cpu_supports("avx512dq") != 0 &&
                                                   __builtin_cpu_supports("avx512vl") != 0 &&
                                                   __builtin_cpu_supports("avx512bf16") != 0);
#else
    assert_false(mla_cpu_has_avx2());
    assert_false(mla_cpu_has_avx512bf16());
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listed),
        cmocka_unit_test(test_runtime),
    };
    return cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
}
