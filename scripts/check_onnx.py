#!/usr/bin/env python3
"""Runs random float networks with NaN and infinities on Tilewright's CPU code and compares with ONNX Runtime.

    check_onnx.py [--networks 2000] [--seed 1] [--batch 40]

The networks come from onnx_operators.py, a sweep of Resize over modes, sizes and scales from onnx_resize.py. Each file
contains many networks, so the program starts only about fifty times.

These must agree: the positions of NaN and infinities; other floats, within 1e-4 of the tensor's largest; integers; and
the signs of zeros, unless they depend on ONNX Runtime's order of computation. onnx_random.RULES lists intended
differences from ONNX Runtime, with reasons.

A difference is reduced to a single node that is wrong for correct operands, or else to the shortest failing part of the
network, and printed. The exit code is then 1. TILEWRIGHT is the program (default: target/release/tilewright).
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter

import numpy as np

from onnx_operators import network
from onnx_random import model
from onnx_resize import resizes

TILEWRIGHT = os.environ.get("TILEWRIGHT", "target/release/tilewright")


class Case:
    """Some nodes of a network with their inputs and the expected outputs."""

    def __init__(self, title, nodes, net, outputs, given=()):
        self.title, self.nodes, self.net, self.outputs = title, nodes, net, outputs
        read = {n for node in nodes for n in node.input if n}
        self.constants = {n: a for n, a in net.constants.items() if n in read}
        self.inputs = {n: net.values[n] for n in read if n in net.inputs or n in given}


def ours(cases, opset):
    """Runs cases in one file and returns the outputs by name, or the error if the program refuses the file."""
    nodes, inputs, constants, outputs = [], {}, {}, []
    for case in cases:
        nodes += [n for n in case.nodes]
        inputs.update(case.inputs)
        constants.update(case.constants)
        outputs += case.outputs
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        with open(path("net.onnx"), "wb") as file:
            file.write(model(nodes, inputs, constants, outputs, opset).SerializeToString())
        command = [TILEWRIGHT, "run", path("net.onnx"), "--device", "cpu", "--output-dir", path("out")]
        if inputs:
            np.savez(path("in.npz"), **inputs)
            command += ["--input", path("in.npz")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return done.stderr.strip()[:2000]
        return {n: np.load(path(f"out/{n}.npy")) for n in outputs}


def difference(found, wanted, signed):
    """Describes the difference; None if there is none."""
    if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        return f"{found.dtype} {found.shape} for {wanted.dtype} {wanted.shape}"
    if wanted.dtype.kind != "f":
        return None if np.array_equal(found, wanted) else "integers"
    finite = np.isfinite(wanted)
    if not np.array_equal(np.isnan(found), np.isnan(wanted)):
        return "NaN"
    if (
        not np.array_equal(found[np.isinf(found)], wanted[np.isinf(wanted)])
        or (np.isinf(found) != np.isinf(wanted)).any()
    ):
        return "infinities"
    largest = np.abs(wanted[finite]).max(initial=1e-30)
    if (np.abs(found[finite].astype(np.float64) - wanted[finite]) > 1e-4 * largest).any():
        return "numbers"
    zero = (wanted == 0) & (found == 0)
    return "signs of zeros" if signed and (np.signbit(found) != np.signbit(wanted))[zero].any() else None


def wrong(case, found):
    """Describes the first output of a case that differs; None if all agree."""
    for name in case.outputs:
        what = difference(found[name], case.net.values[name], name in case.net.signed)
        if what:
            return f"{what} of {name}"
    return None


def part(net, count):
    """Returns the case of node number `count` and the nodes that it depends on."""
    needed, nodes = set(net.nodes[count - 1].output), []
    for node in reversed(net.nodes[:count]):
        if needed & set(node.output):
            nodes.insert(0, node)
            needed |= set(node.input)
    return Case(f"{net.name}, its first {count} nodes", nodes, net, list(net.nodes[count - 1].output))


def shrink(net, opset):
    """Returns the smallest case that differs: one node with correct operands, else the shortest part."""
    for node in net.nodes:
        case = Case(
            f"{net.name}, node {node.name}", [node], net, list(node.output), set(node.input) - set(net.constants)
        )
        found = ours([case], opset)
        if isinstance(found, str) or wrong(case, found):
            return case, found
    for count in range(1, len(net.nodes) + 1):
        case = part(net, count)
        found = ours([case], opset)
        if isinstance(found, str) or wrong(case, found):
            return case, found
    whole = Case(net.name, net.nodes, net, net.outputs())
    return whole, ours([whole], opset)


def show(case, found):
    text = lambda x: np.array2string(x, threshold=60, max_line_width=140, precision=9)
    print(f"--- {case.title}: {found if isinstance(found, str) else wrong(case, found)}")
    for node in case.nodes:
        attributes = {a.name: a.i or a.f or list(a.ints) or list(a.floats) or a.s for a in node.attribute}
        print(f"{', '.join(node.output)} = {node.op_type}({', '.join(node.input)}) {attributes or ''}")
    for name, values in {**case.inputs, **case.constants}.items():
        print(
            f"{'input' if name in case.inputs else 'constant'} {name} {values.dtype} {values.shape}\n{text(values)}"
        )
    for name in case.outputs:
        print(f"{name} expected\n{text(case.net.values[name])}")
        if not isinstance(found, str):
            print(f"{name} found\n{text(found[name])}")


def check(nets, opset, most, failures):
    """Compares the networks of one file; prints up to `most` differences in total."""
    cases = [Case(net.name, net.nodes, net, net.outputs()) for net in nets]
    found = ours(cases, opset)
    if isinstance(found, str) and len(nets) > 1:
        # A network that is refused would hide the others.
        half = len(nets) // 2
        check(nets[:half], opset, most, failures)
        check(nets[half:], opset, most, failures)
        return
    for case in cases:
        if not (isinstance(found, str) or wrong(case, found)):
            continue
        small, answer = shrink(case.net, opset)
        failures[small.nodes[-1].op_type if len(small.nodes) == 1 else "several nodes"] += 1
        if sum(failures.values()) <= most:
            show(small, answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=2000, help="number of random networks [default: 2000]")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first network [default: 1]")
    parser.add_argument("--batch", type=int, default=40, help="networks per file [default: 40]")
    parser.add_argument("--show", type=int, default=10, help="differences printed in full [default: 10]")
    parser.add_argument("--no-resize", action="store_true", help="skip the sweep of Resize")
    options = parser.parse_args()
    np.seterr(all="ignore")
    accepted, failures, operators, count = Counter(), Counter(), Counter(), 0
    seeds = range(options.seed, options.seed + options.networks)
    for first in seeds[:: options.batch]:
        nets = [network(f"n{s}", s, accepted) for s in range(first, min(first + options.batch, seeds.stop))]
        nets = [net for net in nets if net.nodes]
        operators.update(node.op_type for net in nets for node in net.nodes)
        check(nets, 20, options.show, failures)
        count += len(nets)
    print(
        f"seeds {seeds.start} to {seeds.stop - 1}: {count} networks, "
        f"{sum(operators.values())} nodes of {len(operators)} operators"
    )
    for (op, reason), n in sorted(accepted.items()):
        print(f"  {op}: {n} results differ from ONNX Runtime by intent: {reason}")
    if not options.no_resize:
        sweep = 0
        for opset, nets in resizes(300):
            check(nets, opset, options.show, failures)
            sweep += len(nets)
        print(f"{sweep} resizes")
    print(f"{sum(failures.values())} differ" + "".join(f"\n  {op}: {n}" for op, n in failures.most_common()))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
