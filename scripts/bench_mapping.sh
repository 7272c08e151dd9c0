#!/bin/sh
# Rewrites the table between the two marks of docs/mapping.md, or prints the rows of some networks.
# Usage: bench_mapping.sh PATH-OF-BUILT-EXAMPLE [NETWORK...]
set -eu
program=$1
shift
if [ $# -gt 0 ]; then
    exec "$program" "$@"
fi
page=docs/mapping.md
table=$(mktemp)
trap 'rm -f "$table"' EXIT
"$program" | tee "$table"
sh scripts/into_page.sh "$page" "$table"
