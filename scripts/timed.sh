#!/usr/bin/env bash
# Runs a test program for `cargo test`, and adds a line to the file that TILEWRIGHT_TIMES names: the CPU time of it and of all that it
# started, in seconds, and its name, apart by a tab.
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
