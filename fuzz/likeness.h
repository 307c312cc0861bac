/* SPDX-License-Identifier: Apache-2.0
 *
 * likeness.h - are two failures of a kind?
 */
#ifndef MLA_FUZZ_LIKENESS_H
#define MLA_FUZZ_LIKENESS_H

#include "fuzz/judge.h"

/*
 * What stays of a failure when its numbers are left out. Two verdicts are alike when these are equal:
 * the same verdict, the same first detector, the same relation (if one failed), finite or not, and the
 * same words of the reason; words with a digit in them are numbers, elements and ranks, and are dropped.
 * So a refusal that names the wrong field stays one about that field, a signal stays that signal, and
 * statistics stay statistics.
 */
struct mla_likeness {
    enum mla_verdict_kind kind;
    uint32_t detector; /* enum mla_detector: the first that spoke; 0: none did */
    bool is_finite;
    char relation[48];
    char words[256];
};

struct mla_likeness mla_likeness_of(const struct mla_verdict *verdict);
bool mla_likeness_equal(const struct mla_likeness *a, const struct mla_likeness *b);

#endif
