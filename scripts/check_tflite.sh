#!/usr/bin/env bash
# Compares TFLite's operators of 8 bits on the CPU with LiteRT's reference kernels; arguments name operators, in place of all.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/versions
VENV=.venv-tflite
STAMP="$VENV/.litert-$LITERT-$FLATBUFFERS-$NUMPY"
if [ ! -e "$STAMP" ]; then
    echo "setup: installing LiteRT $LITERT into $VENV" >&2
    rm -rf "$VENV"
    python3 -m venv "$VENV"
    "$VENV/bin/pip" install --quiet --disable-pip-version-check "ai-edge-litert==$LITERT" "flatbuffers==$FLATBUFFERS" "numpy==$NUMPY" >&2
    touch "$STAMP"
fi

"$VENV/bin/python" scripts/check_tflite.py "$@"
