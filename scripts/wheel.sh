#!/usr/bin/env bash
# Builds the Python package into build/wheels, and states its size. The arguments are maturin's.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf build/wheels
mkdir -p build/wheels
.venv/bin/python -m maturin build --quiet --release --manifest-path python/Cargo.toml --out build/wheels "$@"
for wheel in build/wheels/*.whl; do
    echo "$wheel: $(awk "BEGIN { printf \"%.2f\", $(wc -c <"$wheel") / 1e6 }") MB"
done
