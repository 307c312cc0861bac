/* SPDX-License-Identifier: Apache-2.0
 *
 * standalone_main.c - a fuzz target without an engine: replays files and folders.
 *
 * Every regular file, in folders recursively, is one input; a file that begins like a case line or a
 * comment is a corpus, each of its lines an input that must be a case. Anything that cannot be read,
 * and a run without any input, is an error: lost coverage must not look like success.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/corpus.h"
#include "fuzz/target.h"

static long inputs_n, others_n;

static int complain(const char *path)
{
    fprintf(stderr, "%s: cannot be read: %s\n", path, strerror(errno));
    return 1;
}

static int is_text(const uint8_t *data, size_t n)
{
    return n > 0 && (data[0] == '#' || (n > 5 && memcmp(data, "ring ", 5) == 0) ||
                     (n > 7 && memcmp(data, "sparse ", 7) == 0));
}

static int replay_corpus(const char *path)
{
    struct mla_corpus corpus = {0};
    char error[1024], line[MLA_CASE_LINE_MAX];
    if (mla_corpus_read(&corpus, path, error, sizeof error) != MLA_OK) {
        fprintf(stderr, "%s\n", error);
        mla_corpus_free(&corpus);
        return 1;
    }
    for (size_t i = 0; i < corpus.n; i++) {
        if (!mla_target_wants(&corpus.cases[i])) {
            others_n++;
            continue;
        }
        size_t n = mla_case_format(&corpus.cases[i], line);
        LLVMFuzzerTestOneInput((const uint8_t *)line, n);
        inputs_n++;
    }
    mla_corpus_free(&corpus);
    return 0;
}

static int replay_file(const char *path)
{
    uint8_t *data = NULL;
    size_t n = 0, room = 0, got;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return complain(path);
    do {
        room = room * 2 + 4096;
        uint8_t *more = realloc(data, room);
        if (more == NULL) {
            free(data);
            fclose(file);
            return complain(path);
        }
        data = more;
        got = fread(data + n, 1, room - n, file);
        n += got;
    } while (n == room);
    int bad = ferror(file);
    fclose(file);
    if (!bad && mla_target_reads_lines && is_text(data, n)) {
        free(data);
        return replay_corpus(path);
    }
    if (!bad) {
        LLVMFuzzerTestOneInput(data, n);
        inputs_n++;
    }
    free(data);
    return bad ? complain(path) : 0;
}

static int replay(const char *path, int depth);

static int replay_entries(const char *path, struct dirent **entries, int n, int depth)
{
    int bad = 0;
    for (int i = 0; i < n; i++) {
        char child[4096];
        const char *name = entries[i]->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            int length = snprintf(child, sizeof child, "%s/%s", path, name);
            errno = ENAMETOOLONG;
            bad |= length < (int)sizeof child ? replay(child, depth + 1) : complain(path);
        }
        free(entries[i]);
    }
    return bad;
}

static int replay(const char *path, int depth)
{
    struct stat info;
    struct dirent **entries;
    if (lstat(path, &info) != 0)
        return complain(path);
    bool link = S_ISLNK(info.st_mode);
    if (link && stat(path, &info) != 0)
        return complain(path);
    if (link && depth > 0 && S_ISDIR(info.st_mode)) /* a folder met again through a link */
        return 0;
    if (S_ISREG(info.st_mode))
        return replay_file(path);
    if (!S_ISDIR(info.st_mode)) {
        fprintf(stderr, "%s: is neither file nor folder\n", path);
        return 1;
    }
    int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0)
        return complain(path);
    int bad = replay_entries(path, entries, n, depth);
    free(entries);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE|FOLDER ...\n", argv[0]);
        return 2;
    }
    for (int i = 1; i < argc; i++)
        bad |= replay(argv[i], 0);
    printf("%ld inputs replayed", inputs_n);
    if (others_n > 0)
        printf(", %ld cases of other targets or slow ones left out", others_n);
    printf("\n");
    if (inputs_n == 0)
        fprintf(stderr, "no input was found\n");
    return bad || inputs_n == 0 ? 2 : 0;
}
