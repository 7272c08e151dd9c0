# Everyday commands. Each one first sets up what is missing: on a fresh Debian or Ubuntu machine with Rust, git and a
# C++ compiler, `make demo` and `make test` need nothing else.
#
# Build and run
#   make setup            install what is missing (system packages, Yosys in .venv)
#   make build            build the program as target/release/tilewright
#   make clib             the libraries of the C interface, into build/lib (docs/c.md)
#   make wasm             the JavaScript package, into build/js (docs/web.md)
#   make wheel            the Python package, into build/wheels (docs/python.md); COMPILER=no leaves the compiler out
#   make demo             trained networks read digits and name photos, on the RTL and on the CPU
#
# Test
#   make test             formatting, lints and the quick tests, including lint and elaboration of the RTL
#   make test-full        the same with more and larger random programs and networks, and the RTL of every preset; takes
#                         an hour or two
#   make formal           all proofs of the RTL, and the planted bugs that they must refute (docs/formal.md)
#   make fuzz             random programs on the functional simulator, the cycle model and the RTL: PROGRAMS=N (default
#                         100000), SEED=N, CONFIGS=N configurations (default 24), CONFIG_SEED=N
#   make check-onnx       random float networks with NaN and infinities, and resizes: the CPU against ONNX Runtime
#   make check-onnx-nodes the node cases of ONNX's backend tests; those that are refused are listed with their reasons in
#                         tests/onnx_nodes.txt; OPTIONS=--bless writes that list
#   make check-keras      TFLite files that TensorFlow makes of networks of Keras, against LiteRT; FILES="unet lstm-int8 ..."
#                         selects some; installs TensorFlow (1.6 GB)
#   make check-ptq        networks quantized by Tilewright, compared in ONNX Runtime; more with TILEWRIGHT_MODELS=DIR
#   make check-torch      networks of torchvision, timm and transformers as .pt2 and ONNX, against PyTorch;
#                         NETWORKS="resnet18 bert ..." selects some; installs PyTorch (6 GB)
#   make check-tflite     TFLite's operators against LiteRT's reference kernels; OPERATORS="ADD MUL ..." selects
#                         some
#
# Synthesize
#   make bitstreams       bitstreams of all designs that are known to fit, with checks of their netlists and of the
#                         estimates (docs/synthesize.md). DESIGNS="BOARD BOARD:CONFIGURATION ..." makes others; add
#                         --allow-slow to keep designs below their board's clock, and --verify to check their netlists
#
# Measure
#   make bench-fallback   the CPU code's speed and peak memory against ONNX Runtime and tract, on one and two threads
#                         (docs/cpu.md); half an hour on an idle machine; NETWORKS="resnet18 ..." selects some
#   make bench-ptq        the loss of each method of `quantize` (docs/quantize.md); needs TILEWRIGHT_MODELS;
#                         NETWORKS="lenet ..." selects some
#   make bench-levels     the table of docs/optimization-levels.md; needs TILEWRIGHT_MODELS
#   make bench-mapping    cycles of networks next to their bounds, the table of docs/mapping.md; NETWORKS="resnet18 ..."
#                         selects some
#   make bench-tune       candidates of `tune` that are timed and estimated in a second (docs/tune.md)
#   make bench-sized      time in which a .te file becomes a program for a new size, and for a known one (docs/schedule.md)
#   make bench-sim        cycles of ResNet-18's layers next to VTA's, and the simulators' speed; RTL=1 includes the RTL
#   make bench-fsim       speed of the functional simulator
#   make bench-csim       speed of the cycle model
#   make bench-rtl        speed of the Verilated design
#   make bench-models     speed of a network on the CPU, and of `tilewright bench` through the library
#   make bench-call       overhead of a session's call
#   make bench-cuda       ResNet-50 on a GPU against PyTorch (docs/cuda.md); PYTHON=... is a Python with torch
#   make bench-rpc        round trip and speed of a device of a server, over the loopback interface (docs/remote.md)
#   make bench-frames     overlap of frames, of which one is on the accelerator while the host computes its part of another
#   make bench-shapes     first runs of networks at new shapes, and the price of CPU code that shapes share (docs/shapes.md)
#   make bench-convert    speed of the conversions between dense tensors and the layout of device memory, next to a copy
#   make bench-report     size of a report, and the time to open and zoom it in Chromium

CARGO  ?= cargo
PYTHON ?= python3
PROGRAMS ?= 100000
SEED ?= 1
CONFIGS ?= 24
CONFIG_SEED ?= 1

.PHONY: torch clib wasm languages wheel browser cross cuda gowin verilator test-loader test-rpc setup build demo test test-full formal check-ptq fuzz bitstreams bench bench-fsim bench-csim bench-rtl bench-models bench-call bench-convert bench-cuda bench-rpc bench-frames bench-report bench-shapes bench-fallback bench-levels bench-mapping bench-ptq bench-sim bench-sized bench-tune tuned-log fmt clippy lint lint-rtl clean check-tflite check-onnx check-onnx-nodes check-keras check-torch

setup:
	@scripts/setup.sh

# Both programs, so that `make demo` and `make build` compile the same crates once.
build: setup
	$(CARGO) build --release --bins

# The libraries of the C interface, into build/lib, and their headers, into build/include.
clib: setup
	@CARGO="$(CARGO)" scripts/clib.sh

# The JavaScript package, into build/js.
wasm:
	@scripts/setup.sh --wasm
	@CARGO="$(CARGO)" scripts/wasm.sh

# Tests of the examples in Go and Java skip without their toolchains.
languages: setup
	@scripts/setup.sh --languages

# The Python package, into build/wheels.
wheel: setup
	@COMPILER="$(COMPILER)" scripts/wheel.sh

demo: build
	@target/release/tilewright-demo

fmt:
	$(CARGO) fmt --all

clippy: setup
	$(CARGO) clippy --workspace --all-targets -- -D warnings

# Formatting, lints, the documentation of the Rust API without warnings, and a build without optional features.
lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps
	$(CARGO) check --workspace --all-targets --no-default-features

# Verilator's lint and Yosys's elaboration of every preset.
lint-rtl: setup
	$(CARGO) test --test rtl -- preset --include-ignored

# All proofs of the RTL's blocks, and every planted bug.
formal: setup
	@CARGO="$(CARGO)" scripts/test.sh -p tilewright-hw --test formal -- --include-ignored --nocapture --test-threads 1

# Also checks the format. Clippy takes five minutes of CPU time more: `make lint` and `make test-full` run it. The log
# ends with cargo's counts, the skipped tests and where the time went.
test: setup
	@$(CARGO) fmt --all --check
	@CARGO="$(CARGO)" MAKE="$(MAKE)" scripts/test.sh --workspace --tests

# Tests that open reports in Chromium skip without it.
browser: setup
	@scripts/setup.sh --browser

# Tests that compile GPU kernels to PTX skip without NVIDIA's compiler.
cuda: setup
	@scripts/setup.sh --cuda

# Tests of modules of PyTorch skip without it.
torch: setup
	@scripts/setup.sh --torch

# The test that compares two versions of Verilator skips without a newer one.
verilator: setup
	@scripts/setup.sh --verilator

# The router for Gowin, which one of the boards needs.
gowin: setup
	@scripts/setup.sh --gowin

# Tests of CPU code for other processors skip without emulators.
cross: setup
	@scripts/setup.sh --cross

# Tests the loader of object code on emulated 64-bit and 32-bit Arm and RISC-V.
test-loader: cross
	@CARGO="$(CARGO)" scripts/test_loader.sh

# Tests the server of remote devices on emulated 64-bit and 32-bit Arm and RISC-V.
test-rpc: cross
	@CARGO="$(CARGO)" scripts/test_rpc.sh

test-full: check-ptq browser cross cuda languages verilator wasm test-loader test-rpc check-tflite check-onnx check-onnx-nodes check-keras check-torch
	@CARGO="$(CARGO)" TILEWRIGHT_FUZZ_PROGRAMS=20000 TILEWRIGHT_FUZZ_LARGE=1 TILEWRIGHT_FUZZ_NETWORKS=40 MAKE="$(MAKE)" scripts/test.sh --lint --workspace -- --include-ignored

check-onnx: build
	@scripts/check_onnx.sh

check-onnx-nodes: build
	@scripts/check_onnx_nodes.sh $(OPTIONS)

check-ptq: build
	@scripts/check_ptq.sh

# 40 pairs of scales per operator, bit for bit.
check-tflite: build
	@scripts/check_tflite.sh $(OPERATORS)

check-keras: build
	@scripts/check_keras.sh $(FILES)

check-torch: build
	@scripts/check_torch.sh $(NETWORKS)

fuzz: setup
	TILEWRIGHT_FUZZ_PROGRAMS=$(PROGRAMS) TILEWRIGHT_FUZZ_SEED=$(SEED) TILEWRIGHT_FUZZ_CONFIGS=$(CONFIGS) \
	  TILEWRIGHT_FUZZ_CONFIG_SEED=$(CONFIG_SEED) $(CARGO) test --release -p tilewright-sim --test differential -- --nocapture

bitstreams: build gowin
	@.venv/bin/python scripts/bitstreams.py $(DESIGNS)

bench: bench-fsim bench-csim bench-rtl bench-models bench-call bench-convert

# Tunes the networks whose records the program brings along; NETWORKS and CONFIGS select some, TIME is for each.
tuned-log: build
	@scripts/tuned_log.sh $(TIME)

# The comparison of `tilewright bench`, through the library.
bench-models: setup
	$(CARGO) bench --bench models

# Plans that `tune` estimates and times in a second.
bench-tune: setup
	$(CARGO) bench --bench tune

# Programs for sizes that are given late.
bench-sized: setup
	$(CARGO) bench -p tilewright-tensor --bench sized

# A session's call compared with the functions that it calls; the last lines are the difference in Rust, C and Python.
bench-call: setup
	@CARGO="$(CARGO)" scripts/bench_call.sh

# A server and a client in one process.
bench-rpc: setup
	$(CARGO) bench -p tilewright-rpc --bench loopback

bench-frames: setup
	$(CARGO) bench --bench frames

bench-shapes: setup
	$(CARGO) bench --bench shapes

# Conversions at the borders of accelerator regions.
bench-convert: setup
	$(CARGO) bench -p tilewright-runtime --bench convert

# A report in a real browser.
bench-report: browser
	$(CARGO) build --release --example bench_report
	@target/release/examples/bench_report

bench-fsim: setup
	$(CARGO) bench -p tilewright-sim --bench fsim

bench-csim: setup
	$(CARGO) bench -p tilewright-sim --bench csim

# The layers that VTA was measured on, and a network with ResNet-18's shape.
bench-sim: setup
	$(CARGO) build --release --example bench_sim
	target/release/examples/bench_sim $(if $(RTL),--rtl)

bench-cuda: build
	@$(PYTHON) scripts/bench_cuda.py

# Installs ONNX Runtime and tract as Python packages into .venv-peers.
bench-fallback: build
	@scripts/bench_fallback.sh --json build/bench-fallback.json $(NETWORKS)

bench-ptq: build
	@scripts/bench_ptq.sh $(NETWORKS)

bench-rtl: setup
	$(CARGO) bench -p tilewright-sim --bench rtl

# Rewrites the table of docs/optimization-levels.md.
bench-levels: setup
	@test -n "$$TILEWRIGHT_MODELS" || { echo "bench-levels: set TILEWRIGHT_MODELS to the folder of models" >&2; exit 2; }
	$(CARGO) build --release --example levels
	@scripts/levels.sh target/release/examples/levels

# Without NETWORKS, rewrites the table of docs/mapping.md.
bench-mapping: setup
	$(CARGO) build --release --example bench_mapping
	@scripts/bench_mapping.sh target/release/examples/bench_mapping $(NETWORKS)

clean:
	$(CARGO) clean
	rm -rf build .venv .venv-ptq .venv-tflite .venv-keras .venv-torch .venv-peers .venv-bench-ptq
