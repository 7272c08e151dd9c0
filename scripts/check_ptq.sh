#!/usr/bin/env bash
# Quantizes float networks with Tilewright and compares the results in ONNX Runtime and on the CPU. Without
# TILEWRIGHT_MODELS: lenet, calibrated on the digits in the repository. With it also resnet8 (ONNX and TFLite) and
# mnist-cntk, on 200 calibration pictures each, and efficientnet-lite0, on crops of the photos. Networks that are
# already quantized are compared in the same way.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/onnxruntime.sh
export TILEWRIGHT="${TILEWRIGHT:-target/release/tilewright}"
OUT=target/ptq
mkdir -p "$OUT"
CASES=()

# Quantizes a network. Arguments: NAME MODEL CALIBRATION INPUT[,LABELS] SCALING [more options]
quantize() {
    local name=$1 model=$2 calibration=$3 inputs=$4 scaling=$5
    shift 5
    "$TILEWRIGHT" quantize "$model" --calibrate "$calibration" --preprocess "$scaling" -o "$OUT/$name.onnx" \
        --report "$OUT/$name.json" "$@" >"$OUT/$name.txt"
    CASES+=("$OUT/$name.onnx=$inputs")
}

# Adds a network that another program quantized. Arguments: NAME MODEL INPUT[,LABELS]
given() {
    cp "$2" "$OUT/$1.onnx"
    CASES+=("$OUT/$1.onnx=$3")
}

# Writes the floats that a model expects. Arguments: FILE MEAN SCALE [transposed]
floats() {
    "$VENV/bin/python" - "$1" "$OUT/$(basename "$1")" "$2" "$3" "${4:-}" <<'PY'
import sys, numpy as np
source, target, mean, scale, turn = sys.argv[1:]
x = (np.load(source).astype(np.float32) - np.float32(mean)) / np.float32(scale)
np.save(target, np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if turn else x)
PY
}

if [ -n "${TILEWRIGHT_MODELS:-}" ]; then
    M=$TILEWRIGHT_MODELS
    mkdir -p "$OUT/255"
    floats "$M/data/cifar10_test1000_x.npy" 0 1
    floats "$M/data/mnist_test1000_x.npy" 0 1
    OUT=$OUT/255 floats "$M/data/mnist_test1000_x.npy" 0 255
    floats "$M/data/photos224_x.npy" 127 128 nchw
    quantize lenet "$M/lenet-mnist/model.onnx" "$M/data/mnist_calib200_x.npy" "$OUT/255/mnist_test1000_x.npy,$M/data/mnist_test1000_y.npy" mean=0,scale=255
    quantize lenet-7 "$M/lenet-mnist/model.onnx" "$M/data/mnist_calib200_x.npy" "$OUT/255/mnist_test1000_x.npy,$M/data/mnist_test1000_y.npy" mean=0,scale=255 --weights 7
    quantize mnist-cntk "$M/mnist-cntk/model.onnx" "$M/data/mnist_calib200_x.npy" "$OUT/mnist_test1000_x.npy,$M/data/mnist_test1000_y.npy" mean=0,scale=1
    quantize resnet8 "$M/resnet8-cifar10/model.onnx" "$M/data/cifar10_calib200_x.npy" "$OUT/cifar10_test1000_x.npy,$M/data/cifar10_test1000_y.npy" mean=0,scale=1
    quantize resnet8-tflite "$M/resnet8-cifar10/model_float.tflite" "$M/data/cifar10_calib200_x.npy" "$OUT/cifar10_test1000_x.npy,$M/data/cifar10_test1000_y.npy" mean=0,scale=1
    quantize efficientnet-lite0 "$M/efficientnet-lite0/model.onnx" "$M/photos" "$OUT/photos224_x.npy" mean=127,scale=128 --crops 8
    DIGITS=$OUT/255/mnist_test1000_x.npy,$M/data/mnist_test1000_y.npy
    given efficientnet-lite0-given tests/models/efficientnet-lite0/model_qdq_perchannel.onnx "$OUT/photos224_x.npy"
else
    echo "skipped: resnet8, mnist-cntk, efficientnet-lite0 and its given file; set TILEWRIGHT_MODELS to the folder of models"
    quantize lenet tests/models/lenet-mnist/model.onnx tests/models/digits/digits.npy tests/models/digits/digits.npy,tests/models/digits/labels.npy mean=0,scale=1
    quantize lenet-7 tests/models/lenet-mnist/model.onnx tests/models/digits/digits.npy tests/models/digits/digits.npy,tests/models/digits/labels.npy mean=0,scale=1 --weights 7
    DIGITS=tests/models/digits/digits.npy,tests/models/digits/labels.npy
fi
given lenet-given-perchannel tests/models/lenet-mnist/model_qdq_perchannel.onnx "$DIGITS"
given lenet-given-pertensor tests/models/lenet-mnist/model_qdq_pertensor.onnx "$DIGITS"
given vit-tiny-given tests/models/vit-tiny-mnist/model_qdq_perchannel.onnx "$DIGITS"
"$VENV/bin/python" scripts/check_ptq.py "${CASES[@]}"
