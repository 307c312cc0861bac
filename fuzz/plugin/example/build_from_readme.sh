#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# build_from_readme.sh - build the example in an empty directory with the lines of its README, verbatim.
#
# usage: build_from_readme.sh PROJECT DIRECTORY      (CC in the environment)
# The README cannot go stale: what it tells an author to type is what the test runs.
set -eu
project=$1
directory=$2
here=$project/fuzz/plugin/example
cp "$here/example_plugin.c" "$directory/"
sed -n '/^```sh$/,/^```$/p' "$here/README.md" | sed '/^```/d' >"$directory/build.sh"
test "$(wc -l <"$directory/build.sh")" -eq 3
cd "$directory"
MLACHECK=$project sh -eu ./build.sh
