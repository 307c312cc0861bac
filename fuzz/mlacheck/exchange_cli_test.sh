#!/usr/bin/env bash
# export and judge from outside: usage, a kernel elsewhere in NumPy, files that are not what they say.
# usage: exchange_cli_test.sh BIN SOURCE [PYTHON]
set -u
export PYTHONDONTWRITEBYTECODE=1
bin=$1 source=$2 python=${3:-}
mlacheck=$bin/mlacheck
. "$(dirname "${BASH_SOURCE[0]}")/check.sh"
db=$dir/results.db
model=$source/scripts/examples/numpy_float32.model

line='sparse v=1 S=2 S_kv=160 H=16 Rr=64 K=128 tiled=1 dense=0 offset=- order=mx4 cores=1 threads=0 scale=0x1.555556p-5 family=upstream region=normal amount=0 indices=sorted poison=nan stats=1 seed=1 rows=0 row_seed=1 slow=0 set=- put=-'

# usage
for verb in export judge; do
    check "$verb --help" 0 'example: mlacheck' "$mlacheck" "$verb" --help
done
check 'export nothing' 2 'give one ID or one --case' "$mlacheck" export --out "$dir/x"
check 'export to nowhere' 2 'give --out' "$mlacheck" export --case "$line"
check 'export a bad line' 2 'must be' "$mlacheck" export --case "${line/S=2/S=two}" --out "$dir/x"
check 'export into no folder' 2 'No such file' "$mlacheck" export --case "$line" --out "$dir/none/x"
check 'export a refused call' 2 'must be refused' "$mlacheck" export --out "$dir/x" \
    --case "${line/ set=-/ set=queries@0:0}"
check 'export of no database' 3 'nothere.db' "$mlacheck" export abcd --db "$dir/nothere.db" --out "$dir/x"
check 'nothing was written' 1 '' test -e "$dir/x"
check 'export' 0 'written to' "$mlacheck" export --case "$line" --out "$dir/case.st"
check 'export as JSON' 0 '"file":"' "$mlacheck" export --case "$line" --out "$dir/again.st" --json
check 'the same bytes' 0 '' cmp "$dir/case.st" "$dir/again.st"
check 'judge nothing' 2 'give one exported file' "$mlacheck" judge --result x --model y
check 'judge without model' 2 'give --result and --model' "$mlacheck" judge "$dir/case.st" --result x
check 'judge no file' 2 'nothere' "$mlacheck" judge "$dir/nothere" --result x --model scalar
check 'no result file' 2 '--result:' "$mlacheck" judge "$dir/case.st" --result "$dir/none" --model scalar
check 'the case is no result' 2 "no tensor 'out'" "$mlacheck" judge "$dir/case.st" \
    --result "$dir/case.st" --model scalar --db "$db"
check 'no such model' 2 'no such kernel' "$mlacheck" judge "$dir/case.st" --result "$dir/case.st" --model nobody
check 'bad input makes no database' 1 '' test -e "$db"
head -c 3000 "$dir/case.st" >"$dir/short.st"
check 'a file cut short' 2 'short.st' "$mlacheck" judge "$dir/short.st" --result "$dir/case.st" --model scalar

if [ -z "$python" ]; then
    echo "skipped: judging what NumPy computed (no NumPy)"
else
    example=$source/scripts/examples/attention.py
    cp "$dir/case.st" "$dir/sparse.st"
    # a cache slot, chunks with a prior, pad rows; a balanced ring; a list with dropped keys
    ring='ring v=1 R=2 B=1 H=2 Nq=64 Nk=128 Bk=2 G=256 Bg=1 DH=64 DV=32 L=192 scale=- balanced=0 slot=1 P=96 topology=ring links=1 q_chunk=32 k_chunk=32 threads=0 family=upstream region=outlier amount=0 poison=nan future=- stats=0 seed=3 rows=0 row_seed=1 slow=0 set=- put=-'
    balanced='ring v=1 R=2 B=2 H=1 Nq=64 Nk=64 Bk=2 G=128 Bg=2 DH=64 DV=32 L=128 scale=0x1.8p-3 balanced=1 slot=- P=- topology=ring links=1 q_chunk=32 k_chunk=32 threads=0 family=upstream region=normal amount=0 poison=nan future=- stats=0 seed=4 rows=0 row_seed=1 slow=0 set=- put=-'
    dropped='sparse v=1 S=3 S_kv=160 H=16 Rr=32 K=128 tiled=0 dense=0 offset=70 order=natural cores=1 threads=0 scale=0x1.555556p-5 family=upstream region=normal amount=0 indices=distinct poison=nan stats=0 seed=5 rows=0 row_seed=1 slow=0 set=- put=-'
    dense='sparse v=1 S=3 S_kv=40 H=16 Rr=32 K=128 tiled=0 dense=1 offset=7 order=mx4 cores=1 threads=0 scale=0x1.555556p-5 family=upstream region=normal amount=0 indices=distinct poison=nan stats=0 seed=5 rows=0 row_seed=1 slow=0 set=- put=-'
    check 'export a ring' 0 '' "$mlacheck" export --case "$ring" --out "$dir/ring.st"
    check 'export a balanced ring' 0 '' "$mlacheck" export --case "$balanced" --out "$dir/balanced.st"
    check 'export dropped keys' 0 '' "$mlacheck" export --case "$dropped" --out "$dir/dropped.st"
    check 'export dense' 0 '' "$mlacheck" export --case "$dense" --out "$dir/dense.st"
    for name in sparse ring balanced dropped dense; do
        for dtype in f32 bf16 f16; do
            check "NumPy, $name $dtype" 0 '' "$python" "$example" --dtype "$dtype" "$dir/$name.st" "$dir/out.st"
            check "it passes, $name $dtype" 0 '1 passed' "$mlacheck" judge "$dir/$name.st" --result "$dir/out.st" \
                --model "$model" --db "$db"
        done
        check "NumPy with a key less, $name" 0 '' "$python" "$example" --drop-key "$dir/$name.st" "$dir/less.st"
        check "it is caught, $name" 1 'outside the certified interval' "$mlacheck" judge "$dir/$name.st" \
            --result "$dir/less.st" --model "$model" --db "$db"
    done
    check 'the verdict is stored' 0 'file:numpy-float32' "$mlacheck" show run --db "$db"
    check 'with how to repeat it' 0 "mlacheck judge $dir/sparse.st --result" "$mlacheck" list findings --db "$db"
    check 'JSON as of run' 1 '"failed":1' "$mlacheck" judge "$dir/dense.st" --result "$dir/less.st" \
        --model "$model" --db "$db" --json
    check 'by the definition' 1 '--oracle definition' "$mlacheck" judge "$dir/dense.st" --result "$dir/less.st" \
        --model "$model" --db "$db" --oracle definition
    check 'results of another case' 2 'are of case' "$mlacheck" judge "$dir/sparse.st" --result "$dir/less.st" \
        --model "$model" --db "$db"
    # only the log-sum-exp is wrong; one number of an input is another one
    "$python" - "$source/scripts/examples" "$dir" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import tensorfile as f
d = sys.argv[2]
t, m = f.read(d + "/out.st")
t["lse"] = t["lse"].copy()
t["lse"][1, 3] += 0.01
f.write(d + "/lse.st", t, m)
m["kernel"] = "no name"
f.write(d + "/name.st", t, m)
data = bytearray(open(d + "/dense.st", "rb").read())
data[-1] ^= 1
open(d + "/changed.st", "wb").write(data)
END
    check 'a wrong log-sum-exp' 1 'log-sum-exp of the row' "$mlacheck" judge "$dir/dense.st" --result "$dir/lse.st" \
        --model "$model" --db "$db"
    check 'a name that is none' 2 "'kernel'" "$mlacheck" judge "$dir/dense.st" --result "$dir/name.st" \
        --model "$model" --db "$db"
    check 'an input that was changed' 2 "tensor 'k_pe' holds other numbers" "$mlacheck" judge "$dir/changed.st" \
        --result "$dir/lse.st" --model "$model" --db "$db"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
