#!/usr/bin/env python3
"""Bitstreams of boards and configurations: made one after the other, and a table of what they came to.

Each argument is BOARD or BOARD:CONFIGURATION, files seen from the repository's root; without any, the boards whose designs are known
to fit. Beside what the router reports stands what was expected of the netlist before it, so the table also says how good the estimate is. GOPS count each product
and each sum, at the clock that the design reaches.

A design that does not reach its board's clock is none: the exit code is 1. With --allow-slow the bitstream is made all the same.
With --verify, which goes with the designs that are known to fit, its netlists are checked too, with --programs=N as many programs as are named: what differs from the sources fails, and
what could not be checked is told with the reason. An estimate that is further off than it is said to be (docs/synthesize.md) fails too.
TILEWRIGHT names the program, where it is not that of `make build`.
"""

import json
import math
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.environ.get("TILEWRIGHT") or os.path.join(ROOT, "target", "release", "tilewright")
DEFAULT = [
    "hx8k-evn",
    "orangecrab",
    "orangecrab:1x4x2",
    "ulx3s-25f",
    "colorlight-i5",
    "colorlight-i9",
    "ecp5-evn:1x4x4-ecp5",
    "ecp5-evn",
    "ecp5-evn:examples/1x8x4-ecp5.toml",
    "ecp5-evn:examples/1x4x8-ecp5.toml",
    "ecp5-evn:examples/2x4x4-ecp5.toml",
    "ulx3s-85f",
    # The largest; an hour by itself.
    "ecp5-evn:examples/1x16x8-ecp5.toml",
]

# By how much an estimate may be off: resources and the clock, as a part of what was routed.
RESOURCES_OFF = 0.10
CLOCK_OFF = 0.20

# VTA on its Zynq: tables (of six inputs), multipliers, GOPS, as published (Moreau et al., "A Hardware-Software Blueprint for
# Flexible Deep Learning Specialization", 2019).
VTA = ("VTA, 1x16x16 on xc7z020", 19_000, 220, 51.0)

# A resource's name in the estimate and the router's names for it, with how many of the former one of the latter is.
ROUTED = {
    "logic cells": {"ICESTORM_LC": 1},
    "look-up tables": {"TRELLIS_COMB": 1, "TRELLIS_RAMW": 2},
    "registers": {"TRELLIS_FF": 1},
    "block RAMs": {"ICESTORM_RAM": 1, "DP16KD": 1},
    "multiplier blocks": {"ICESTORM_DSP": 1, "MULT18X18D": 1},
}


def make(design, out, options):
    """Runs the flow; its report, or None where there is none, after the flow's own message."""
    board, _, config = design.partition(":")
    command = [PROGRAM, "synth", "--board", board, "-o", out, "--json"] + options
    if config:
        command += ["--hw", config]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    report = json.loads(done.stdout) if done.stdout.strip() else None
    # What differs has a bitstream, and exits as a refusal does, which has none.
    return report if done.returncode == 0 or (report and report.get("bitstream") is not None) else None


def resources(report):
    """Of each resource how much was expected, is used and is there. What is used is None of a family whose router has other names."""
    used = {row["name"]: row["used"] for row in report["resources"]}
    known = any(name in used for names in ROUTED.values() for name in names)
    rows = []
    for row in report["estimate"]["resources"]:
        names = ROUTED.get(row["name"], {})
        found = sum(used.get(name, 0) * times for name, times in names.items()) if known else None
        if found or row["used"]:
            rows.append((row["name"], row["used"], found, row["available"]))
    return rows


def planned(design, report):
    """Whether the netlist has as many multipliers as its sources were written for, where that is known."""
    plan, found = report["planned_multipliers"], report["cells"]["dsps"]
    if plan in (None, found):
        return True
    print(f"{design:<34} the netlist has {found} multipliers, {plan} WERE PLANNED (hw/src/flow/multipliers.rs)")
    return False


def folder(design):
    """Where a design's files go: each board and configuration has its own."""
    board, _, config = design.partition(":")
    return os.path.join(ROOT, "build", "bitstreams", os.path.basename(board), config.replace(os.sep, "-"))


def checked(design, report):
    """Prints what was found of a design's netlists; whether none differs."""
    same = True
    for check in report.get("checks", []):
        if check["unchecked"]:
            print(f"{design:<34} {check['netlist']}: not checked: {check['unchecked']}")
        elif check["difference"]:
            same = False
            print(f"{design:<34} {check['netlist']}: DIFFERS from the sources: {check['difference'].splitlines()[0]}")
        else:
            print(f"{design:<34} {check['netlist']}: as the sources in {check['programs']} programs")
    return same


def off(expected, found):
    """By how much an expectation is off, as a part of what was found, one of which is not 0; None where one of them is not known."""
    if None in (expected, found):
        return None
    return (expected - found) / found if found else math.inf


def percent(part):
    """A part of a whole, or that there is none."""
    return "-" if part is None else f"{100.0 * part:.1f}%"


def too_far(design, name, part, most):
    """Tells of an estimate that is further off than it may be; whether it is."""
    far = part is not None and abs(part) > most
    if far:
        print(f"{design:<34} the estimate of {name} is MORE THAN {100 * most:.0f}% off")
    return far


def mhz(clock):
    """A clock, or that there is none: of some families none is expected, and some have no open router."""
    return "-" if clock is None else f"{clock:.1f}"


def rates(design, gops, luts, dsps):
    """GOPS by what they are made of."""
    per_dsp = f", {gops / dsps:.3f} a multiplier" if dsps else ""
    return f"{design:<34} {gops:.2f} GOPS{per_dsp}, {1000 * gops / luts:.2f} a thousand tables"


def main(arguments):
    options = [a for a in arguments if a in ("--allow-slow", "--verify") or a.startswith("--programs=")]
    designs = [argument for argument in arguments if argument not in options]
    unknown = [design for design in designs if design.startswith("-")]
    if unknown:
        print(f"bitstreams: {unknown[0]} is no option; there are --allow-slow, --verify and --programs=N", file=sys.stderr)
        return 2
    if not os.access(PROGRAM, os.X_OK):
        print(f"bitstreams: {PROGRAM} is no program; run `make build`, or name one with TILEWRIGHT", file=sys.stderr)
        return 2
    if not designs:
        designs, options = DEFAULT, options + ["--verify"]
    print(f"{'design':<34} {'resource':<18} {'expected':>9} {'routed':>9} {'of':>7} {'off':>8}")
    failed = False
    for design in designs:
        report = make(design, folder(design), options)
        if report is None:
            failed = True
            print(f"{design:<34} no bitstream")
            continue
        rows = resources(report)
        for name, expected, found, there in rows:
            used = "?" if found is None else found
            print(f"{design:<34} {name:<18} {expected:>9} {used:>9} {there:>7} {percent(off(expected, found)):>8}")
            failed |= too_far(design, name, off(expected, found), RESOURCES_OFF)
        expected, found = report["estimate"]["fmax_mhz"], report["fmax_mhz"]
        print(f"{design:<34} {'clock, MHz':<18} {mhz(expected):>9} {mhz(found):>9} {'':>7} {percent(off(expected, found)):>8}")
        failed |= too_far(design, "the clock", off(expected, found), CLOCK_OFF)
        failed |= not checked(design, report)
        failed |= not planned(design, report)
        if report["slow"]:
            failed = True
            print(f"{design:<34} MISSES its board's clock, {report['clock_mhz']:.1f} MHz")
        routed = {name: used for name, _, used, _ in rows}
        luts = routed.get("look-up tables") or routed.get("logic cells") or report["cells"]["luts"]
        dsps = routed.get("multiplier blocks") or report["cells"]["dsps"]
        gops = report["gops"] * (found or report["clock_mhz"]) / report["clock_mhz"]
        print(rates(design, gops, luts, dsps))
        sys.stdout.flush()
    name, luts, dsps, gops = VTA
    print(rates(name, gops, luts, dsps))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
