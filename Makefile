# Tilewright's everyday commands. Each does its own set-up first: on a fresh Debian or Ubuntu machine with Rust, git and a
# C++ compiler, `make demo` and `make test` need nothing else.
#
#   make setup        install what is missing (system packages, Yosys in .venv)
#   make build        the tilewright program, optimised, as target/release/tilewright
#   make demo         trained networks read handwritten digits and name photos, on the RTL and on the CPU
#   make test         formatting, lints, and the quick test suite, the RTL's lint and elaboration among it
#   make test-full    the same, and what takes an hour or two: more and larger random programs and networks, the RTL of every preset
#   make formal       proofs of the RTL's blocks with SymbiYosys, and the planted bugs that they refute (docs/formal.md)
#   make check-onnx   random float networks with NaN and infinities, and resizes, on the CPU against ONNX Runtime
#   make check-ptq    float networks quantized by the program, compared in ONNX Runtime; TILEWRIGHT_MODELS names more of them
#   make check-tflite TFLite's operators of 8 bits against LiteRT's reference kernels; OPERATORS="ADD MUL ..." takes fewer
#   make fuzz         random programs on the functional simulator, the cycle model and the RTL; PROGRAMS=N (default 100000),
#                     SEED=N, CONFIGS=N configurations (default 24), CONFIG_SEED=N
#   make bitstreams   bitstreams of the boards whose designs are known to fit, what they came to, and what was expected of each
#                     before it was routed; DESIGNS="BOARD BOARD:CONFIGURATION ..." makes others. A design below its board's
#                     clock fails, and is made all the same with --allow-slow among DESIGNS; the netlists of those that are known to fit are
#                     checked, those of others with --verify there
#   make bench-fallback   the CPU's code against ONNX Runtime and tract, on one and two threads, and its peak memory (docs/cpu.md);
#                     half an hour on an idle machine; NETWORKS="resnet18 ..." takes fewer
#   make bench-ptq    what each method of `quantize` loses, on all networks (docs/quantize.md); needs TILEWRIGHT_MODELS;
#                     NETWORKS="lenet ..." takes fewer
#   make bench-levels what each level of optimisation does, as docs/optimization-levels.md; needs TILEWRIGHT_MODELS
#   make bench-sim    cycles of ResNet-18's layers beside VTA's, and speed of the simulators; RTL=1 runs them on the RTL too
#   make bench-fsim   speed of the functional simulator; make bench-csim: of the cycle model; make bench-rtl: of the Verilated design;
#                     make bench-models: of a network on the processor, and of comparing it
#   make bench-call   what a session's call takes above its kernels; make bench-report: size, opening and zooming of a report in Chromium

CARGO  ?= cargo
PROGRAMS ?= 100000
SEED ?= 1
CONFIGS ?= 24
CONFIG_SEED ?= 1

.PHONY: browser cross cuda gowin verilator test-loader setup build demo test test-full formal check-ptq fuzz bitstreams bench bench-fsim bench-csim bench-rtl bench-models bench-call bench-report bench-fallback bench-levels bench-ptq bench-sim fmt clippy lint lint-rtl clean check-tflite check-onnx

setup:
	@scripts/setup.sh

# Both programs, so that `make demo` and `make build` compile the same crates once.
build: setup
	$(CARGO) build --release --bins

demo: build
	@target/release/tilewright-demo

fmt:
	$(CARGO) fmt --all

clippy: setup
	$(CARGO) clippy --workspace --all-targets -- -D warnings

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

# Verilator's lint and Yosys's elaboration of every preset.
lint-rtl: setup
	$(CARGO) test --test rtl -- preset --include-ignored

# The proofs of the RTL's blocks, all of them, and every planted bug.
formal: setup
	@CARGO="$(CARGO)" scripts/test.sh -p tilewright-hw --test formal -- --include-ignored --nocapture --test-threads 1

# Lints too. The log ends with what cargo counted, and behind it what was skipped and where the time went.
test: setup
	@CARGO="$(CARGO)" MAKE="$(MAKE)" scripts/test.sh --lint --workspace --tests

# Reports are opened in Chromium, where make test skips without it.
browser: setup
	@scripts/setup.sh --browser

# Kernels for GPUs are compiled to PTX, where make test skips without NVIDIA's compiler.
cuda: setup
	@scripts/setup.sh --cuda

# A newer Verilator beside the system's, where make test-full skips without it.
verilator: setup
	@scripts/setup.sh --verilator

# Routers of a Gowin part, which one of the boards has.
gowin: setup
	@scripts/setup.sh --gowin

# The CPU's code of other processors runs in emulators, where make test skips without them.
cross: setup
	@scripts/setup.sh --cross

# The loader of object code on an emulated 64-bit Arm and RISC-V.
test-loader: cross
	@CARGO="$(CARGO)" scripts/test_loader.sh

test-full: check-ptq browser cross cuda verilator test-loader check-tflite check-onnx
	@CARGO="$(CARGO)" TILEWRIGHT_FUZZ_PROGRAMS=20000 TILEWRIGHT_FUZZ_LARGE=1 TILEWRIGHT_FUZZ_NETWORKS=40 MAKE="$(MAKE)" scripts/test.sh --lint --workspace -- --include-ignored

check-onnx: build
	@scripts/check_onnx.sh

check-ptq: build
	@scripts/check_ptq.sh

# 40 pairs of scales for each operator; bit for bit.
check-tflite: build
	@scripts/check_tflite.sh $(OPERATORS)

fuzz: setup
	TILEWRIGHT_FUZZ_PROGRAMS=$(PROGRAMS) TILEWRIGHT_FUZZ_SEED=$(SEED) TILEWRIGHT_FUZZ_CONFIGS=$(CONFIGS) \
	  TILEWRIGHT_FUZZ_CONFIG_SEED=$(CONFIG_SEED) $(CARGO) test --release -p tilewright-sim --test differential -- --nocapture

bitstreams: build gowin
	@.venv/bin/python scripts/bitstreams.py $(DESIGNS)

bench: bench-fsim bench-csim bench-rtl bench-models bench-call

# What `tilewright bench` compares, through the library.
bench-models: setup
	$(CARGO) bench --bench models

# A session's call beside the functions that it calls; the last line is the difference.
bench-call: setup
	$(CARGO) bench --bench call

# A report in a real browser.
bench-report: browser
	$(CARGO) build --release --example bench_report
	@target/release/examples/bench_report

bench-fsim: setup
	$(CARGO) bench -p tilewright-sim --bench fsim

bench-csim: setup
	$(CARGO) bench -p tilewright-sim --bench csim

# The layers that VTA was measured on, and a network of ResNet-18's shape.
bench-sim: setup
	$(CARGO) build --release --example bench_sim
	target/release/examples/bench_sim $(if $(RTL),--rtl)

# Peers come as Python packages, into .venv-peers.
bench-fallback: build
	@scripts/bench_fallback.sh --json build/bench-fallback.json $(NETWORKS)

bench-ptq: build
	@scripts/bench_ptq.sh $(NETWORKS)

bench-rtl: setup
	$(CARGO) bench -p tilewright-sim --bench rtl

# The table of docs/optimization-levels.md, written anew.
bench-levels: setup
	@test -n "$$TILEWRIGHT_MODELS" || { echo "bench-levels: name the folder of models with TILEWRIGHT_MODELS=DIR" >&2; exit 2; }
	$(CARGO) build --release --example levels
	@scripts/levels.sh target/release/examples/levels

clean:
	$(CARGO) clean
	rm -rf build .venv .venv-ptq .venv-tflite .venv-peers .venv-bench-ptq
