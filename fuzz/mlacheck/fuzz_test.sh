#!/usr/bin/env bash
# `mlacheck fuzz` from outside, in a build with the engine. usage: fuzz_test.sh BIN PLUGINS CORPUS
set -u
bin=$1 plugins=$2 corpus=$3 source=$3/..
mlacheck=$bin/mlacheck
. "$(dirname "${BASH_SOURCE[0]}")/check.sh"

# The honest kernel, on every target, from the corpus's seeds.
check 'scalar' 0 '"failed":0' "$mlacheck" fuzz --time 12 --jobs 2 --set "$corpus/special.txt" \
    --db "$dir/scalar.db" --json
check 'its summary' 0 'refused' "$mlacheck" show run --db "$dir/scalar.db"

# A wrong number, a crash and a hang each leave a finding, and the run goes on.
check 'wrong numbers' 1 'fail-certain' "$mlacheck" fuzz --time 3 --op ring \
    --kernel fault:canary-nan --db "$dir/nan.db"
check 'wrong numbers are findings' 0 'fail-certain' "$mlacheck" list findings --db "$dir/nan.db"
check 'crash' 1 'crash' "$mlacheck" fuzz --time 4 --op sparse \
    --kernel "$plugins/bad/mla_bad_call_crash.so" --db "$dir/crash.db"
check 'the crash is a finding' 0 'the worker died' "$mlacheck" list findings --db "$dir/crash.db"
check 'hang' 1 'timeout' "$mlacheck" fuzz --time 4 --limit 1 --op ring \
    --kernel "$plugins/bad/mla_bad_call_hang.so" --db "$dir/hang.db"
check 'the hang is a finding' 0 'longer than --limit' "$mlacheck" list findings --db "$dir/hang.db"

# A plug-in as anybody builds one, without the engine's counters, from an empty corpus: every target goes
# on after its first inputs.
"${CC:-cc}" -shared -fPIC -O2 -I"$source/impl" -o "$dir/plain.so" "$source/fuzz/plugin/example/example_plugin.c" -lm
for op in ring sparse reject; do
    code=0
    [ "$op" = reject ] && code=77 # it promises no refusals: nothing can be judged
    check "plug-in without counters: $op" "$code" ' 0 faults' "$mlacheck" fuzz --time 3 --op "$op" \
        --kernel "$dir/plain.so" --db "$dir/plain-$op.db"
    check "its engine ran to the end: $op" 0 'DONE' cat "$dir/plain-$op.db.fuzz/$op-0.log"
    check "without a death: $op" 1 '' grep 'no interesting inputs' "$dir/plain-$op.db.fuzz/$op-0.log"
done

# Workers that die of nothing that can be shown are no success.
mkdir "$dir/broken"
cp "$mlacheck" "$dir/broken"
for op in ring sparse reject; do
    printf '#!/bin/sh\nexit 1\n' >"$dir/broken/fuzz_$op"
    chmod +x "$dir/broken/fuzz_$op"
done
check 'workers that only die' 3 'without a case to show' "$dir/broken/mlacheck" fuzz --time 6 \
    --db "$dir/broken.db"

# A fault that needs other calls before it: the finding says so, and its line repeats it.
check 'a kernel that remembers' 1 'fail-certain' "$mlacheck" fuzz --time 4 --op sparse \
    --set "$corpus/special.txt" --kernel "$plugins/bad/mla_bad_remembers.so" --db "$dir/remembers.db"
check 'what it takes' 0 'as its relations show' "$mlacheck" list findings --db "$dir/remembers.db"
repro=$("$mlacheck" list findings --db "$dir/remembers.db" | grep -o 'run --kernel.*--relations' | head -1)
check 'its line repeats it' 1 'relation after-scale' bash -c "'$mlacheck' $repro --db '$dir/repro.db'"

# Merging a corpus loses no counter of guidance; the check would see it: without half of the files
# some are missing.
counters() {
    MLACHECK_COUNTERS=$2 "$bin/replay_ring" "$1" >/dev/null && sort "$2" -o "$2" && [ -s "$2" ]
}
check 'a corpus' 0 '' "$mlacheck" fuzz --time 5 --op ring --db "$dir/merge.db"
cp -r "$dir/merge.db.fuzz/corpus-ring" "$dir/before"
check 'merged' 0 'corpus of ring merged' "$mlacheck" fuzz --time 2 --op ring --merge \
    --db "$dir/merge.db"
counters "$dir/before" "$dir/before.txt"
counters "$dir/merge.db.fuzz/corpus-ring" "$dir/after.txt"
check 'no counter is lost' 0 '' test -z "$(comm -23 "$dir/before.txt" "$dir/after.txt")"
ls "$dir/merge.db.fuzz/corpus-ring"/* | awk 'NR % 2' | xargs rm
counters "$dir/merge.db.fuzz/corpus-ring" "$dir/half.txt"
check 'a loss is seen' 1 '' test -z "$(comm -23 "$dir/before.txt" "$dir/half.txt")"

# A worker that ends by a signal of its own has a case to show for it. One that is killed, as when memory runs
# out, and a parent that is killed leave usable databases and accuse nobody.
# (between two cases there is none in flight: try again)
end_worker() { # signal, database, what is to be seen
    for attempt in 1 2 3 4; do
        "$mlacheck" fuzz --time 6 --op ring --db "$2" >"$dir/out" 2>&1 &
        parent=$!
        sleep 2.$attempt
        pkill "-$1" -P "$parent"
        wait "$parent"
        "$mlacheck" list findings --db "$2" >>"$dir/out" 2>&1
        grep -q "$3" "$dir/out" && break
    done
}
end_worker ABRT "$dir/aborted.db" 'the worker died'
check 'aborted worker' 0 'the worker died' "$mlacheck" list findings --db "$dir/aborted.db"
end_worker KILL "$dir/killed.db" 'has no verdict in it: run it again with'
check 'killed worker' 0 'has no verdict in it: run it again with' cat "$dir/out"
check 'is not accused' 0 '(none)' "$mlacheck" list findings --db "$dir/killed.db"
for attempt in 1 2 3 4; do
    "$mlacheck" fuzz --time 30 --op ring --db "$dir/parent.db" >"$dir/out" 2>&1 &
    parent=$!
    sleep 2.$attempt
    kill -KILL "$parent"
    wait "$parent" 2>/dev/null
    sleep 0.5
    "$mlacheck" list findings --db "$dir/parent.db" >"$dir/out" 2>&1
    grep -q 'has no verdict in it: run it again with' "$dir/out" && break
done
check 'killed parent' 0 'has no verdict in it: run it again with' cat "$dir/out"
check 'nobody is accused' 0 '(none)' "$mlacheck" list findings --db "$dir/parent.db"

# Ctrl-C ends the workers after the input at hand; nobody is accused.
"$mlacheck" fuzz --time 60 --jobs 2 --db "$dir/stop.db" >"$dir/out" 2>&1 &
parent=$!
sleep 2.5
kill -INT "$parent"
wait "$parent"
check 'exit code of Ctrl-C' 0 '' test $? -ne 1
check 'nobody accused by Ctrl-C' 0 '(none)' "$mlacheck" list findings --db "$dir/stop.db"

# Bad input.
check 'unknown kernel' 2 "'scaler'" "$mlacheck" fuzz --time 2 --kernel scaler --db "$dir/x.db"
check 'missing plug-in' 3 'none.so' "$mlacheck" fuzz --time 2 --kernel "$dir/none.so" --db "$dir/x.db"
check 'missing seeds' 2 'none.txt' "$mlacheck" fuzz --time 2 --set "$dir/none.txt" --db "$dir/x.db"
check 'bad time' 2 "--time '-1'" "$mlacheck" fuzz --time -1 --db "$dir/x.db"
check 'database in no folder' 3 'nowhere' "$mlacheck" fuzz --time 2 --db "$dir/nowhere/x.db"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
