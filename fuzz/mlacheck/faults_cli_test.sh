#!/usr/bin/env bash
# `mlacheck faults` from outside: usage, a few faults killed, what is stored of them, Ctrl-C.
# usage: faults_cli_test.sh BIN
set -u
bin=$1
mlacheck=$bin/mlacheck
. "$(dirname "${BASH_SOURCE[0]}")/check.sh"
db=$dir/results.db

# usage
check 'help' 0 '--trials' "$mlacheck" faults --help
check 'a kernel that is no fault' 2 'fault:NAME' "$mlacheck" faults --kernel scalar --db "$db"
check 'an unknown fault' 2 'no such kernel' "$mlacheck" faults --kernel fault:nobody --db "$db"
check 'no trials' 2 "--trials '0'" "$mlacheck" faults --trials 0 --db "$db"
check 'no operation' 2 "--op 'reject'" "$mlacheck" faults --op reject --db "$db"
check 'a flag of another verb' 2 '--cases' "$mlacheck" faults --cases 5
check 'an odd word' 2 "'now'" "$mlacheck" faults now
check 'bad usage makes no database' 1 '' test -e "$db"
# --random takes a number with run, and none with faults
check 'run --random needs a number' 2 'needs a value' "$mlacheck" run --random
check 'others have none' 2 '--random' "$mlacheck" selfcheck --random
check 'faults --random takes none' 2 "unexpected word '5'" "$mlacheck" faults --random 5 --db "$db"

# the table
check 'listed with class and cause' 0 'M25_DIM_STRIDE_MIX           ring sparse weights-off' \
    "$mlacheck" list faults
check 'listed as JSON' 0 '"cause":"weights-off","hidden":""' "$mlacheck" list faults --json
check 'no database is made to show a matrix' 3 'results.db' "$mlacheck" show faults --db "$db"

# a few are killed
some=(--kernel fault:rope-ignored --kernel fault:causal-one-more --time 600 --jobs 2 --db "$db")
"$mlacheck" faults "${some[@]}" --trials 2 --json --verbose >"$dir/guided" 2>&1
check 'all killed' 0 '' test $? -eq 0
number='[0-9]+(\.[0-9]+)?(e-[0-9]+)?'
names='\{("[a-z0-9-]+":'$number',?)*\}'
rules='\{("[a-z0-9_]+":[0-9]+,?)+\}'
form='^\{"faults":2,"killed":2,"survived":\[\],"not_applied":\[\],"honest":0,"accused":0,"canary":true,'
form+='"median_execs":'$names',"median_seconds":'$names',"criteria":'$rules',"detectors":'$rules','
form+='"random":false,"trials":2,"not_run":\[\],"idle_controls":0,"accused_controls":\[\],"hidden":0,"exposed":\[\],'
form+='"executions":[0-9]+,"seconds":'$number',"interrupted":false\}$'
tail -1 "$dir/guided" >"$dir/json"
check 'as JSON' 0 '' grep -Eq "$form" "$dir/json"
check 'medians of both' 0 '' grep -Eq '"median_execs":\{"causal-one-more":[1-9][0-9]*,"rope-ignored":[1-9]|"median_execs":\{"rope-ignored":[1-9][0-9]*,"causal-one-more":[1-9]' "$dir/json"
check 'every rule is named' 0 '' grep -q '"ring_full":.*"flashmla":' "$dir/json"
check 'a matrix' 0 'rope-ignored                     sparse killed        2/2' cat "$dir/guided"
check 'classes' 0 '2 of 2 classes with every fault killed' cat "$dir/guided"
check 'the line that repeats a kill does' 1 'FAIL' bash -c \
    "eval \"\$(sed -n 's|^  repro: mlacheck|\"$mlacheck\"|p' '$dir/guided' | head -1) --db '$dir/repro.db'\""

# and stored
check 'the latest matrix' 0 'M08_CAUSAL_OFFSET' "$mlacheck" show faults --db "$db"
check 'as JSON' 0 '"fault":"rope-ignored","role":"fault"' "$mlacheck" show faults 1 --db "$db" --json
check 'of a run that is not there' 2 '4711' "$mlacheck" show faults 4711 --db "$db"
id=$("$mlacheck" show faults --db "$db" --json | sed -n 's/.*"fault":"rope-ignored"[^}]*"testcase":"\([0-9a-f]*\)".*/\1/p')
check 'the killing case by its id' 1 'FAIL' "$mlacheck" run --id "$id" --kernel fault:rope-ignored --db "$db"
check 'the run is listed' 0 'faults --kernel' "$mlacheck" list runs --db "$db"
check 'it has an end' 0 '{"field":"ended","value":"20' "$mlacheck" show run 1 --db "$db" --json
check 'it is not what was judged last' 0 'run --id' "$mlacheck" show run --db "$db"

# without feedback; the same seed gives the same searches
check 'random draws' 0 '"random":true' "$mlacheck" faults "${some[@]}" --random --json
check 'stored apart' 0 'random' "$mlacheck" show faults --db "$db"
strip='s/"median_seconds":{[^}]*}//; s/"seconds":[^,]*,//'
for jobs in 1 3; do
    "$mlacheck" faults "${some[@]}" --jobs $jobs --json | tail -1 | sed "$strip" >"$dir/jobs$jobs"
done
check 'jobs change nothing' 0 '' cmp "$dir/jobs1" "$dir/jobs3"

# Ctrl-C: what was done is said and stored
"$mlacheck" faults --kernel fault:plain --time 600 --db "$dir/stopped.db" --json >"$dir/stopped" 2>&1 &
sleep 2
kill -INT $!
wait $!
code=$?
check 'its exit code' 0 '' test "$code" -eq 130
check 'interrupted' 0 '"interrupted":true' tail -1 "$dir/stopped"
check 'the run has no end' 0 '{"field":"ended","value":null}' "$mlacheck" show run 1 --db "$dir/stopped.db" --json
if command -v pgrep >/dev/null; then
    check 'nobody is left running' 1 '' pgrep -f "$dir/[s]topped.db"
else
    echo 'faults_cli_test: no pgrep: whether somebody is left running is not looked at'
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
