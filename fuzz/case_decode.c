/* SPDX-License-Identifier: Apache-2.0
 *
 * case_decode.c - any bytes to some case: a usable line to itself, anything else to a draw.
 */
#include "fuzz/case.h"

/* FNV-1a, the seed of a draw from arbitrary bytes. */
static uint64_t hash_bytes(const uint8_t *bytes, size_t bytes_n)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes_n; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

void mla_case_decode(const uint8_t *bytes, size_t bytes_n, enum mla_op op, bool reject,
                     struct mla_case *test)
{
    char error[MLA_CASE_ERROR_MAX];
    size_t n = bytes_n > 0 && bytes[bytes_n - 1] == '\n' ? bytes_n - 1 : bytes_n;
    if (mla_case_parse((const char *)bytes, n, test, error) == MLA_OK &&
        (reject || test->op == (int32_t)op) && (test->set_n > 0) == reject && !test->slow &&
        test->data[0] == '\0' && /* whose shape may not change */
        mla_case_problem(test, (int64_t)1 << 30, error) == NULL)
        return;
    struct mla_rng rng = {hash_bytes(bytes, bytes_n), 0};
    if (reject)
        op = (enum mla_op)mla_rng_below(&rng, MLA_OP_N);
    mla_case_draw(test, op, &rng);
    if (reject)
        mla_case_draw_violation(test, &rng);
}
