#!/usr/bin/env bash
# The command from outside: exit codes, messages, what is stored. usage: cli_test.sh BIN PLUGINS CORPUS
set -u
bin=$1 plugins=$2 corpus=$3
mlacheck=$bin/mlacheck
. "$(dirname "${BASH_SOURCE[0]}")/check.sh"
db=$dir/results.db

line='sparse v=1 S=1 S_kv=128 H=16 Rr=64 K=128 tiled=0 dense=0 offset=- order=mx4 cores=1 threads=0 scale=0x1.555556p-5 family=upstream region=normal amount=0 indices=sorted poison=nan stats=1 seed=1 rows=4 row_seed=1 slow=0 set=- put=-'

# usage and input
check 'no verb' 2 'usage' "$mlacheck"
check 'help' 0 'usage' "$mlacheck" --help
check 'version' 0 'MPFR' "$mlacheck" --version
check 'unknown verb' 2 "verb 'frobnicate'" "$mlacheck" frobnicate
for verb in run fuzz shrink bench list show compare completion; do
    check "$verb --help" 0 'usage' "$mlacheck" "$verb" --help
done
check 'unknown flag' 2 "'--frob'" "$mlacheck" run --frob
check 'flag without value' 2 'needs a value' "$mlacheck" run --seed
check 'flag of another verb' 2 '--jobs' "$mlacheck" run --jobs 2
check 'bad number' 2 "--random 'x'" "$mlacheck" run --random x
check 'no cases' 2 'no cases' "$mlacheck" run --db "$db"
check 'bad case' 2 'S = ' "$mlacheck" run --db "$db" --case "${line/S=1/S=one}"
check 'invalid case' 2 'queries' "$mlacheck" run --db "$db" --case "${line/S=1/S=0}"
check 'unknown kernel' 2 "'scaler'" "$mlacheck" run --db "$db" --kernel scaler --case "$line"
check 'missing set' 2 'nothere.txt' "$mlacheck" run --db "$db" --set "$dir/nothere.txt"
printf '%s\n%s\n' "$line" "${line% put=-}" >"$dir/bad.txt"
check 'damaged line' 2 'bad.txt:2:' "$mlacheck" run --db "$db" --set "$dir/bad.txt"
for bad in put=nosuch.0@0:7fc0 put=q_lift.1@0:1 put=q_lift.0@99999999:1 set=nosuch@0:0 \
    set=queries@5:0 set=queries@0:1 set=queries@0:99999999999999999999 'set=c_kv[0]@0:null' \
    set=topk_indices@99999:-1 set=topk_indices@3:0x7 set=topk_indices@3:99999999999; do
    printf '%s\n%s\n' "$line" "${line/ ${bad%%=*}=-/ $bad}" >"$dir/bad.txt"
    check "damaged line, $bad" 2 'bad.txt:2:' "$mlacheck" run --db "$db" --set "$dir/bad.txt"
done
check 'a folder as a set' 2 'no regular file' "$mlacheck" run --db "$db" --set "$dir"
check 'list of no database' 3 'nothere.db' "$mlacheck" list runs --db "$dir/nothere.db"
check 'it was not made' 1 '' test -e "$dir/nothere.db"
check 'bad input makes no database' 1 '' bash -c \
    "'$mlacheck' run --db '$dir/none.db' --kernel nope --case '$line'; test -e '$dir/none.db'"
# who closes a pipe early is not told of it, and the exit code is that of any filter, or the verdict's
closed='exec 3> >(:); wait $!; said=$("$@" 2>&1 >&3); echo "said [$said], exit $?"'
check 'a closed pipe' 0 'said [], exit 141' bash -c "$closed" - "$mlacheck" list faults
check 'a fault stays one' 0 'said [], exit 1' bash -c "$closed" - "$mlacheck" run --db "$dir/closed.db" \
    --kernel fault:canary-nan --case "$line" --quiet
check 'full output' 3 'could not be written' bash -c \
    "'$mlacheck' run --db '$db' --kernel scalar --case '$line' >/dev/full"
check 'oracle by another name' 2 "--oracle 'slow'" "$mlacheck" run --oracle slow --case "$line"
check 'wrong list' 2 "'frogs'" "$mlacheck" list frogs
check 'wrong show' 2 "'frogs'" "$mlacheck" show frogs

# environment
check 'database in no folder' 3 'nowhere' "$mlacheck" run --db "$dir/nowhere/x.db" --case "$line"
echo 'not a database, but a text that is long enough to be looked at as one' >"$dir/text.db"
cp "$dir/text.db" "$dir/text.copy"
check 'not a database' 3 'text.db' "$mlacheck" run --db "$dir/text.db" --case "$line"
check 'it is left alone' 0 '' cmp "$dir/text.db" "$dir/text.copy"
check 'plug-in missing' 3 'none.so' "$mlacheck" run --db "$db" --kernel "$dir/none.so" --case "$line"
check 'plug-in of another ABI' 3 'ABI' "$mlacheck" run --db "$db" \
    --kernel "$plugins/bad/mla_bad_abi.so" --case "$line"

if [ ! -e "$bin/fuzz_ring" ]; then
    check 'no engine in this build' 3 'preset' "$mlacheck" fuzz --time 1 --db "$db"
fi

# verdicts
check 'the plain definition' 0 '"rows_judged":4' "$mlacheck" run --db "$db" --kernel scalar \
    --oracle definition --case "$line" --json
check 'rows are counted' 0 '"rows_judged":4' "$mlacheck" run --db "$db" --kernel scalar \
    --case "$line" --json
check 'a pass' 0 '"passed":1' "$mlacheck" run --db "$db" --kernel scalar --case "$line" --json
check 'the example plug-in' 0 '"passed":1' "$mlacheck" run --db "$db" \
    --kernel "$plugins/example_plugin.so" --case "$line" --json
check 'its file is stored with the run' 0 \
    "\"kernels\":\"example_plugin.so:example@$(sha256sum "$plugins/example_plugin.so" | cut -c1-12)\"" \
    "$mlacheck" list runs --db "$db" --json
mkdir "$dir/a,b" "$dir/lib.so:1"
for folder in a,b lib.so:1; do
    cp "$plugins/example_plugin.so" "$dir/$folder/k.so"
    check "and where its folder is $folder" 0 "2 judged: 2 passed" "$mlacheck" run --db "$dir/$folder.db" --kernel scalar \
        --kernel "$dir/$folder/k.so" --case "$line" --no-relations
    check "in the database, $folder" 0 "\"scalar,k.so:example@$(sha256sum "$plugins/example_plugin.so" | cut -c1-12)\"" \
        "$mlacheck" list runs --db "$dir/$folder.db" --json
    check "in a report, $folder" 0 ", file $(sha256sum "$plugins/example_plugin.so" | cut -c1-12), " \
        "$mlacheck" report --format md --db "$dir/$folder.db"
done
check 'a name with .so in it is no file' 2 'no such kernel' "$mlacheck" run --db "$db" --kernel my.sound --case "$line"
# However its path is spelled, on whatever machine: results know a plug-in by its file's name.
mkdir "$dir/one" "$dir/two" "$dir/three"
cp "$plugins/bad/mla_bad_call_status.so" "$dir/one/k.so"
cp "$plugins/example_plugin.so" "$dir/two/k.so"
for spelled in k.so ./k.so ../one/k.so "$dir/one/k.so"; do
    check "a plug-in as $spelled" 1 'FAIL sparse/k.so:' bash -c "cd '$dir/one' && '$mlacheck' run \
        --db '$dir/spelled.db' --kernel '$spelled' --case '$line'"
    check "its line finds it" 0 "run --kernel $spelled:" "$mlacheck" list findings --db "$dir/spelled.db"
done
check 'one finding' 0 '1' bash -c "'$mlacheck' list findings --json --db '$dir/spelled.db' | grep -o '\"kernel\":\"k.so:' | wc -l"
check 'no other kernel' 1 '' bash -c "'$mlacheck' list findings --json --db '$dir/spelled.db' | grep '\"kernel\":\"[^k]'"
check 'runs are paired' 0 '"paired":1,' "$mlacheck" compare 1 4 --db "$dir/spelled.db" --json
check 'with the file of each' 0 "k.so:bad-call-status@$(sha256sum "$dir/one/k.so" | cut -c1-12)" \
    "$mlacheck" list runs --db "$dir/spelled.db"
cp "$dir/one/k.so" "$dir/three/k.so"
check 'two of one name' 3 "kernel = '$dir/three/k.so:bad-call-status': results would call it 'k.so:bad-call-status', as '$dir/one/k.so:bad-call-status'" \
    "$mlacheck" run --db "$dir/spelled.db" --kernel "$dir/one/k.so" --kernel "$dir/three/k.so" --case "$line"
check 'of other kernels' 1 '"executed":["k.so:bad-call-status","k.so:example"]' "$mlacheck" run --db "$dir/names.db" \
    --kernel "$dir/one/k.so" --kernel "$dir/two/k.so" --case "$line" --json
check 'a path twice is one kernel' 1 '2 judged' "$mlacheck" run --db "$dir/names.db" \
    --kernel "$dir/one/k.so" --kernel "$dir/one/../one/k.so" --case "$line"
check 'a refusal' 0 '"refused":1' "$mlacheck" run --db "$db" --kernel scalar \
    --case "${line/ set=-/ set=queries@0:0}" --json
check 'a fault' 1 'FAIL sparse/fault:canary-nan' "$mlacheck" run --db "$db" \
    --kernel fault:canary-nan --case "$line"
check 'its reproduction line' 1 "repro: mlacheck run --kernel fault:canary-nan --case 'sparse" \
    "$mlacheck" run --db "$db" --kernel fault:canary-nan --case "$line"
check 'the reproduction line names the oracle' 1 \
    "repro: mlacheck run --kernel fault:canary-nan --oracle definition --case 'sparse" \
    "$mlacheck" run --db "$dir/plain.db" --kernel fault:canary-nan --oracle definition --case "$line"
check 'the stored one too' 0 \
    "mlacheck run --kernel fault:canary-nan --oracle definition --case 'sparse" \
    "$mlacheck" list findings --db "$dir/plain.db" --json
mkdir "$dir/it's {a,b}#"
cp "$plugins/bad/mla_bad_call_status.so" "$dir/it's {a,b}#/k.so"
check 'the line of a path that a shell would split' 1 'out of luck' bash -c \
    "eval \"\$('$mlacheck' run --db '$dir/quoted.db' --kernel \"\$1\" --case '$line' |
        sed -n 's|^  repro: mlacheck|\"$mlacheck\"|p') --db '$dir/quoted.db'\"" - "$dir/it's {a,b}#/k.so"
check 'a crash' 1 '"crashed":1' "$mlacheck" run --db "$db" \
    --kernel "$plugins/bad/mla_bad_call_crash.so" --case "$line" --json
# A kernel that this CPU cannot run is named, in words, JSON and store, and never called.
unusable=$plugins/bad/mla_bad_unusable.so
check 'a skipped kernel is named' 0 "skipped $unusable:unusable: not usable on this CPU" \
    "$mlacheck" run --db "$dir/skip.db" --kernel "$unusable" --case "$line"
check 'what was executed is said' 0 "executed: ${unusable##*/}:right" \
    "$mlacheck" run --db "$dir/skip.db" --kernel "$unusable" --case "$line"
check 'both in JSON' 0 "\"executed\":[\"${unusable##*/}:right\"],\"skipped\":[\"${unusable##*/}:unusable\"]}" \
    "$mlacheck" run --db "$dir/skip.db" --kernel "$unusable" --case "$line" --json
check 'stored as run without it' 1 '' bash -c \
    "'$mlacheck' list runs --db '$dir/skip.db' --json | sed 's/\"command\":\"[^\"]*\"//g' |
        grep -F 'unusable.so:unusable'"
check 'stored as run' 0 "\"kernels\":\"${unusable##*/}:right@$(sha256sum "$unusable" | head -c 12)\"" "$mlacheck" list runs --db "$dir/skip.db" --json
check 'its verdict says why' 0 'not usable on this CPU' bash -c \
    "id=\$(printf %s '$line' | sha256sum | head -c 12); '$mlacheck' show case \$id --db '$dir/skip.db'"
check 'nothing that runs' 77 'executed: none' "$mlacheck" run --db "$dir/skip.db" \
    --kernel "$unusable:unusable" --case "$line"
check 'nothing that runs, in JSON' 77 "\"executed\":[],\"skipped\":[\"${unusable##*/}:unusable\"]}" \
    "$mlacheck" run --db "$dir/skip.db" --kernel "$unusable:unusable" --case "$line" --json
check 'nothing to fuzz' 77 'nothing to run on this CPU' "$mlacheck" fuzz --time 1 \
    --db "$dir/skip.db" --kernel "$unusable:unusable"
check 'a hang' 1 'timeout' "$mlacheck" run --db "$db" --limit 0.5 \
    --kernel "$plugins/bad/mla_bad_call_hang.so" --case "$line"
check 'nothing judged' 77 '"unsupported":1' "$mlacheck" run --db "$db" --kernel adversary:p-row \
    --case "${line/ set=-/ set=queries@0:0}" --json
check 'no oracle is no pass' 77 'relations held bit for bit' "$mlacheck" run --db "$db" \
    --kernel scalar --case "$line" --oracle none --verbose
grep '^ring' "$corpus/special.txt" | head -n 12 >"$dir/first.txt"
check 'no oracle, a fault' 1 'relation' "$mlacheck" run --db "$db" --kernel fault:keys-past-end \
    --set "$dir/first.txt" --oracle none --relations
check 'all relations' 0 '1 passed' "$mlacheck" run --db "$db" --kernel scalar --case "$line" --relations
check 'only slow cases' 77 'slow cases not run' bash -c \
    "echo '${line/slow=0/slow=1}' >'$dir/slow.txt'; '$mlacheck' run --db '$db' --set '$dir/slow.txt'"
check 'slow ones asked for' 0 '1 passed' "$mlacheck" run --db "$db" --slow --set "$dir/slow.txt" \
    --kernel scalar
check 'by id' 0 '1 passed' bash -c \
    "id=\$(printf %s '$line' | sha256sum | head -c 12); '$mlacheck' run --db '$db' --kernel scalar --id \$id"
check 'unknown id' 2 'abcdef' "$mlacheck" run --db "$db" --id abcdef
check 'seeds repeat' 0 '' bash -c \
    "'$mlacheck' run --db '$db' --random 3 --seed 5 --verbose | grep case= >'$dir/1'
     '$mlacheck' run --db '$db' --random 3 --seed 5 --verbose | grep case= >'$dir/2'
     cmp '$dir/1' '$dir/2' && [ -s '$dir/1' ]"

# the store
check 'runs' 0 'command' "$mlacheck" list runs --db "$db"
check 'runs as JSON' 0 '[{"run":' "$mlacheck" list runs --db "$db" --json
check 'findings' 0 'timeout' "$mlacheck" list findings --db "$db"
check 'a run' 0 'compiler' "$mlacheck" show run 1 --db "$db"
check 'show unknown case' 2 'abcdef' "$mlacheck" show case abcdef --db "$db"
check 'a case' 0 'sparse v=1' bash -c \
    "id=\$(printf %s '$line' | sha256sum | head -c 12); '$mlacheck' show case \$id --db '$db'"
check 'a model as JSON' 0 '"exp_error":' "$mlacheck" show kernel scalar --json
check 'a run as JSON' 0 '"summary":[' "$mlacheck" show run --db "$db" --json
check 'accuracy' 0 'worst_p99_ulp' "$mlacheck" show accuracy --db "$db"
check 'published rules' 0 'ring_chunked' "$mlacheck" show accuracy 1 --db "$db"
check 'accuracy as JSON' 0 '"criteria":[{"op":"sparse","kernel":"scalar","criterion":"allclose_1e2","cases":1,"passed":1' \
    "$mlacheck" show accuracy 1 --db "$db" --json
check 'accuracy of no run' 2 '4711' "$mlacheck" show accuracy 4711 --db "$db"
check 'figures of a fault' 0 'would_pass_flashmla=0' bash -c \
    "id=\$(printf %s '$line' | sha256sum | head -c 12); '$mlacheck' show case \$id --db '$db' | grep canary-nan"
check 'a model' 0 'exp_error' "$mlacheck" show kernel scalar
check 'chunks of its own' 0 'shard_block_keys   0x1.8p+5' "$mlacheck" show kernel adversary:p-own-blocks
check 'sums that restart' 0 '-2 + 0*width + 1*min(keys, 48) + 1*blocks of 0' \
    "$mlacheck" show kernel adversary:p-own-blocks
check 'both in JSON' 0 '"block_keys":0,"most_keys":48}' "$mlacheck" show kernel adversary:p-own-blocks --json
check 'and in the model' 0 '"shard_block_keys":48' "$mlacheck" show kernel adversary:p-own-blocks --json
for what in kernels families relations faults criteria names; do
    check "list $what" 0 '' "$mlacheck" list "$what"
    check "list $what as JSON" 0 '[{"name":' "$mlacheck" list "$what" --json
done

# shrinking and blame
fault='ring v=1 R=2 B=1 H=2 Nq=64 Nk=64 Bk=1 G=173 Bg=1 DH=96 DV=32 L=33 scale=- balanced=0 slot=- P=- topology=linear links=2 q_chunk=32 k_chunk=32 threads=2 family=full region=normal amount=-3 poison=noise future=- stats=0 seed=73868192 rows=0 row_seed=15485 slow=0 set=- put=-'
small='ring v=2 R=1 B=1 H=1 Nq=32 Nk=32 Bk=1 G=32 Bg=1 DH=64 DV=32 L=1'
shrink=("$mlacheck" shrink --db "$dir/shrink.db" --kernel fault:keys-past-end)
check 'shrink nothing' 2 'give one case' "${shrink[@]}"
check 'shrink without a kernel' 2 'one --kernel' "$mlacheck" shrink --db "$dir/shrink.db" --case "$fault"
check 'shrink with several kernels' 2 'matches' "$mlacheck" shrink --db "$dir/shrink.db" --kernel '*' --case "$fault"
check 'shrink what is not stored' 3 'shrink.db' "${shrink[@]}" 123456
check 'shrink what does not fail' 77 'does not fail' "$mlacheck" shrink --db "$dir/shrink.db" --kernel scalar --case "$fault"
check 'shrink' 1 'H         2 -> 1' "${shrink[@]}" --case "$fault" --out "$dir/regressions.txt"
check 'shrink again' 1 'minimal' "${shrink[@]}" --case "$fault" --out "$dir/regressions.txt"
check 'a line is not added twice' 1 'has this line already' "${shrink[@]}" --case "$fault" --out "$dir/regressions.txt"
check 'it is there once' 0 '1' grep -c . "$dir/regressions.txt"
check 'the shrunk line is one of the corpus' 0 '1 judged: 1 passed' \
    "$mlacheck" run --db "$db" --kernel scalar --set "$dir/regressions.txt"
check 'it is small' 0 "$small" cat "$dir/regressions.txt"
check 'and fails' 1 'blame: keys-extra: Keys that the row must not see take part: positions' \
    "$mlacheck" run --db "$db" --kernel fault:keys-past-end --blame --case "$(head -n 1 "$dir/regressions.txt")"
id=$(head -n 1 "$dir/regressions.txt" | tr -d '\n' | sha256sum | head -c 12)
check 'shrink a stored case' 1 '"failed":true,"minimal":true,"steady":true,"steps":0' "${shrink[@]}" "$id" --json
check 'shrink into no folder' 3 'nowhere' "${shrink[@]}" --case "$fault" --out "$dir/nowhere/x.txt"

# speed: no time is asserted, only what is said of it
bench=("$mlacheck" bench --db "$dir/bench.db" --time 0.01)
check 'bench of nothing' 2 "'nothing'" "$mlacheck" bench --shape nothing
check 'bench of another operation' 2 "'ring-tiny'" "$mlacheck" bench --op sparse --shape ring-tiny
check 'bench of refusals' 2 "--op 'reject'" "$mlacheck" bench --op reject
check 'bench of no such kernel' 2 "'scaler'" "$mlacheck" bench --kernel scaler
check 'bench of no plug-in' 3 'none.so' "$mlacheck" bench --kernel "$dir/none.so"
check 'a dear shape is not meant by a glob' 2 "'mla-100k*'" "$mlacheck" bench --shape 'mla-100k*'
check 'peers of no sparse shape' 2 "--op 'ring'" "$mlacheck" bench --op ring --peers
check 'threads' 2 "--threads '1,x'" "$mlacheck" bench --threads 1,x
check 'no threads' 2 "--threads '0'" "$mlacheck" bench --threads 0
check 'bench with a word' 2 "'words'" "$mlacheck" bench words
check 'bench into no folder' 3 'nowhere' "$mlacheck" bench --shape sparse-tiny --db "$dir/nowhere/x.db"
check 'bench shapes' 0 'mla-100k-32' "$mlacheck" bench --help
check 'bench' 0 'of peak' "${bench[@]}" --shape '*-tiny' --kernel scalar
check 'a kernel that this CPU cannot run' 0 "skipped $unusable:unusable: not usable on this CPU" \
    "${bench[@]}" --shape sparse-tiny --kernel "$unusable"
check 'no kernel that it can' 77 "skipped $unusable:unusable" \
    "${bench[@]}" --shape sparse-tiny --kernel "$unusable:unusable"
check 'a kernel that fails' 1 'status -6: out of luck' "${bench[@]}" --shape sparse-tiny \
    --kernel "$plugins/bad/mla_bad_call_status.so"
# check_last NAME REGEX command...: the whole last line of what it prints
check_last() {
    local name=$1 regex=$2
    shift 2
    "$@" </dev/null 2>/dev/null | tail -n 1 >"$dir/last"
    check "$name" 0 '' grep -qxE -- "$regex" "$dir/last"
}
n='[0-9.]+(e[-+][0-9]+)?'
head="\\{\"peak_gflops\":$n,\"isa\":\"[a-z0-9]+\",\"rows\":"
# row OP SHAPE KERNEL THREADS, of a kernel or the oracle
row() {
    local what="\"gflop\":$n,\"gbytes\":$n" first=$n
    [ "$4" != 1 ] || first=1
    [ "$1" != oracle ] || what="\"rows\":16,\"keys\":128,\"times_definition\":$n"
    printf '%s' "\\{\"op\":\"$1\",\"shape\":\"$2\",\"kernel\":\"$3\",\"threads\":$4,\"gflops\":$n," \
        "\"of_peak\":$n,\"spread\":$n,\"seconds\":$n,\"reps\":[0-9]+,\"left_out\":[0-9]+,\"times_first\":$first," \
        "\"peak_gflops\":$n,\"noisy\":(true|false),\"case\":\"[0-9a-f]{12}\",$what," \
        "\"own_isa\":(null|\"[a-z0-9]+\"),\"of_own_peak\":(null|$n)\\}"
}
for op in ring sparse; do
    check_last "JSON of bench, $op" \
        "$head\\[$(row $op $op-tiny scalar 1),$(row $op $op-tiny scalar 2)\\],\"peers\":\\[\\]\\}" \
        "${bench[@]}" --op $op --shape $op-tiny --kernel scalar --threads 1,2 --json
done
check_last 'JSON of the oracle' \
    "$head\\[$(row oracle small definition 1),$(row oracle small fast 1),$(row oracle small fast 2)\\],\"peers\":\\[\\]\\}" \
    "${bench[@]}" --op oracle --shape small --threads 1,2 --json
check_last 'no rows' "$head\\[\\],\"peers\":\\[\\]\\}" "${bench[@]}" --shape sparse-tiny \
    --kernel "$unusable:unusable" --json
check 'the oracle calls no kernel' 0 '"kernels":"none"' bash -c \
    "'$mlacheck' bench --db '$dir/oracle.db' --op oracle --shape small --threads 1 >/dev/null &&
        '$mlacheck' list runs --db '$dir/oracle.db' --json"
check 'show bench' 0 'definition' "$mlacheck" show bench --db "$dir/bench.db"
check 'kernels too' 0 '"op":"ring","shape":"ring-tiny","kernel":"scalar","threads":1' \
    "$mlacheck" show bench 1 --db "$dir/bench.db" --json
check 'a run of bench' 0 'bench --db' "$mlacheck" list runs --db "$dir/bench.db"
check 'show bench of no run' 2 '4711' "$mlacheck" show bench 4711 --db "$dir/bench.db"
peers=("$bin"/mla_peer_*.so)
if [ ${#peers[@]} -eq 2 ]; then
    peer() {
        printf '%s' "\\{\"peer\":\"$1\",\"shape\":\"sparse-tiny\",\"threads\":1,\"ratio\":$n,\"kernel\":\"scalar\"," \
            "\"gflops\":$n,\"of_peak\":$n,\"spread\":$n,\"seconds\":$n,\"reps\":[0-9]+,\"left_out\":[0-9]+,\"times_first\":1," \
            "\"cores\":$n,\"noisy\":(true|false)\\}"
    }
    check_last 'peers' \
        "$head\\[$(row sparse sparse-tiny scalar 1)\\],\"peers\":\\[$(peer onednn),$(peer openblas)\\]\\}" \
        "${bench[@]}" --op sparse --shape sparse-tiny --kernel scalar --threads 1 --peers --json
    for held in ONEDNN_CPU_ISA_HINTS=prefer_ymm OPENBLAS_CORETYPE=Haswell GOMP_CPU_AFFINITY=0 OMP_PROC_BIND=true; do
        check "peers are not held back by $held" 0 ": $held of the environment is ignored" \
            env "$held" "${bench[@]}" --op sparse --shape sparse-tiny --kernel scalar --threads 1 --peers
    done
    check 'a kernel that does not what the peers do' 1 'onednn on sparse-tiny: differs by' \
        "${bench[@]}" --op sparse --shape sparse-tiny --kernel fault:natural-order --peers
else
    echo "cli_test: not both peers are built: only their absence is tested"
    check 'peers that are not there' 3 'setup --peers' "$mlacheck" bench --peers
fi
"$mlacheck" bench --op sparse --shape sparse-tiny --kernel scalar --db "$dir/int.db" --time 100 \
    >"$dir/int.out" 2>&1 &
for _ in {1..600}; do
    grep -q peak "$dir/int.out" && break
    sleep 0.1
done
sleep 1
kill -INT $!
wait $!
check 'bench ends at Ctrl-C' 0 '' test $? -eq 130
check 'what was timed until then is stored' 0 'sparse-tiny' "$mlacheck" show bench --db "$dir/int.db"
check 'as of a run without an end' 0 '{"field":"ended","value":null}' "$mlacheck" show run 1 --db "$dir/int.db" --json
check 'which others have' 0 '{"field":"ended","value":"20' "$mlacheck" show run 1 --db "$dir/bench.db" --json

# Ctrl-C: what was judged is stored; kill -9: the database is whole, the case is told of once and no finding
in_flight() { # database, process: until its first case has begun; a busy machine may take long
    for _ in {1..600}; do
        [ -s "$1-inflight-$2" ] && return
        sleep 0.1
    done
}
"$mlacheck" run --db "$db" --random 2000 --kernel scalar >/dev/null 2>&1 &
in_flight "$db" $!
sleep 0.5
kill -INT $!
wait $!
check 'database after Ctrl-C' 0 '{"field":"ended","value":null}' "$mlacheck" show run --db "$db" --json
for i in 1 2 3; do
    "$mlacheck" run --db "$dir/killed.db" --random 2000 --kernel scalar >/dev/null 2>&1 &
    in_flight "$dir/killed.db" $!
    sleep 0.$((1 + i))
    kill -KILL $!
    wait $! 2>/dev/null
done
check 'database after kill -9' 0 'by scalar, which has no verdict in it: run it again with: mlacheck run --kernel scalar --case' \
    "$mlacheck" list findings --db "$dir/killed.db"
check 'told of once, and no finding' 0 '[]' "$mlacheck" list findings --db "$dir/killed.db" --json

# a kernel that ends the process it shares with the command is to blame
crash=("$mlacheck" run --db "$dir/crash.db" --kernel "$plugins/bad/mla_bad_call_crash.so" --case "$line")
check 'a crash in a child' 1 '1 crashed' "${crash[@]}"
rm "$dir/crash.db"
check 'a crash in the command' 0 '' bash -c '! "$@"' - "${crash[@]}" --in-process
check 'is a finding' 0 'ended the judging process by signal 11' "$mlacheck" list findings --db "$dir/crash.db"

# the README's example of a failure is what the command says today
readme=$(dirname "$corpus")/README.md
check 'the failure in the README' 1 "$(sed -n 's/^    \(FAIL ring.*\)/\1/p' "$readme")" \
    "$mlacheck" run --db "$db" --kernel fault:keys-past-end --set "$dir/first.txt"

# the replay programs
printf '%s' "$line" >"$dir/input"
check 'replay a file' 0 '1 inputs replayed' "$bin/replay_sparse" "$dir/input"
head -c 400 "$bin/mlacheck" >"$dir/bytes"
check 'replay any bytes' 0 '1 inputs replayed' "$bin/replay_ring" "$dir/bytes"
printf '%s\n%sx\n' "$line" "$line" >"$dir/damaged"
check 'replay a damaged corpus' 2 'damaged:2:' "$bin/replay_sparse" "$dir/damaged"
check 'replay nothing' 2 'cannot be read' "$bin/replay_ring" "$dir/none"
mkdir "$dir/empty"
check 'replay an empty folder' 2 'no input' "$bin/replay_reject" "$dir/empty"
check 'replay a corpus' 0 'inputs replayed' "$bin/replay_reject" "$corpus/special.txt"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
