#!/usr/bin/env bash
# The command and its database: merging, and what becomes of what was judged when something ends it.
# usage: store_cli_test.sh BIN CORPUS
set -u
bin=$1 corpus=$2 results=$2/../results
mlacheck=$bin/mlacheck
. "$(dirname "${BASH_SOURCE[0]}")/check.sh"
line=$(grep '^sparse' "$corpus/special.txt" | head -n 1)
number() { # FILE COUNT: a number in the last line of output, a JSON object
    tail -n 1 "$1" | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p"
}
stored() { # DATABASE: cases of its first run
    "$mlacheck" list runs --db "$1" --json | sed -n 's/.*{"run":1,[^}]*"cases":\([0-9]*\).*/\1/p'
}

# merging
check 'help' 0 'mlacheck merge all.db' "$mlacheck" merge --help
check 'nothing to merge' 2 'at least one to merge' "$mlacheck" merge "$dir/all.db"
check 'a flag of another verb' 2 '--seed' "$mlacheck" merge "$dir/all.db" --seed 1
check 'a source that is not there' 3 'none.db' "$mlacheck" merge "$dir/all.db" "$dir/none.db"
check 'no database is made for it' 1 '' test -e "$dir/all.db"
for machine in 1 2 3; do
    "$mlacheck" run --db "$dir/$machine.db" --random 3 --seed $machine --kernel scalar --no-relations >/dev/null
    sha256sum "$dir/$machine.db" >>"$dir/sums"
done
"$mlacheck" run --db "$dir/3.db" --kernel fault:canary-nan --case "$line" >/dev/null
sed -i '$d' "$dir/sums"
sha256sum "$dir/3.db" >>"$dir/sums"
check 'three machines' 0 '{"merged":3,"left":0,"runs_new":4,"runs_later":0,"verdicts":19,"cases_new":19,"findings_new":1}' \
    "$mlacheck" merge "$dir/all.db" "$dir"/[123].db --json
check 'once more' 0 '{"merged":3,"left":0,"runs_new":0,"runs_later":0,"verdicts":0,"cases_new":0,"findings_new":0}' \
    "$mlacheck" merge "$dir/all.db" "$dir"/[123].db --json
check 'sources are untouched' 0 '' sha256sum --quiet -c "$dir/sums"
check 'and nothing is left beside them' 1 '' bash -c "ls '$dir' | grep -E '^[123].db-'"
check 'findings' 0 'canary-nan' "$mlacheck" list findings --db "$dir/all.db"
check 'a case by its id' 1 'FAIL' bash -c \
    "id=\$(printf %s '$line' | sha256sum | head -c 12); '$mlacheck' run --db '$dir/all.db' --kernel fault:canary-nan --id \$id"
"$mlacheck" merge "$dir/all.db" "$dir"/[123].db --quiet >"$dir/quiet"
check 'quietly' 1 '' grep -q . "$dir/quiet"
echo 'not a database' >"$dir/text.db"
check 'a bad source' 3 'text.db' "$mlacheck" merge "$dir/all.db" "$dir/1.db" "$dir/text.db" "$dir/2.db"
check 'how far it came' 3 '{"merged":1,"left":2,' "$mlacheck" merge "$dir/all.db" "$dir/1.db" "$dir/text.db" "$dir/2.db" --json
check 'into itself' 2 'into itself' "$mlacheck" merge "$dir/all.db" "$dir/all.db"
ln -s all.db "$dir/link.db"
check 'by another name, before any is merged' 2 'into itself' "$mlacheck" merge "$dir/link.db" "$dir/text.db" "$dir/./all.db"
if command -v sqlite3 >/dev/null; then
    for version in 1 2 3 4; do
        sqlite3 "$dir/v$version.db" <"$results/store_test_v$version.sql"
    done
    sqlite3 "$dir/v9.db" 'PRAGMA application_id = 0x6d6c6163; PRAGMA user_version = 9; CREATE TABLE t (x)'
    check 'every released version' 0 '{"merged":4,"left":0,"runs_new":5,' \
        "$mlacheck" merge "$dir/old.db" "$dir"/v[4321].db --json
    check 'a newer one' 3 'schema version 9, written by a newer mlacheck; this one knows up to version' \
        "$mlacheck" merge "$dir/old.db" "$dir/v9.db"
    # what a database says steers no terminal
    cp "$dir/1.db" "$dir/loud.db"
    sqlite3 "$dir/loud.db" "UPDATE run SET command = char(27) || '[31mred' || char(155) || '2J'"
    "$mlacheck" list runs --db "$dir/loud.db" >"$dir/said"
    check 'a loud command' 0 '[31mred' cat "$dir/said"
    check 'in a table' 1 '' env LC_ALL=C grep -q $'[[:cntrl:]]\\|\xc2[\x80-\x9f]' "$dir/said"
    sqlite3 "$dir/loud.db" "UPDATE testcase SET line = char(27) || '[31m' || line WHERE num = 1"
    "$mlacheck" show case "$(sqlite3 "$dir/loud.db" 'SELECT id FROM testcase WHERE num = 1')" --db "$dir/loud.db" >"$dir/said"
    check 'a loud case' 0 '[31m' cat "$dir/said"
    check 'shown' 1 '' env LC_ALL=C grep -q $'[[:cntrl:]]\\|\xc2[\x80-\x9f]' "$dir/said"
else
    echo 'store_cli_test: no sqlite3: files of older and newer versions are not merged, none that is loud is listed'
fi
"$mlacheck" show run $'\e[31m' --db "$dir/1.db" 2>"$dir/said"
check 'a loud word' 0 '[31m' cat "$dir/said"
check 'in a complaint' 1 '' env LC_ALL=C grep -q '[[:cntrl:]]' "$dir/said"
"$mlacheck" $'\e[31m' 2>&1 | head -n 1 >"$dir/said"
check 'a loud verb' 0 "[31m' is not known" cat "$dir/said"
check 'in the complaint about it' 1 '' env LC_ALL=C grep -q '[[:cntrl:]]' "$dir/said"

# a failure by a relation is not fixed by not looking at it
floored=("$mlacheck" run --kernel fault:rows-per-thread-floored --random 3 --op ring --db "$dir/rel.db")
check 'a relation fails' 1 'relation threads' "${floored[@]}"
check 'nobody looks' 0 '3 passed' "${floored[@]}" --no-relations
check 'what was looked at is stored' 0 ' relations=3.0' "$mlacheck" show case 51f54c9f169e --db "$dir/rel.db"
check 'not comparable' 0 'not comparable: B did not look at relation threads' "$mlacheck" compare 1 2 --db "$dir/rel.db"

# a full disk, first at once and then in the middle; a limit on the size of files stands for it
limited=(bash -c 'trap "" XFSZ; ulimit -f "$1"; shift; exec "$@"' limited) # KB command...
run=("$mlacheck" run --kernel scalar --random 2000 --no-relations --in-process --db)
check 'no room for a database' 3 'make room and run again' "${limited[@]}" 1 "${run[@]}" "$dir/full.db"
check 'room for some' 3 'What was stored before is safe' "${limited[@]}" 900 "${run[@]}" "$dir/half.db"
check 'what was stored is whole' 0 '"passed":' "$mlacheck" show run --db "$dir/half.db" --json
check 'and not nothing' 0 '' test "$(stored "$dir/half.db")" -gt 0
check 'with room it goes on' 0 '1 passed' "$mlacheck" run --kernel scalar --db "$dir/half.db" --case "$line"

# and a disk that really is full, where one may be made
tiny='mount -t tmpfs -o size=600k none "$1" && cd "$1" && shift && "$@" --db x.db; code=$?
    "$1" list runs --db x.db --json; exit $code'
mkdir "$dir/tiny"
if unshare -rm mount -t tmpfs none "$dir/tiny" 2>/dev/null; then
    check 'a full disk' 3 'database or disk is full' unshare -rm bash -c "$tiny" tiny "$dir/tiny" \
        "$(realpath "$mlacheck")" run --kernel scalar --random 2000 --no-relations --in-process
    check 'what was stored can be read on it' 3 '"run":1' unshare -rm bash -c "$tiny" tiny "$dir/tiny" \
        "$(realpath "$mlacheck")" run --kernel scalar --random 2000 --no-relations --in-process
else
    echo 'store_cli_test: cannot mount a tmpfs: a disk that really is full is not tested'
fi

# read-only, as somebody who may not write
as_nobody=()
[ "$(id -u)" -ne 0 ] || as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
cp "$mlacheck" "$dir/mlacheck"
mkdir "$dir/closed"
cp "$dir/1.db" "$dir/closed/x.db"
chmod 755 "$dir" "$dir/mlacheck"
chmod 444 "$dir/closed/x.db"
chmod 555 "$dir/closed"
if "${as_nobody[@]}" "$dir/mlacheck" --version >/dev/null 2>&1; then
    nobody=("${as_nobody[@]}" "$dir/mlacheck")
    check 'a read-only folder' 3 'is not writable' "${nobody[@]}" run --db "$dir/closed/new.db" --case "$line"
    check 'a read-only file' 3 'not writable' "${nobody[@]}" run --db "$dir/closed/x.db" --case "$line"
    check 'a list of a read-only file' 0 'run ' "${nobody[@]}" list runs --db "$dir/closed/x.db"
    check 'a report of it' 0 'op,kernel' "${nobody[@]}" report --format csv --db "$dir/closed/x.db"
    check 'and nothing beside it' 0 'x.db' ls "$dir/closed"
    check 'compared there' 0 '0 regressions' "${nobody[@]}" compare 1 1 --db "$dir/closed/x.db"
    mkdir -m 777 "$dir/open"
    check 'merged from there' 0 '1 runs new' "${nobody[@]}" merge "$dir/open/all.db" "$dir/closed/x.db"
    check 'merged into it' 3 'not writable' "${nobody[@]}" merge "$dir/closed/x.db" "$dir/2.db"
else
    echo 'store_cli_test: cannot become another user: read-only places are not tested'
fi
chmod 755 "$dir/closed"

# a damaged file
cp "$dir/1.db" "$dir/cut.db"
truncate -s 20000 "$dir/cut.db"
check 'a file cut off' 3 '.recover' "$mlacheck" run --kernel scalar --db "$dir/cut.db" --case "$line"
check 'a list of it' 3 '.recover' "$mlacheck" list runs --db "$dir/cut.db"
check 'merging it' 3 '.recover' "$mlacheck" merge "$dir/all.db" "$dir/cut.db"
{ head -c 50 /dev/zero; tail -c +51 "$dir/1.db"; } >"$dir/head.db"
check 'a file without its head' 3 'beginning is damaged' "$mlacheck" list runs --db "$dir/head.db"

# two at once on one file
two=("$mlacheck" run --kernel scalar --no-relations --in-process --db "$dir/two.db" --random 100 --json)
"${two[@]}" --seed 1 >"$dir/two1" 2>&1 &
first=$!
"${two[@]}" --seed 2 >"$dir/two2" 2>&1
check 'the second of two' 0 '' test $? -eq 0
wait $first
check 'the first of two' 0 '' test $? -eq 0
"$mlacheck" list runs --db "$dir/two.db" --json | grep -o '"cases":200,' >"$dir/two"
check 'both are stored' 0 '2' grep -c . "$dir/two"

# Ctrl-C: what was judged is what is stored
until_text() { # FILE TEXT: until it is there; a busy machine may take long
    for _ in {1..600}; do
        grep -q -- "$2" "$1" 2>/dev/null && return
        sleep 0.1
    done
}
"${run[@]}" "$dir/int.db" --json --verbose >"$dir/int" 2>&1 &
until_text "$dir/int" 'pass'
kill -INT $!
wait $!
check 'run ends at Ctrl-C' 0 '' test $? -eq 130
check 'it had begun' 0 '' test "$(number "$dir/int" cases)" -gt 0
check 'and not ended' 0 '' test "$(number "$dir/int" cases)" -lt 4000
check 'it says so' 0 'the run is stored as one that did not end' cat "$dir/int"
check 'in JSON too' 0 '"interrupted":true' cat "$dir/int"
check 'so does the database' 0 '{"field":"ended","value":null}' "$mlacheck" show run --db "$dir/int.db" --json
check 'and a report' 0 '"latest_run_ended":false' "$mlacheck" report --db "$dir/int.db" --format json
check 'of a run that ended it does not' 0 '"latest_run_ended":true' "$mlacheck" report --db "$dir/1.db" --format json
check 'and a comparison' 0 'B: 1 of them did not end' "$mlacheck" compare "$dir/1.db" "$dir/int.db"
check 'for machines too' 0 '"runs_not_ended":[0,1]' "$mlacheck" compare "$dir/1.db" "$dir/int.db" --json
check 'all that run judged is stored' 0 '' test "$(number "$dir/int" cases)" = "$(stored "$dir/int.db")"
"$mlacheck" faults --db "$dir/faults.db" --time 600 --jobs 2 --trials 1 --verbose --json >"$dir/faults" 2>&1 &
until_text "$dir/faults" '^KILLED'
kill -INT $!
wait $!
check 'faults ends at Ctrl-C' 0 '' test $? -eq 130
check 'kills are stored' 0 '"outcome":"killed"' "$mlacheck" show faults --db "$dir/faults.db" --json
if [ -e "$bin/fuzz_ring" ]; then
    "$mlacheck" fuzz --db "$dir/fuzz.db" --time 600 --jobs 1 --op ring --json >"$dir/fuzz" 2>&1 &
    for _ in {1..600}; do
        [ "$(stored "$dir/fuzz.db" 2>/dev/null)" -gt 0 ] 2>/dev/null && break
        sleep 0.1
    done
    kill -INT $!
    wait $!
    check 'fuzz ends at Ctrl-C' 0 '' test $? -eq 130
    check 'it had begun too' 0 '' test "$(number "$dir/fuzz" cases)" -gt 0
    check 'all that fuzz judged is stored' 0 '' test "$(number "$dir/fuzz" cases)" = "$(stored "$dir/fuzz.db")"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
