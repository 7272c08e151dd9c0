#!/usr/bin/env bash
# Tests the server of remote devices on emulated 64-bit and 32-bit Arm and RISC-V: the tests of its crate run there as a
# whole, and the program, without compiler, lends its cycle model to a client on this machine. `scripts/setup.sh --cross`
# installs what is needed; without it the tests skip.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/emulated.sh

CARGO=${CARGO:-cargo}
say() { echo "test-rpc: $*" >&2; }

# Runs the tests for one processor. Arguments: its name, Rust's target, the compiler's name of the system.
run() {
    local name=$1 target=$2
    emulated "$name" "$target" "${3:-linux-gnu}" || return 0
    "$CARGO" test --target "$target" -p tilewright-rpc --lib
    "$CARGO" build --target "$target" --no-default-features --features zoo --bin tilewright
    serve "$name" "$emulator target/$target/debug/tilewright"
}

# Runs a network on a server that is emulated, and on this machine's cycle model. Arguments: the processor's name, the
# server's command.
serve() {
    local dir server address
    dir=$(mktemp -d)
    $2 serve --device csim --listen 127.0.0.1:0 >"$dir/address" 2>"$dir/log" &
    server=$!
    for _ in $(seq 100); do
        [ -s "$dir/address" ] && break
        sleep 0.1
    done
    address=$(cat "$dir/address")
    local device
    for device in csim "remote:$address"; do
        target/debug/tilewright run zoo:lenet-int8 --device "$device" --output-dir "$dir/${device%%:*}" --json >"$dir/${device%%:*}.json" ||
            { cat "$dir/log" >&2; kill "$server"; say "$1: the network does not run on $device"; return 1; }
    done
    kill "$server"
    diff -r "$dir/csim" "$dir/remote"
    local cycles
    cycles=$(python3 -c 'import json, sys; print(*(json.load(open(f))["cycles"] for f in sys.argv[1:]))' "$dir/csim.json" "$dir/remote.json")
    [ "${cycles% *}" = "${cycles#* }" ] || { say "$1: other cycles: $cycles"; return 1; }
    say "$1: the same bytes and ${cycles% *} cycles"
    rm -rf "$dir"
}

"$CARGO" build --bin tilewright
run aarch64 aarch64-unknown-linux-gnu
run riscv64 riscv64gc-unknown-linux-gnu
run arm armv7-unknown-linux-gnueabihf linux-gnueabihf
