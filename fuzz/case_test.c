/* SPDX-License-Identifier: Apache-2.0
 *
 * case_test.c - lines, ids, drawing, mutation and decoding of cases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/case.h"
#include "fuzz/case_fields.h"
#include "fuzz/family.h"
#include "fuzz/indices.h"

static const char ring_line[] =
    "ring v=1 R=2 B=1 H=4 Nq=64 Nk=256 Bk=1 G=512 Bg=1 DH=64 DV=32 L=96 scale=0x1p-3 balanced=0 "
    "slot=- P=32 topology=linear links=2 q_chunk=32 k_chunk=64 threads=0 family=profile "
    "region=rising amount=3 poison=inf future=- stats=1 seed=7 rows=8 row_seed=9 slow=0 set=- "
    "put=kv.1@37:3fc0;q.0@0:8000";
/* printf '%s' "$ring_line" | sha256sum */
static const char ring_id[] = "6fb71686c4022071ae307f1a4a33d2565ecc2137105e770a4c5c311fb7a6311e";

static void parse(const char *line, struct mla_case *test)
{
    char error[MLA_CASE_ERROR_MAX] = "";
    if (mla_case_parse(line, strlen(line), test, error) != MLA_OK)
        fail_msg("%s", error);
}

static void test_line_means_what_it_says(void **state)
{
    struct mla_case test;
    char error[MLA_CASE_ERROR_MAX];
    (void)state;
    parse(ring_line, &test);
    assert_int_equal(test.op, MLA_OP_RING);
    assert_int_equal(test.ring.ring_size, 2);
    assert_int_equal(test.ring.kv_rows, 256);
    assert_true(test.ring.has_scale && test.ring.scale == 0.125f);
    assert_false(test.ring.has_slot);
    assert_true(test.ring.has_prior && test.ring.kv_actual_isl == 32);
    assert_int_equal(test.ring.topology, MLA_TOPOLOGY_LINEAR);
    assert_int_equal(test.region, MLA_REGION_RISING);
    assert_int_equal(test.put_n, 2);
    assert_string_equal(test.put[0].tensor, "kv");
    assert_int_equal(test.put[0].rank, 1);
    assert_int_equal(test.put[0].at, 37);
    assert_int_equal(test.put[0].bits, 0x3fc0);
    assert_null(mla_case_problem(&test, INT64_MAX, error));
}

static void test_line_round_trip_and_id(void **state)
{
    struct mla_case test;
    char line[MLA_CASE_LINE_MAX], id[MLA_CASE_ID_BYTES];
    (void)state;
    parse(ring_line, &test);
    assert_int_equal(mla_case_format(&test, line), strlen(ring_line));
    assert_string_equal(line, ring_line);
    mla_case_id(&test, id);
    assert_string_equal(id, ring_id);
}

/* Every single damaged byte: either refused, or another canonical case with another line. */
/* Version 2 adds `bits` at the end; a line that keeps all of them stays one of version 1. */
static void test_few_bits_are_version_two(void **state)
{
    struct mla_case test, again;
    char line[MLA_CASE_LINE_MAX], old[MLA_CASE_LINE_MAX], error[MLA_CASE_ERROR_MAX];
    (void)state;
    parse(ring_line, &test);
    assert_int_equal(test.bits, MLA_CASE_BITS_ALL);
    mla_case_format(&test, old);
    mla_case_set_bits(&test, 3);
    mla_case_format(&test, line);
    assert_memory_equal(line, "ring v=2 R=2", 12);
    assert_string_equal(strstr(line, "q.0@"), "q.0@0:8000 bits=3");
    parse(line, &again);
    assert_int_equal(again.bits, 3);
    assert_null(mla_case_problem(&again, INT64_MAX, error));
    mla_case_set_bits(&again, MLA_CASE_BITS_ALL);
    mla_case_format(&again, line);
    assert_string_equal(line, old);
}

/* Version 3 adds `data`: a file in the recipe's place, which no search may change the shape of. */
static void test_a_file_is_version_three(void **state)
{
    static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    struct mla_case test, again;
    char line[MLA_CASE_LINE_MAX], old[MLA_CASE_LINE_MAX], error[MLA_CASE_ERROR_MAX];
    (void)state;
    mla_case_init(&test, MLA_OP_SPARSE);
    mla_case_format(&test, old);
    mla_case_set_data(&test, hash);
    size_t n = mla_case_format(&test, line);
    assert_memory_equal(line, "sparse v=3 S=1", 14);
    assert_non_null(strstr(line, " put=- bits=8 data=file:0123456789abcdef"));
    parse(line, &again);
    assert_string_equal(again.data, hash);
    assert_null(mla_case_problem(&again, INT64_MAX, error));
    mla_case_decode((const uint8_t *)line, n, MLA_OP_SPARSE, false, &again);
    assert_string_equal(again.data, "");
    const char *wrong[] = {"file:0123456789ABCDEF", "file:0123", "disk:0123456789abcdef", "-"};
    for (int i = 0; i < 4; i++) {
        snprintf(strstr(line, "data="), 100, "data=%s", wrong[i]);
        assert_int_equal(mla_case_parse(line, strlen(line), &again, error), MLA_ERR_PARAM);
        assert_non_null(strstr(error, "data"));
    }
    again = test; /* coins would be the recipe's */
    again.family = mla_family_find("profile");
    assert_false(mla_case_has_sign_coins(&again));
    assert_non_null(mla_case_problem(&again, INT64_MAX, error));
    mla_case_set_bits(&test, 3);
    assert_non_null(mla_case_problem(&test, INT64_MAX, error));
    mla_case_set_data(&test, "");
    assert_int_equal(test.version, 2);
    mla_case_set_bits(&test, MLA_CASE_BITS_ALL);
    mla_case_format(&test, line);
    assert_string_equal(line, old);
}

static void test_damaged_lines_are_refused(void **state)
{
    char line[sizeof ring_line], again[MLA_CASE_LINE_MAX], error[MLA_CASE_ERROR_MAX];
    static const char bytes[] = {'0', '9', ' ', '=', 'x', '-', ';', '\0', '\n', '\xff'};
    int refused_n = 0;
    (void)state;
    for (size_t i = 0; i < sizeof ring_line - 1; i++)
        for (size_t k = 0; k < sizeof bytes; k++) {
            struct mla_case test;
            memcpy(line, ring_line, sizeof line);
            line[i] = bytes[k];
            error[0] = '\0';
            if (mla_case_parse(line, sizeof line - 1, &test, error) != MLA_OK) {
                refused_n++;
                assert_true(error[0] != '\0');
                continue;
            }
            assert_int_equal(mla_case_format(&test, again), sizeof line - 1);
            assert_memory_equal(again, line, sizeof line - 1);
        }
    assert_true(refused_n > 2000);
}

static void refused(const char *line, const char *names)
{
    struct mla_case test;
    char error[MLA_CASE_ERROR_MAX] = "";
    assert_int_equal(mla_case_parse(line, strlen(line), &test, error), MLA_ERR_PARAM);
    if (strstr(error, names) == NULL)
        fail_msg("'%s' does not name '%s'", error, names);
}

static void test_refusals_name_the_field(void **state)
{
    char line[sizeof ring_line + 8];
    (void)state;
    refused("", "op");
    refused("rink v=1", "op");
    refused("ring", "'v'");
    refused("ring v=4 R=1", "v = '4'");
    refused("ring v=0 R=1", "v = '0'");
    refused("ring R=2", "'v'");
    snprintf(line, sizeof line, "%s ", ring_line); /* a field of nothing after the last */
    refused(line, "put");
    static const char *const bits[] = {"", " bits=0", " bits=8", " bits=+1"}; /* 8 is v=1 */
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof line, "%s%s", ring_line, bits[i]);
        line[strlen("ring v=")] = '2';
        refused(line, "bits");
    }
    snprintf(line, sizeof line, "%.*s", (int)(strstr(ring_line, " put") - ring_line), ring_line);
    refused(line, "'put'");
    memcpy(line, ring_line, sizeof ring_line);
    memcpy(strstr(line, "R=2"), "R=+", 3);
    refused(line, "R");
    memcpy(line, ring_line, sizeof ring_line);
    memcpy(strstr(line, "links=2"), "links=\t", 7);
    refused(line, "links");
    memcpy(line, ring_line, sizeof ring_line);
    memcpy(strstr(line, "region=rising"), "region=rosing", 13);
    refused(line, "region");
}

static void test_problems_are_found(void **state)
{
    struct mla_case test;
    char error[MLA_CASE_ERROR_MAX];
    (void)state;
    parse(ring_line, &test);
    test.ring.logical_n = 513;
    assert_non_null(mla_case_problem(&test, INT64_MAX, error));
    assert_non_null(strstr(error, "logical_n"));
    parse(ring_line, &test);
    assert_non_null(mla_case_problem(&test, 1000, error));
    assert_non_null(strstr(error, "bytes"));
    test.rows = 0; /* tensors fit, the truths of all rows do not */
    assert_non_null(mla_case_problem(&test, mla_case_bytes(&test), error));
    assert_non_null(strstr(error, "rows = 0"));
    test.rows = 1;
    assert_null(mla_case_problem(&test, mla_case_bytes(&test), error));
    test.region = MLA_REGION_OUTLIER; /* not one of family profile's */
    assert_non_null(mla_case_problem(&test, INT64_MAX, error));
    assert_non_null(strstr(error, "region"));
    mla_case_init(&test, MLA_OP_SPARSE);
    test.sparse.topk = 200;
    assert_non_null(mla_case_problem(&test, INT64_MAX, error));
    assert_non_null(strstr(error, "topk"));
    mla_case_init(&test, MLA_OP_SPARSE);
    test.sparse.keys = INT64_MAX;
    assert_non_null(mla_case_problem(&test, INT64_MAX, error));
}

/* A replaced entry that a row reads must be a row of the cache: else the call would have to be refused,
 * and a kernel that refuses it be accused. Slots of the tiled layout that no row has may hold anything. */
static void test_replaced_entry_is_a_cache_row(void **state)
{
    struct mla_case test;
    char error[MLA_CASE_ERROR_MAX];
    (void)state;
    mla_case_init(&test, MLA_OP_SPARSE);
    test.sparse.keys = 180;
    test.put_n = 1;
    for (uint32_t bits = 178; bits < 182; bits++) {
        test.put[0] = (struct mla_override){"topk_indices", 0, 3, bits};
        const char *problem = mla_case_problem(&test, INT64_MAX, error);
        assert_true((problem == NULL) == (bits < 180));
        if (problem != NULL)
            assert_non_null(strstr(error, "0 .. 179"));
    }
    test.put[0].bits = UINT32_MAX;
    assert_non_null(mla_case_problem(&test, INT64_MAX, error));
    assert_non_null(strstr(error, "-1 is no row"));
    test.sparse.topk_tiled = 1;
    assert_non_null(mla_case_problem(&test, INT64_MAX, error));
    test.put[0].at = mla_indices_elements(&test.sparse) - 1; /* of query row 127 */
    assert_null(mla_case_problem(&test, INT64_MAX, error));
}

/* A drawn or mutated case is valid, small, and survives its own line. */
static void check_sound(const struct mla_case *test)
{
    struct mla_case again;
    char line[MLA_CASE_LINE_MAX], error[MLA_CASE_ERROR_MAX], second[MLA_CASE_LINE_MAX];
    mla_case_format(test, line);
    const char *problem = mla_case_problem(test, (int64_t)1 << 30, error);
    if (problem != NULL)
        fail_msg("%s: %s", problem, line);
    parse(line, &again);
    mla_case_format(&again, second);
    assert_string_equal(line, second);
    /* 264 rows, each with a list of 128, 16 heads, 1024 + 128 columns: lists count whole here, and of
     * so many rows most is dropped */
    if (mla_case_work(test) > INT64_C(264) * 128 * 16 * 1152)
        fail_msg("too large: %s", line);
}

static void test_draws_are_valid_and_repeat(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++)
        for (uint64_t i = 0; i < 20000; i++) {
            struct mla_rng rng = {i, 0}, copy = {i, 0};
            struct mla_case test, second;
            char a[MLA_CASE_LINE_MAX], b[MLA_CASE_LINE_MAX];
            mla_case_draw(&test, (enum mla_op)op, &rng);
            mla_case_draw(&second, (enum mla_op)op, &copy);
            mla_case_format(&test, a);
            mla_case_format(&second, b);
            assert_string_equal(a, b);
            check_sound(&test);
        }
}

static void test_any_bytes_are_some_case(void **state)
{
    uint8_t bytes[64];
    struct mla_case test, again;
    (void)state;
    for (uint64_t i = 0; i < 3000; i++) {
        size_t n = i % sizeof bytes;
        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)mla_number_at(i, k, 0, 0);
        mla_case_decode(bytes, n, (enum mla_op)(i % MLA_OP_N), false, &test);
        assert_int_equal(test.op, i % MLA_OP_N);
        check_sound(&test);
        mla_case_decode(bytes, n, (enum mla_op)(i % MLA_OP_N), false, &again);
        char a[MLA_CASE_LINE_MAX], b[MLA_CASE_LINE_MAX];
        mla_case_format(&test, a);
        mla_case_format(&again, b);
        assert_string_equal(a, b);
    }
    mla_case_decode((const uint8_t *)ring_line, strlen(ring_line), MLA_OP_RING, false, &test);
    char line[MLA_CASE_LINE_MAX];
    mla_case_format(&test, line);
    assert_string_equal(line, ring_line);
    mla_case_decode((const uint8_t *)ring_line, strlen(ring_line), MLA_OP_SPARSE, false, &test);
    assert_int_equal(test.op, MLA_OP_SPARSE); /* another operation's line is only bytes */
}

static void test_reject_cases_always_break_a_rule(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 5000; i++) {
        struct mla_case test;
        uint8_t bytes[8];
        memcpy(bytes, &i, sizeof bytes);
        mla_case_decode(bytes, sizeof bytes, MLA_OP_RING, true, &test);
        assert_true(test.set_n > 0);
        check_sound(&test);
    }
}

/* An array that is null has no entries to set: such a pair could not be made. */
static void test_entry_of_a_null_array(void **state)
{
    char error[MLA_CASE_ERROR_MAX];
    struct mla_case test;
    (void)state;
    mla_case_init(&test, MLA_OP_RING);
    test.set_n = 2;
    test.set[0] = (struct mla_violation){"kv", 0, "null"};
    test.set[1] = (struct mla_violation){"kv[0]", 0, "null"};
    assert_non_null(mla_case_problem(&test, INT64_MAX, error));
    assert_non_null(strstr(error, "kv is null"));
    test.set[1] = (struct mla_violation){"gathered[0]", 0, "null"};
    assert_null(mla_case_problem(&test, INT64_MAX, error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_means_what_it_says),
        cmocka_unit_test(test_line_round_trip_and_id),
        cmocka_unit_test(test_few_bits_are_version_two),
        cmocka_unit_test(test_a_file_is_version_three),
        cmocka_unit_test(test_damaged_lines_are_refused),
        cmocka_unit_test(test_refusals_name_the_field),
        cmocka_unit_test(test_problems_are_found),
        cmocka_unit_test(test_replaced_entry_is_a_cache_row),
        cmocka_unit_test(test_draws_are_valid_and_repeat),
        cmocka_unit_test(test_any_bytes_are_some_case),
        cmocka_unit_test(test_reject_cases_always_break_a_rule),
        cmocka_unit_test(test_entry_of_a_null_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
