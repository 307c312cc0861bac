#!/usr/bin/env bash
# scripts/ci with stand-ins for all that it calls, and the workflow files against scripts/check-workflows.py, which
# must tell each planted fault. usage: ci_test.sh SOURCE
set -u
source=$1
. "$source/fuzz/mlacheck/check.sh"
unset GITHUB_ACTIONS GITHUB_BASE_REF GITHUB_RUN_NUMBER GITHUB_STEP_SUMMARY

# ---- a tree of its own: the real scripts/ci, ci-targets and workflows; what they call says how it was called ----
tree=$dir/tree
mkdir -p "$tree/scripts" "$tree/build/dev/bin" "$tree/corpus" "$dir/path"
cp -r "$source/.github" "$source/CMakePresets.json" "$tree"
cp "$source"/scripts/{ci,ci-targets,check-workflows.py} "$tree/scripts"
touch "$tree"/corpus/{one,two}.txt
sed '/^step_/!d' "$source/scripts/test" >"$dir/steps"

# stand_in FILE: says its name and its arguments, and ends with the code that $dir/codes has for a part of them
stand_in() {
    cat >"$1" <<END
#!/usr/bin/env bash
call="\${0##*/} \$*"
echo "\$call"
while read -r code part; do case \$call in *"\$part"*) exit "\$code" ;; esac; done <"$dir/codes"
[ "\${1:-}" != report ] || while [ \$# -gt 0 ]; do [ "\$1" != --out ] || touch "\$2"; shift; done
exit 0
END
    chmod +x "$1"
}
for name in setup build test fuzz; do stand_in "$tree/scripts/$name"; done
stand_in "$tree/build/dev/bin/mlacheck"
stand_in "$dir/path/ctest"
cat "$dir/steps" >>"$tree/scripts/test" # for who looks up its steps; never reached
: >"$dir/codes"
PATH=$dir/path:$PATH
printf '#!/bin/sh\nexec "%s/scripts/ci" --out "%s/out" "$@"\n' "$tree" "$dir" >"$dir/path/ci"
printf '#!/bin/sh\nexec python3 "%s"/scripts/check-workflows.py "%s"/.github/workflows/*.yml\n' "$tree" "$tree" \
    >"$dir/path/flows"
chmod +x "$dir/path/ci" "$dir/path/flows"
# codes 'CODE PART'..: how calls that contain PART shall end from now on
codes() { printf "${1:+%s\n}" "$@" >"$dir/codes"; }

# ---- usage ----
check 'help' 0 'example: scripts/ci' ci --help
check 'no job' 2 'which job' ci
check 'unknown job' 2 "'corpse' is no job" ci corpse
check 'a part of a name' 2 "'fuzz' is no job" ci fuzz
check 'two jobs' 2 'one job at a time' ci lint asan
check 'unknown flag' 2 "'--fast' is no flag" ci --fast lint
check 'no value' 2 '--time needs a value' ci lint --time
for value in 0 -3 1.5 ten 1000000; do
    check "seconds $value" 2 "--time '$value'" ci --time "$value" fuzz-short
done
codes '1 setup'
check 'tools that are missing' 3 '' ci lint
codes

# ---- every job, and what it calls ----
calls() { # JOB, CALL..
    local job=$1 call
    shift
    ci "$job" >"$dir/calls" 2>&1 || { failed=$((failed + 1)); printf 'FAILED: job %s: %s\n' "$job" "$(cat "$dir/calls")"; }
    for call; do check "$job calls $call" 0 '' grep -qxF -- "$call" "$dir/calls"; done
    echo "$job" >>"$dir/tried"
}
db=$dir/out/mlacheck.db
calls build-clang 'build dev'
calls build-gcc 'build gcc'
calls lint 'test lint'
calls tests-dev 'test dev symbols'
calls tests-gcc 'test gcc bits'
calls asan 'test asan'
calls tsan 'test tsan'
calls corpus 'build dev' \
    "mlacheck merge $db build/dev/fuzz/mlacheck/one.db build/dev/fuzz/mlacheck/two.db"
calls fuzz-short 'ci: nothing to compare with: every target' "fuzz --op all --time 60 --db $db"
calls fuzz-long "fuzz --op all --time 7200 --db $db --merge --seed 1"
calls faults "mlacheck faults --time 1800 --db $db --json"
check 'its last line is kept' 0 'mlacheck faults' cat "$dir/out/faults.json"
calls report "mlacheck report --format md --db $db --out $dir/out/report/mlacheck.md" \
    "mlacheck report --format junit --db $db --out $dir/out/report/junit.xml" \
    "mlacheck report --format sarif --db $db --out $dir/out/report/mlacheck.sarif" \
    "mlacheck report --format html --db $db --out $dir/out/report/mlacheck.html"
ci --list | sed 's/ .*//' | sort >"$dir/listed"
check 'every job was tried' 0 '' diff "$dir/listed" <(sort "$dir/tried")
GITHUB_RUN_NUMBER=17 check 'the seed of a night' 0 '--seed 17' ci fuzz-long
GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=$dir/summary check 'annotations' 0 '--github' ci report
check 'a summary' 0 '' test -e "$dir/summary"

# ---- exit codes ----
codes '1 build dev'
check 'a build that fails' 1 '' ci report
codes '8 ctest'
check 'a test that fails' 1 'mlacheck merge' ci corpus
codes '3 mlacheck merge'
check 'no room' 3 '' ci corpus
codes '77 mlacheck report'
check 'nothing to report' 77 '' ci report
codes '1 mlacheck faults'
check 'a fault that lives' 1 '' ci faults
codes '130 fuzz --op'
check 'interrupted' 130 '' ci fuzz-long

# ---- which targets ----
targets() { # NAME, EXPECTED, FILE..
    local name=$1 expected=$2 got
    shift 2
    got=$(printf '%s\n' "$@" | "$source/scripts/ci-targets" | paste -sd ' ')
    check "targets of $name" 0 '' test "$got" = "$expected"
}
targets 'one operation' ring impl/ring.c
targets 'the other' sparse impl/sparse.h fuzz/fill_sparse.c
targets 'both' 'ring sparse' impl/ring.c impl/sparse.c
targets 'refusals' reject fuzz/draw_violation.c
targets 'the reader' safetensors fuzz/safetensors_parse.c
targets 'a rule' 'reject ring safetensors sparse' impl/validate.c
targets 'what nobody thought of' 'reject ring safetensors sparse' new/file.x
targets 'words and tests' '' README.md impl/ring_test.c .github/workflows/nightly.yml
targets 'a file called all' 'reject ring safetensors sparse' all
targets 'the command' '' fuzz/mlacheck/bisect.c
targets 'its hunt' 'reject ring safetensors sparse' fuzz/mlacheck/fuzz_verb.c
check 'files that are there' 0 '' test -z "$(sed -n '/^targets_of/,/^}/p' "$source/scripts/ci-targets" |
    grep -oE '(fuzz|impl|oracle|results)/[a-z_/]+\.c' | sort -u | (cd "$source" && xargs ls -d 2>&1 >/dev/null))"

if command -v git >/dev/null; then
    in_git() { git -C "$tree" -c user.name=x -c user.email=x -c commit.gpgsign=false "$@" >"$dir/git" 2>&1; }
    codes
    in_git init -q -b trunk && in_git add corpus && in_git commit -qm first && in_git tag left
    mkdir "$tree/impl" "$tree/fuzz"
    check 'nothing changed' 0 'nothing that is fuzzed has changed' ci --base left fuzz-short
    touch "$tree"/impl/{ring,sparse}.c
    in_git add impl && in_git commit -qm second
    check 'two of three share the time' 0 "fuzz --op sparse --time 5 --db $db" ci --base left --time 9 fuzz-short
    check 'and only they' 1 '' grep -E 'op (all|reject)' <(ci --base left fuzz-short)
    codes '3 op ring' '1 op sparse'
    check 'a fault counts more than a lack' 1 '' ci --base left fuzz-short
    codes '1 op ring' '3 op sparse'
    check 'in any order' 1 '' ci --base left fuzz-short
    codes '77 op ring'
    check 'never judged is never green' 77 '' ci --base left fuzz-short
    codes
    check 'unknown base' 2 "--base 'nowhere'" ci --base nowhere fuzz-short
    check 'a base that looks like a flag' 2 "--base '--all'" ci --base --all fuzz-short
    GITHUB_BASE_REF=trunk check 'a base that was not fetched' 0 '--op all' ci fuzz-short
    in_git update-ref refs/remotes/origin/trunk left
    GITHUB_BASE_REF=trunk check 'the base of a pull request' 0 '--op ring' ci fuzz-short
    touch "$tree/fuzz/safetensors.c"
    in_git add fuzz
    in_git rm -q --cached impl/ring.c impl/sparse.c
    check 'the reader alone, not committed yet' 0 'ctest --preset fuzz' ci --base left fuzz-short
    codes '8 ctest'
    check 'its test fails' 1 '' ci --base left fuzz-short
    codes
else
    echo "no git: what changed is not looked at"
fi

# ---- workflow files ----
python3 -c 'import yaml' 2>/dev/null || {
    echo "no PyYAML: workflow files are not looked at"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
}
check 'no file' 2 'usage' python3 "$source/scripts/check-workflows.py"
check 'the workflows' 0 '' python3 "$source/scripts/check-workflows.py" "$source"/.github/workflows/*.yml
check 'their copies' 0 '' flows

# plant EXPECTED_FINDING FILE SED_PROGRAM: a workflow with one thing wrong; what is told of all is looked at below
plants=0
plant() {
    plants=$((plants + 1))
    sed "$3" "$source/.github/workflows/$2" >"$dir/planted/$plants.yml"
    echo "$1" >"$dir/planted/$plants.due"
    check "it was planted: $1" 1 '' cmp -s "$source/.github/workflows/$2" "$dir/planted/$plants.yml"
}
mkdir "$dir/planted"
night=nightly.yml pull=pull-request.yml
plant 'is no YAML' $night 's/^on:/on: [/'
plant 'workflow must be a mapping' $night '2,$d; s/.*/- x/'
plant "unknown key 'run-name'" $night 's/^name:/run-name: x\n&/'
plant "unknown key 'push' in on" $pull 's/^  pull_request:/&\n  push:/'
plant "unknown key 'pull_request_target' in on" $pull 's/^  pull_request:/  pull_request_target:/'
plant "unknown key 'need' in job" $night 's/^    runs-on:/    need: x\n&/'
plant "unknown key 'os' in matrix" $pull 's/^        job:/        os: [x]\n&/'
plant "unknown key 'fail_fast' in strategy" $pull 's/fail-fast/fail_fast/'
plant "unknown key 'cancel' in concurrency" $pull 's/cancel-in-progress/cancel/'
plant "unknown key 'env' in step" $pull 's/^      - run: scripts.setup/&\n        env: {X: y}/'
plant "unknown input 'depth' of actions/checkout" $pull 's/fetch-depth/depth/'
plant 'with must be a mapping' $night 's/^        with:$/        with: x\n        if:/'
plant "job lacks 'timeout-minutes'" $night '/timeout-minutes/d'
plant 'timeout-minutes: 900' $night 's/timeout-minutes: .*/timeout-minutes: 900/'
plant "workflow lacks 'permissions'" $pull '/^permissions:/,/^$/d'
plant "workflow lacks 'concurrency'" $pull '/^concurrency:/,/^$/d'
plant 'permission contents: write' $night 's/contents: read/contents: write/'
plant "unknown key 'permissions' in job" $night 's/^    runs-on:/    permissions: write-all\n&/'
plant "unknown key 'packages' in permissions" $night 's/^  contents: read/&\n  packages: write/'
plant 'permissions must be a mapping' $night 's/^permissions:/permissions: write-all\nx:/'
plant 'another machine tomorrow' $night 's/ubuntu-.*/ubuntu-latest/'
plant 'keeps its credentials' $pull '/persist-credentials/d'
plant "action 'somebody/upload'" $night 's,actions/upload-artifact,somebody/upload,'
plant 'a major version is due' $night 's/checkout@v[0-9]*/checkout@main/'
plant 'names secrets' $night 's/name: night$/name: ${{ secrets.X }}/'
plant "'corpse' is no job" $night 's/scripts.ci corpus/scripts\/ci corpse/'
plant "'tsun' is no job" $pull 's/tsan/tsun/'
plant 'there is no matrix' $night 's/scripts.ci corpus/scripts\/ci ${{ matrix.job }}/'
plant 'neither scripts/setup nor' $night 's/run: scripts.setup/run: make/'
plant 'neither scripts/setup nor' $night 's/run: scripts.ci corpus/& ${{ github.head_ref }}/'
plant 'scripts/setups is no program' $night 's/run: scripts.setup/&s/'
plant 'one of run and uses' $night 's/run: scripts.setup/if: x/'
plant 'has no steps' $night '/^    steps:/,$d; $a\    steps: []'
plant 'has no jobs' $night '/^jobs:/,$d; $a\jobs:'
check 'planted faults' 1 '' python3 "$source/scripts/check-workflows.py" "$dir"/planted/*.yml
python3 "$source/scripts/check-workflows.py" "$dir"/planted/*.yml >"$dir/told" 2>&1
for ((i = 1; i <= plants; i++)); do
    check "planted: $(cat "$dir/planted/$i.due")" 0 "$(cat "$dir/planted/$i.due")" grep "^$i.yml" "$dir/told"
done

# What scripts/ci itself names, all wrong at once.
sed -i 's/scripts.test asan/scripts\/test asam/; s/scripts.build dev;/scripts\/build develop;/
    s/--preset fuzz/--preset fuss/; s/scripts.fuzz/scripts\/fuse/' "$tree/scripts/ci"
chmod -x "$tree/scripts/setup"
flows >"$dir/told"
for due in "'asam' is no step of scripts/test" "'develop' is no preset" "'fuss' is no preset" \
    'scripts/fuse is no program' 'scripts/setup is no program'; do
    check "planted in scripts/ci: $due" 0 "scripts/ci: $due" cat "$dir/told"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
