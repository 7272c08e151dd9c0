#!/usr/bin/env bash
# Runs a test program for `cargo test`, and adds a line to the file that TILEWRIGHT_TIMES names: the CPU time of it and of all that it
# started, in seconds, and its name, apart by a tab.
set -uo pipefail
"$@"
status=$?
own=$(mktemp)
times >"$own"
seconds=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += 60 * t[1] + t[2] } printf "%.1f", sum }' "$own")
rm -f "$own"
name=$(basename "$1")
printf '%s\t%s of %s\n' "$seconds" "${name%-*}" "${CARGO_PKG_NAME:-}" >>"$TILEWRIGHT_TIMES"
exit $status
