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
awk -v table="$table" '
    /<!-- table -->/ { print; while ((getline line < table) > 0) print line; skip = 1; next }
    /<!-- end -->/ { skip = 0 }
    !skip { print }
' "$page" >"$page.new"
mv "$page.new" "$page"
cat "$table"
