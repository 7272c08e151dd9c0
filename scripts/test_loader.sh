#!/usr/bin/env bash
# Tests the loader of object code on emulated 64-bit and 32-bit Arm and RISC-V, where it relocates and calls code from the cross
# compilers. `scripts/setup.sh --cross` installs what is needed; without it the tests skip.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "test-loader: $*" >&2; }

# Runs the tests for one processor. Arguments: its name, Rust's target, the compiler's name of the system.
run() {
    local name=$1 target=$2 system=${3:-linux-gnu} program
    for program in "$name-$system-gcc" "qemu-$name-static"; do
        command -v "$program" >/dev/null || { say "skipped: $name needs $program; run scripts/setup.sh --cross"; return 0; }
    done
    [ -d "$(rustc --print target-libdir --target "$target")" ] ||
        { say "skipped: Rust's library for $target is missing; run scripts/setup.sh --cross"; return 0; }
    local variable
    variable=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")
    env "${variable}_LINKER=$name-$system-gcc" "${variable}_RUNNER=qemu-$name-static -L /usr/$name-$system" \
        "${CARGO:-cargo}" test --target "$target" -p tilewright-runtime --lib -- loader native
}

run aarch64 aarch64-unknown-linux-gnu
run riscv64 riscv64gc-unknown-linux-gnu
run arm armv7-unknown-linux-gnueabihf linux-gnueabihf
