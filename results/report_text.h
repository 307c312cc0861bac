/* SPDX-License-Identifier: Apache-2.0
 *
 * report_text.h - texts from the database made harmless for one language each.
 *
 * What is no UTF-8, or a control character, becomes U+FFFD in all of them (a line break and a tab a
 * blank). NULL is the empty text.
 */
#ifndef MLA_RESULTS_REPORT_TEXT_H
#define MLA_RESULTS_REPORT_TEXT_H

#include <stdio.h>

void mla_text_plain(FILE *file, const char *text); /* a line, or a part of one, of a terminal */
void mla_text_html(FILE *file, const char *text);  /* and XML: content and quoted attributes */
void mla_text_csv(FILE *file, const char *text); /* a quoted cell; ' before what begins a formula */
void mla_text_json(FILE *file, const char *text);     /* with its quotes */
void mla_text_markdown(FILE *file, const char *text); /* also within a table */
void mla_text_code(FILE *file, const char *text);     /* Markdown: a code span with its fences */
/* Of a workflow command: a property, and the message, in which GitHub undoes only the escapes of %. */
void mla_text_github_property(FILE *file, const char *text);
void mla_text_github_message(FILE *file, const char *text);
/* One word of a POSIX shell; as it is where it has only harmless characters. */
void mla_text_shell(FILE *file, const char *text);
/* A number for JSON: null if it is not finite. */
void mla_text_number(FILE *file, double value);

#endif
