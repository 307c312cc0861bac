/* SPDX-License-Identifier: Apache-2.0
 *
 * scratch_test.c - sizes that cannot be had are refused, others are aligned and large enough.
 */
#include "impl/scratch.h"

#include "impl/attend.h"
#include "impl/test_data.h"

#include <stdbool.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Products that wrap to little or nothing, a sum that does, and a size beyond any object's. */
static void test_impossible(void **state)
{
    static const struct {
        int64_t n;
        size_t bytes;
    } sizes[] = {
        {INT64_MAX, 1},
        {INT64_MAX, 2},
        {INT64_MAX, 4},
        {INT64_MAX, SIZE_MAX},
        {INT64_C(1) << 62, 4},
        {INT64_C(1) << 61, 8},
        {1, SIZE_MAX},
        {1, SIZE_MAX - MLA_SCRATCH_ALIGN + 1},
        {1, (size_t)PTRDIFF_MAX},
        {-1, 1},
        {INT64_MIN, 4},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        void *memory = mla_scratch_alloc(sizes[i].n, sizes[i].bytes);
        const bool is_null = memory == NULL;
        free(memory);
        if (!is_null) {
            fail_msg("size %d was granted", (int)i);
        }
    }
}

static void test_possible(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 200; n++) {
        unsigned char *memory = mla_scratch_alloc(n, 4);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        memset(memory, 1, (size_t)n * 4); /* a sanitizer would object */
        free(memory);
    }
}

/* The kernels' own sizes, whose products would wrap to nothing, give 0. */
static void test_kernel_scratch(void **state)
{
    const struct mla_attend_shape wide = {.main_n = INT64_C(1) << 62, .value_n = 32, .keys_n = 32};
    const struct mla_attend_shape deep = {.main_n = 64, .value_n = 32, .keys_n = INT64_C(1) << 62};
    const struct mla_attend_shape usual = {.main_n = 64, .value_n = 32, .keys_n = 32};
    const struct mla_attend_shape tall = {.main_n = 64, .value_n = INT64_C(1) << 57, .keys_n = 32};
    static const struct mla_attend *const attends[] = {&mla_attend_scalar, &mla_attend_plain,
                                                       &mla_attend_nki, &mla_attend_ttnn};
    (void)state;
    for (size_t i = 0; i < COUNT(attends); i++) {
        assert_int_equal(attends[i]->scratch_bytes(&wide), 0);
        assert_int_equal(attends[i]->scratch_bytes(&deep), 0);
        assert_true(attends[i]->scratch_bytes(&usual) >= 4 * (32 * 64 + 32 * 32));
    }
    assert_int_equal(mla_attend_ttnn.scratch_bytes(&tall), 0); /* the only one with values in it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_impossible),
        cmocka_unit_test(test_possible),
        cmocka_unit_test(test_kernel_scratch),
    };
    return cmocka_run_group_tests_name("scratch", tests, NULL, NULL);
}
