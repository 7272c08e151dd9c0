#!/usr/bin/env python3
"""Exports networks as programs of torch.export and as ONNX, and compares them on the CPU with PyTorch.

Each network is exported three times: as it is traced (`traced`), after `run_decompositions()` (`core`), and by
`torch.onnx.export` with dynamo (`onnx`). A file is right if each result is within 1e-4 of PyTorch's largest. Weights are random;
parameters that a constructor sets to 0 or to 1 are changed, so that results depend on them.

TILEWRIGHT is the program (default: target/release/tilewright). Arguments select networks by a part of their names. The
files are kept in build/torch.
"""
import collections
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")

import numpy as np
import torch
from torch.utils import _pytree
from torch_networks import NETWORKS

TILEWRIGHT = os.environ.get("TILEWRIGHT", "target/release/tilewright")
FOLDER = pathlib.Path(__file__).parent.parent / "build" / "torch"
KINDS = ("traced", "core", "onnx")
CLOSE = 1e-4


@torch.no_grad()
def varied(module, args, kwargs):
    """Changes what constructors make equal: norms, biases, and statistics of batch normalization."""
    for parameter in module.parameters():
        if parameter.is_floating_point() and parameter.numel() and parameter.min() == parameter.max():
            if abs(float(parameter.flatten()[0])) >= 0.05:
                parameter.mul_(1 + 0.2 * torch.randn_like(parameter))
            else:
                parameter.copy_(0.1 + 0.1 * torch.randn_like(parameter))
    norms = [m for m in module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    # Statistics of a batch, so that activations stay within reach.
    for norm in norms:
        norm.momentum = None
        norm.reset_running_stats()
    if norms:
        module.train()
        many = [torch.randn(4, *x.shape[1:]) if x.is_floating_point() else x for x in args]
        module(*many, **kwargs)
        module.eval()
    return module


def leaves(value):
    return [x for x in _pytree.tree_leaves(value) if isinstance(x, torch.Tensor)]


def export(name):
    """Makes a network's files and the arrays of its inputs and results, if they are not there yet."""
    arrays = FOLDER / f"{name}.npz"
    if arrays.exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(3)
    module, args, kwargs = NETWORKS[name]()
    module = varied(module.eval(), args, kwargs)
    # No fused forms of operators: the result is that of the exported ones.
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        results = leaves(module(*args, **kwargs))
        program = torch.export.export(module, args, kwargs)
        torch.export.save(program, FOLDER / f"{name}-traced.pt2")
        torch.export.save(program.run_decompositions(), FOLDER / f"{name}-core.pt2")
        torch.onnx.export(module, args, FOLDER / f"{name}-onnx.onnx", kwargs=kwargs, dynamo=True, external_data=False)
    inputs = leaves((args, kwargs))
    pairs = {f"in_{i}": x for i, x in enumerate(inputs)} | {f"out_{i}": x for i, x in enumerate(results)}
    partial = FOLDER / f"{name}.partial.npz"
    np.savez(partial, **{key: x.detach().numpy() for key, x in pairs.items()})
    partial.rename(arrays)


def check(file, arrays, folder):
    """Returns `right`, `wrong` or `refused`, with details."""
    with np.load(arrays) as saved:
        listed = lambda kind: [saved[f"{kind}_{i}"] for i in range(len(saved.files)) if f"{kind}_{i}" in saved.files]
        inputs, wanted = listed("in"), listed("out")
    command = [TILEWRIGHT, "run", str(file), "--device", "cpu", "--quiet", "--output-dir", f"{folder}/out"]
    for i, array in enumerate(inputs):
        np.save(f"{folder}/{i}.npy", array)
        command += ["--input", f"{folder}/{i}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return "refused", done.stderr.strip().splitlines()[0].replace(str(file), file.name)
    made = [np.load(path) for path in pathlib.Path(folder, "out").glob("*.npy")]
    worst = 0.0
    for want in wanted:
        # Results are files by name; each of PyTorch's must be among them.
        apart = [np.abs(x.astype(np.float64) - want).max() for x in made if x.shape == want.shape]
        if not apart:
            return "wrong", f"no result of shape {want.shape}"
        if not np.isfinite(apart).all() or not np.isfinite(want).all():
            return "wrong", "results that are no numbers"
        worst = max(worst, float(min(apart)) / max(1e-9, float(np.abs(want).max())))
    return ("right" if worst <= CLOSE else "wrong"), f"{worst:.1e} apart"


def main():
    names = [name for name in NETWORKS if not sys.argv[1:] or any(part in name for part in sys.argv[1:])]
    print(f"PyTorch {torch.__version__}, {len(names)} networks")
    counts = collections.Counter()
    for name in names:
        export(name)
        line = [f"{name:<30}"]
        for kind in KINDS:
            file = FOLDER / f"{name}-{kind}{'.onnx' if kind == 'onnx' else '.pt2'}"
            with tempfile.TemporaryDirectory() as folder:
                found, details = check(file, FOLDER / f"{name}.npz", folder)
            counts[kind, found] += 1
            line.append(f"{kind} {found} ({details})")
        print("  ".join(line), flush=True)
    for kind in KINDS:
        print(f"{kind}: {counts[kind, 'right']} right, {counts[kind, 'wrong']} wrong, {counts[kind, 'refused']} refused")
    if any(count for (_, found), count in counts.items() if found != "right"):
        sys.exit("not all networks are right")


if __name__ == "__main__":
    main()
