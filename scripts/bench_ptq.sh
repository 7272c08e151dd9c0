#!/usr/bin/env bash
# Compares the methods of `tilewright quantize` on the networks in the folder TILEWRIGHT_MODELS, and on a text detector
# from the Python package rapidocr-onnxruntime. Arguments select networks by name.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${TILEWRIGHT_MODELS:-}" ]; then
    echo "bench-ptq: set TILEWRIGHT_MODELS to the folder of networks and data" >&2
    exit 2
fi
. scripts/versions
VENV=.venv-bench-ptq
STAMP="$VENV/.bench-ptq-$NUMPY-$PILLOW-$RAPIDOCR"
if [ ! -e "$STAMP" ]; then
    echo "setup: installing NumPy $NUMPY, Pillow $PILLOW and the text detector of rapidocr-onnxruntime $RAPIDOCR into $VENV" >&2
    rm -rf "$VENV"
    python3 -m venv "$VENV"
    PIP="$VENV/bin/python -m pip --quiet --disable-pip-version-check"
    $PIP install "numpy==$NUMPY" "pillow==$PILLOW" >&2
    # Without the package's dependencies: only one of its files is used.
    $PIP install --no-deps "rapidocr-onnxruntime==$RAPIDOCR" >&2
    touch "$STAMP"
fi
DETECTOR=$(find "$PWD/$VENV" -name 'ch_PP-OCRv4_det_infer.onnx' | head -n 1)
export DETECTOR
exec "$VENV/bin/python" scripts/bench_ptq.py "$@"
