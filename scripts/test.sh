#!/usr/bin/env bash
# Runs `cargo test` with the arguments given, to its end whatever fails, then counts and prints every test that skipped, with its reason.
set -uo pipefail
cd "$(dirname "$0")/.."

mkdir -p target
TILEWRIGHT_SKIPS="$PWD/target/skipped.txt"
export TILEWRIGHT_SKIPS
: >"$TILEWRIGHT_SKIPS"
"${CARGO:-cargo}" test --no-fail-fast "$@"
status=$?
echo
if [ -s "$TILEWRIGHT_SKIPS" ]; then
    sort -u -o "$TILEWRIGHT_SKIPS" "$TILEWRIGHT_SKIPS"
    echo "skipped, whole or in part: $(cut -f1 "$TILEWRIGHT_SKIPS" | uniq | wc -l) tests"
    sed 's/^/  /; s/\t/: /' "$TILEWRIGHT_SKIPS"
else
    echo "skipped: nothing"
fi
exit $status
