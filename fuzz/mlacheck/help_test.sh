#!/usr/bin/env bash
# Help and completion of every verb: an example each, and no flag that one of help, parser and completion
# does not know. usage: help_test.sh BIN
set -u
bin=$1
mlacheck=$bin/mlacheck
. "$(dirname "${BASH_SOURCE[0]}")/check.sh"
needs timeout

# The verbs, as the command lists them.
verbs=$("$mlacheck" --help | sed -n 's/^  \([a-z][a-z]*\)  *[^ ].*/\1/p')
check 'there are verbs' 0 'run' echo "$verbs"

"$mlacheck" completion bash >"$dir/completion"
check 'the script is bash' 0 '' bash -n "$dir/completion"
check 'no shell named' 2 'only bash' "$mlacheck" completion
check 'another shell' 2 'only bash' "$mlacheck" completion fish

# offered WORD..: what completion offers for the last of these words
offered() {
    bash -c '. "$1"; shift; COMP_WORDS=(mlacheck "$@"); COMP_CWORD=$#
             _mlacheck; printf "%s\n" "${COMPREPLY[@]}"' _ "$dir/completion" "$@" | sort
}

[ "$(offered '' | grep -v '^--')" = "$(sort <<<"$verbs")" ] || {
    failed=$((failed + 1))
    printf 'FAILED: completion offers other verbs: %s\n' "$(offered '' | tr '\n' ' ')"
}
for verb in $verbs; do
    "$mlacheck" "$verb" --help >"$dir/help"
    check "$verb has help" 0 "mlacheck $verb" cat "$dir/help"
    sed -n '/example/,$p' "$dir/help" >"$dir/example"
    check "$verb has an example" 0 "mlacheck $verb " cat "$dir/example"
    # The parser's flags, which are those offered, are those of the help. Other programs' have a name before.
    sed 's|scripts/setup --peers||' "$dir/help" | grep -oE '(^|[][ |(])--[a-z][a-z-]*' |
        grep -oE -- '--[a-z-]+' | grep -vx -- --help | sort -u >"$dir/told"
    offered "$verb" -- | grep -vx -- --help >"$dir/offered"
    check "$verb: flags of help and parser" 0 '' diff "$dir/told" "$dir/offered"
done
offered run -- >"$dir/run"
offered compare --gol >"$dir/golden"
offered run --set '' >"$dir/value"
offered compare '' >"$dir/word"
check 'flags of one verb only' 1 '' grep -qx -- --golden "$dir/run"
check 'a flag by its beginning' 0 '--golden' cat "$dir/golden"
check 'a value is left to the shell' 1 '' grep -q . "$dir/value"
check 'so is a word' 1 '' grep -q . "$dir/word"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
