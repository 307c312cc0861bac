/* SPDX-License-Identifier: Apache-2.0
 *
 * exponential.c - e^-t in 128-bit integers.
 *
 * All numbers are integers; "Qk" is one in units of 2^-k. With t in Q118 below 416:
 *
 *     t = n ln 2 + r,  r = i 2^-8 + j 2^-16 + w,  0 <= w < 2^-16,
 *     e^-t = 2^-n * e^-(i/2^8) * e^-(j/2^16) * e^-w.
 *
 * Errors, the argument's own first (relative errors of the result, as e^-(t+d) = e^-t (1-d..)):
 *     argument   less than 2^-118 too small                                      < 2^-118
 *     n ln 2     ln 2 in Q118 to nearest: half a unit times n <= 601             < 2^-109
 *     n          from the leading 64 bits of t times 1/ln 2 in Q63: it may be one too large or too
 *                small, which makes r leave [0, ln 2) by 2^-40 at most; it is put right by one
 *                comparison each way, so nothing is lost
 *     tables     Q127 to nearest, each value at least 1/2 or (j) 0.996:          < 2 * 2^-127
 *     e^-w       Horner in Q127 with w in Q128 cut from Q118 exactly: each of 6 steps cuts a
 *                product (< 2^-127, then times w < 2^-16 in the next one) and a division by an
 *                integer (likewise); the last step is 1 - w*(..): < 3 * 2^-127; the series is cut
 *                after w^6/720, what follows is below w^7/5040 < 2^-124          < 2^-123
 *     products   two, each less than two units of 2^-127 too small, of at least 0.49  < 2^-123
 * Together below 2^-108. The result, in (0.49, 1] as Q127, is split: its leading bits down to
 * 2^-45 exactly into head (45 significant bits at most, as it is at least 2^-2; 1 has one), the
 * rest, below 2^-45, rounded to 53 bits: an error of at most 2^-98 absolute, 2^-97 relative to a
 * result above 0.49... all in all below 2^-96. Scaling by 2^-n is exact: n <= 601.
 *
 * The tables come from MPFR (correctly rounded), so no constant here has to be believed.
 */
#include "oracle/exponential.h"
#include "oracle/truth.h"

#include "oracle/scale.h"

#include <math.h>
#include <mpfr.h>
#include <pthread.h>
#include <stdint.h>

typedef unsigned __int128 wide;

#define COARSE_N 178 /* i/256 < ln 2 */
#define FINE_N   256

static struct {
    wide coarse[COARSE_N]; /* e^-(i/2^8), Q127 */
    wide fine[FINE_N];     /* e^-(j/2^16), Q127 */
    wide ln2;              /* Q118 */
    uint64_t inverse_ln2;  /* Q63 */
} table;

static pthread_once_t table_once = PTHREAD_ONCE_INIT;

/* x 2^bits, x in [0, 2), to nearest. */
static wide to_integer(mpfr_t x, int bits)
{
    wide result = 0;
    mpz_t integer;
    mpz_t word;

    (void)mpfr_mul_2si(x, x, bits, MPFR_RNDN);
    mpz_init(integer);
    mpz_init(word);
    (void)mpfr_get_z(integer, x, MPFR_RNDN);
    for (int i = 1; i >= 0; i--) {
        mpz_fdiv_q_2exp(word, integer, 64 * (mp_bitcnt_t)i);
        mpz_fdiv_r_2exp(word, word, 64);
        result = result << 64 | mpz_get_ui(word);
    }
    mpz_clear(word);
    mpz_clear(integer);
    return result;
}

static wide exp_of(mpfr_t x, int64_t numerator, int bits)
{
    (void)mpfr_set_si_2exp(x, -numerator, -bits, MPFR_RNDN);
    (void)mpfr_exp(x, x, MPFR_RNDN);
    return to_integer(x, 127);
}

static void make_tables(void)
{
    /* What is made here serves the whole process: no caller's exponent range may get into it. */
    const struct mla_oracle_mpfr_state state = mla_oracle_mpfr_enter();
    mpfr_t x;

    mpfr_init2(x, 200);
    for (int64_t i = 0; i < COARSE_N; i++) {
        table.coarse[i] = exp_of(x, i, 8);
    }
    for (int64_t j = 0; j < FINE_N; j++) {
        table.fine[j] = exp_of(x, j, 16);
    }
    (void)mpfr_const_log2(x, MPFR_RNDN);
    table.ln2 = to_integer(x, MLA_ORACLE_EXP_SHIFT);
    (void)mpfr_const_log2(x, MPFR_RNDN);
    (void)mpfr_ui_div(x, 1, x, MPFR_RNDN);
    table.inverse_ln2 = (uint64_t)to_integer(x, 63);
    mpfr_clear(x);
    mla_oracle_mpfr_leave(&state);
}

void mla_oracle_exp_prepare(void)
{
    (void)pthread_once(&table_once, make_tables);
}

/* The upper 128 bits of the 256-bit product, exactly: floor(a b 2^-128). */
static wide high_product(wide a, wide b)
{
    const uint64_t a0 = (uint64_t)a;
    const uint64_t a1 = (uint64_t)(a >> 64);
    const uint64_t b0 = (uint64_t)b;
    const uint64_t b1 = (uint64_t)(b >> 64);
    const wide low = (wide)a0 * b0;
    const wide mid1 = (wide)a1 * b0 + (uint64_t)(low >> 64);
    const wide mid2 = (wide)a0 * b1 + (uint64_t)mid1;

    return (wide)a1 * b1 + (uint64_t)(mid1 >> 64) + (uint64_t)(mid2 >> 64);
}

/* a b in Q127 for a, b <= 1 in Q127, less than two units too small. */
static wide product(wide a, wide b)
{
    return high_product(a, b) << 1;
}

/* e^-w in Q127, w in Q128 below 2^-16: 1 - w(1 - w/2(1 - w/3(1 - w/4(1 - w/5(1 - w/6))))). */
static wide exp_small(wide w)
{
    const wide one = (wide)1 << 127;
    wide sum = one - w / 12; /* w/6 in Q127 */

    for (unsigned k = 5; k >= 1; k--) {
        sum = one - high_product(w, sum) / k; /* Q128 * Q127 -> Q127 */
    }
    return sum;
}

struct mla_oracle_exp mla_oracle_exp(wide t)
{
    struct mla_oracle_exp result = {1.0, 0.0};

    if (t >= (wide)MLA_ORACLE_EXP_MAX << MLA_ORACLE_EXP_SHIFT) {
        return (struct mla_oracle_exp){0.0, 0.0};
    }
    if (t == 0) {
        return result;
    }
    /* t >> 64 is Q54 below 2^63; times Q63, cut to an integer: Q117. */
    int n = (int)(((wide)(uint64_t)(t >> 64) * table.inverse_ln2) >> 117);

    if ((wide)(unsigned)n * table.ln2 > t) {
        n--;
    }
    wide r = t - (wide)(unsigned)n * table.ln2;

    if (r >= table.ln2) {
        r -= table.ln2;
        n++;
    }
    const unsigned i = (unsigned)(r >> 110);
    const unsigned j = (unsigned)(r >> 102) & 0xff;
    const wide w = (r & (((wide)1 << 102) - 1)) << 10; /* Q128 */
    const wide y = product(product(table.coarse[i], table.fine[j]), exp_small(w));
    const wide tail = y & (((wide)1 << 82) - 1); /* below 2^-45 */

    result.head = mla_oracle_scale((double)(uint64_t)(y >> 82), -45 - n);
    result.tail = mla_oracle_scale((double)tail, -127 - n);
    return result;
}
