#!/usr/bin/env bash
# Compares random float networks with NaN and infinities, and a sweep of Resize, on the CPU with ONNX Runtime. Options
# are those of scripts/check_onnx.py.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/onnxruntime.sh
export TILEWRIGHT="${TILEWRIGHT:-target/release/tilewright}"
"$VENV/bin/python" scripts/check_onnx.py "$@"
