#!/usr/bin/env python3
"""Makes bitstreams of boards and configurations, and prints a table of estimates and results.

Each argument is BOARD or BOARD:CONFIGURATION; files are relative to the repository's root. Without arguments, it makes the
designs that are known to fit, with --verify. GOPS counts each product and each sum, at the clock that the design reaches.

The exit code is 1 if
- a design does not reach its board's clock; with --allow-slow, its bitstream is made all the same;
- an estimate is further off than docs/synthesize.md says;
- a netlist has other multipliers than its sources were written for;
- with --verify, a netlist differs from its sources. --programs=N sets the number of programs. If a netlist cannot be
  checked, the reason is printed.

TILEWRIGHT is the program, if it is not the one that `make build` makes.
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
    # The largest one takes an hour.
    "ecp5-evn:examples/1x16x8-ecp5.toml",
]

# Largest allowed errors of estimates, relative to the routed result: resources, clock.
RESOURCES_OFF = 0.10
CLOCK_OFF = 0.20

# VTA on its Zynq: LUTs (6-input), multipliers, GOPS, as published (Moreau et al., "A Hardware-Software Blueprint for
# Flexible Deep Learning Specialization", 2019).
VTA = ("VTA, 1x16x16 on xc7z020", 19_000, 220, 51.0)

# For each resource of the estimate: the router's names for it, and how many of the estimate's units each stands for.
ROUTED = {
    "logic cells": {"ICESTORM_LC": 1},
    "look-up tables": {"TRELLIS_COMB": 1, "TRELLIS_RAMW": 2},
    "registers": {"TRELLIS_FF": 1},
    "block RAMs": {"ICESTORM_RAM": 1, "DP16KD": 1},
    "multiplier blocks": {"ICESTORM_DSP": 1, "MULT18X18D": 1},
}


def make(design, out, options):
    """Runs the flow and returns its report; None if there is none, after the flow has printed its error."""
    board, _, config = design.partition(":")
    command = [PROGRAM, "synth", "--board", board, "-o", out, "--json"] + options
    if config:
        command += ["--hw", config]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    report = json.loads(done.stdout) if done.stdout.strip() else None
    # A design that differs exits like a refused one, but it has a bitstream.
    return report if done.returncode == 0 or (report and report.get("bitstream") is not None) else None


def resources(report):
    """Returns estimate, use and total of each resource. The use is None if the router's names are unknown."""
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
    """Returns whether the netlist has the number of multipliers that its sources were written for, if known."""
    plan, found = report["planned_multipliers"], report["cells"]["dsps"]
    if plan in (None, found):
        return True
    print(f"{design:<34} the netlist has {found} multipliers, {plan} WERE PLANNED (hw/src/flow/multipliers.rs)")
    return False


def folder(design):
    """Returns the folder for a design's files, one per board and configuration."""
    board, _, config = design.partition(":")
    return os.path.join(ROOT, "build", "bitstreams", os.path.basename(board), config.replace(os.sep, "-"))


def checked(design, report):
    """Prints the results of the netlist checks; returns whether none differs."""
    same = True
    for check in report.get("checks", []):
        if check["unchecked"]:
            print(f"{design:<34} {check['netlist']}: not checked: {check['unchecked']}")
        elif check["difference"]:
            same = False
            print(f"{design:<34} {check['netlist']}: DIFFERS from the sources: {check['difference'].splitlines()[0]}")
        else:
            print(f"{design:<34} {check['netlist']}: same as the sources in {check['programs']} programs")
    return same


def off(expected, found):
    """Returns the error of an estimate relative to the result; None if one of them is unknown. Not both are 0."""
    if None in (expected, found):
        return None
    return (expected - found) / found if found else math.inf


def percent(part):
    """Formats a fraction, or its absence."""
    return "-" if part is None else f"{100.0 * part:.1f}%"


def too_far(design, name, part, most):
    """Prints and returns whether an estimate is further off than allowed."""
    far = part is not None and abs(part) > most
    if far:
        print(f"{design:<34} the estimate of {name} is MORE THAN {100 * most:.0f}% off")
    return far


def mhz(clock):
    """Formats a clock, or its absence: some families have no estimate, some no open router."""
    return "-" if clock is None else f"{clock:.1f}"


def rates(design, gops, luts, dsps):
    """Formats GOPS, also per multiplier and per thousand LUTs."""
    per_dsp = f", {gops / dsps:.3f} per multiplier" if dsps else ""
    return f"{design:<34} {gops:.2f} GOPS{per_dsp}, {1000 * gops / luts:.2f} per thousand LUTs"


def main(arguments):
    options = [a for a in arguments if a in ("--allow-slow", "--verify") or a.startswith("--programs=")]
    designs = [argument for argument in arguments if argument not in options]
    unknown = [design for design in designs if design.startswith("-")]
    if unknown:
        print(f"bitstreams: unknown option {unknown[0]}; use --allow-slow, --verify or --programs=N", file=sys.stderr)
        return 2
    if not os.access(PROGRAM, os.X_OK):
        print(f"bitstreams: {PROGRAM} is not a program; run `make build`, or set TILEWRIGHT", file=sys.stderr)
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
