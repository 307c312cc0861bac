/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c - flags through getopt_long, checked one by one.
 */
#include "fuzz/mlacheck/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "results/report_text.h"

/* A name may stand twice, with a value and without: no verb takes both. */
static const struct option longs[] = {
    {"kernel", required_argument, NULL, 'k'},  {"set", required_argument, NULL, 's'},
    {"case", required_argument, NULL, 'c'},    {"id", required_argument, NULL, 'i'},
    {"random", required_argument, NULL, 'n'},  {"seed", required_argument, NULL, 'S'},
    {"op", required_argument, NULL, 'o'},      {"db", required_argument, NULL, 'd'},
    {"time", required_argument, NULL, 't'},    {"limit", required_argument, NULL, 'l'},
    {"oracle", required_argument, NULL, 'O'},  {"shape", required_argument, NULL, 'H'},
    {"threads", required_argument, NULL, 'T'}, {"jobs", required_argument, NULL, 'j'},
    {"slow", no_argument, NULL, 'w'},          {"no-relations", no_argument, NULL, 'r'},
    {"relations", no_argument, NULL, 'R'},     {"in-process", no_argument, NULL, 'p'},
    {"json", no_argument, NULL, 'J'},          {"verbose", no_argument, NULL, 'v'},
    {"cases", required_argument, NULL, 'N'},   {"help", no_argument, NULL, 'h'},
    {"peers", no_argument, NULL, 'P'},         {"trials", required_argument, NULL, 'A'},
    {"random", no_argument, NULL, 'D'},        {"out", required_argument, NULL, 'u'},
    {"blame", no_argument, NULL, 'b'},         {"merge", no_argument, NULL, 'M'},
    {"repo", required_argument, NULL, 'e'},    {"build", required_argument, NULL, 'B'},
    {"plugin", required_argument, NULL, 'L'},  {"good", required_argument, NULL, 'g'},
    {"bad", required_argument, NULL, 'x'},     {"where", required_argument, NULL, 'W'},
    {"config", required_argument, NULL, 'C'},  {"bits", no_argument, NULL, 'I'},
    {"tries", required_argument, NULL, 'y'},   {"quiet", no_argument, NULL, 'q'},
    {"golden", required_argument, NULL, 'z'},  {"update", no_argument, NULL, 'U'},
    {"format", required_argument, NULL, 'F'},  {"github", no_argument, NULL, 'G'},
    {"report", no_argument, NULL, 'E'},        {"result", required_argument, NULL, 'f'},
    {"model", required_argument, NULL, 'm'},   {"pad-index", required_argument, NULL, 'a'},
    {"param", required_argument, NULL, 'X'},   {NULL, 0, NULL, 0},
};

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

static const char *long_name(int letter)
{
    for (const struct option *o = longs; o->name != NULL; o++)
        if (o->val == letter)
            return o->name;
    return "?";
}

static bool integer(const char *text, int64_t low, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *value >= low;
}

static bool seconds(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return *end == '\0' && end != text && *value > 0 && *value <= 1e7;
}

static bool append(const char **list, int *n, const char *text)
{
    if (*n == MLA_OPTIONS_LIST_MAX)
        return false;
    list[(*n)++] = text;
    return true;
}

/* "1,2,4" */
static bool thread_counts(const char *text, struct mla_options *o)
{
    char *end;
    o->threads_n = 0;
    for (;; text = end + 1) {
        errno = 0;
        int64_t n = strtoll(text, &end, 10);
        if (errno != 0 || end == text || n < 1 || n > 256 ||
            o->threads_n == MLA_OPTIONS_THREADS_MAX)
            return false;
        o->threads[o->threads_n++] = (int)n;
        if (*end != ',')
            return *end == '\0';
    }
}

static bool is_op(const char *text)
{
    return strcmp(text, "oracle") == 0 || strcmp(text, "ring") == 0 ||
           strcmp(text, "sparse") == 0 || strcmp(text, "reject") == 0 || strcmp(text, "all") == 0;
}

/* Of bisect. */
static const char *take_text(struct mla_options *o, int letter, const char *text)
{
    const char **place = letter == 'e'   ? &o->repo
                         : letter == 'B' ? &o->build
                         : letter == 'L' ? &o->plugin
                         : letter == 'g' ? &o->good
                         : letter == 'x' ? &o->bad
                                         : &o->where;
    if (letter == 'C' && o->configs_n == 2)
        return "given twice";
    if (letter == 'C')
        place = &o->configs[o->configs_n++];
    *place = text;
    return text[0] != '\0' ? NULL : "not empty";
}

/* NULL, or what the flag's value must be. */
static const char *take(struct mla_options *o, int letter, const char *text)
{
    int64_t seed;
    switch (letter) {
    case 'k':
        return append(o->kernels, &o->kernels_n, text) ? NULL : "given at most 64 times";
    case 's':
        return append(o->sets, &o->sets_n, text) ? NULL : "given at most 64 times";
    case 'c':
        return append(o->cases, &o->cases_n, text) ? NULL : "given at most 64 times";
    case 'i':
        return append(o->ids, &o->ids_n, text) ? NULL : "given at most 64 times";
    case 'n':
        return integer(text, 1, &o->random) ? NULL : "an integer in 1 .. 2^63-1";
    case 'N':
    case 'A':
    case 'y':
        return integer(text, 1, &o->number) ? NULL : "an integer in 1 .. 2^63-1";
    case 'S':
        if (!integer(text, 0, &seed))
            return "an integer in 0 .. 2^63-1";
        o->seed = (uint64_t)seed;
        return NULL;
    case 'o':
        o->op = text;
        return is_op(text) ? NULL : "ring, sparse, reject, oracle or all";
    case 'O':
        o->plain_oracle = strcmp(text, "definition") == 0;
        o->no_oracle = strcmp(text, "none") == 0;
        return o->plain_oracle || o->no_oracle || strcmp(text, "fast") == 0
                   ? NULL
                   : "fast, definition or none";
    case 'H':
        o->shape = text;
        return NULL;
    case 'T':
        return thread_counts(text, o) ? NULL : "up to 8 integers in 1 .. 256, as in 1,2";
    case 'u':
        o->out = text;
        return text[0] != '\0' ? NULL : "a path";
    case 'z':
        o->golden = text;
        return text[0] != '\0' ? NULL : "a path";
    case 'F':
        o->format = text;
        return NULL;
    case 'f':
        o->result = text;
        return text[0] != '\0' ? NULL : "a path";
    case 'm':
        o->model = text;
        return text[0] != '\0' ? NULL : "a path or a kernel's name";
    case 'a':
        o->masked = strcmp(text, "masked") == 0;
        return o->masked || strcmp(text, "refused") == 0 ? NULL : "masked or refused";
    case 'X':
        return append(o->params, &o->params_n, text) ? NULL : "given at most 64 times";
    case 'd':
        o->db = text;
        return text[0] != '\0' ? NULL : "a path";
    case 'e':
    case 'B':
    case 'L':
    case 'g':
    case 'x':
    case 'W':
    case 'C':
        return take_text(o, letter, text);
    case 't':
        return seconds(text, &o->seconds) ? NULL : "a number of seconds in (0, 1e7]";
    case 'l':
        return seconds(text, &o->limit) ? NULL : "a number of seconds in (0, 1e7]";
    case 'j':
        return integer(text, 1, &o->jobs) && o->jobs <= 256 ? NULL : "an integer in 1 .. 256";
    default:
        break;
    }
    o->slow = o->slow || letter == 'w';
    o->relations = o->relations && letter != 'r';
    o->all_relations = o->all_relations || letter == 'R';
    o->in_process = o->in_process || letter == 'p';
    o->json = o->json || letter == 'J';
    o->verbose = o->verbose || letter == 'v';
    o->draws = o->draws || letter == 'D';
    o->peers = o->peers || letter == 'P';
    o->blame = o->blame || letter == 'b';
    o->merge = o->merge || letter == 'M';
    o->bits = o->bits || letter == 'I';
    o->quiet = o->quiet || letter == 'q';
    o->update = o->update || letter == 'U';
    o->github = o->github || letter == 'G';
    o->report = o->report || letter == 'E';
    o->help = o->help || letter == 'h';
    return NULL;
}

/* Does another row of that name belong to the verb? */
static bool gives_way(const struct option *row, const char *allowed)
{
    for (const struct option *o = longs; o->name != NULL; o++)
        if (o->val != row->val && strcmp(o->name, row->name) == 0 &&
            (strchr(allowed, o->val) != NULL || o < row))
            return strchr(allowed, row->val) == NULL;
    return false;
}

/* The table as this verb reads it: each name once. */
static void choose_rows(const char *allowed, struct option *rows)
{
    size_t n = 0;
    for (const struct option *o = longs; o->name != NULL; o++)
        if (!gives_way(o, allowed))
            rows[n++] = *o;
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
    struct option rows[sizeof longs / sizeof longs[0]];
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
        if (strchr(allowed, letter) == NULL)
            return mla_options_fail(MLA_EXIT_USAGE, verb, "flag --%s does not belong to this verb",
                                    long_name(letter));
        const char *rule = take(options, letter, optarg);
        if (rule != NULL)
            return mla_options_fail(MLA_EXIT_USAGE, verb, "--%s '%s': must be %s",
                                    long_name(letter), optarg, rule);
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

struct mla_store *mla_options_read_store(const struct mla_options *options, const char *verb)
{
    if (access(options->db, F_OK) == 0)
        return mla_options_store(options, verb);
    mla_options_fail(MLA_EXIT_ENVIRONMENT, verb, "--db: '%s': %s", options->db, strerror(errno));
    return NULL;
}

struct mla_store *mla_options_look_store(const struct mla_options *options, const char *verb)
{
    char message[512];
    struct mla_store *store;
    if (access(options->db, F_OK) != 0)
        mla_options_fail(MLA_EXIT_ENVIRONMENT, verb, "--db: '%s': %s", options->db,
                         strerror(errno));
    else if (mla_store_open_read(options->db, &store, message, sizeof message) == MLA_STORE_OK)
        return store;
    else
        mla_options_fail(MLA_EXIT_ENVIRONMENT, verb, "--db: %s", message);
    return NULL;
}

struct mla_store *mla_options_store(const struct mla_options *options, const char *verb)
{
    char message[512];
    struct mla_store *store;
    if (mla_store_open(options->db, &store, message, sizeof message) == MLA_STORE_OK) {
        mla_options_print_notice(store, verb);
        return store;
    }
    mla_options_fail(MLA_EXIT_ENVIRONMENT, verb, "--db: %s", message);
    return NULL;
}
