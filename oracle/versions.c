/* SPDX-License-Identifier: Apache-2.0
 *
 * versions.c - which MPFR and GMP the oracle runs on, and whether they are the ones it was built
 * for.
 *
 * A header of one version with a library of another gives wrong numbers without a word, and an MPFR
 * built without thread-local state cannot be called from two threads.
 */
#include "oracle/oracle.h"

#include <gmp.h>
#include <mpfr.h>
#include <stdio.h>
#include <string.h>

bool mla_oracle_versions(char *text, size_t text_bytes)
{
    char header[32];
    bool agrees;

    (void)snprintf(header, sizeof header, "%d.%d.%d", __GNU_MP_VERSION, __GNU_MP_VERSION_MINOR,
                   __GNU_MP_VERSION_PATCHLEVEL);
    agrees = strcmp(mpfr_get_version(), MPFR_VERSION_STRING) == 0 &&
             strcmp(gmp_version, header) == 0 && mpfr_buildopt_tls_p() != 0;
    if (text != NULL && text_bytes > 0) {
        (void)snprintf(text, text_bytes, "MPFR %s (header %s%s), GMP %s (header %s)",
                       mpfr_get_version(), MPFR_VERSION_STRING,
                       mpfr_buildopt_tls_p() != 0 ? "" : ", not thread-safe", gmp_version, header);
    }
    return agrees;
}
