/* SPDX-License-Identifier: Apache-2.0
 *
 * report_rule.c - did a case regress: the rule of report.h, on the outcomes of one case.
 */
#include "results/report_internal.h"

#include <string.h>

enum mla_grade mla_grade_of(const char *verdict)
{
    static const struct {
        const char *word;
        enum mla_grade grade;
    } grades[] = {{"pass", MLA_GRADE_PASS},
                  {"unsupported", MLA_GRADE_UNSUPPORTED},
                  {"refused", MLA_GRADE_REFUSED},
                  {"unjudged", MLA_GRADE_UNJUDGED},
                  {"fail-certain", MLA_GRADE_CERTAIN},
                  {"fail-improbable", MLA_GRADE_IMPROBABLE},
                  {"crash", MLA_GRADE_CRASH},
                  {"timeout", MLA_GRADE_TIMEOUT}};
    for (size_t i = 0; verdict != NULL && i < sizeof grades / sizeof grades[0]; i++) {
        if (strcmp(verdict, grades[i].word) == 0) {
            return grades[i].grade;
        }
    }
    return MLA_GRADE_NONE;
}

int64_t mla_subject_failing(const struct mla_subject *s)
{
    int64_t n = s->tallied_bad;
    for (int g = 0; g < MLA_GRADES_N; g++) {
        n += mla_grade_is_bad((enum mla_grade)g) ? s->cases[g] : 0;
    }
    return n;
}

int64_t mla_subject_judged(const struct mla_subject *s)
{
    int64_t n = s->tallied_good + mla_subject_failing(s);
    for (int g = 0; g < MLA_GRADES_N; g++) {
        n += mla_grade_is_good((enum mla_grade)g) ? s->cases[g] : 0;
    }
    return n;
}

const char *mla_change_text(enum mla_change_kind kind)
{
    static const char *const texts[] = {[MLA_SAME] = "as before",
                                        [MLA_LOST] = "no longer judged",
                                        [MLA_GREW] = "error grew",
                                        [MLA_BROKEN] = "fails, never passed",
                                        [MLA_FAILS] = "passed, now fails"};
    return texts[kind];
}

void mla_point_add(struct mla_point *point, double x, double y, int64_t testcase)
{
    if (point->n == 0 || y > point->y) {
        point->x = x;
        point->y = y;
        point->testcase = testcase;
    }
    point->n++;
}

/* Did the earlier outcome do better than the last one, in a way that counts? */
static enum mla_change_kind worse_than(const struct mla_outcome *now,
                                       const struct mla_outcome *earlier)
{
    if (!mla_grade_is_good(earlier->grade)) {
        return MLA_SAME;
    }
    if (mla_grade_is_bad(now->grade)) {
        return MLA_FAILS;
    }
    if (!mla_grade_is_good(now->grade)) {
        return MLA_LOST;
    }
    bool grew = earlier->ratio >= 0 && now->ratio > earlier->ratio + MLA_REPORT_GROWTH;
    return grew ? MLA_GREW : MLA_SAME;
}

struct mla_change mla_report_rule(const struct mla_outcome *outcomes, size_t n)
{
    const struct mla_outcome *now = &outcomes[n - 1];
    struct mla_change change = {.now = now->rank,
                                .since = now->rank,
                                .good = now->rank,
                                .before = -1,
                                .ratio = now->ratio,
                                .verdict = now->verdict};
    for (size_t i = n - 1; i-- > 0 && change.kind == MLA_SAME;) {
        change.kind = worse_than(now, &outcomes[i]);
        if (change.kind != MLA_SAME) {
            change.good = outcomes[i].rank;
            change.since = outcomes[i + 1].rank;
            change.before = outcomes[i].ratio;
        }
    }
    if (change.kind == MLA_SAME && mla_grade_is_bad(now->grade)) {
        change.kind = MLA_BROKEN;
        size_t first = n - 1;
        for (size_t i = n; i-- > 0;) {
            first = mla_grade_is_bad(outcomes[i].grade) ? i : first;
        }
        change.since = outcomes[first].rank;
    }
    return change;
}
