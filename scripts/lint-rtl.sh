#!/usr/bin/env bash
# Verilator's lint with every warning over the RTL, once for each preset configuration.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! compgen -G 'hw/rtl/*.sv' >/dev/null; then
    echo "lint-rtl: there is no RTL under hw/rtl" >&2
    exit 0
fi
