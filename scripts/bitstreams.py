#!/usr/bin/env python3
"""Bitstreams of boards and configurations: made one after the other, and a table of what they came to.

Each argument is BOARD or BOARD:CONFIGURATION; without any, the boards whose designs are known to fit. Beside what the router
reports stands what was expected of the netlist before it, so the table also says how good the estimate is. GOPS count each product
and each sum, at the clock that the bitstream has.
"""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.join(ROOT, "target", "release", "tilewright")
DEFAULT = [
    "hx8k-evn",
    "orangecrab",
    "orangecrab:1x4x2",
    "ulx3s-25f",
    "colorlight-i9",
    "ecp5-evn:1x4x4-ecp5",
    "ecp5-evn",
]

# VTA on its Zynq: tables (of six inputs), multipliers, GOPS, as published (Moreau et al., "A Hardware-Software Blueprint for
# Flexible Deep Learning Specialization", 2019).
VTA = ("VTA, 1x16x16 on xc7z020", 19_000, 220, 51.0)

# A resource's name in the estimate and the router's names for it, with how many of the former one of the latter is.
ROUTED = {
    "logic cells": {"ICESTORM_LC": 1},
    "look-up tables": {"TRELLIS_COMB": 1, "TRELLIS_RAMW": 2},
    "block RAMs": {"ICESTORM_RAM": 1, "DP16KD": 1},
    "multiplier blocks": {"ICESTORM_DSP": 1, "MULT18X18D": 1},
}


def make(design, out):
    """Runs the flow; its report, or None where there is none, after the flow's own message."""
    board, _, config = design.partition(":")
    command = [PROGRAM, "synth", "--board", board, "-o", out, "--allow-slow", "--json"]
    if config:
        command += ["--hw", config]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def resources(report):
    """Of each resource how much was expected, is used and is there."""
    used = {row["name"]: row["used"] for row in report["resources"]}
    rows = []
    for row in report["estimate"]["resources"]:
        names = ROUTED.get(row["name"], {})
        found = sum(used.get(name, 0) * times for name, times in names.items())
        if found:
            rows.append((row["name"], row["used"], found, row["available"]))
    return rows


def off(expected, found):
    """By how much an expectation is off, as a percentage of what was found."""
    return 100.0 * (expected - found) / found


def rates(design, gops, luts, dsps):
    """GOPS by what they are made of."""
    per_dsp = f", {gops / dsps:.3f} a multiplier" if dsps else ""
    return f"{design:<34} {gops:.2f} GOPS{per_dsp}, {1000 * gops / luts:.2f} a thousand tables"


def main(designs):
    print(f"{'design':<34} {'resource':<18} {'expected':>9} {'routed':>9} {'of':>7} {'off':>8}")
    failed = False
    for design in designs:
        out = os.path.join(ROOT, "build", "bitstreams", os.path.basename(design).replace(":", "-"))
        report = make(design, out)
        if report is None:
            failed = True
            print(f"{design:<34} no bitstream")
            continue
        for name, expected, found, there in resources(report):
            print(f"{design:<34} {name:<18} {expected:>9} {found:>9} {there:>7} {off(expected, found):>7.1f}%")
        expected, found = report["estimate"]["fmax_mhz"], report["fmax_mhz"]
        print(f"{design:<34} {'clock, MHz':<18} {expected:>9.1f} {found:>9.1f} {'':>7} {off(expected, found):>7.1f}%")
        cells = report["cells"]
        gops = report["gops"] * found / report["clock_mhz"]
        print(rates(design, gops, cells["luts"], cells["dsps"]))
        sys.stdout.flush()
    name, luts, dsps, gops = VTA
    print(rates(name, gops, luts, dsps))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or DEFAULT))
