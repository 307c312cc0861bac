/* SPDX-License-Identifier: Apache-2.0
 *
 * counts.c - a verdict in a line, the last lines of a run that judged, and its exit code.
 */
#include "fuzz/mlacheck/counts.h"

#include <inttypes.h>
#include <stdio.h>

#include "fuzz/case_fields.h"
#include "fuzz/kernels.h"
#include "fuzz/mlacheck/options.h"

void mla_verdict_report(const struct mla_case *test, const char *spec,
                        const struct mla_verdict *verdict, bool verbose)
{
    char id[MLA_CASE_ID_BYTES];
    if (mla_verdict_is_failure(verdict->kind)) {
        mla_record_print(stdout, test, spec, verdict);
        return;
    }
    if (!verbose && verdict->kind != MLA_VERDICT_UNJUDGED)
        return;
    mla_case_id(test, id);
    printf("%s %s/%s case=%.12s", mla_verdict_name(verdict->kind), mla_case_op_name(test->op),
           mla_kernels_name(spec), id);
    if (verdict->elements_n > 0)
        printf(" %" PRId64 " rows, worst err/bound=%.3g at %s, %.4g%% correctly rounded",
               verdict->rows_n, verdict->max_ratio, verdict->element,
               verdict->metrics.correctly_rounded_percent);
    printf("%s%s\n", verdict->reason[0] != '\0' ? ": " : "", verdict->reason);
}

void mla_counts_print(const struct mla_counts *n, int64_t slow_skipped)
{
    printf("%" PRId64 " judged: %" PRId64 " passed, %" PRId64 " failed, %" PRId64
           " improbable, %" PRId64 " refused, %" PRId64 " crashed; %" PRId64 " unjudged, %" PRId64
           " unsupported",
           n->judged, n->passed, n->failed, n->improbable, n->refused, n->crashed, n->unjudged,
           n->unsupported);
    if (mla_interrupted)
        printf("; interrupted");
    if (slow_skipped > 0)
        printf("; %" PRId64 " slow cases not run (--slow)", slow_skipped);
    printf("\n%" PRId64 " rows judged; not judged: %" PRId64 " see NaN or Inf, %" PRId64
           " leave the range of float32, %" PRId64 " have no bound under the model, %" PRId64
           " have no keys and no promised zeros\n",
           n->rows_judged, n->rows_nonfinite, n->rows_out_of_range, n->rows_without_bound,
           n->rows_without_keys);
}

void mla_counts_print_json(const struct mla_counts *n, int64_t slow_skipped)
{
    printf("{\"cases\":%" PRId64 ",\"judged\":%" PRId64 ",\"passed\":%" PRId64
           ",\"failed\":%" PRId64 ",\"improbable\":%" PRId64 ",\"unjudged\":%" PRId64
           ",\"refused\":%" PRId64 ",\"crashed\":%" PRId64 ",\"unsupported\":%" PRId64
           ",\"slow_skipped\":%" PRId64 ",\"rows_judged\":%" PRId64 ",\"rows_nonfinite\":%" PRId64
           ",\"rows_out_of_range\":%" PRId64 ",\"rows_without_bound\":%" PRId64
           ",\"rows_without_keys\":%" PRId64 ",\"oracle_failed\":%" PRId64 ",\"interrupted\":%s",
           n->cases, n->judged, n->passed, n->failed, n->improbable, n->unjudged, n->refused,
           n->crashed, n->unsupported, slow_skipped, n->rows_judged, n->rows_nonfinite,
           n->rows_out_of_range, n->rows_without_bound, n->rows_without_keys, n->oracle_failed,
           mla_interrupted ? "true" : "false");
}

int mla_counts_exit(const char *verb, const struct mla_counts *n)
{
    if (n->failed + n->improbable + n->crashed > 0)
        return MLA_EXIT_FAULT;
    if (n->oracle_failed > 0)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, verb,
                                "the oracle contradicted itself on %" PRId64
                                " of them: a fault of mlacheck, please report it",
                                n->oracle_failed);
    if (mla_interrupted)
        return MLA_EXIT_INTERRUPTED;
    return n->judged == 0 ? MLA_EXIT_NOTHING : MLA_EXIT_PASSED;
}
