# Sourced by the tests of the command: a scratch folder, and one function that runs and compares.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0

# needs TOOL..: end the test, as one that was skipped, where one is missing
needs() {
    local tool
    for tool; do
        command -v "$tool" >/dev/null || { echo "no $tool: nothing can be tested"; exit 77; }
    done
}

# check NAME EXPECTED_CODE EXPECTED_TEXT command...: exit code, and a text somewhere in the output
check() {
    local name=$1 code=$2 text=$3 out status
    shift 3
    out=$(timeout 300 "$@" 2>&1 </dev/null)
    status=$?
    if [ "$status" -eq "$code" ] && grep -qF -- "$text" <<<"$out"; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    printf 'FAILED: %s: exit %s (due %s), looked for: %s\n%s\n' \
        "$name" "$status" "$code" "$text" "$(head -c 3000 <<<"$out")"
}
