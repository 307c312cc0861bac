#!/usr/bin/env bash
# Look at a report in headless Chromium, as wide as a phone and as a desk: no complaint on the console, no
# missing plot, nothing that sticks out.
# usage: report_browser_test.sh CHROMIUM BIN
set -u
chromium=$1 bin=$2
here=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

"$bin/mla_measure_report" "$dir" 4000 || exit 1
cp "$here/report_look.html" "$dir/look.html"
flags=(--headless --disable-gpu --hide-scrollbars --allow-file-access-from-files --enable-logging=stderr
    --user-data-dir="$dir/profile" --virtual-time-budget=10000)
[ "$(id -u)" -ne 0 ] || flags+=(--no-sandbox) # Chromium refuses root otherwise

# look REPORT WIDTH
look() {
    timeout 100 "$chromium" "${flags[@]}" --window-size=1400,2000 --dump-dom \
        "file://$dir/look.html?$1&$2" >"$dir/dom" 2>"$dir/log"
    grep -o '[0-9]* plots at .*' "$dir/dom" | sed 's/<.*//'
}

for width in 390 1280; do
    said=$(look report.html "$width")
    echo "$said"
    if [[ $said != *": fine" ]] || grep ':CONSOLE' "$dir/log"; then
        echo "FAILED at $width px: $(grep -c . "$dir/log") lines of log"
        failed=1
    fi
done

# What this looks for it finds: a plot that is gone, a link to nowhere, a name that is an element, a script
sed -e 's/<path/<g/g' -e 's/id="c-/id="d-/' -e 's/<h2>Time/<u>/' \
    -e 's/<\/main>/<script>1<\/script><\/main>/' "$dir/report.html" >"$dir/broken.html"
said=$(look broken.html 390)
for what in 'no axes' 'leads nowhere' 'became an element'; do
    if [[ $said != *"$what"* ]]; then
        echo "FAILED: '$what' is not noticed: $said"
        failed=1
    fi
done
if ! grep -q ':CONSOLE' "$dir/log"; then
    echo 'FAILED: a script that the page forbids is not noticed'
    failed=1
fi
exit $failed
