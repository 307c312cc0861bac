/* SPDX-License-Identifier: Apache-2.0
 *
 * table.c - collect the rows, measure the columns, print. Numbers are set flush right.
 */
#include "fuzz/mlacheck/table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "results/report_text.h"

#define COLUMNS_MAX 24

struct table {
    int columns_n;
    size_t cells_n, room; /* cells, header included, row by row */
    char **cells;
    bool failed; /* out of memory */
};

static void add_cell(struct table *table, const char *text)
{
    if (table->cells_n == table->room) {
        size_t room = table->room * 2 + 64;
        char **cells = realloc(table->cells, room * sizeof *cells);
        if (cells == NULL) {
            table->failed = true;
            return;
        }
        table->cells = cells;
        table->room = room;
    }
    char *copy = NULL;
    size_t n;
    FILE *cell = open_memstream(&copy, &n);
    if (cell != NULL)
        mla_text_plain(cell, text == NULL ? "-" : text);
    if (cell == NULL || fclose(cell) != 0) {
        free(copy);
        table->failed = true;
        return;
    }
    table->cells[table->cells_n++] = copy;
}

static int add_row(void *context, int columns_n, const char *const *names,
                   const char *const *values)
{
    struct table *table = context;
    int n = columns_n < COLUMNS_MAX ? columns_n : COLUMNS_MAX;
    if (table->columns_n == 0) {
        table->columns_n = n;
        for (int c = 0; c < n; c++)
            add_cell(table, names[c]);
    }
    for (int c = 0; c < n; c++)
        add_cell(table, values[c]);
    return table->failed;
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && strspn(text, "0123456789.+-einfa") == strlen(text) &&
           (isdigit((unsigned char)text[0]) || isdigit((unsigned char)text[1]) ||
            strcmp(text, "inf") == 0 || strcmp(text, "nan") == 0 || strcmp(text, "-") == 0);
}

static void print_cells(FILE *file, const struct table *table)
{
    int width[COLUMNS_MAX] = {0};
    bool right[COLUMNS_MAX];
    memset(right, 1, sizeof right);
    for (size_t i = 0; i < table->cells_n; i++) {
        int c = (int)(i % (size_t)table->columns_n), n = (int)strlen(table->cells[i]);
        width[c] = n > width[c] ? n : width[c];
        if (i >= (size_t)table->columns_n && !is_number(table->cells[i]))
            right[c] = false;
    }
    for (size_t i = 0; i < table->cells_n; i++) {
        int c = (int)(i % (size_t)table->columns_n);
        bool last = c == table->columns_n - 1;
        int pad = last && !right[c] ? 0 : width[c];
        fprintf(file, "%*s%s", right[c] ? pad : -pad, table->cells[i], last ? "\n" : "  ");
    }
}

int32_t mla_table_print(FILE *file, struct mla_store *store, enum mla_store_view view,
                        const char *key)
{
    struct table table = {0};
    int32_t status = mla_store_view(store, view, key, add_row, &table);
    if (status == MLA_STORE_OK && table.failed)
        status = MLA_STORE_ERR_NOMEM;
    else if (status == MLA_STORE_OK && table.columns_n > 0)
        print_cells(file, &table);
    else if (status == MLA_STORE_OK)
        fprintf(file, "(none)\n");
    for (size_t i = 0; i < table.cells_n; i++)
        free(table.cells[i]);
    free(table.cells);
    return status;
}
