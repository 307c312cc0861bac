#!/usr/bin/env bash
# `mlacheck report` from outside: usage, the file that appears whole or not at all, every format.
# usage: report_cli_test.sh BIN
set -u
bin=$1
mlacheck=$bin/mlacheck
. "$(dirname "${BASH_SOURCE[0]}")/check.sh"
db=$dir/results.db
line='sparse v=1 S=1 S_kv=128 H=16 Rr=64 K=128 tiled=0 dense=0 offset=- order=natural cores=1 threads=1 scale=0x1p-4'
line+=' family=profile region=flat amount=0 indices=uniform poison=inf stats=1 seed=1 rows=0 row_seed=1 slow=0 set=- put=-'

check 'help' 0 'example: mlacheck report' "$mlacheck" report --help
check 'no such format' 2 "--format 'pdf'" "$mlacheck" report --format pdf --db "$db"
check 'an odd word' 2 "'now'" "$mlacheck" report now --db "$db"
check 'a flag of another verb' 2 '--trials' "$mlacheck" report --trials 3 --db "$db"
check 'two things on one output' 2 '--out FILE' "$mlacheck" report --format csv --github --db "$db"
check 'no database' 3 'results.db' "$mlacheck" report --db "$db"
check 'none is made' 1 '' test -e "$db"

"$mlacheck" run --kernel scalar --kernel fault:scale-twice --case "$line" --in-process --db "$db" >/dev/null 2>&1
check 'the database is there' 0 '' test -e "$db"
check 'beside the database' 0 "report: $dir/results.html" "$mlacheck" report --db "$db"
check 'not over the database' 2 'the database itself' "$mlacheck" report --db "$db" --out "$dir/./results.db"
check 'whole' 0 '</html>' tail -n 1 "$dir/results.html"
check 'no half file is left' 0 '1' bash -c "ls '$dir' | grep -c '^results.html'"
check 'with counts' 0 '{"regressed":0,"fails":0,"grew":0,"lost":0,"failing":0,"compared":0,' \
    "$mlacheck" report --db "$db" --out "$dir/o.html" --json
check 'what ran last' 0 'The last run, 1, was mlacheck run with scalar, fault:scale-twice: 2 results, none failed.' \
    "$mlacheck" report --db "$db" --out "$dir/o.html"
check 'and in JSON' 0 '"last_run":{"run":1,"verb":"run","kernels":"scalar,fault:scale-twice","results":2,"judged":2,"failed":0,' \
    "$mlacheck" report --db "$db" --out "$dir/o.html" --json
check 'annotations' 0 '::notice title=mlacheck: nothing to compare yet::' "$mlacheck" report --db "$db" --out "$dir/o.html" --github
check 'Markdown' 0 '| sparse/scalar' "$mlacheck" report --db "$db" --format md
check 'CSV' 0 '"sparse","scalar",' "$mlacheck" report --db "$db" --format csv
check 'JSON' 0 '"kernel":"scalar"' "$mlacheck" report --db "$db" --format json
check 'JUnit' 0 '<testsuite name="sparse/scalar' "$mlacheck" report --db "$db" --format junit
check 'SARIF' 0 '"version":"2.1.0"' "$mlacheck" report --db "$db" --format sarif
check 'into a file' 0 "report: $dir/o.csv" "$mlacheck" report --db "$db" --format csv --out "$dir/o.csv"
check 'which has it' 0 'op,kernel,' head -n 1 "$dir/o.csv"

# what is no file stays what it is
mkfifo "$dir/pipe"
cat "$dir/pipe" >"$dir/read" &
check 'into a pipe' 0 "report: $dir/pipe" timeout 60 "$mlacheck" report --db "$db" --format csv --out "$dir/pipe"
check 'which stays one' 0 '' test -p "$dir/pipe"
if [ -p "$dir/pipe" ]; then wait; else kill $!; fi
check 'and had it' 0 'op,kernel,' head -n 1 "$dir/read"

# a link stays too, and what it leads to is written, be it there or not
mkdir "$dir/folder"
ln -s folder/end.csv "$dir/step.csv"
ln -s "$dir/step.csv" "$dir/link.csv"
for time in new old; do
    check "through links, $time" 0 "report: $dir/link.csv" "$mlacheck" report --db "$db" --format csv --out "$dir/link.csv"
    check "the links stay, $time" 0 'folder/end.csv' readlink "$dir/step.csv"
    check "both of them, $time" 0 'step.csv' readlink "$dir/link.csv"
    check "their end has it, $time" 0 'op,kernel,' head -n 1 "$dir/folder/end.csv"
    check "alone, $time" 0 '1' bash -c "ls '$dir/folder' | wc -l"
    echo old >"$dir/folder/end.csv"
done
ln -s circle.csv "$dir/circle.csv"
check 'a link to itself' 3 'symbolic links' "$mlacheck" report --db "$db" --format csv --out "$dir/circle.csv"

# a second run of the same case
"$mlacheck" run --kernel scalar --case "$line" --in-process --db "$db" >/dev/null 2>&1
check 'compared' 0 '"compared":1' "$mlacheck" report --db "$db" --out "$dir/o.html" --json

# nowhere to write: the old file stays
echo old >"$dir/kept.html"
check 'no such folder' 3 'No such file' "$mlacheck" report --db "$db" --out "$dir/none/o.html"
check 'a folder' 3 "$dir" "$mlacheck" report --db "$db" --out "$dir"
mkdir "$dir/path"
check 'no gnuplot' 3 'gnuplot-nox' env PATH="$dir/path" "$mlacheck" report --db "$db" --out "$dir/kept.html"
check 'the old report stays' 0 'old' cat "$dir/kept.html"
check 'and nothing beside it' 0 '1' bash -c "ls '$dir' | grep -c '^kept'"
check 'other formats need none' 0 'op,kernel' env PATH="$dir/path" "$mlacheck" report --db "$db" --format csv
check 'full' 3 'standard output' bash -c "'$mlacheck' report --db '$db' --format csv >/dev/full"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
