#!/usr/bin/env python3
"""Converts networks of Keras to TFLite files of four kinds, and compares them on the CPU with LiteRT.

The kinds are float, dynamic range (weights of 8 bits), int8, and 16x8 (activations of 16 bits, weights of 8). Files of int8 and
16x8 are right if every element equals that of LiteRT's reference kernels; float files within 1e-4 of the largest element,
and dynamic-range files within 1e-2. A network with an operator that has no reference kernel is compared with the default
kernels, which round otherwise: then int8 and 16x8 are right within 2e-2. The converter itself refuses some networks as 16x8.

TILEWRIGHT is the program (default: target/release/tilewright). Arguments select files by a part of their names, such as
`unet-int8`. The files are kept in build/keras.
"""
import collections
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
from importlib.metadata import version

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
from ai_edge_litert import interpreter

TILEWRIGHT = os.environ.get("TILEWRIGHT", "target/release/tilewright")
FOLDER = pathlib.Path(__file__).parent.parent / "build" / "keras"
KINDS = ("float", "dynamic", "int8", "16x8")
# The greatest difference, as a part of the largest element.
CLOSE = {"float": 1e-4, "dynamic": 1e-2, "int8": 0.0, "16x8": 0.0}
CLOSE_TO_DEFAULT_KERNELS = {**CLOSE, "int8": 2e-2, "16x8": 2e-2}
# Files that are not right, each with its reason.
KNOWN = {
    "gru-16x8": "refused: the converter writes weights with an infinite scale",
    "norms-int8": "wrong: the reference kernel of SUM for int8 does not end at the bounds of the type",
    "efficientnet-dynamic": "wrong: data that LiteRT quantizes for each layer lie on ties",
}


def sample(model, rng):
    """Returns data for the model's input."""
    data = model.inputs[0]
    shape = [1 if size is None else size for size in data.shape]
    return rng.integers(0, 50, shape).astype(np.int32) if data.dtype == "int32" else rng.standard_normal(shape).astype(np.float32)


def converted(model, kind):
    import tensorflow as tf

    converter, rng = tf.lite.TFLiteConverter.from_keras_model(model), np.random.default_rng(5)
    if kind != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    ops = {"int8": "TFLITE_BUILTINS_INT8", "16x8": "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"}
    if kind in ops:
        converter.representative_dataset = lambda: ([sample(model, rng)] for _ in range(8))
        converter.target_spec.supported_ops = [getattr(tf.lite.OpsSet, ops[kind])]
    return converter.convert()


def export(wanted):
    """Makes the files that are not there yet. A file of the reason stands for one that the converter refuses."""
    missing = [f for f in wanted if not f.exists() and not f.with_suffix(".refused").exists()]
    if not missing:
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    from keras_networks import NETWORKS, keras

    for name in sorted({f.stem.rsplit("-", 1)[0] for f in missing}):
        keras.utils.set_random_seed(3)
        rng, model = np.random.default_rng(3), NETWORKS[name]()
        # Normalizations that do more than nothing.
        for weights in model.weights:
            if "moving_variance" in weights.path or weights.path.endswith("gamma"):
                weights.assign(rng.uniform(0.5, 1.5, weights.shape))
            elif "moving_mean" in weights.path or weights.path.endswith(("beta", "bias")):
                weights.assign(rng.normal(0, 0.1, weights.shape))
        for file in missing:
            if file.stem.rsplit("-", 1)[0] != name:
                continue
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    made, target = converted(model, file.stem.rsplit("-", 1)[1]), file
            except Exception as e:  # whatever the converter raises
                made, target = str(e).encode(), file.with_suffix(".refused")
            partial = target.with_suffix(".partial")
            partial.write_bytes(made)
            partial.rename(target)


def litert(file):
    """Returns an interpreter of the file, and whether its kernels are the reference kernels."""
    kernels = interpreter.OpResolverType
    for kind in (kernels.BUILTIN_REF, kernels.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        try:
            run = interpreter.Interpreter(str(file), num_threads=1, experimental_op_resolver_type=kind)
            run.allocate_tensors()
            return run, kind == kernels.BUILTIN_REF
        except ValueError as e:
            error = e
    raise error


def check(file, folder):
    """Returns `right`, `wrong` or `refused`, with details."""
    run, is_reference = litert(file)
    rng, outputs = np.random.default_rng(11), run.get_output_details()
    command = [TILEWRIGHT, "run", str(file), "--device", "cpu", "--quiet", "--output-dir", f"{folder}/out"]
    for k, d in enumerate(run.get_input_details()):
        whole = d["dtype"] in (np.int32, np.int64)
        data = (rng.integers(0, 50, d["shape"]) if whole else rng.standard_normal(d["shape"])).astype(d["dtype"])
        run.set_tensor(d["index"], data)
        np.save(f"{folder}/{k}.npy", data)
        command += ["--input", f"{d['name']}={folder}/{k}.npy"]
    run.invoke()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return "refused", done.stderr.strip().splitlines()[0].replace(str(file), file.name)
    worst = 0.0
    for d in outputs:
        want = run.get_tensor(d["index"]).astype(np.float64)
        made = list(pathlib.Path(folder, "out").iterdir())
        got = np.load(made[0] if len(made) == 1 else f"{folder}/out/{d['name']}.npy").astype(np.float64)
        apart = float(np.abs(got - want).max() / max(1e-9, np.abs(want).max()))
        if not np.isfinite(apart):
            return "wrong", "results that are no numbers"
        worst = max(worst, apart)
    close = (CLOSE if is_reference else CLOSE_TO_DEFAULT_KERNELS)[file.stem.rsplit("-", 1)[1]]
    kernels = "" if is_reference else ", default kernels"
    return ("right" if worst <= close else "wrong"), f"{worst:.1e} apart{kernels}"


def main():
    import keras_networks

    files = [FOLDER / f"{name}-{kind}.tflite" for name in keras_networks.NETWORKS for kind in KINDS]
    files = [f for f in files if not sys.argv[1:] or any(part in f.stem for part in sys.argv[1:])]
    export(files)
    print(f"LiteRT {version('ai-edge-litert')}, TensorFlow {version('tensorflow-cpu')}")
    counts, surprises = collections.Counter(), []
    for file in files:
        if not file.exists():
            counts["not converted"] += 1
            print(f"{file.stem:<24} TensorFlow does not convert it")
            continue
        with tempfile.TemporaryDirectory() as folder:
            found, details = check(file, folder)
        counts[found] += 1
        print(f"{file.stem:<24} {found:<8} {details}", flush=True)
        if found != KNOWN.get(file.stem, "right").split(":")[0]:
            surprises.append(file.stem)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    for name in KNOWN.keys() & {f.stem for f in files}:
        print(f"{name}: {KNOWN[name]}")
    if surprises:
        sys.exit(f"otherwise than expected: {', '.join(surprises)}")


if __name__ == "__main__":
    main()
