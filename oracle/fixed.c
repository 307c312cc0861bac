/* SPDX-License-Identifier: Apache-2.0
 *
 * fixed.c - see fixed.h. Schoolbook integer arithmetic on nine words, nothing is ever rounded
 * except where the name says so.
 */
#include "oracle/fixed.h"

#include "oracle/scale.h"

#include <math.h>
#include <string.h>

#define LIMBS MLA_ORACLE_FIXED_LIMBS

static bool is_negative(const struct mla_oracle_fixed *x)
{
    return x->limb[LIMBS - 1] >> 63 != 0;
}

/* x += y 2^shift over the words from shift/64 on; y < 2^53. */
static void add_shifted(struct mla_oracle_fixed *x, uint64_t y, int shift)
{
    const unsigned __int128 wide = (unsigned __int128)y << (shift % 64);
    unsigned __int128 sum;
    int i = shift / 64;

    sum = (unsigned __int128)x->limb[i] + (uint64_t)wide;
    x->limb[i] = (uint64_t)sum;
    if (++i < LIMBS) {
        sum = (unsigned __int128)x->limb[i] + (uint64_t)(wide >> 64) + (uint64_t)(sum >> 64);
        x->limb[i] = (uint64_t)sum;
    }
    for (uint64_t carry = (uint64_t)(sum >> 64); carry != 0 && ++i < LIMBS;) {
        carry = ++x->limb[i] == 0;
    }
}

static void subtract_shifted(struct mla_oracle_fixed *x, uint64_t y, int shift)
{
    struct mla_oracle_fixed negated = {{0}};

    add_shifted(&negated, y, shift);
    *x = mla_oracle_fixed_minus(x, &negated);
}

void mla_oracle_fixed_add(struct mla_oracle_fixed *x, double y)
{
    int exponent;

    if (y == 0.0) {
        return;
    }
    const double fraction = frexp(fabs(y), &exponent); /* |y| = fraction * 2^exponent */
    uint64_t mantissa = (uint64_t)mla_oracle_scale(fraction, 53);
    int shift = exponent - 53 - MLA_ORACLE_FIXED_UNIT;

    if (shift < 0) { /* the bits below the unit are zero */
        mantissa >>= -shift;
        shift = 0;
    }
    if (y > 0.0) {
        add_shifted(x, mantissa, shift);
    } else {
        subtract_shifted(x, mantissa, shift);
    }
}

void mla_oracle_fixed_from_bins(struct mla_oracle_fixed *x, const int64_t *bins, int bins_n)
{
    /* What is left of the lower bins, in units of the present one: |carry| < 2^63 throughout, as
     * |carry'| <= (|carry| + |bin|)/2 + 1/2. */
    int64_t carry = 0;

    memset(x, 0, sizeof *x);
    for (int i = 0; i < LIMBS * 64; i++) {
        carry += i < bins_n ? bins[i] : 0;
        x->limb[i / 64] |= (uint64_t)(carry & 1) << (i % 64);
        carry = (carry - (carry & 1)) / 2;
    }
}

bool mla_oracle_fixed_greater(const struct mla_oracle_fixed *a, const struct mla_oracle_fixed *b)
{
    const struct mla_oracle_fixed difference = mla_oracle_fixed_minus(b, a);

    return is_negative(&difference);
}

struct mla_oracle_fixed mla_oracle_fixed_minus(const struct mla_oracle_fixed *a,
                                               const struct mla_oracle_fixed *b)
{
    struct mla_oracle_fixed result;
    uint64_t borrow = 0;

    for (int i = 0; i < LIMBS; i++) {
        const unsigned __int128 difference = (unsigned __int128)a->limb[i] - b->limb[i] - borrow;

        result.limb[i] = (uint64_t)difference;
        borrow = (uint64_t)(difference >> 64) & 1;
    }
    return result;
}

static struct mla_oracle_fixed magnitude_of(const struct mla_oracle_fixed *x)
{
    const struct mla_oracle_fixed zero = {{0}};

    return is_negative(x) ? mla_oracle_fixed_minus(&zero, x) : *x;
}

/* x times a scale: a 24 bit integer and a power of two, so one word more holds it. */
struct product {
    uint64_t limb[LIMBS + 1];
    int unit; /* the lowest bit counts 2^unit */
};

static struct product product_of(const struct mla_oracle_fixed *x, double scale)
{
    int exponent;
    const double fraction = frexp(scale, &exponent);
    const uint64_t factor =
        (uint64_t)mla_oracle_scale(fraction, 24); /* scale = factor 2^(exponent-24) */
    struct product product = {.unit = MLA_ORACLE_FIXED_UNIT + exponent - 24};
    uint64_t carry = 0;

    for (int i = 0; i < LIMBS; i++) {
        const unsigned __int128 part = (unsigned __int128)x->limb[i] * factor + carry;

        product.limb[i] = (uint64_t)part;
        carry = (uint64_t)(part >> 64);
    }
    product.limb[LIMBS] = carry;
    return product;
}

double mla_oracle_fixed_abs_up(const struct mla_oracle_fixed *x, double scale)
{
    const struct mla_oracle_fixed magnitude = magnitude_of(x);
    const struct product product = product_of(&magnitude, scale);
    const uint64_t *limb = product.limb;
    int top = LIMBS;
    bool is_cut = false;

    while (top >= 0 && limb[top] == 0) {
        top--;
    }
    if (top < 0) {
        return 0.0;
    }
    const int zeros = __builtin_clzll(limb[top]);
    uint64_t head = limb[top] << zeros; /* the leading 64 bits */

    if (top > 0 && zeros > 0) {
        head |= limb[top - 1] >> (64 - zeros);
        is_cut = limb[top - 1] << zeros != 0;
    } else if (top > 0) {
        is_cut = limb[top - 1] != 0;
    }
    for (int i = top - 2; i >= 0; i--) {
        is_cut = is_cut || limb[i] != 0;
    }
    /* Keep 53 bits and go up unless all that is dropped is zero. */
    const uint64_t mantissa = head >> 11;

    is_cut = is_cut || (head & 0x7ff) != 0;
    return mla_oracle_scale((double)(mantissa + is_cut), 64 * top + 11 - zeros + product.unit);
}

unsigned __int128 mla_oracle_fixed_scaled(const struct mla_oracle_fixed *x, double scale, int shift)
{
    const struct product whole = product_of(x, scale);
    /* x scale 2^shift = product 2^-down. A scale is at least 2^-149, so down <= 266 + 172. */
    const int down = -(whole.unit + shift);
    const uint64_t *product = whole.limb;

    if (down < 0) { /* a huge scale: only zero fits */
        for (int i = 0; i <= LIMBS; i++) {
            if (product[i] != 0) {
                return ~(unsigned __int128)0;
            }
        }
        return 0;
    }
    const int word = down / 64;
    const int bit = down % 64;
    unsigned __int128 window = 0;
    uint64_t beyond = 0;

    for (int i = 0; i < 2; i++) {
        const int at = word + i;
        const uint64_t low = at <= LIMBS ? product[at] >> bit : 0;
        const uint64_t high = bit > 0 && at + 1 <= LIMBS ? product[at + 1] << (64 - bit) : 0;

        window |= (unsigned __int128)(low | high) << (64 * i);
    }
    beyond = word + 2 <= LIMBS ? product[word + 2] >> bit : 0;
    for (int i = word + 3; i <= LIMBS; i++) {
        beyond |= product[i];
    }
    return beyond != 0 ? ~(unsigned __int128)0 : window;
}

void mla_oracle_fixed_get(mpfr_t to, const struct mla_oracle_fixed *x)
{
    const struct mla_oracle_fixed magnitude = magnitude_of(x);
    mpz_t integer;

    mpz_init(integer);
    mpz_import(integer, LIMBS, -1, sizeof magnitude.limb[0], 0, 0, magnitude.limb);
    mpfr_set_prec(to, 64 * LIMBS);
    (void)mpfr_set_z_2exp(to, integer, MLA_ORACLE_FIXED_UNIT, MPFR_RNDN);
    if (is_negative(x)) {
        (void)mpfr_neg(to, to, MPFR_RNDN);
    }
    mpz_clear(integer);
}
