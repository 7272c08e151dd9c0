#!/usr/bin/env bash
# Runs the tests of the loader of object code on an emulated 64-bit Arm and RISC-V: relocated code of the cross compilers is called there.
# What they need is what `scripts/setup.sh --cross` installs; without it they skip.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "test-loader: $*" >&2; }

# Name, Rust's target.
run() {
    local name=$1 target=$2 program
    for program in "$name-linux-gnu-gcc" "qemu-$name-static"; do
        command -v "$program" >/dev/null || { say "skipped: $name needs $program; run scripts/setup.sh --cross"; return 0; }
    done
    [ -d "$(rustc --print target-libdir --target "$target")" ] ||
        { say "skipped: Rust has no $target; run scripts/setup.sh --cross"; return 0; }
    local variable
    variable=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")
    env "${variable}_LINKER=$name-linux-gnu-gcc" "${variable}_RUNNER=qemu-$name-static -L /usr/$name-linux-gnu" \
        "${CARGO:-cargo}" test --target "$target" -p tilewright-runtime --lib -- loader native
}

run aarch64 aarch64-unknown-linux-gnu
run riscv64 riscv64gc-unknown-linux-gnu
