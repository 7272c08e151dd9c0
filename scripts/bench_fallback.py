#!/usr/bin/env python3
"""Compares the CPU code with ONNX Runtime and tract in one run: `make bench-fallback` (docs/cpu.md).

The networks have well-known shapes and random weights (`tilewright zoo make --float`). They run in floats, and quantized per
channel by ONNX Runtime's own tool: u8s8 (unsigned activations) and s8s8. The runtimes take turns, each in its own process. A
turn is the median of RUNS calls after three warm-up calls; the table has the median of ROUNDS turns, next to goal and floor.

The answers are compared with ONNX Runtime's on the same picture, once per network and form:
- fp32: must be within TOLERANCE of the maximum magnitude, as in `tilewright diff`;
- s8s8: must be within STEPS steps of the output, because ONNX Runtime rounds some operators differently;
- u8s8: reported only, because ONNX Runtime's sums saturate at 16 bits on processors without VNNI.

Peak memory is that of the whole process that runs the network; Tilewright's runs a compiled artifact.

    bench_fallback.py [--rounds N] [--runs N] [--threads 1,2] [--json FILE] [NETWORK ...]
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.environ.get("TILEWRIGHT") or os.path.join(ROOT, "target", "release", "tilewright")
NETWORKS = ["resnet18", "resnet50", "mobilenet-v2"]
FORMS = ["fp32", "u8s8", "s8s8"]
# Goal and floor of our time divided by ONNX Runtime's, and of tract's time divided by ours.
AGAINST_ORT = {"fp32": (1.0, 1.4), "u8s8": (1.0, 1.8), "s8s8": (0.8, 1.1)}
AGAINST_TRACT = {"fp32": (1.4, 1.0), "u8s8": (3.0, 2.0), "s8s8": (3.0, 2.0)}
TOLERANCE = 1e-4
STEPS = 2
MEMORY = ("resnet50", 1.2)


def quantize(source, target, unsigned):
    """Quantizes a float network to int8 per channel, calibrated on two made-up pictures."""
    import logging

    import numpy as np
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    logging.disable(logging.WARNING)
    graph_input = onnx.load(source).graph.input[0]
    shape = [dim.dim_value for dim in graph_input.type.tensor_type.shape.dim]

    class Pictures(CalibrationDataReader):
        def __init__(self):
            pictures = (np.random.default_rng(i).standard_normal(shape).astype(np.float32) for i in range(2))
            self.left = iter([{graph_input.name: picture} for picture in pictures])

        def get_next(self):
            return next(self.left, None)

    activations = QuantType.QUInt8 if unsigned else QuantType.QInt8
    quantize_static(
        source,
        target,
        Pictures(),
        quant_format=QuantFormat.QDQ,
        activation_type=activations,
        weight_type=QuantType.QInt8,
        per_channel=True,
    )


def timed(call, runs):
    """Returns the median of this many calls in milliseconds, after three warm-up calls."""
    for _ in range(3):
        call()
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        call()
        times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times)


def picture(shape):
    import numpy as np

    return np.random.default_rng(0).standard_normal([n if isinstance(n, int) else 1 for n in shape]).astype(np.float32)


def opened(path, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def onnx_runtime(path, threads, runs):
    session = opened(path, threads)
    taken = session.get_inputs()[0]
    feed = {taken.name: picture(taken.shape)}
    return timed(lambda: session.run(None, feed), runs)


def tract(path, _threads, runs):
    import onnx
    import tract as library

    taken = onnx.load(path, load_external_data=False).graph.input[0]
    shape = [dim.dim_value for dim in taken.type.tensor_type.shape.dim]
    model = library.onnx().load(path).into_model().into_runnable()
    data = picture(shape)
    return timed(lambda: model.run([data]), runs)


def output_scale(path):
    """Returns the real value of a step of the first output; None if its last node is not a DequantizeLinear."""
    import onnx

    graph = onnx.load(path).graph
    last = next(node for node in graph.node if graph.output[0].name in node.output)
    if last.op_type != "DequantizeLinear":
        return None
    scale = next((one for one in graph.initializer if one.name == last.input[1]), None)
    return None if scale is None else float(onnx.numpy_helper.to_array(scale).max())


def difference(path, folder):
    """Returns the maximum difference from ONNX Runtime, relative to its maximum magnitude, and in int8 steps."""
    import numpy as np

    session = opened(path, 1)
    taken = session.get_inputs()[0]
    data = picture(taken.shape)
    wanted = session.run(None, {taken.name: data})[0]
    given, answers = os.path.join(folder, "picture.npy"), os.path.join(folder, "answers")
    np.save(given, data)
    shutil.rmtree(answers, ignore_errors=True)
    command = [PROGRAM, "run", path, "--device", "cpu", "--input", given, "--output-dir", answers]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    [name] = os.listdir(answers)
    found = np.load(os.path.join(answers, name))
    if found.shape != wanted.shape:
        raise SystemExit(f"{path}: our answer has shape {found.shape}, ONNX Runtime's {wanted.shape}")
    # NaN differs from everything.
    apart = float(np.nan_to_num(np.abs(found.astype(np.float64) - wanted), nan=np.inf).max())
    scale = output_scale(path)
    return apart / max(float(np.abs(wanted).max()), 1e-30), None if scale is None else apart / scale


PEERS = {"ort": onnx_runtime, "tract": tract}


def in_a_process(arguments):
    """Runs this script as a peer and returns its time; prints the peer's error and returns None if it fails."""
    done = subprocess.run([sys.executable, __file__] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f"{' '.join(arguments[:2])}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return float(done.stdout.split()[-1])


def ours(path, threads, runs):
    """Returns the time that `tilewright bench` reports."""
    command = [PROGRAM, "bench", path, "--devices", "cpu", "--threads", str(threads), "--repetitions", str(runs), "--json"]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return found["devices"]["cpu"]["latency_ms"]["median"]


def peak_mib(command):
    """Returns the peak memory of a command and its children."""
    measure = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);" \
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    return float(subprocess.run([sys.executable, "-c", measure] + command, stdout=subprocess.PIPE, check=True).stdout)


def verdict(ratio, goal, floor, more_is_better=False):
    beats = (lambda a, b: a >= b) if more_is_better else (lambda a, b: a <= b)
    return "goal" if beats(ratio, goal) else "floor" if beats(ratio, floor) else "MISSES"


def models(names, folder):
    """Writes each network in each form to a file."""
    for name in names:
        source = os.path.join(folder, f"{name}.onnx")
        subprocess.run([PROGRAM, "zoo", "make", name, "--float", "-o", source], check=True)
        for form in FORMS:
            path = source if form == "fp32" else os.path.join(folder, f"{name}-{form}.onnx")
            if form != "fp32":
                quantize(source, path, form == "u8s8")
            yield name, form, path


def main():
    if len(sys.argv) == 5 and sys.argv[1] in PEERS:
        print(PEERS[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--json", help="writes all figures to this file")
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    options = parser.parse_args()
    rows = []
    misses = 0
    differs = 0
    print(f"{'network':<14}{'form':<6}{'threads':>7}{'ours ms':>10}{'ORT ms':>10}{'ours/ORT':>10}{'':>8}{'tract ms':>10}{'tract/ours':>11}{'':>8}{'apart':>10}{'steps':>8}{'':>8}")
    with tempfile.TemporaryDirectory() as folder:
        made = list(models(options.networks, folder))
        for name, form, path in made:
            apart, steps = difference(path, folder)
            same = {"fp32": apart <= TOLERANCE, "s8s8": None if steps is None else steps <= STEPS}.get(form)
            agrees = {None: "-", True: "equal", False: "DIFFERS"}[same]
            differs += agrees == "DIFFERS"
            for threads in [int(n) for n in options.threads.split(",")]:
                times = {"ours": [], "ort": [], "tract": []}
                for _ in range(options.rounds):
                    times["ours"].append(ours(path, threads, options.runs))
                    times["ort"].append(in_a_process(["ort", path, str(threads), str(options.runs)]))
                    # tract always runs on one thread.
                    if threads == 1:
                        times["tract"].append(in_a_process(["tract", path, "1", str(options.runs)]))
                median = {who: statistics.median([t for t in list_ if t is not None]) if any(list_) else None for who, list_ in times.items()}
                mine, ort, other = median["ours"], median["ort"], median["tract"]
                ratio = mine / ort if ort else None
                back = other / mine if other else None
                # A peer that failed counts as a miss.
                words = [verdict(ratio, *AGAINST_ORT[form]) if ratio else "MISSES"]
                words.append(verdict(back, *AGAINST_TRACT[form], more_is_better=True) if back else "MISSES" if times["tract"] else "-")
                misses += words.count("MISSES")
                number = lambda value: "-" if value is None else f"{value:.2f}"
                print(f"{name:<14}{form:<6}{threads:>7}{number(mine):>10}{number(ort):>10}{number(ratio):>10}{words[0]:>8}"
                      f"{number(other):>10}{number(back):>11}{words[1]:>8}{apart:>10.1e}{'-' if steps is None else f'{steps:.1f}':>8}{agrees:>8}", flush=True)
                rows.append({"network": name, "form": form, "threads": threads, "ours_ms": times["ours"], "ort_ms": times["ort"], "tract_ms": times["tract"],
                             "difference": apart, "difference_steps": steps})
        name, most = MEMORY
        for form, path in [(form, path) for n, form, path in made if n == name]:
            artifact = path + ".twa"
            subprocess.run([PROGRAM, "compile", path, "--offload", "none", "-o", artifact], check=True, stdout=subprocess.DEVNULL)
            mine = peak_mib([PROGRAM, "run", artifact, "--device", "cpu", "--input", "random"])
            ort = peak_mib([sys.executable, __file__, "ort", path, "1", "1"])
            word = verdict(mine / ort, most, most)
            misses += word == "MISSES"
            print(f"{name} {form}: peak memory {mine:.0f} MiB, ONNX Runtime {ort:.0f} MiB, ratio {mine / ort:.2f} (at most {most}) {word}")
            rows.append({"network": name, "form": form, "peak_mib": mine, "ort_peak_mib": ort})
    if options.json:
        os.makedirs(os.path.dirname(options.json) or ".", exist_ok=True)
        with open(options.json + ".new", "w", encoding="utf-8") as out:
            json.dump(rows, out, indent=1)
        os.replace(options.json + ".new", options.json)
    return 1 if misses or differs else 0


if __name__ == "__main__":
    sys.exit(main())
