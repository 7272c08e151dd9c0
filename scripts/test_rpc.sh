#!/usr/bin/env bash
# Tests the server of remote devices on emulated 64-bit and 32-bit Arm and RISC-V: the tests of its crate run there as a
# whole, and the program, without compiler, lends its cycle model to a client on this machine, which also uploads a model
# with CPU code, runs and times it there, and fetches the outputs. `scripts/setup.sh --cross` installs what is needed;
# without it the tests skip. Arguments: processors, or none for all. PATIENCE multiplies the time in which something
# must be done: emulated processors are slower than what the tests allow, and the machine can be busy.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/emulated.sh

CARGO=${CARGO:-cargo}
WANTED=$*
export PATIENCE=${PATIENCE:-60}
say() { echo "test-rpc: $*" >&2; }

# Runs the tests for one processor. Arguments: its name, Rust's target, the compiler's name of the system, the target of
# CPU code.
run() {
    local name=$1 target=$2
    [ -z "$WANTED" ] || [[ " $WANTED " == *" $name "* ]] || return 0
    emulated "$name" "$target" "$3" || return 0
    "$CARGO" test --target "$target" -p tilewright-rpc --lib
    "$CARGO" build --target "$target" --no-default-features --features zoo --bin tilewright
    serve "$name" "$4" "$emulator" "target/$target/debug/tilewright"
}

# Runs a network on a server that is emulated, and on this machine's cycle model. Arguments: the processor's name, the
# target of CPU code, the emulator, the program.
serve() {
    local dir address host=target/debug/tilewright
    dir=$(mktemp -d)
    $3 "$4" serve --device csim --listen 127.0.0.1:0 --allow-native --native-runner "$3" >"$dir/address" 2>"$dir/log" &
    server=$!
    # It ends with this script, whatever fails.
    trap 'kill "$server" 2>/dev/null || true' EXIT
    for _ in $(seq $((10 * PATIENCE))); do
        [ -s "$dir/address" ] && break
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    [ -s "$dir/address" ] || { cat "$dir/log" >&2; say "$1: the server does not listen"; return 1; }
    address=$(cat "$dir/address")
    local device
    for device in csim "remote:$address"; do
        "$host" run zoo:lenet-int8 --input tests/models/digits/digits.npy --device "$device" --output-dir "$dir/${device%%:*}" --json >"$dir/${device%%:*}.json" ||
            { cat "$dir/log" >&2; say "$1: the network does not run on $device"; return 1; }
    done
    "$host" compile zoo:lenet-int8 --cpu-target "$2" -o "$dir/lenet.twa"
    "$host" run "$dir/lenet.twa" --input tests/models/digits/digits.npy --device "remote:$address" --upload --repeat 3 \
        --output-dir "$dir/uploaded" --json >"$dir/uploaded.json" ||
        { cat "$dir/log" >&2; say "$1: the network does not run on the server"; return 1; }
    kill "$server"
    trap - EXIT
    diff -r "$dir/csim" "$dir/remote"
    diff -r "$dir/csim" "$dir/uploaded"
    local cycles
    cycles=$(python3 -c 'import json, sys; print(*(json.load(open(f))["cycles"] for f in sys.argv[1:]))' "$dir/csim.json" "$dir/remote.json" "$dir/uploaded.json")
    [ "$(tr ' ' '\n' <<<"$cycles" | sort -u | wc -l)" = 1 ] || { say "$1: other cycles: $cycles"; return 1; }
    say "$1: the same bytes and ${cycles%% *} cycles, also of the uploaded model, in a median of" \
        "$(python3 -c 'import json, sys; print(round(json.load(open(sys.argv[1]))["server_ms"]["median"]))' "$dir/uploaded.json") ms"
    rm -rf "$dir"
}

"$CARGO" build --bin tilewright
run aarch64 aarch64-unknown-linux-gnu linux-gnu aarch64-linux-gnu
run riscv64 riscv64gc-unknown-linux-gnu linux-gnu riscv64-linux-gnu
run arm armv7-unknown-linux-gnueabihf linux-gnueabihf armv7-linux-gnueabihf
