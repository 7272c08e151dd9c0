#!/usr/bin/env python3
"""Compares the GPU code's speed with PyTorch's, on ResNet-50 of torchvision with random weights.

Needs a GPU, and a Python with torch, torchvision, onnx and numpy. Both sides get the same model, exported once, and the
same input. Columns:

  on GPU    milliseconds of one run on the GPU: the sum of our steps, the difference between two calls of the program
            with different numbers of runs; PyTorch's from a replayed CUDA graph, in the memory format that is faster
            (channels last for 16 bits), with cuDNN's search for the fastest algorithm
  error     largest distance from PyTorch's answer of 32 bits on the CPU, relative to the largest answer
"""

import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torchvision

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.environ.get("TILEWRIGHT", os.path.join(ROOT, "target", "release", "tilewright"))
WARM_UP = 3
# Largest error by width; with 16 bits, also at most so many times PyTorch's.
MOST = {"f32": 1e-3, "f16": 1e-1}
TIMES = 2


def network():
    """ResNet-50 whose normalizations fit its random weights, so that values stay in the range of 16-bit floats."""
    torch.manual_seed(1)
    model = torchvision.models.resnet50(weights=None)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = None
        model.train()
        for _ in range(2):
            model(torch.randn(8, 3, 224, 224))
    return model.eval()


def export(model, batch, path):
    torch.onnx.export(model, torch.randn(batch, 3, 224, 224), path, dynamo=False, input_names=["x"], output_names=["y"])


def median_ms(call, runs):
    for _ in range(WARM_UP):
        call()
    times = []
    for _ in range(runs):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def peer(model, data, width, runs):
    """PyTorch's time on the GPU and its answer."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    form = {"device": "cuda", "dtype": {"f16": torch.float16, "f32": torch.float32}[width]}
    form["memory_format"] = torch.channels_last if width == "f16" else torch.contiguous_format
    there = copy.deepcopy(model).to(**form)
    given = torch.from_numpy(data).to(**form)
    with torch.inference_mode():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                answer = there(given)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            there(given)
        return median_ms(graph.replay, runs), answer.float().cpu().numpy()


def ours(path, data, width, runs, folder):
    """Our time on the GPU, our answer, and milliseconds and makers of the steps.

    Two calls of the program with a different number of runs, each the better of two, give the time of one run without
    start, compilation and warm-up.
    """
    def call(times):
        given, out = os.path.join(folder, "x.npy"), os.path.join(folder, "out")
        np.save(given, np.concatenate([data] * times))
        command = [PROGRAM, "run", path, "--device", "cuda", "--input", given, "--output-dir", out, "--json"]
        command += ["--precision", "f16"] if width == "f16" else []
        found = []
        for _ in range(2):
            text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found.append(json.loads(text))
        return min(found, key=lambda f: f["cuda_s"]), np.load(os.path.join(out, "y.npy"))

    short, long = call(WARM_UP), call(WARM_UP + runs)
    ms = lambda more, less: 1e3 * (more - less) / runs
    steps = [{"name": b["name"], "by": b["by"], "ms": ms(b["wall_s"], a["wall_s"])} for a, b in zip(short[0]["steps"], long[0]["steps"])]
    return ms(long[0]["cuda_s"], short[0]["cuda_s"]), short[1][: len(data)], steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--widths", default="f16,f32")
    parser.add_argument("--runs", type=int, default=100, help="runs at batch 1; fewer with larger batches")
    parser.add_argument("--json", help="writes all figures to this file")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print(f"{'batch':>5}{'width':>7}{'on GPU ms':>12}{'PyTorch':>10}{'ratio':>8}{'error':>12}{'PyTorch':>10}")
    rows, wrong = [], 0
    model = network()
    with tempfile.TemporaryDirectory() as folder:
        for batch in [int(n) for n in options.batches.split(",")]:
            path = os.path.join(folder, f"resnet50-{batch}.onnx")
            export(model, batch, path)
            data = np.random.default_rng(1).standard_normal((batch, 3, 224, 224), dtype=np.float32)
            with torch.inference_mode():
                exact = model(torch.from_numpy(data)).numpy()
            for width in options.widths.split(","):
                runs = max(options.runs // batch, 10)
                mine, got, steps = ours(path, data, width, runs, folder)
                theirs, other = peer(model, data, width, runs)
                errors = [float(np.abs(answer - exact).max() / np.abs(exact).max()) for answer in (got, other)]
                fine = errors[0] <= MOST[width] and (width != "f16" or errors[0] <= TIMES * errors[1])
                wrong += not fine
                print(f"{batch:>5}{width:>7}{mine:>12.3f}{theirs:>10.3f}{mine / theirs:>8.2f}{errors[0]:>12.1e}{errors[1]:>10.1e}{'' if fine else '  WRONG'}", flush=True)
                rows.append({"batch": batch, "width": width, "on_gpu_ms": mine, "peer_on_gpu_ms": theirs, "error": errors[0], "peer_error": errors[1], "steps": steps})
    if options.json:
        with open(options.json + ".new", "w", encoding="utf-8") as out:
            json.dump({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, out, indent=1)
        os.replace(options.json + ".new", options.json)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
