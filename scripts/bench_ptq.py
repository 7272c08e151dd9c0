#!/usr/bin/env python3
"""Quantizes float networks with each method and prints the loss on data that was not used for calibration.

Columns:
- for each method: the signal energy of the float outputs divided by that of the difference, in decibels, summed over the
  outputs as `auto` does. In brackets, how well the answers agree: the share of samples with the same class; for text
  detectors the overlap of the areas above 0.3 with the float network's;
- gain: by how many decibels `auto` is above the best other method;
- the seconds that `auto` and the slowest other method took.

Fails if `auto` is below the best other method by more than TOLERANCE, or if a network is not quantized.

Environment: TILEWRIGHT_MODELS is the folder of networks and data, DETECTOR the file of the text detector, TILEWRIGHT the
program (default: target/release/tilewright), BENCH_PTQ_OPTIONS further options for `quantize`. Arguments select networks.
"""
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

TILEWRIGHT = os.path.abspath(os.environ.get("TILEWRIGHT", "target/release/tilewright"))
MODELS = os.environ["TILEWRIGHT_MODELS"]
DETECTOR = os.environ.get("DETECTOR", "")
OPTIONS = os.environ.get("BENCH_PTQ_OPTIONS", "").split()
METHODS = ["min-max", "percentile", "mse", "entropy", "auto"]
# Decibels; the choice of the samples causes larger differences.
TOLERANCE = 0.1
SAMPLES = 32  # crops of photos or texts for calibration, and as many others for the measurement


def data(name):
    return np.load(f"{MODELS}/data/{name}.npy")


def resized(picture, height, width):
    """Resizes a picture bilinearly, after averaging in dimensions that shrink."""
    x = picture.astype(np.float32)
    for axis, size in ((0, height), (1, width)):
        factor = x.shape[axis] // size
        if factor > 1:
            keep = [slice(None)] * 3
            keep[axis] = slice(0, x.shape[axis] // factor * factor)
            x = x[tuple(keep)]
            shape = list(x.shape)
            shape[axis : axis + 1] = [shape[axis] // factor, factor]
            x = x.reshape(shape).mean(axis + 1)
        place = (np.arange(size) + 0.5) * x.shape[axis] / size - 0.5
        place = place.clip(0, x.shape[axis] - 1)
        low = np.floor(place).astype(int)
        high = np.minimum(low + 1, x.shape[axis] - 1)
        part = (place - low).astype(np.float32).reshape([-1 if a == axis else 1 for a in range(3)])
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return x


def written_on(picture, rng):
    """Draws lines of text on a picture."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.fromarray(picture.round().astype(np.uint8))
    draw = ImageDraw.Draw(image)
    letters = list("ABCDEFGHIKLMNOPRSTUVWXYZabcdefghiklmnoprstuvwxyz0123456789    ")
    for _ in range(rng.integers(2, 6)):
        size = int(rng.integers(12, 36))
        text = "".join(rng.choice(letters, rng.integers(4, 14)))
        place = (int(rng.integers(0, image.width // 2)), int(rng.integers(0, image.height - size)))
        color = tuple(int(c) for c in rng.integers(0, 256, 3))
        draw.text(place, text, color, ImageFont.load_default(size))
    return np.asarray(image).astype(np.float32)


def photos(height, width, mean, scale, channels_first=True, text=False):
    """Returns crops of photos: of one half for calibration, of the other half for the measurement."""
    def make():
        rng = np.random.default_rng(1)
        pictures = data("photos224_x")
        halves = []
        for half in (pictures[::2], pictures[1::2]):
            crops = []
            for i in range(samples):
                picture = half[i % len(half)]
                side = int(rng.integers(130, 225))
                top, left = rng.integers(0, 225 - side, 2)
                crop = resized(picture[top : top + side, left : left + side], height, width)
                crop = crop[:, ::-1] if i % 2 else crop
                crops.append(written_on(crop, rng) if text else crop)
            x = (np.stack(crops) - mean) / scale
            halves.append((np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if channels_first else x).astype(np.float32))
        return halves
    return make


def labeled(name, scale=1.0):
    """Returns pictures of a training split for calibration and of the test split for the measurement."""
    def make():
        halves = data(f"{name}_calib200_x"), data(f"{name}_test1000_x")[:200]
        halves = [x.astype(np.float32) / np.float32(scale) for x in halves]
        return [x[:, None] if x.ndim == 3 else x for x in halves]
    return make


def channels_first(make):
    return lambda: [np.ascontiguousarray(x.transpose(0, 3, 1, 2)) for x in make()]


def around(folder, name):
    """Returns variations of one real input: shifted, scaled and with noise."""
    def make():
        rng = np.random.default_rng(1)
        x = np.load(f"{MODELS}/{folder}/{name}.input_0.npy")
        def one():
            noise = rng.standard_normal(x.shape) * x.std() * rng.uniform(0, 0.3)
            return (x * rng.uniform(0.6, 1.2) + noise + x.std() * rng.normal(0, 0.3)).astype(np.float32)
        return [np.concatenate([one() for _ in range(200)]) for _ in range(2)]
    return make


def words():
    rng = np.random.default_rng(1)
    ids = np.load(f"{MODELS}/bert-tiny-random/model.input_0.npy")
    def one():
        mask = np.arange(64) < rng.integers(8, 65)
        return [(rng.integers(0, ids.max() + 1, 64) * mask), mask]
    return [[np.stack(x).astype(np.int64) for x in zip(*(one() for _ in range(SAMPLES)))] for _ in range(2)]


NETWORKS = [
    ("lenet", "lenet-mnist/model.onnx", labeled("mnist", 255)),
    ("mnist-cntk", "mnist-cntk/model.onnx", labeled("mnist")),
    ("vit-tiny", "vit-tiny-mnist/model.onnx", labeled("mnist", 255)),
    ("resnet8", "resnet8-cifar10/model.onnx", labeled("cifar10")),
    ("resnet8-tflite", "resnet8-cifar10/model_float.tflite", labeled("cifar10")),
    ("vww-mobilenet", "vww-mobilenet-96/model_float.tflite", photos(96, 96, 0, 255, False)),
    ("efficientnet-lite0", "efficientnet-lite0/model.onnx", photos(224, 224, 127, 128)),
    ("ultraface", "ultraface-rfb-320/model.onnx", photos(240, 320, 127, 128, samples=128)),
    ("blazeface", "blazeface-short/model_fp16w.tflite", photos(128, 128, 127.5, 127.5, False, samples=128)),
    ("yolo-fastest", "yolo-fastest-1.1/yolo-fastest-1.1.cfg", photos(320, 320, 0, 255)),
    ("kws-dscnn", "kws-dscnn/model.onnx", around("kws-dscnn", "model")),
    ("anomaly-autoencoder", "anomaly-autoencoder/model_float.tflite", around("anomaly-autoencoder", "model_float-tflite")),
    ("bert-tiny-random", "bert-tiny-random/model.onnx", words),
    ("ppocr-cls", "ppocr-cls/model.onnx", photos(48, 192, 127.5, 127.5, text=True)),
    # Photos with the brightness that the network's pictures have in each channel.
    ("text-detector", DETECTOR, photos(192, 192, [123.7, 116.3, 103.5], [58.4, 57.1, 57.4], text=True)),
]


def tilewright(*arguments):
    done = subprocess.run([TILEWRIGHT, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout


def outputs(model, inputs, folder):
    """Returns the outputs of a network, in the order of their names."""
    os.makedirs(folder)
    tilewright("run", model, "--device", "cpu", *inputs, "--output-dir", folder)
    return [np.load(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name.endswith(".npy")]


def decibels(right, found):
    cost = 0.0
    for a, b in zip(right, found):
        if a.dtype == np.float32 and (a != 0).any():
            a = a.astype(np.float64)
            cost += np.square(a - b).sum() / np.square(a).sum()
    return -10 * np.log10(cost) if cost else np.inf


def agreement(name, right, found):
    a, b = right[0], found[0]
    if name == "text-detector":
        a, b = a > 0.3, b > 0.3
        return (a & b).sum() / max((a | b).sum(), 1)
    if len(right) == 1 and a.ndim == 2 and 2 <= a.shape[1] <= 1000 and "anomaly" not in name and "bert" not in name:
        return (a.argmax(1) == b.argmax(1)).mean()
    return None


def measure(name, file, make, folder):
    model = file if os.path.isabs(file) else f"{MODELS}/{file}"
    arrays = []
    for part, half in zip(("calibrate", "measure"), make()):
        half = half if isinstance(half, list) else [half]
        paths = []
        for i, x in enumerate(half):
            paths.append(f"{folder}/{part}_{i}.npy")
            np.save(paths[-1], x)
        arrays.append(paths)
    calibrate, held = arrays
    if len(calibrate) > 1:
        names = ["input_ids", "attention_mask"]
        np.savez(f"{folder}/calibrate.npz", **dict(zip(names, map(np.load, calibrate))))
        np.savez(f"{folder}/held.npz", **dict(zip(names, map(np.load, held))))
        calibrate, held = [f"{folder}/calibrate.npz"], [f"{folder}/held.npz"]
    inputs = ["--input", held[0]]
    right = outputs(model, inputs, f"{folder}/float")
    found, seconds, agree = {}, {}, {}
    for method in METHODS:
        start = time.perf_counter()
        result = f"{folder}/{method}.onnx"
        tilewright("quantize", model, "--calibrate", calibrate[0], "-o", result, "--method", method, *OPTIONS)
        seconds[method] = time.perf_counter() - start
        got = outputs(result, inputs, f"{folder}/{method}")
        found[method], agree[method] = decibels(right, got), agreement(name, right, got)
    shown = "".join(
        f" {found[m]:>6.2f}" + (f" ({100 * agree[m]:>5.1f} %)" if agree[m] is not None else " " * 10) for m in METHODS
    )
    others = METHODS[:-1]
    gain = found["auto"] - max(found[m] for m in others)
    print(f"{name:<20}{shown} {gain:>+7.2f} {seconds['auto']:>7.1f} {max(seconds[m] for m in others):>7.1f}", flush=True)
    return gain


def main():
    chosen = sys.argv[1:]
    print(f"{'network':<20}" + "".join(f" {m:<16}" for m in METHODS) + f" {'gain':>6} {'s auto':>7} {'s other':>7}", flush=True)
    good = True
    for name, file, make in NETWORKS:
        if chosen and name not in chosen:
            continue
        if not file:
            print(f"{name:<20} skipped: set DETECTOR to its file", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                good &= measure(name, file, make, folder) >= -TOLERANCE
            except RuntimeError as e:
                print(f"{name:<20} not quantized: {str(e).replace(folder + '/', '')}", flush=True)
                good &= file.endswith(".cfg")  # No front end reads it yet.
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
