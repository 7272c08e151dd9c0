#!/usr/bin/env bash
# Compares the CPU code's speed with ONNX Runtime and tract, which it installs into their own virtual environment.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/versions
VENV=.venv-peers
STAMP="$VENV/.peers-$ONNXRUNTIME-$ONNX-$NUMPY-$TRACT"
if [ ! -e "$STAMP" ]; then
    echo "setup: installing ONNX Runtime $ONNXRUNTIME and tract $TRACT into $VENV" >&2
    rm -rf "$VENV"
    python3 -m venv "$VENV"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "onnxruntime==$ONNXRUNTIME" "onnx==$ONNX" "numpy==$NUMPY" "tract==$TRACT" >&2
    touch "$STAMP"
fi
exec "$VENV/bin/python" scripts/bench_fallback.py "$@"
