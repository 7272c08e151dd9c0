#!/usr/bin/env bash
# Measures a session's call above its kernels in Rust, C and Python, whose package is made of an optimized build.
set -euo pipefail
cd "$(dirname "$0")/.."
"${CARGO:-cargo}" build --release -p tilewright-python --lib
package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
mkdir "$package/tilewright"
cp python/tilewright/*.py "$package/tilewright"
cp "${CARGO_TARGET_DIR:-target}/release/libtilewright_python.so" "$package/tilewright/_native.abi3.so"
TILEWRIGHT_PYTHON_PACKAGE="$package" "${CARGO:-cargo}" bench --bench call "$@"
