#!/bin/sh
# Builds the libraries of the C interface into build/lib, and states their sizes:
#   libtilewright_runtime.so  sessions and boards
#   libtilewright_sim.so      the same with the functional simulator and the cycle model
#   libtilewright_remote.so   the same with devices of servers
set -eu
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
mkdir -p build/lib build/include
build() { # NAME FEATURES...
  name=$1
  shift
  # Alone: Cargo optimizes no library at link time that it also builds for Rust.
  $CARGO rustc -q --profile clib -p tilewright-ffi --lib --crate-type cdylib "$@"
  # Written whole: a program that runs may have the old file open.
  cp "${CARGO_TARGET_DIR:-target}/clib/libtilewright_c.so" "build/lib/.$name"
  mv "build/lib/.$name" "build/lib/$name"
}
build libtilewright_runtime.so --no-default-features
# The simulators compute with functions of tilewright-hw.
fast='profile.clib.package.tilewright-hw.opt-level=3'
build libtilewright_sim.so --no-default-features --features sim --config "$fast"
build libtilewright_remote.so --config "$fast"
cp include/tilewright.h include/tilewright.hpp build/include
for name in libtilewright_runtime.so libtilewright_sim.so libtilewright_remote.so; do
  echo "build/lib/$name: $(awk "BEGIN { printf \"%.2f\", $(wc -c <build/lib/$name) / 1e6 }") MB"
done
