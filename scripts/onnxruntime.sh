# Source this in the repository's root. It sets VENV to a virtual environment with ONNX Runtime, ONNX and NumPy in the
# versions of scripts/versions, which it creates if needed.
. scripts/versions
VENV=.venv-ptq
STAMP="$VENV/.onnxruntime-$ONNXRUNTIME-$ONNX-$NUMPY"
if [ ! -e "$STAMP" ]; then
    echo "setup: installing ONNX Runtime $ONNXRUNTIME into $VENV" >&2
    rm -rf "$VENV"
    python3 -m venv "$VENV"
    "$VENV/bin/pip" install --quiet --disable-pip-version-check "onnxruntime==$ONNXRUNTIME" "onnx==$ONNX" "numpy==$NUMPY" >&2
    touch "$STAMP"
fi
