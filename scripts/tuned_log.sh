#!/bin/sh
# Writes the log that the program brings along: tunes networks on the presets 1x16x16 and 1x8x8, and keeps the choice for
# each layer. Usage: scripts/tuned_log.sh [TIME for each network, such as 5m]. NETWORKS and CONFIGS select some.
# Trials go to build/tuned-NETWORK.jsonl, so that a second run continues the first.
set -eu
cd "$(dirname "$0")/.."
time="${1:-5m}"
program=target/release/tilewright
networks="${NETWORKS:-resnet18 resnet50 mobilenet-v2 deit-tiny bert-tiny zoo:lenet-int8 zoo:vit-tiny-int8 \
  zoo:efficientnet-lite0-int8}"
configs="${CONFIGS:-1x16x16 1x8x8}"
out=src/model/tuned/shipped.jsonl
mkdir -p build
all=build/tuned-all.jsonl
cat "$out" > "$all"
for network in $networks; do
  model="$network"
  case "$network" in
    zoo:*) ;;
    *)
      model="build/$network.onnx"
      [ -f "$model" ] || "$program" zoo make "$network" -o "$model"
      ;;
  esac
  log="build/tuned-$(echo "$network" | tr ':' '-').jsonl"
  for config in $configs; do
    for level in 2 3; do
      "$program" tune "$model" --hw "$config" -O "$level" --time "$time" --log "$log"
    done
  done
  cat "$log" >> "$all"
done
# The last choice for each configuration, layer and neighborhood.
grep '"chosen"' "$all" | tac | awk '{
  match($0, /"config":"[0-9a-f]*","layer":"[0-9a-f]*","near":"[0-9a-f]*"/)
  key = substr($0, RSTART, RLENGTH)
  if (!(key in seen)) { seen[key] = 1; print }
}' | sort > "$out.new"
mv "$out.new" "$out"
echo "$out: $(wc -l < "$out") records"
