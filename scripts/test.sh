#!/usr/bin/env bash
# Runs `cargo test` with the given arguments, and all tests even if some fail. With --lint as the first argument it
# lints first. At the end it prints every skipped test with its reason, and where the CPU time went.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/spent.sh
export CARGO=${CARGO:-cargo}

mkdir -p target
export TILEWRIGHT_SKIPS="$PWD/target/skipped.txt" TILEWRIGHT_TIMES="$PWD/target/times.txt"
: >"$TILEWRIGHT_SKIPS"
: >"$TILEWRIGHT_TIMES"

begun=$SECONDS
if [ "${1:-}" = --lint ]; then
    shift
    "${MAKE:-make}" --no-print-directory lint CARGO="$CARGO" || exit
fi
spent target/spent.txt
linted=$SPENT
# Compiles everything first, so that the time is counted separately.
"$CARGO" test --no-run "$@" || exit
spent target/spent.txt
compiled=$SPENT
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z.-' 'A-Z__')
env "CARGO_TARGET_${host}_RUNNER=$PWD/scripts/timed.sh" "$CARGO" test --no-fail-fast "$@"
status=$?
spent target/spent.txt
tested=$SPENT

echo
if [ -s "$TILEWRIGHT_SKIPS" ]; then
    sort -u -o "$TILEWRIGHT_SKIPS" "$TILEWRIGHT_SKIPS"
    echo "skipped, in whole or in part: $(cut -f1 "$TILEWRIGHT_SKIPS" | uniq | wc -l) tests"
    sed 's/^/  /; s/\t/: /' "$TILEWRIGHT_SKIPS"
else
    echo "skipped: none"
fi
echo
echo "CPU time of the ten slowest test programs"
sort -rn "$TILEWRIGHT_TIMES" | head -10 | awk -F'\t' '{ printf "  %7.1f s  %s\n", $1, $2 }'
echo "$linted $compiled $tested $((SECONDS - begun))" | awk '{
    printf "CPU time: lints %.1f, compilation %.1f, tests %.1f, total %.1f minutes; elapsed: %.1f minutes\n", $1 / 60, ($2 - $1) / 60, ($3 - $2) / 60, $3 / 60, $4 / 60
}'
exit $status
