#!/usr/bin/env bash
# Converts networks of Keras to TFLite and compares them on the CPU with LiteRT. Arguments select files by a part of their
# names. TensorFlow and what it needs take 1.6 GB in .venv-keras.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/versions
VENV=.venv-keras
STAMP="$VENV/.tensorflow-$TENSORFLOW-$LITERT"
if [ ! -e "$STAMP" ]; then
    echo "setup: installing TensorFlow $TENSORFLOW and LiteRT $LITERT into $VENV" >&2
    rm -rf "$VENV"
    python3 -m venv "$VENV"
    "$VENV/bin/pip" install --quiet --disable-pip-version-check "tensorflow-cpu==$TENSORFLOW" "ai-edge-litert==$LITERT" >&2
    touch "$STAMP"
fi

export TILEWRIGHT="${TILEWRIGHT:-target/release/tilewright}"
"$VENV/bin/python" scripts/check_keras.py "$@"
