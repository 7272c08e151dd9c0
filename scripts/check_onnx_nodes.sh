#!/usr/bin/env bash
# Runs the node cases of ONNX's backend tests on the CPU. Options are those of scripts/check_onnx_nodes.py.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/onnxruntime.sh
export TILEWRIGHT="${TILEWRIGHT:-target/release/tilewright}"
"$VENV/bin/python" scripts/check_onnx_nodes.py "$@"
