# Sourced from the repository's root: VENV, a virtual environment with ONNX Runtime, ONNX and NumPy of the versions in scripts/versions.
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
