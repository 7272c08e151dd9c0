#!/usr/bin/env python3
"""Runs the node cases of ONNX's backend tests through the command line on the CPU, and compares the results.

A case is a model of one operator, or of the nodes that its definition expands to, with inputs and expected outputs. Each is
right, refused with a reason, or wrong; a wrong one fails. A few differ, because ONNX Runtime does. Results are right within ONNX's own tolerance: 1e-3 of the value
and 1e-7, or half a last place of the largest value if that is more. The cases that are refused are listed with their reasons in tests/onnx_nodes.txt; `--bless` writes that file, and
without it a case that is listed otherwise fails. Cases of other domains, decoders of images, operators of strings and modes of
training are left aside.

TILEWRIGHT is the program (default: target/release/tilewright). Arguments select cases by a part of their names.
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

TILEWRIGHT = os.environ.get("TILEWRIGHT", "target/release/tilewright")
LIST = pathlib.Path(__file__).parent.parent / "tests" / "onnx_nodes.txt"
CASES = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "node"
ASIDE = {"ImageDecoder", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer", "LabelEncoder"}

# Cases whose expected values differ from ONNX Runtime's, which docs/onnx.md says are followed.
LIKE_RUNTIME = {f"test_resize_downsample_scales_{mode}_align_corners" for mode in ("cubic", "linear")}


def aside(model):
    """Returns whether a case is left aside."""
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx") or node.op_type in ASIDE:
            return True
        if any(a.name == "training_mode" and a.i for a in node.attribute):
            return True
        # Dropout drops only if its third operand says so.
        if node.op_type == "Dropout" and len(node.input) > 2 and node.input[2]:
            return True
    return False


READERS = {
    "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
    "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
    "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
}


def values(path, proto):
    """Reads a tensor, or the tensors of a sequence, by the names that the command line gives them; None for nothing."""
    message, read = READERS[proto.type.WhichOneof("value")]
    message = message()
    message.ParseFromString(path.read_bytes())
    found = read(message)
    if found is None:
        return None
    return {f"{proto.name}_{i}": v for i, v in enumerate(found)} if isinstance(found, list) else {proto.name: found}


def same(got, want):
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if want.dtype.kind in "fc" or "float" in want.dtype.name:
        want = want.astype(np.float64)
        # The expected values have rounding errors too: half a last place of the largest.
        finite = np.abs(want[np.isfinite(want)])
        noise = max(1e-7, finite.max(initial=0) * 2.0**-24)
        close = np.allclose(got.astype(np.float64), want, rtol=1e-3, atol=noise, equal_nan=True)
    else:
        close = np.array_equal(got, want.astype(got.dtype))
    return None if close else "other values"


def run(case):
    """Returns `right`, `aside`, `refused: REASON` or `wrong: WHAT`."""
    model = onnx.load(case / "model.onnx")
    if aside(model):
        return "aside"
    data = case / "test_data_set_0"
    command = [TILEWRIGHT, "run", str(case / "model.onnx"), "--device", "cpu", "--quiet"]
    has_sequences = any(proto.type.WhichOneof("value") != "tensor_type" for proto in model.graph.input)
    with tempfile.TemporaryDirectory() as folder:
        for i, proto in enumerate(model.graph.input):
            arrays = values(data / f"input_{i}.pb", proto)
            if arrays is None:
                return "refused: input without a value"
            for name, array in arrays.items():
                if array.dtype.kind == "O":
                    return f"refused: input of type {array.dtype}"
                if array.dtype.name.lstrip("u") in ("int4", "int2"):
                    # Integers of less than a byte are given as bytes.
                    array = array.astype(np.uint8 if array.dtype.name.startswith("u") else np.int8)
                np.save(os.path.join(folder, f"input_{name}.npy"), array)
                command += ["--input", f"{name}={folder}/input_{name}.npy"]
                if has_sequences and array.ndim:
                    # The outermost size of a tensor in a sequence is not a number of runs.
                    command += ["--shape", f"{name}={'x'.join(map(str, array.shape))}"]
        out = os.path.join(folder, "out")
        try:
            done = subprocess.run(command + ["--output-dir", out], capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return "wrong: no end after 120 s"
        if done.returncode not in (0, 1, 2):
            return f"wrong: exit status {done.returncode}"
        if done.returncode:
            text = done.stderr.strip().splitlines()[0].replace(f"{case}/", "").replace(f"{folder}/", "")
            # The remedy stands behind the reason.
            return "refused: " + re.sub(r"^error: ", "", text).split("; ")[0]
        for i, proto in enumerate(model.graph.output):
            for name, want in values(data / f"output_{i}.pb", proto).items():
                path = os.path.join(out, f"{name}.npy")
                if not os.path.exists(path):
                    return f"wrong: no output {name}"
                found = same(np.load(path), want)
                if found and case.name in LIKE_RUNTIME:
                    return "differs: as ONNX Runtime does (docs/onnx.md)"
                if found:
                    return f"wrong: output {name}: {found}"
    return "right"


def main():
    bless, asked = "--bless" in sys.argv, [a for a in sys.argv[1:] if not a.startswith("--")]
    cases = sorted(p for p in CASES.iterdir() if not asked or any(a in p.name for a in asked))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip((case.name for case in cases), pool.map(run, cases)))
    counts = collections.Counter(outcome.split(":")[0] for outcome in found.values())
    judged = len(cases) - counts["aside"]
    print(f"ONNX {onnx.__version__}: {judged} cases, {counts['aside']} aside")
    print(
        f"{counts['right']} right ({100 * counts['right'] / max(judged, 1):.1f} %), {counts['refused']} refused, "
        f"{counts['differs']} differ as ONNX Runtime does, {counts['wrong']} wrong"
    )
    for name, outcome in found.items():
        if outcome.startswith("wrong"):
            print(f"{name}: {outcome}")
    listed = ("refused", "differs")
    refused = {name: outcome.removeprefix("refused: ") for name, outcome in found.items() if outcome.startswith(listed)}
    if bless and not asked:
        LIST.write_text("".join(f"{name}: {reason}\n" for name, reason in sorted(refused.items())))
    known = dict(line.split(": ", 1) for line in LIST.read_text().splitlines()) if LIST.exists() else {}
    known = {name: reason for name, reason in known.items() if name in found}
    changed = [name for name in sorted(known.keys() | refused.keys()) if known.get(name) != refused.get(name)]
    for name in changed:
        print(f"{name}: listed as {known.get(name, 'right')}; now {refused.get(name, 'right')}")
    sys.exit(1 if counts["wrong"] or changed else 0)


if __name__ == "__main__":
    main()
