/* SPDX-License-Identifier: Apache-2.0
 *
 * target_test.c - what a target tells its engine: the extra counters, in each arm, and mutations.
 *
 * A target reads its environment once, so every arm is a process of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fuzz/case_fields.h"
#include "fuzz/family.h"
#include "fuzz/guidance.h"
#include "fuzz/search.h"
#include "fuzz/target.h"

#ifdef __linux__
/* As the engine finds them. */
extern uint8_t __start___libfuzzer_extra_counters, __stop___libfuzzer_extra_counters;
#endif

/* In place of the engine's: raises the first digit of a line, and counts. */
static int engine_mutations;
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    assert_true(size <= max_size);
    engine_mutations++;
    for (size_t i = 0; i < size; i++)
        if (data[i] >= '1' && data[i] < '9') {
            data[i]++;
            break;
        }
    return size;
}

static size_t line_of(uint64_t seed, uint8_t line[MLA_CASE_LINE_MAX])
{
    struct mla_case test;
    struct mla_rng rng = {mla_number_mix(seed), 0};
    mla_case_draw(&test, MLA_OP_RING, &rng);
    return mla_case_format(&test, (char *)line);
}

static size_t count_set(void)
{
    size_t n = 0;
#ifdef __linux__
    for (const uint8_t *c = &__start___libfuzzer_extra_counters;
         c < &__stop___libfuzzer_extra_counters; c++)
        n += *c == 1;
#endif
    return n;
}

/* Run three inputs in a process of their own; returns counters set (at most 100), or 200 + status. */
static int run_arm(const char *arm)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("MLACHECK_GUIDANCE", arm, 1);
        for (uint64_t i = 0; i < 3; i++) {
            uint8_t line[MLA_CASE_LINE_MAX];
            size_t n = line_of(i, line);
            mla_target_run(line, n, MLA_OP_RING, false);
        }
        size_t n = count_set();
        _exit(n > 100 ? 100 : (int)n);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

static void test_counters(void **state)
{
    (void)state;
#ifdef __linux__
    uintptr_t start = (uintptr_t)&__start___libfuzzer_extra_counters;
    uintptr_t stop = (uintptr_t)&__stop___libfuzzer_extra_counters;
    assert_int_equal(start % 64, 0);
    assert_int_equal(stop - start, MLA_GUIDANCE_COUNTERS + 64);
    assert_in_range(run_arm("on"), 7, 100);
    assert_int_equal(run_arm("off"), 1); /* that something ran at all */
    assert_int_equal(run_arm("random"), 1);
#endif
    assert_int_equal(run_arm("sideways"), 3);
}

/* All results are cases; the engine's own mutator has its share; coins are thrown anew. */
/* Integer and named fields in which two cases differ. */
static int differing(const struct mla_case *a, const struct mla_case *b)
{
    size_t fields_n;
    int n = 0;
    const struct mla_field *fields = mla_case_fields((enum mla_op)a->op, &fields_n);
    for (size_t i = 0; i < fields_n; i++) {
        size_t bytes = fields[i].kind == MLA_FIELD_INT    ? 8
                       : fields[i].kind == MLA_FIELD_NAME ? 4
                                                          : 0;
        n += memcmp((const char *)a + fields[i].offset, (const char *)b + fields[i].offset,
                    bytes) != 0;
    }
    return n;
}

static void test_mutations(void **state)
{
    char error[MLA_CASE_ERROR_MAX];
    int anew = 0; /* of 600: those of a fresh draw, and the few that took its geometry */
    (void)state;
    for (unsigned i = 0; i < 800; i++) {
        uint8_t line[MLA_CASE_LINE_MAX], other[MLA_CASE_LINE_MAX], out[MLA_CASE_LINE_MAX];
        struct mla_case before, after;
        size_t n = line_of(i, line), other_n = line_of(i + 7, other);
        assert_int_equal(mla_case_parse((const char *)line, n, &before, error), MLA_OK);
        if (i % 4 == 0) {
            n = mla_target_cross(line, n, other, other_n, out, sizeof out, i, MLA_OP_RING, false);
        } else {
            memcpy(out, line, n);
            n = mla_target_mutate(out, n, sizeof out, i, MLA_OP_RING, false);
        }
        if (mla_case_parse((const char *)out, n, &after, error) != MLA_OK ||
            mla_case_problem(&after, (int64_t)1 << 30, error) != NULL)
            fail_msg("%s", error);
        if (mla_case_has_sign_coins(&after))
            assert_true(after.seed != before.seed);
        anew += i % 4 != 0 && differing(&before, &after) >= 10;
    }
    assert_in_range(anew, 600 / MLA_SEARCH_FRESH, 2 * 600 / MLA_SEARCH_FRESH);
    const int varied =
        600 - 600 / MLA_SEARCH_FRESH; /* of 600 mutations; a sixteenth by the engine */
    assert_in_range(engine_mutations, varied / 16 / 2, varied / 16 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
