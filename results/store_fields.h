/* SPDX-License-Identifier: Apache-2.0
 *
 * store_fields.h - the fields of a case and of a verdict as tables.
 *
 * Copying, binding and the in-flight note walk the same tables, so that a new field is added in one
 * place. Numbers are in the order of the columns of testcase, from heads on.
 */
#ifndef MLA_RESULTS_STORE_FIELDS_H
#define MLA_RESULTS_STORE_FIELDS_H

#include "results/store.h"

#define MLA_CASE_NUMBERS_N  26 /* heads .. cores, sign_coins */
#define MLA_CASE_TEXTS_N    4  /* line, op, family, region */
#define MLA_VERDICT_TEXTS_N 9  /* kernel, verdict, relation, reason, element, got, lo, hi, repro */

int64_t *mla_case_number(struct mla_store_case *testcase, int index);
int64_t mla_case_number_of(const struct mla_store_case *testcase, int index);
const char **mla_case_text(struct mla_store_case *testcase, int index);
const char *mla_case_text_of(const struct mla_store_case *testcase, int index);
const char **mla_verdict_text(struct mla_store_verdict *verdict, int index);
const char *mla_verdict_text_of(const struct mla_store_verdict *verdict, int index);

#endif
