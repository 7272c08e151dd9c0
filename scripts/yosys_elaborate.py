"""Elaborates SystemVerilog sources with Yosys and its slang front end; fails on any warning or failed check.

Usage: yosys_elaborate.py TOP FILE.sv... (packages first)
"""
import sys

from pyosys import libyosys as ys


def main(top, files):
    design = ys.Design()
    folders = sorted({file.rsplit("/", 1)[0] for file in files})
    includes = " ".join(f"-I {folder}" for folder in folders)
    for command in (f"read_slang --top {top} {includes} {' '.join(files)}", "hierarchy -check", "proc", "check -assert"):
        ys.run_pass(command, design)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
