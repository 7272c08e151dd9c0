#!/bin/sh
# Replaces the table between the two marks of a page. Usage: into_page.sh PAGE FILE-WITH-THE-TABLE
set -eu
page=$1
awk -v table="$2" '
    /<!-- table -->/ { print; while ((getline line < table) > 0) print line; skip = 1; next }
    /<!-- end -->/ { skip = 0 }
    !skip { print }
' "$page" >"$page.new"
mv "$page.new" "$page"
