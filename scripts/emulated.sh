# Read by the scripts that test on emulated processors. Sets the linker and the runner of Rust's target, or says why the
# processor is skipped and fails. Arguments: the processor's name, Rust's target, the compiler's name of the system. Uses
# `say`; afterwards `emulator` is the command that runs a program.
emulated() {
    local name=$1 target=$2 system=$3 program variable
    for program in "$name-$system-gcc" "qemu-$name-static"; do
        command -v "$program" >/dev/null || { say "skipped: $name needs $program; run scripts/setup.sh --cross"; return 1; }
    done
    [ -d "$(rustc --print target-libdir --target "$target")" ] ||
        { say "skipped: Rust's library for $target is missing; run scripts/setup.sh --cross"; return 1; }
    emulator="qemu-$name-static -L /usr/$name-$system"
    variable=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")
    # Tests that start their own program again read `EMULATOR`.
    export "${variable}_LINKER=$name-$system-gcc" "${variable}_RUNNER=$emulator" EMULATOR="$emulator"
}
