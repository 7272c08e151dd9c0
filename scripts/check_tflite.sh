#!/usr/bin/env bash
# Compares TFLite's 8-bit operators on the CPU with LiteRT's reference kernels. Arguments select operators by name.
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
