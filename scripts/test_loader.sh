#!/usr/bin/env bash
# Tests the loader of object code on emulated 64-bit and 32-bit Arm and RISC-V, where it relocates and calls code from the cross
# compilers. `scripts/setup.sh --cross` installs what is needed; without it the tests skip.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/emulated.sh

say() { echo "test-loader: $*" >&2; }

# Runs the tests for one processor. Arguments: its name, Rust's target, the compiler's name of the system.
run() {
    emulated "$1" "$2" "${3:-linux-gnu}" || return 0
    "${CARGO:-cargo}" test --target "$2" -p tilewright-runtime --lib -- loader native
}

run aarch64 aarch64-unknown-linux-gnu
run riscv64 riscv64gc-unknown-linux-gnu
run arm armv7-unknown-linux-gnueabihf linux-gnueabihf
