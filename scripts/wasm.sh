#!/bin/sh
# Builds the JavaScript package into build/js: the runtime with the simulators as WebAssembly, and the code of `js`. Where
# npm is installed, TypeScript checks its types.
set -eu
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
target=wasm32-unknown-unknown
mkdir -p build/js
# The code of models is instantiated in this module's memory and table, and shares its stack.
RUSTFLAGS="-C target-feature=+simd128 -C link-arg=--export-table -C link-arg=--growable-table \
  -C link-arg=--export=__stack_pointer" \
  $CARGO rustc -q --profile clib --config profile.clib.package.tilewright-hw.opt-level=3 --target $target \
  -p tilewright-ffi --lib --crate-type cdylib
cp "${CARGO_TARGET_DIR:-target}/$target/clib/tilewright_c.wasm" build/js/.runtime.wasm
cp js/package.json js/*.js js/*.d.ts js/README.md LICENSE build/js
mv build/js/.runtime.wasm build/js/runtime.wasm
echo "build/js/runtime.wasm: $(wc -c <build/js/runtime.wasm | awk '{ printf "%.2f", $1 / 1e6 }') MB," \
  "$(gzip -9 -c build/js/runtime.wasm | wc -c | awk '{ printf "%.2f", $1 / 1e6 }') compressed"

# Everything that a program in TypeScript can say about the package must be accepted, and what is wrong refused.
if command -v npm >/dev/null; then
    . scripts/versions
    types=build/types
    tsc=$types/node_modules/.bin/tsc
    if [ ! -x "$tsc" ] || [ "$($tsc --version)" != "Version $TYPESCRIPT" ]; then
        npm install --silent --no-audit --no-fund --prefix "$types" "typescript@$TYPESCRIPT"
    fi
    cp ffi/tests/types.ts "$types/types.mts"
    rm -rf "$types/node_modules/tilewright"
    ln -s ../../js "$types/node_modules/tilewright"
    $tsc --noEmit --strict --preserveSymlinks --target es2022 --module nodenext --lib es2022,dom "$types/types.mts"
    echo "build/js/index.d.ts: TypeScript $TYPESCRIPT accepts it"
else
    echo "build/js/index.d.ts: not checked; install npm for TypeScript's compiler"
fi
