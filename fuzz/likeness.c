/* SPDX-License-Identifier: Apache-2.0
 *
 * likeness.c - are two failures of a kind?
 */
#include "fuzz/likeness.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* text without the words (between blanks) that hold a digit. */
static void drop_numbers(const char *text, char *words, size_t bytes)
{
    size_t n = 0;
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (length > 0 && strcspn(text, "0123456789") >= length && n + length + 2 < bytes) {
            memcpy(words + n, text, length);
            n += length;
            words[n++] = ' ';
        }
        text += length + (text[length] == ' ');
    }
    words[n] = '\0';
}

static uint32_t first_detector(const struct mla_verdict *verdict)
{
    /* The second call of a relation may fail by any check: it is the relation's failure. */
    if (verdict->relation[0] != '\0')
        return MLA_DETECTOR_RELATION;
    return verdict->detected & (~verdict->detected + 1);
}

struct mla_likeness mla_likeness_of(const struct mla_verdict *verdict)
{
    struct mla_likeness like = {.kind = verdict->kind,
                                .detector = first_detector(verdict),
                                .is_finite = !verdict->has_row || isfinite(verdict->got)};
    snprintf(like.relation, sizeof like.relation, "%s", verdict->relation);
    drop_numbers(verdict->reason, like.words, sizeof like.words);
    return like;
}

bool mla_likeness_equal(const struct mla_likeness *a, const struct mla_likeness *b)
{
    return a->kind == b->kind && a->detector == b->detector && a->is_finite == b->is_finite &&
           strcmp(a->relation, b->relation) == 0 && strcmp(a->words, b->words) == 0;
}
