#!/usr/bin/env bash
# export and judge from outside: usage, a kernel elsewhere in NumPy, files that are not what they say.
# usage: exchange_cli_test.sh BIN SOURCE [PYTHON]
set -u
export PYTHONDONTWRITEBYTECODE=1
bin=$1 source=$2 python=${3:-}
mlacheck=$bin/mlacheck
. "$(dirname "${BASH_SOURCE[0]}")/check.sh"
db=$dir/results.db
export MLACHECK_DATA=$dir/data
model=$source/scripts/examples/numpy_float32.model

line='sparse v=1 S=2 S_kv=160 H=16 Rr=64 K=128 tiled=1 dense=0 offset=- order=mx4 cores=1 threads=0 scale=0x1.555556p-5 family=upstream region=normal amount=0 indices=sorted poison=nan stats=1 seed=1 rows=0 row_seed=1 slow=0 set=- put=-'

# usage
for verb in export judge import; do
    check "$verb --help" 0 'example: mlacheck' "$mlacheck" "$verb" --help
done
check 'export nothing' 2 'give one ID or one --case' "$mlacheck" export --out "$dir/x"
check 'export to nowhere' 2 'give --out' "$mlacheck" export --case "$line"
check 'export a bad line' 2 'must be' "$mlacheck" export --case "${line/S=2/S=two}" --out "$dir/x"
check 'export into no folder' 3 'No such file' "$mlacheck" export --case "$line" --out "$dir/none/x"
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
check 'the case is no result' 2 "no tensor 'out', [1, 2, 8192]; the file has 'topk_indices' I32" "$mlacheck" judge "$dir/case.st" \
    --result "$dir/case.st" --model scalar --db "$db"
check 'no such model' 2 'no such kernel' "$mlacheck" judge "$dir/case.st" --result "$dir/case.st" --model nobody
check 'bad input makes no database' 1 '' test -e "$db"
cp "$model" "$dir/my.sound.model" # ".so" inside a name makes no plug-in
check 'a model file with .so in its name' 2 "no tensor 'out'" "$mlacheck" judge "$dir/case.st" \
    --result "$dir/case.st" --model "$dir/my.sound.model" --db "$db"
mkdir "$dir/lib.so:1" # nor inside that of a folder
cp "$model" "$dir/lib.so:1/my.model"
check 'a model file in such a folder' 2 "no tensor 'out'" "$mlacheck" judge "$dir/case.st" \
    --result "$dir/case.st" --model "$dir/lib.so:1/my.model" --db "$db"
check 'no such model file' 2 'typo.model: No such file' "$mlacheck" judge "$dir/case.st" --result "$dir/case.st" \
    --model "$dir/typo.model"
check 'a plug-in that is not there' 2 'nothere.so' "$mlacheck" judge "$dir/case.st" --result "$dir/case.st" \
    --model "$dir/nothere.so:x"
head -c 3000 "$dir/case.st" >"$dir/short.st"
check 'a file cut short' 2 'short.st' "$mlacheck" judge "$dir/short.st" --result "$dir/case.st" --model scalar

# import: what was exported comes back as a case whose tensors come from a file
check 'import nothing' 2 'give one file' "$mlacheck" import
check 'import no file' 2 'nothere' "$mlacheck" import "$dir/nothere"
check 'an odd padding' 2 "--pad-index 'odd'" "$mlacheck" import "$dir/case.st" --pad-index odd
check 'into no folder' 3 'none/data: No such file or directory; MLACHECK_DATA' env MLACHECK_DATA="$dir/none/data" \
    "$mlacheck" import "$dir/case.st"
check 'a parameter that is none' 2 "--param 'frogs=1'" "$mlacheck" import "$dir/case.st" --param frogs=1
check 'import' 0 'data=file:' "$mlacheck" import "$dir/case.st" --out "$dir/imported.st" --json
imported=$("$mlacheck" import "$dir/case.st" 2>"$dir/id")
check 'its id is said' 0 "case $(printf %s "$imported" | sha256sum | head -c 12)" cat "$dir/id"
check 'kernels are judged on it' 0 '2 judged: 2 passed' "$mlacheck" run --case "$imported" --kernel scalar \
    --kernel plain-f32 --relations --db "$dir/import.db"
check 'a fault is found on it' 1 'fail-certain' "$mlacheck" run --case "$imported" --kernel fault:last-key-dropped \
    --db "$dir/import.db"
ln -s linked.st "$dir/link.st"
check 'through a link' 0 '' "$mlacheck" import "$dir/case.st" --out "$dir/link.st"
check 'which stays' 0 'linked.st' readlink "$dir/link.st"
check 'and has it at its end' 0 '' cmp "$dir/imported.st" "$dir/linked.st"
check 'it is not shrunk' 2 'come from a file' "$mlacheck" shrink --case "$imported" --kernel scalar --db "$dir/import.db"
check 'export it' 0 '' "$mlacheck" export --case "$imported" --out "$dir/imported.st"
check 'no results are refused before tensors are made' 2 "no tensor 'out'" env MLACHECK_DATA="$dir/none" \
    "$mlacheck" judge "$dir/imported.st" --result "$dir/imported.st" --model scalar
check 'without its file' 77 'No such file' env MLACHECK_DATA="$dir/none" "$mlacheck" run --case "$imported" \
    --kernel scalar --db "$dir/import.db"

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
    cp "$dir/less.st" "$dir/less{a,b}.st" # the line must mean the same to a shell
    check 'a name with braces' 1 '' "$mlacheck" judge "$dir/dense.st" --result "$dir/less{a,b}.st" \
        --model "$model" --db "$dir/braces.db"
    check 'is quoted' 0 "--result '$dir/less{a,b}.st'" "$mlacheck" list findings --db "$dir/braces.db"
    check 'JSON as of run' 1 '"failed":1' "$mlacheck" judge "$dir/dense.st" --result "$dir/less.st" \
        --model "$model" --db "$db" --json
    # a case may ask for some of its rows only: that is said
    check 'export a case of few rows' 0 '' "$mlacheck" export --case "${dense/rows=0/rows=4}" --out "$dir/few.st"
    check 'NumPy on it' 0 '' "$python" "$example" "$dir/few.st" "$dir/few.out"
    few=("$mlacheck" judge "$dir/few.st" --result "$dir/few.out" --model "$model" --db "$db")
    check 'some rows of all' 0 '4 of 48 rows of the results were judged (rows=0' "${few[@]}"
    check 'in JSON' 0 '"rows":48,"executed":["file:numpy-float32"]' "${few[@]}" --json
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

    # FlashMLA's way: one paged cache tensor, -1 and S_kv as padding, a row without keys (log-sum-exp +inf), heads
    # padded to 64
    "$python" - "$source/scripts/examples" "$dir" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import tensorfile as f
from attention import attend
d, rng = sys.argv[2], np.random.default_rng(1)
bf16 = lambda x: f.from_bf16(f.to_bf16(x.astype(np.float32)))
q, kv = bf16(rng.normal(size=(4, 16, 576))), bf16(rng.normal(size=(50, 576)))
lists = rng.integers(0, 50, (4, 64)).astype(np.int32)
lists[0, 5:], lists[1, ::3], lists[2] = -1, 50, -1
f.write(d + "/flash.st", {"q": ("BF16", q), "kv": ("BF16", kv.reshape(10, 5, 1, 576)), "indices": lists[:, None]},
        {"softmax_scale": "0.0416666679084301"})
for drop in (0, 1):
    out, lse = np.full((4, 64, 512), np.nan, np.float32), np.full((4, 64), np.nan, np.float32)
    for r in range(4):
        listed = lists[r][(lists[r] >= 0) & (lists[r] < 50)]
        listed = listed[drop:]
        out[r, :16], lse[r, :16] = attend(q[r], kv[listed], kv[listed, :512], np.float32(0.0416666679084301))
    f.write(f"{d}/flash{drop}.st", {"out": out, "lse": lse}, {})
    f.write(f"{d}/plus{drop}.st", {"out": out, "lse": np.where(np.isneginf(lse), np.float32(np.inf), lse)}, {})
END
    check 'import with padding refused' 2 'masked' "$mlacheck" import "$dir/flash.st"
    check 'import with padding' 0 'offset=49' "$mlacheck" import "$dir/flash.st" --pad-index masked --out "$dir/fcase.st"
    flash=$("$mlacheck" import "$dir/flash.st" --pad-index masked 2>/dev/null)
    check 'kernels are judged on it' 0 '2 judged: 2 passed' "$mlacheck" run --case "$flash" --kernel scalar \
        --kernel plain-f32 --relations --db "$db"
    { cat "$model"; echo 'pad_zero = 1'; } >"$dir/zero.model"
    check 'NumPy on it passes' 0 '64 rows judged' "$mlacheck" judge "$dir/fcase.st" --result "$dir/flash0.st" \
        --model "$dir/zero.model" --db "$db"
    check '+inf where -inf is declared' 1 'of a row without keys: inf, but it is declared -inf' "$mlacheck" judge \
        "$dir/fcase.st" --result "$dir/plus0.st" --model "$dir/zero.model" --db "$db"
    { cat "$dir/zero.model"; echo 'lse_empty = plus-inf'; } >"$dir/plus.model"
    check '+inf where it is declared' 0 '64 rows judged' "$mlacheck" judge "$dir/fcase.st" --result "$dir/plus0.st" \
        --model "$dir/plus.model" --db "$db"
    check '-inf where +inf is declared' 1 'of a row without keys: -inf, but it is declared inf' "$mlacheck" judge \
        "$dir/fcase.st" --result "$dir/flash0.st" --model "$dir/plus.model" --db "$db"
    check 'a key less is caught with it' 1 'fail-certain' "$mlacheck" judge "$dir/fcase.st" --result "$dir/plus1.st" \
        --model "$dir/plus.model" --db "$db"
    check 'a key less is caught' 1 'fail-certain' "$mlacheck" judge "$dir/fcase.st" --result "$dir/flash1.st" \
        --model "$dir/zero.model" --db "$db"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
