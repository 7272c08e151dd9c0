#!/usr/bin/env bash
# What `make lint` does: formatting, and clippy's lints, of which none may be left.
set -euo pipefail
cd "$(dirname "$0")/.."
"${CARGO:-cargo}" fmt --all --check
"${CARGO:-cargo}" clippy --workspace --all-targets -- -D warnings
