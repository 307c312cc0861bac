#!/usr/bin/env bash
# The verdict against adversaries: nobody accused, sharp in every family, cheats caught.
# usage: selfcheck_test.sh BIN CASES    (the slow form: selfcheck_test.sh build/release/bin 100000)
set -u
bin=$1 cases=$2
mlacheck=$bin/mlacheck
. "$(dirname "${BASH_SOURCE[0]}")/check.sh"
db=$dir/results.db

# usage
check 'help' 0 'usage' "$mlacheck" selfcheck --help
check 'a kernel that is no adversary' 2 'adversary:NAME' "$mlacheck" selfcheck --kernel scalar --db "$db"
check 'an unknown adversary' 2 'two-pass' "$mlacheck" selfcheck --kernel adversary:nobody --db "$db"
check 'no cases' 2 '--cases' "$mlacheck" selfcheck --cases 0 --db "$db"
check 'bad usage makes no database' 1 '' test -e "$db"
check 'a flag of another verb' 2 '--random' "$mlacheck" selfcheck --random 5
check 'adversaries are listed' 0 'adversary:cheat-add' "$mlacheck" list adversaries
check 'and have models' 0 'p_frame' "$mlacheck" show kernel adversary:p-row

# nobody is accused, and every family has somebody who comes near his bound
timeout 800 "$mlacheck" selfcheck --cases "$cases" --jobs 2 --db "$db" --json >"$dir/out" 2>&1
code=$?
tail -1 "$dir/out"
check 'nobody accused' 0 '' test "$code" -eq 0
check 'rows were held against chance' 1 '' grep -q '"energy":-1' "$dir/out"
check 'all cases run' 0 "\"adversary_cases\":$cases,\"accused_certain\":0,\"accused_improbable\":0," \
    tail -1 "$dir/out"
check 'no two truths' 0 '"definition_mismatch":0' tail -1 "$dir/out"
check 'some rows were evaluated twice' 1 '' grep -q '"definition_rows":0' "$dir/out"
# "sharpest":{"upstream":0.99,...}: one family a line
sed -n 's/.*"sharpest":{\([^}]*\)}.*/\1/p' "$dir/out" | tr ',' '\n' >"$dir/families"
check 'sharp in every family' 0 '' awk -F: '!($2 >= 0.5) {print; bad = 1} END {exit bad || NR < 6}' \
    "$dir/families"
check 'as a run' 0 'selfcheck' "$mlacheck" list runs --db "$db"
check 'tallied' 0 'adversary:p-free' "$mlacheck" show run --db "$db"

# threads change nothing
"$mlacheck" selfcheck --cases 96 --seed 3 --db "$db" --json | tail -1 >"$dir/one"
"$mlacheck" selfcheck --cases 96 --seed 3 --jobs 3 --db "$db" --json | tail -1 >"$dir/three"
check 'the same with three threads' 0 '' cmp "$dir/one" "$dir/three"
"$mlacheck" selfcheck --cases 96 --seed 4 --db "$db" --json | tail -1 >"$dir/other"
check 'another seed is another check' 1 '' cmp "$dir/one" "$dir/other"

# who exceeds his model is accused, and the line that repeats it does
for cheat in add p exp frame blocks most; do
    check "cheat-$cheat" 1 "FAIL" "$mlacheck" selfcheck --kernel "adversary:cheat-$cheat" --cases 60 \
        --db "$dir/cheats.db"
done
# one that keeps every element inside, but looks at V where it said it would not; and one that does not
line='ring v=1 R=1 B=1 H=1 Nq=32 Nk=512 Bk=1 G=512 Bg=1 DH=64 DV=32 L=512 scale=- balanced=0 slot=- P=- topology=ring links=1 q_chunk=32 k_chunk=64 threads=0 family=profile region=flat amount=0 poison=noise future=- stats=1 seed=1 rows=8 row_seed=1 slow=0 set=- put=-'
check 'cheat-sight' 1 'fail-improbable' "$mlacheck" run --kernel adversary:cheat-sight --case "$line" \
    --db "$dir/cheats.db"
check 'the blind' 0 '1 passed' "$mlacheck" run --kernel adversary:blind-rough --case "$line" \
    --db "$dir/cheats.db"
check 'the repeat' 1 'fail-certain' bash -c \
    "eval \"\$('$mlacheck' selfcheck --kernel adversary:cheat-p --cases 60 --db '$dir/cheats.db' |
        sed -n 's|^  repro: mlacheck|\"$mlacheck\"|p' | head -1) --db '$dir/cheats.db'\""
check 'stored as findings' 0 'adversary:cheat-p' "$mlacheck" list findings --db "$dir/cheats.db"

# Ctrl-C: what was done is said and stored
"$mlacheck" selfcheck --cases 10000000 --db "$dir/stopped.db" --json >"$dir/stopped" 2>&1 &
sleep 2
kill -INT $!
wait $!
code=$?
check 'its exit code' 0 '' test "$code" -eq 130
check 'interrupted' 0 'interrupted' cat "$dir/stopped"
check 'counts so far' 0 '"accused_certain":0' tail -1 "$dir/stopped"
check 'the run has no end' 0 '{"field":"ended","value":null}' "$mlacheck" show run --db "$dir/stopped.db" --json
check 'one that was not stopped has' 1 '' bash -c \
    "'$mlacheck' show run --db '$db' --json | grep -F '{\"field\":\"ended\",\"value\":null}'"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
