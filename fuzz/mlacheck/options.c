/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c - flags through getopt_long, checked one by one.
 */
#include "fuzz/mlacheck/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/mlacheck/options_flags.h"
#include "results/report_text.h"

int mla_options_fail(int code, const char *verb, const char *format, ...)
{
    char text[8192]; /* two paths and what is wrong with them */
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "mlacheck %s: ", verb);
    mla_text_plain(stderr, text);
    fputc('\n', stderr);
    return code;
}

static const struct mla_flag *flag_of(int letter)
{
    const struct mla_flag *flag = mla_flags;
    while (flag->name != NULL && flag->letter != letter)
        flag++;
    return flag;
}

/* false: the value is not what the flag's rule says. */
static bool take(struct mla_options *o, const struct mla_flag *flag, const char *text)
{
    if (flag->take != NULL)
        return flag->take(o, flag, text);
    *(bool *)((char *)o + flag->place) = !flag->clears;
    return true;
}

/* Does another row of that name belong to the verb? */
static bool gives_way(const struct mla_flag *row, const char *allowed)
{
    for (const struct mla_flag *f = mla_flags; f->name != NULL; f++)
        if (f != row && strcmp(f->name, row->name) == 0 &&
            (strchr(allowed, f->letter) != NULL || f < row))
            return strchr(allowed, row->letter) == NULL;
    return false;
}

/* The table as this verb reads it, for getopt: each name once. */
static void choose_rows(const char *allowed, struct option *rows)
{
    size_t n = 0;
    for (const struct mla_flag *f = mla_flags; f->name != NULL; f++)
        if (!gives_way(f, allowed))
            rows[n++] = (struct option){f->name, f->take != NULL ? required_argument : no_argument,
                                        NULL, f->letter};
    rows[n] = (struct option){NULL, 0, NULL, 0};
}

/* Who asks a verb for its flags; NULL: it is to do its work. */
static struct {
    mla_options_flag_fn *flag;
    void *context;
} asker;

void mla_options_each_flag(const struct mla_verb *verb, mla_options_flag_fn *flag, void *context)
{
    char *argv[] = {(char[]){"?"}, NULL};
    asker.flag = flag;
    asker.context = context;
    (void)verb->run(1, argv);
    asker.flag = NULL;
}

static int answer(const struct option *rows, const char *allowed)
{
    for (const struct option *o = rows; o->name != NULL; o++)
        if (strchr(allowed, o->val) != NULL)
            asker.flag(asker.context, o->name, o->has_arg == required_argument);
    return MLA_EXIT_USAGE; /* which ends the verb */
}

int mla_options_parse(struct mla_options *options, const char *verb, const char *allowed, int argc,
                      char **argv)
{
    int letter;
    struct option rows[MLA_FLAGS_MAX];
    choose_rows(allowed, rows);
    if (asker.flag != NULL)
        return answer(rows, allowed);
    *options = (struct mla_options){
        .db = "results/mlacheck.db", .random = -1, .number = -1, .seed = 1, .relations = true};
    opterr = 0;
    optind = 1;
    while ((letter = getopt_long(argc, argv, ":", rows, NULL)) != -1) {
        if (letter == '?' || letter == ':')
            return mla_options_fail(MLA_EXIT_USAGE, verb, "flag '%s' %s (mlacheck %s --help)",
                                    optopt != 0 && letter == '?' ? (char[]){'-', (char)optopt, 0}
                                                                 : argv[optind - 1],
                                    letter == ':' ? "needs a value" : "is not known", verb);
        const struct mla_flag *flag = flag_of(letter);
        if (strchr(allowed, letter) == NULL)
            return mla_options_fail(MLA_EXIT_USAGE, verb, "flag --%s does not belong to this verb",
                                    flag->name);
        if (!take(options, flag, optarg))
            return mla_options_fail(MLA_EXIT_USAGE, verb, "--%s '%s': must be %s", flag->name,
                                    optarg, flag->rule);
    }
    int words_max = strchr(allowed, '*') != NULL ? MLA_OPTIONS_LIST_MAX : 2;
    for (; optind < argc; optind++) {
        if (options->words_n == words_max)
            return mla_options_fail(MLA_EXIT_USAGE, verb, "unexpected word '%s'", argv[optind]);
        options->words[options->words_n++] = argv[optind];
    }
    return 0;
}

/* What opening has to tell, line by line. */
void mla_options_print_notice(const struct mla_store *store, const char *verb)
{
    for (const char *line = mla_store_notice(store); *line != '\0';) {
        size_t n = strcspn(line, "\n");
        mla_options_fail(0, verb, "%.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

/* Open by a function of the store's, tell what that has to tell; NULL after complaining. */
static struct mla_store *open_by(int32_t (*open_store)(const char *, struct mla_store **, char *,
                                                       size_t),
                                 const struct mla_options *options, const char *verb)
{
    char message[512];
    struct mla_store *store;
    if (open_store(options->db, &store, message, sizeof message) == MLA_STORE_OK) {
        mla_options_print_notice(store, verb);
        return store;
    }
    mla_options_fail(MLA_EXIT_ENVIRONMENT, verb, "--db: %s", message);
    return NULL;
}

static bool is_there(const struct mla_options *options, const char *verb)
{
    if (access(options->db, F_OK) == 0)
        return true;
    mla_options_fail(MLA_EXIT_ENVIRONMENT, verb, "--db: '%s': %s", options->db, strerror(errno));
    return false;
}

struct mla_store *mla_options_read_store(const struct mla_options *options, const char *verb)
{
    return is_there(options, verb) ? mla_options_store(options, verb) : NULL;
}

bool mla_options_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

struct mla_store *mla_options_look_store(const struct mla_options *options, const char *verb)
{
    return is_there(options, verb) ? open_by(mla_store_open_read, options, verb) : NULL;
}

struct mla_store *mla_options_store(const struct mla_options *options, const char *verb)
{
    return open_by(mla_store_open, options, verb);
}
