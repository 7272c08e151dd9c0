#!/usr/bin/env bash
# Exports networks of torchvision, timm and transformers as .pt2 and ONNX, and compares them on the CPU with PyTorch.
# Arguments select networks by a part of their names. PyTorch and what it brings along take 6 GB in .venv-torch.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/versions
VENV=.venv-torch
STAMP="$VENV/.torch-$TORCH-$TORCHVISION-$TIMM-$TRANSFORMERS-$ONNXSCRIPT"
if [ ! -e "$STAMP" ]; then
    echo "setup: installing PyTorch $TORCH with torchvision, timm and transformers into $VENV" >&2
    rm -rf "$VENV"
    python3 -m venv "$VENV"
    "$VENV/bin/pip" install --quiet --disable-pip-version-check "torch==$TORCH" "torchvision==$TORCHVISION" "timm==$TIMM" \
        "transformers==$TRANSFORMERS" "onnxscript==$ONNXSCRIPT" >&2
    touch "$STAMP"
fi

export TILEWRIGHT="${TILEWRIGHT:-target/release/tilewright}"
"$VENV/bin/python" scripts/check_torch.py "$@"
