/* SPDX-License-Identifier: Apache-2.0
 *
 * link_end.h - the file that a path means, for who writes a new one beside it and renames that: a symbolic link
 * shall stay, and what it leads to be replaced.
 */
#ifndef MLA_FUZZ_LINK_END_H
#define MLA_FUZZ_LINK_END_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Follow the links that path itself is, whether or not there is anything at their end; its folders are left as
 * they are named. false, with errno: they go round in a circle (ELOOP), or a path does not fit (ENAMETOOLONG).
 * Thread-safe.
 */
bool mla_link_end(const char *path, char *end, size_t end_bytes);

#endif
