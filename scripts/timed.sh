#!/usr/bin/env bash
# Runs a test program for `cargo test` and appends a line to the file TILEWRIGHT_TIMES: the CPU seconds of the program
# and its children, a tab, and its name.
set -uo pipefail
. "$(dirname "$0")/spent.sh"
"$@"
status=$?
notes=$(mktemp)
spent "$notes"
rm -f "$notes"
name=$(basename "$1")
printf '%s\t%s of %s\n' "$SPENT" "${name%-*}" "${CARGO_PKG_NAME:-}" >>"$TILEWRIGHT_TIMES"
exit $status
