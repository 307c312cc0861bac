/* SPDX-License-Identifier: Apache-2.0
 *
 * report_text.c - one decoder of UTF-8, and for each language a table of what it must not see.
 */
#include "results/report_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define REPLACEMENT 0xfffdu

/* The next character and its end; REPLACEMENT, one byte on, for what is no UTF-8. */
static uint32_t decode(const unsigned char **at)
{
    const unsigned char *p = *at;
    int more = p[0] < 0x80 ? 0 : p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : 1;
    uint32_t c = more == 0 ? p[0] : p[0] & (0x3fu >> more);
    static const uint32_t least[4] = {0, 0x80, 0x800, 0x10000};
    *at = p + 1;
    if ((p[0] >= 0x80 && p[0] < 0xc2) || p[0] > 0xf4) {
        return REPLACEMENT;
    }
    for (int i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return REPLACEMENT;
        }
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || (c & 0xfffe) == 0xfffe) {
        return REPLACEMENT;
    }
    *at = p + 1 + more;
    if (c == '\n' || c == '\t' || c == '\r') {
        return ' ';
    }
    /* Marks that turn the direction of the text could make a line read as another one. */
    bool turns = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || turns ? REPLACEMENT : c;
}

static void encode(FILE *file, uint32_t c)
{
    if (c < 0x80) {
        fputc((int)c, file);
    } else if (c < 0x800) {
        fputc((int)(0xc0 | c >> 6), file);
    } else if (c < 0x10000) {
        fputc((int)(0xe0 | c >> 12), file);
        fputc((int)(0x80 | (c >> 6 & 0x3f)), file);
    } else {
        fputc((int)(0xf0 | c >> 18), file);
        fputc((int)(0x80 | (c >> 12 & 0x3f)), file);
        fputc((int)(0x80 | (c >> 6 & 0x3f)), file);
    }
    if (c >= 0x80) {
        fputc((int)(0x80 | (c & 0x3f)), file);
    }
}

struct escape {
    char c;
    const char *instead;
};

static void write_escaped(FILE *file, const char *text, const struct escape *escapes)
{
    const unsigned char *at = (const unsigned char *)(text != NULL ? text : "");
    while (*at != '\0') {
        uint32_t c = decode(&at);
        const struct escape *e = escapes;
        while (e->instead != NULL && (uint32_t)e->c != c) {
            e++;
        }
        if (e->instead != NULL) {
            fputs(e->instead, file);
        } else {
            encode(file, c);
        }
    }
}

void mla_text_plain(FILE *file, const char *text)
{
    static const struct escape nothing[] = {{0, NULL}};
    write_escaped(file, text, nothing);
}

void mla_text_html(FILE *file, const char *text)
{
    static const struct escape escapes[] = {{'&', "&amp;"},  {'<', "&lt;"},   {'>', "&gt;"},
                                            {'"', "&quot;"}, {'\'', "&#39;"}, {0, NULL}};
    write_escaped(file, text, escapes);
}

void mla_text_csv(FILE *file, const char *text)
{
    static const struct escape escapes[] = {{'"', "\"\""}, {0, NULL}};
    fputc('"', file);
    if (text != NULL && text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL) {
        fputc('\'', file);
    }
    write_escaped(file, text, escapes);
    fputc('"', file);
}

void mla_text_json(FILE *file, const char *text)
{
    /* "</" could end a script that the JSON is pasted into. */
    static const struct escape escapes[] = {
        {'"', "\\\""}, {'\\', "\\\\"}, {'<', "\\u003c"}, {0, NULL}};
    fputc('"', file);
    write_escaped(file, text, escapes);
    fputc('"', file);
}

void mla_text_markdown(FILE *file, const char *text)
{
    static const struct escape escapes[] = {
        {'&', "&amp;"}, {'<', "&lt;"},   {'>', "&gt;"},  {'|', "&#124;"}, {'`', "&#96;"},
        {'*', "&#42;"}, {'_', "&#95;"},  {'[', "&#91;"}, {']', "&#93;"},  {'\\', "&#92;"},
        {'#', "&#35;"}, {'~', "&#126;"}, {'@', "&#64;"}, {0, NULL}};
    write_escaped(file, text, escapes);
}

void mla_text_code(FILE *file, const char *text)
{
    /* The fence must be longer than every row of backquotes within. */
    size_t longest = 0, row = 0;
    for (const char *p = text != NULL ? text : ""; *p != '\0'; p++) {
        row = *p == '`' ? row + 1 : 0;
        longest = row > longest ? row : longest;
    }
    for (size_t i = 0; i <= longest; i++) {
        fputc('`', file);
    }
    fputc(' ', file);
    mla_text_plain(file, text);
    fputc(' ', file);
    for (size_t i = 0; i <= longest; i++) {
        fputc('`', file);
    }
}

void mla_text_github_property(FILE *file, const char *text)
{
    static const struct escape escapes[] = {{'%', "%25"}, {':', "%3A"}, {',', "%2C"}, {0, NULL}};
    write_escaped(file, text, escapes);
}

void mla_text_github_message(FILE *file, const char *text)
{
    static const struct escape escapes[] = {{'%', "%25"}, {0, NULL}};
    write_escaped(file, text, escapes);
}

void mla_text_shell(FILE *file, const char *text)
{
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "_./:=+-@,%";
    if (text[0] != '\0' && text[strspn(text, harmless)] == '\0') {
        fputs(text, file);
        return;
    }
    fputc('\'', file);
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\'') {
            fputs("'\\''", file);
        } else {
            fputc(*p, file);
        }
    }
    fputc('\'', file);
}

void mla_text_number(FILE *file, double value)
{
    if (isfinite(value)) {
        fprintf(file, "%.17g", value);
    } else {
        fputs("null", file);
    }
}
