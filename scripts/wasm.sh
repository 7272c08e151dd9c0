#!/bin/sh
# Builds the JavaScript package into build/js: the runtime with the simulators as WebAssembly, and the code of `js`.
set -eu
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
target=wasm32-unknown-unknown
mkdir -p build/js
# The code of models is instantiated in this module's memory and table, and shares its stack.
RUSTFLAGS="-C target-feature=+simd128 -C link-arg=--export-table -C link-arg=--growable-table \
  -C link-arg=--export=__stack_pointer" \
  $CARGO rustc -q --profile clib --target $target -p tilewright-ffi --lib --crate-type cdylib
cp "${CARGO_TARGET_DIR:-target}/$target/clib/tilewright_c.wasm" build/js/.runtime.wasm
cp js/package.json js/*.js js/*.d.ts js/README.md LICENSE build/js
mv build/js/.runtime.wasm build/js/runtime.wasm
echo "build/js/runtime.wasm: $(wc -c <build/js/runtime.wasm | awk '{ printf "%.2f", $1 / 1e6 }') MB," \
  "$(gzip -9 -c build/js/runtime.wasm | wc -c | awk '{ printf "%.2f", $1 / 1e6 }') compressed"
