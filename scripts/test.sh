#!/usr/bin/env bash
# Runs `cargo test` with the arguments given, to its end whatever fails; with --lint as the first of them it lints before. Then it
# counts and prints every test that skipped, with its reason, and tells where the CPU time went.
set -uo pipefail
cd "$(dirname "$0")/.."
export CARGO=${CARGO:-cargo}

mkdir -p target
export TILEWRIGHT_SKIPS="$PWD/target/skipped.txt" TILEWRIGHT_TIMES="$PWD/target/times.txt"
: >"$TILEWRIGHT_SKIPS"
: >"$TILEWRIGHT_TIMES"

# Sets SPENT to the CPU seconds of everything that this script has started so far. In a shell of its own `times` would tell of that.
measure() {
    times >target/spent.txt
    SPENT=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += 60 * t[1] + t[2] } print sum }' target/spent.txt)
}

begun=$SECONDS
if [ "${1:-}" = --lint ]; then
    shift
    scripts/lint.sh || exit
fi
measure
linted=$SPENT
# Everything is compiled first, so that its time stands apart.
"$CARGO" test --no-run "$@" || exit
measure
compiled=$SPENT
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z.-' 'A-Z__')
env "CARGO_TARGET_${host}_RUNNER=$PWD/scripts/timed.sh" "$CARGO" test --no-fail-fast "$@"
status=$?
measure
tested=$SPENT

echo
if [ -s "$TILEWRIGHT_SKIPS" ]; then
    sort -u -o "$TILEWRIGHT_SKIPS" "$TILEWRIGHT_SKIPS"
    echo "skipped, whole or in part: $(cut -f1 "$TILEWRIGHT_SKIPS" | uniq | wc -l) tests"
    sed 's/^/  /; s/\t/: /' "$TILEWRIGHT_SKIPS"
else
    echo "skipped: nothing"
fi
echo
echo "CPU time of the test programs, the ten that take longest"
sort -rn "$TILEWRIGHT_TIMES" | head -10 | awk -F'\t' '{ printf "  %7.1f s  %s\n", $1, $2 }'
echo "$linted $compiled $tested $((SECONDS - begun))" | awk '{
    printf "CPU time: lints %.1f, compilation %.1f, tests %.1f, in all %.1f minutes; %.1f minutes passed\n", $1 / 60, ($2 - $1) / 60, ($3 - $2) / 60, $3 / 60, $4 / 60
}'
exit $status
