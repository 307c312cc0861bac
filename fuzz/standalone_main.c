/* SPDX-License-Identifier: Apache-2.0
 *
 * standalone_main.c - a fuzz target without an engine: replays files and folders.
 *
 * Every regular file, in folders recursively, is one input. Anything that cannot be read, and a run
 * without any input, is an error: lost coverage must not look like success.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/target.h"

static long inputs_n;

static int complain(const char *path)
{
    fprintf(stderr, "%s: cannot be read: %s\n", path, strerror(errno));
    return 1;
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
    if (!bad) {
        LLVMFuzzerTestOneInput(data, n);
        inputs_n++;
    }
    free(data);
    return bad ? complain(path) : 0;
}

static int replay(const char *path);

static int replay_entries(const char *path, struct dirent **entries, int n)
{
    int bad = 0;
    for (int i = 0; i < n; i++) {
        char child[4096];
        const char *name = entries[i]->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            int length = snprintf(child, sizeof child, "%s/%s", path, name);
            errno = ENAMETOOLONG;
            bad |= length < (int)sizeof child ? replay(child) : complain(path);
        }
        free(entries[i]);
    }
    return bad;
}

static int replay(const char *path)
{
    struct stat info;
    struct dirent **entries;
    if (stat(path, &info) != 0)
        return complain(path);
    if (!S_ISDIR(info.st_mode))
        return replay_file(path);
    int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0)
        return complain(path);
    int bad = replay_entries(path, entries, n);
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
        bad |= replay(argv[i]);
    printf("%ld inputs replayed\n", inputs_n);
    if (inputs_n == 0)
        fprintf(stderr, "no input was found\n");
    return bad || inputs_n == 0 ? 2 : 0;
}
