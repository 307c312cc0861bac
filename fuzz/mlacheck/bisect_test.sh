#!/usr/bin/env bash
# `mlacheck bisect` on a scratch repository of kernel plug-ins: 64 commits, of which five do not build, one
# fails now and then, the 12th changes output bits within bounds, and the 24th, 40 below the last, is wrong.
# usage: bisect_test.sh BIN PROJECT
set -u
bin=$1 project=$2
mlacheck=$bin/mlacheck
. "$(dirname "${BASH_SOURCE[0]}")/check.sh"
needs timeout git cc setsid flock sha256sum

line='sparse v=1 S=1 S_kv=128 H=16 Rr=64 K=128 tiled=0 dense=0 offset=- order=mx4 cores=1 threads=1 scale=0x1.555556p-5 family=upstream region=normal amount=0 indices=sorted poison=nan stats=1 seed=1 rows=0 row_seed=1 slow=0 set=- put=-'
unset CC CFLAGS $(git rev-parse --local-env-vars)
export LC_ALL=C GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export FLAKY_FILE=$dir/flaky BUILDS=$dir/builds STOP=$dir/stop SCRATCH=$dir
repo=$dir/repo db=$dir/x.db
: >"$FLAKY_FILE"

# The repository holds step.h alone, so that its hashes, and what the search asks, are for ever the same.
# The example plug-in with a model that leaves room for one bit, and what each commit makes of its output.
cat >"$dir/mine.c" <<'END'
#define mla_plugin_kernels example_kernels
#include "example_plugin.c"
#undef mla_plugin_kernels

extern const int mine_step, mine_flaky, mine_spoil; /* of the commit */

/* Is this call wrong? Every other one that any process makes; of the step in LUCKY the first three are all
 * "good" or all "bad". */
static int flaky(void)
{
    const char *lucky = getenv("LUCKY");
    int is_lucky = lucky != NULL && atoi(lucky) == mine_step;
    if (mine_step != mine_flaky && !is_lucky)
        return 0;
    FILE *file = fopen(getenv("FLAKY_FILE"), "a");
    long n = file == NULL || fseek(file, 0, SEEK_END) != 0 ? 0 : ftell(file);
    if (file != NULL && fputc('x', file) != EOF)
        fclose(file);
    return is_lucky && n < 3 ? strstr(lucky, "bad") != NULL : n % 2 != 0;
}

static int32_t spoiled(const struct mla_sparse_args *a, char *message, size_t message_bytes)
{
    int32_t status = sparse(a, message, message_bytes);
    if (mine_step >= 12)
        a->out[0] ^= 1;
    if (mine_step >= 24 || flaky() || (mine_spoil && a->threads == 2))
        a->out[1] ^= 0x40;
    return status;
}

static struct mla_kernel mine;

const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n)
{
    static const struct mla_kernel *const kernels[] = {&mine};
    mine = example;
    mine.name = "mine";
    mine.sparse = spoiled;
    mine.sparse_model.exp_error = 0x1p-8;
    *kernels_n = 1;
    return kernels;
}
END
cat >"$dir/step.c" <<'END'
#include "step.h"
extern const int mine_step, mine_flaky, mine_spoil;
#ifndef SPOIL
#define SPOIL 0
#endif
const int mine_step = STEP, mine_flaky = FLAKY, mine_spoil = SPOIL;
END
cc -std=c17 -O1 -w -fPIC -I"$project/impl" -I"$project/fuzz/plugin/example" -c -o "$dir/mine.o" "$dir/mine.c" ||
    { echo 'the plug-in could not be compiled'; exit 1; }
# Sourced by the shell that is the build: its parent is the command. "N SIGNAL" in $STOP stops the Nth build.
cat >"$dir/build.sh" <<'END'
git rev-parse HEAD >>"$BUILDS"
read -r at signal 2>/dev/null <"$STOP" || at=0
[ "$(wc -l <"$BUILDS")" -ne "$at" ] || { kill -"$signal" $PPID; sleep 1; }
exec cc -shared -fPIC $CFLAGS -I. -o mine.so "$SCRATCH/step.c" "$SCRATCH/mine.o" -lm
END

# commits FIRST LAST: linear, each with its number in step.h; broken and flaky as the lists say
commits() {
    local i message text
    for ((i = $1; i <= $2; i++)); do
        message="Step $i"
        text=$(printf '#define STEP %s\n#define FLAKY %s' "$i" "$flaky")
        [[ " $broken " != *" $i "* ]] || text+=$'\n#error "half done"'
        printf 'commit refs/heads/main\ncommitter A U Thor <author@example.com> %s +0000\n' $((1700000000 + i))
        printf 'data %s\n%s\nM 100644 inline step.h\ndata %s\n%s\n' "${#message}" "$message" "${#text}" "$text"
    done
}
# make_repo: commits 1 .. 64
make_repo() {
    git init -q -b main "$repo" && commits 1 64 | git -C "$repo" fast-import --quiet && git -C "$repo" reset -q --hard
}
# step N: the hash of commit N;  said FILE KEY: a number of the last line's JSON
step() { git -C "$repo" rev-parse "HEAD~$((64 - $1))"; }
said() { tail -n 1 "$1" | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p"; }

broken='33 32 16 21 40' flaky=20
make_repo || { echo 'the scratch repository could not be made'; exit 1; }
bisect=("$mlacheck" bisect --case "$line" --repo "$repo" --build '. "$SCRATCH/build.sh"' --plugin mine.so
    --no-relations --db "$db")
found=("${bisect[@]}" --good "$(step 1)" --kernel mine)

# usage
check 'help' 0 'example: mlacheck bisect' "$mlacheck" bisect --help
check 'no case' 2 'give one case' "$mlacheck" bisect --good x
check 'no good end' 2 'give --good' "${bisect[@]}"
check 'no such commit' 2 "--good 'nothing'" "${bisect[@]}" --good nothing
check 'a flag is no commit' 2 "--good '--all'" "${bisect[@]}" --good=--all
check 'good after bad' 2 'must be an ancestor' "${bisect[@]}" --good HEAD --bad "$(step 3)"
check 'no such figure' 2 'correctly_rounded_percent' "${found[@]}" --where 'max_olp>1'
check 'no condition' 2 'FIGURE>NUMBER' "${found[@]}" --where max_ulp
check 'two questions' 2 'exclude' "${found[@]}" --where 'max_ulp>1' --bits
check 'build without plug-in' 2 'belong together' "$mlacheck" bisect --case "$line" --good x --build true
check 'no repository' 2 'must be a git repository' "${found[@]}" --repo "$dir"
check 'a plug-in outside the tree' 2 'must be a path in the tree' "${found[@]}" --plugin ../mine.so
check 'by a detour' 2 'must be a path in the tree' "${found[@]}" --plugin x/../../mine.so
check 'dots in a name are none' 2 "--good 'nothing'" "${found[@]}" --plugin a..b/..mine.so --good nothing
long=$dir/$(printf 'a%.0s' {1..120})
mkdir "$long"
check 'a folder too long for plug-ins' 2 'must be shorter than 200 bytes' "${found[@]}" --good "$(step 22)" --db "$long/x.db"
check 'not our own' 2 "not mlacheck's" "$mlacheck" bisect --case "$line" --repo "$repo" --good HEAD~1
check 'a stored case, no database' 3 'none.db' "$mlacheck" bisect 12345678 --repo "$repo" --good HEAD~1 \
    --build x --plugin y --db "$dir/none.db"

# The ends must be as said; the build's log is named.
check 'a good end that is bad' 2 "--good $(step 50 | head -c 12) is not good: 5 of 5 tries bad: fail-certain" \
    "${bisect[@]}" --tries 1 --good "$(step 50)"
check 'a bad end that is good' 2 "--bad $(step 5 | head -c 12) is not bad: 5 of 5 tries good: pass" \
    "${found[@]}" --tries 1 --bad "$(step 5)"
check 'an end that does not build' 2 'does not build (exit 1), see' "${found[@]}" --tries 1 --bad "$(step 40)"
log=$(echo "$dir"/x.db.bisect/*/"$(step 40)".log)
check 'its log' 0 'half done' cat "$log"
check 'no such kernel' 2 "has no kernel 'theirs'" "${bisect[@]}" --good "$(step 1)" --kernel theirs

# Stopped twice, once without any warning; the same command goes on, and builds nothing twice but what it
# was building.
: >"$BUILDS"
rm -r "$dir"/x.db*
echo '4 INT' >"$STOP"
check 'Ctrl-C' 130 'the same command goes on' "${found[@]}"
check 'its work tree is gone' 0 '1' bash -c "git -C '$repo' worktree list | grep -c ."
echo '6 KILL' >"$STOP"
check 'killed' 137 'going on: ' "${found[@]}"
rm "$STOP"
check 'found' 1 "first bad commit: $(step 24)" bash -c '"$@" | tee "$0"; exit "${PIPESTATUS[0]}"' \
    "$dir/found" "${found[@]}" --json
check 'by name' 0 "Step 24" cat "$dir/found"
check 'its diff' 0 'step.h | 2 +-' cat "$dir/found"
check 'its verdict' 0 'fail-certain' cat "$dir/found"
check 'what did not build was skipped' 0 'does not build (exit 1)' \
    grep -F -A1 "skip $(step 21 | head -c 12)" "$dir/found"
check 'the flaky one too' 0 'flaky: 3 of 6 tries bad' grep -F -A1 "skip $(step 20 | head -c 12)" "$dir/found"
check 'at most 9 are judged, the flaky one among them' 0 '' test "$(said "$dir/found" judged)" -le 9
check 'the flaky one was met' 0 '"flaky":1' tail -n 1 "$dir/found"
check 'nothing is built twice but what was stopped' 0 '2' bash -c "sort '$BUILDS' | uniq -d | wc -l"
check 'twice at most' 0 '0' bash -c "sort '$BUILDS' | uniq -c | awk '\$1 > 2' | wc -l"
check 'the repository is left as it was' 0 '1' bash -c "git -C '$repo' worktree list | grep -c ."
check 'and clean' 0 '0' bash -c "git -C '$repo' status --porcelain | wc -l"
repro=$(sed -n 's/^  repro: mlacheck //p' "$dir/found")
check 'the reproduction line' 1 'fail-certain' bash -c "'$mlacheck' $repro --db '$dir/y.db'"
cp "$BUILDS" "$dir/before"
check 'again' 1 "first bad commit: $(step 24)" "${found[@]}"
check 'at no cost' 0 '' cmp "$BUILDS" "$dir/before"

mkdir "$dir/lib.so:1"
check 'a kernel of a plug-in elsewhere' 1 "first bad commit: $(step 24)" "${bisect[@]}" --good "$(step 1)" \
    --kernel "$dir/lib.so:1/k.so:mine"
check 'at no cost too' 0 '' cmp "$BUILDS" "$dir/before"

# What a commit says steers no terminal: neither by a control character nor by one that UTF-8 spells in two bytes.
author() { export GIT_AUTHOR_NAME=$1 GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.com; }
author $'A\e]0;title\aB'
git clone -q "$repo" "$dir/loud" && git -C "$dir/loud" reset -q --hard "$(step 11)"
for i in 11 24; do
    printf '#define STEP %s\n#define FLAKY 20\n/* loud */\n' "$i" >"$dir/loud/step.h"
    git -C "$dir/loud" commit -qam $'Step \e[31m'"$i"$' \xc2\x9b2J'
done
check 'a loud commit' 1 '[31m24' bash -c '"$@" | tee "$0"; exit "${PIPESTATUS[0]}"' \
    "$dir/said" "${bisect[@]}" --repo "$dir/loud" --good HEAD~2 --tries 1
check 'its author' 0 ']0;title' cat "$dir/said"
check 'say nothing to the terminal' 1 '' grep -q $'[[:cntrl:]]\\|\xc2[\x80-\x9f]' "$dir/said"

# Other questions: bits and figures changed earlier. The case and the kernel may come from a finding.
found+=(--tries 1)
check 'bits' 1 "first bad commit: $(step 12)" "${found[@]}" --bits --bad "$(step 18)"
check 'a figure' 1 "first bad commit: $(step 12)" "${found[@]}" --where 'correctly_rounded_percent < 100' --bad "$(step 18)"
check 'bits that did not change' 2 'is not bad: 5 of 5 tries good' "${found[@]}" --bits --bad "$(step 5)"
id=$(printf %s "$line" | sha256sum | head -c 12)
finding=("$mlacheck" bisect "$id" --db "$dir/y.db" --repo "$repo" --no-relations --plugin mine.so --tries 1)
check 'a finding; an unbuildable boundary is a range' 1 'one of 4' bash -c '"$@" | tee "$0"; exit "${PIPESTATUS[0]}"' "$dir/range" "${finding[@]}" \
    --good "$(step 22)" --bad "$(step 26)" --build 'grep -q "STEP 2[26]" step.h || exit 125; . "$SCRATCH/build.sh"' --json
check 'its kernel is the one of the finding' 0 'mine.so:mine' bash -c "sed 's/[0-9a-f]*[.]so:/mine.so:/' '$dir/range'"
check 'a build that takes too long' 2 'took longer than 0.2 s' "${finding[@]}" --good "$(step 22)" --build 'sleep 9' --time 0.2
check 'a build that makes nothing' 2 'made no mine.so' "${finding[@]}" --good "$(step 22)" --build true
check 'a changed command builds anew' 0 '3' bash -c "ls -d '$dir'/y.db.bisect/* | wc -l"

# What could not be built is asked again once its .failed is removed, and is then as good an answer as any.
able=("${found[@]}" --good "$(step 22)" --bad "$(step 26)"
    --build 'grep -q "STEP 24" step.h && [ ! -e "$SCRATCH/able" ] && exit 125; . "$SCRATCH/build.sh"')
check 'a commit that lacks something' 1 'one of 2' "${able[@]}"
touch "$dir/able"
check 'stays skipped' 1 'one of 2' "${able[@]}"
rm "$dir"/x.db.bisect/*/"$(step 24)".failed
check 'until its .failed is removed' 1 "first bad commit: $(step 24)" "${able[@]}"
check 'which stays the answer' 1 "first bad commit: $(step 24)" timeout 60 "${able[@]}"

# A server that a build leaves running, in a session of its own, holds nothing up, and has no file of ours but
# the lock, which tells of builds whose search was killed. (The shell keeps its own from 10 on.)
: >"$dir/server"
serving=("${found[@]}" --good "$(step 22)" --bad "$(step 26)"
    --build 'setsid sh -c "echo \$\$; exec sleep 100" >>"$SCRATCH/server" & ls -l /proc/$$/fd >"$SCRATCH/open"; . "$SCRATCH/build.sh"')
check 'a build that starts a server' 1 "first bad commit: $(step 24)" "${serving[@]}"
check 'it outlives the search' 0 '' kill -0 $(cat "$dir/server")
check 'and holds no lock' 0 '' flock -n "$(ls -td "$dir"/x.db.bisect/* | head -n 1)/lock" true
kill $(cat "$dir/server")
sed -n 's/.* [3-9] -> //p' "$dir/open" | grep -E 'x\.db|deleted' >"$dir/theirs"
check 'builds have the lock' 0 '/lock' cat "$dir/theirs"
check 'and nothing else of ours' 1 '' grep -v '/lock$' "$dir/theirs"

# A build that removes its work tree's .git ends the search, with the repository around it as it was.
git clone -q "$repo" "$dir/outer" && echo '/* changed */' >>"$dir/outer/step.h" && cp "$dir/outer/step.h" "$dir/changed"
check 'a build that removes .git' 3 'could not be checked out' "${found[@]}" --repo "$dir/outer" --db "$dir/outer/o.db" \
    --build 'rm .git; cc -shared -fPIC -I. -o mine.so "$SCRATCH/step.c" "$SCRATCH/mine.o" -lm'
check 'the file around it' 0 '' cmp "$dir/changed" "$dir/outer/step.h"
check 'and its commit' 0 "$(step 64)" git -C "$dir/outer" rev-parse HEAD
check 'and its branch' 0 'refs/heads/main' git -C "$dir/outer" symbolic-ref HEAD

# A fault that shows now and then: one failure is enough for a bad commit, a good one needs many passes.
check 'an unsteady fault' 1 "first bad commit: $(step 20)" bash -c '"$@" | tee "$0"; exit "${PIPESTATUS[0]}"' \
    "$dir/unsteady" "${found[@]}" --good "$(step 19)" --bad "$(step 20)" --json
check 'it is said' 0 'unsteady: one bad try' cat "$dir/unsteady"
check 'and in JSON' 0 '"steady":false' tail -n 1 "$dir/unsteady"

# Luck in three tries leads the search astray, but not its answer: that is asked fifteen times.
: >"$FLAKY_FILE"
export LUCKY='23 good'
check 'a good parent that was lucky' 1 'one of 2' bash -c '"$@" | tee "$0"; exit "${PIPESTATUS[0]}"' \
    "$dir/lucky" "${bisect[@]}" --good "$(step 22)" --bad "$(step 26)"
check 'it was good at first' 0 '3 of 3 tries good' grep -F -A1 "good $(step 23 | head -c 12)" "$dir/lucky"
check 'and flaky when it mattered' 0 'flaky: 3 of' grep -F -A1 "skip $(step 23 | head -c 12)" "$dir/lucky"
: >"$FLAKY_FILE"
LUCKY='18 bad'
check 'a bad commit that was unlucky' 1 "first bad commit: $(step 24)" bash -c '"$@" | tee "$0"; exit "${PIPESTATUS[0]}"' \
    "$dir/lucky" "${bisect[@]}" --good "$(step 11)" --bad "$(step 26)"
check 'it was bad at first' 0 '3 of 3 tries bad' grep -F -A1 "bad  $(step 18 | head -c 12)" "$dir/lucky"
check 'and flaky at the end' 0 'flaky: ' grep -F -A1 "skip $(step 18 | head -c 12)" "$dir/lucky"
unset LUCKY

# Settings instead of commits.
config=("$mlacheck" bisect --case "$line" --db "$dir/c.db" --tries 1 --json)
check 'one configuration' 2 'give --config twice' "${config[@]}" --config threads=1
check 'no such setting' 2 "--config 'thread'" "${config[@]}" --config thread=1 --config thread=2
check 'no difference' 2 'must differ' "${config[@]}" --config threads=1 --config threads=1
check 'no bad configuration' 2 'the second --config is not bad' "${config[@]}" --kernel scalar \
    --config threads=1 --config threads=2
check 'the kernel' 1 '"settings":["kernel"]' "${config[@]}" --config kernel=scalar,threads=1,poison=nan \
    --config kernel=fault:canary-nan,threads=2,poison=huge
# A plug-in that is not built here is part of the question: built anew, it is judged anew.
printf '#define STEP 5\n#define FLAKY 20\n' >"$dir/step.h"
plug() { cc -shared -fPIC -I"$dir" "$1" -o "$dir/k.so" "$dir/step.c" "$dir/mine.o" -lm; }
given=("${config[@]}" --no-relations --kernel "$dir/k.so:mine" --config threads=1 --config threads=2)
named=("${config[@]}" --no-relations --config "threads=1,kernel=$dir/k.so:mine" --config "threads=2,kernel=$dir/k.so:mine")
plug -DSPOIL
check 'a plug-in as it is' 1 '"settings":["threads"]' "${given[@]}"
check 'named by a configuration' 1 '"settings":["threads"]' "${named[@]}"
plug -DSPOIL=0
check 'built anew' 2 'the second --config is not bad' "${given[@]}"
check 'likewise' 2 'the second --config is not bad' "${named[@]}"
# Wherever it lies.
mkdir "$dir/a,b"
for folder in a,b lib.so:1; do
    elsewhere=("${config[@]}" --no-relations --kernel "$dir/$folder/k.so:mine" --config threads=1 --config threads=2)
    plug -DSPOIL && cp "$dir/k.so" "$dir/$folder"
    check "a plug-in in $folder" 1 '"settings":["threads"]' "${elsewhere[@]}"
    plug -DSPOIL=0 && cp "$dir/k.so" "$dir/$folder"
    check "built anew in $folder" 2 'the second --config is not bad' "${elsewhere[@]}"
done
check 'settings that only matter together' 1 '"settings":["threads","cflags"]' "${config[@]}" --no-relations \
    --repo "$repo" --build '. "$SCRATCH/build.sh"' --plugin mine.so --bad "$(step 5)" \
    --config threads=1,poison=nan,cflags=-O0 --config threads=2,poison=huge,cflags=-DSPOIL
check 'a flag that changes bits' 1 '"settings":["cflags"]' "${config[@]}" --no-relations --bits \
    --repo "$repo" --build '. "$SCRATCH/build.sh"' --plugin mine.so --bad "$(step 5)" \
    --config threads=2,cflags=-O0 --config threads=2,cflags=-DSPOIL

# This project's own kernels: the recipe, on a project that has no more of it than the recipe needs.
mkdir -p "$dir/own/impl"
cp "$project"/impl/mla.h "$project"/impl/mla_kernel.h "$project"/fuzz/plugin/example/example_plugin.c "$dir/own/impl"
cat >"$dir/own/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(own C)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_subdirectory(impl)
END
echo 'add_library(mla_impl STATIC registry.c)' >"$dir/own/impl/CMakeLists.txt"
echo '#include "impl/mla_kernel.h"
const struct mla_kernel *const *mla_registry_kernels(size_t *n);' >"$dir/own/impl/registry.h"
sed 's/mla_plugin_kernels/mla_registry_kernels/' "$dir/own/impl/example_plugin.c" >"$dir/own/impl/registry.c"
author A
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
commit() { git -C "$dir/own" add -A && git -C "$dir/own" commit -qm "$1"; }
git init -q -b main "$dir/own"
commit right
sed -i 's/row.o\[l\])/row.o[l] + (l == 3))/' "$dir/own/impl/registry.c"
commit wrong
check 'our own kernels' 1 'wrong' "$mlacheck" bisect --case "$line" --db "$dir/own.db" --repo "$dir/own" \
    --kernel example --good HEAD~1 --no-relations --tries 1

echo "bisect_test: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
