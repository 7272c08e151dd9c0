#!/usr/bin/env bash
# Builds the Python package into build/wheels, and states its size. The arguments are maturin's. With COMPILER=no, the
# package has no code generator for CPUs and GPUs.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf build/wheels
mkdir -p build/wheels
# LLVM's library is the system's: it is not copied into the wheel, whose platform is then the plain `linux`.
options=(--auditwheel skip --profile release)
[ "${COMPILER:-yes}" != no ] || options=(--no-default-features --profile wheel)
.venv/bin/python -m maturin build --quiet --manifest-path python/Cargo.toml --out build/wheels \
    "${options[@]}" "$@"
for wheel in build/wheels/*.whl; do
    echo "$wheel: $(awk "BEGIN { printf \"%.2f\", $(wc -c <"$wheel") / 1e6 }") MB"
done
