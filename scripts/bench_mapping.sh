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
trap 'rm -f "$table" "$page.new"' EXIT
"$program" | tee "$table"
awk -v table="$table" '
    /<!-- table -->/ { print; while ((getline line < table) > 0) print line; skip = 1; next }
    /<!-- end -->/ { skip = 0 }
    !skip { print }
' "$page" >"$page.new"
mv "$page.new" "$page"
