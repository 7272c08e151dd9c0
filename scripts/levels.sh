#!/bin/sh
# Rewrites the table between the two marks of docs/optimization-levels.md. Usage: levels.sh PATH-OF-BUILT-EXAMPLE
set -eu
page=docs/optimization-levels.md
table=$(mktemp)
trap 'rm -f "$table"' EXIT
"$1" >"$table"
# One process per network, because a process never unloads its designs.
for network in resnet8="$TILEWRIGHT_MODELS/resnet8-cifar10/model_int8.tflite" \
    lenet=tests/models/lenet-mnist/model_qdq_perchannel.onnx \
    kws="$TILEWRIGHT_MODELS/kws-dscnn/model_int8.tflite" \
    anomaly-autoencoder="$TILEWRIGHT_MODELS/anomaly-autoencoder/model_int8.tflite" \
    efficientnet-lite0="$TILEWRIGHT_MODELS/efficientnet-lite0/model_qdq_perchannel.onnx"; do
    "$1" "$network" >"$table.one"
    tail -n +3 "$table.one" >>"$table"
done
rm -f "$table.one"
sh scripts/into_page.sh "$page" "$table"
cat "$table"
