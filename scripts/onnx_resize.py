"""Sweeps Resize and Upsample of one image over modes, coordinates, roundings, sizes and scales, for check_onnx.py."""

import itertools

import numpy as np
from onnx import helper

from onnx_random import Net, alone

SCALES = [
    0.05,
    0.1,
    0.2,
    0.3,
    1 / 3,
    0.4,
    0.5,
    0.55,
    0.6,
    2 / 3,
    0.7,
    0.8,
    0.9,
    0.99,
    1.05,
    1.1,
    1.3,
    1.5,
    1.7,
    2,
    2.1,
    2.5,
    3,
    3.3,
]
SIZES = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 15, 16, 20, 21, 28, 33]
COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
FILTERS = [
    {"mode": "linear"},
    {"mode": "cubic"},
    {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1},
    {"mode": "linear", "antialias": 1},
    {"mode": "cubic", "antialias": 1},
    {"mode": "cubic", "antialias": 1, "exclude_outside": 1},
]


def kinds():
    """Yields operator set, operator and attributes: those of set 18, and those of other sets."""
    for coordinates in COORDINATES:
        for rounding in NEAREST:
            yield 18, "Resize", {
                "coordinate_transformation_mode": coordinates,
                "mode": "nearest",
                "nearest_mode": rounding,
            }
        for attributes in FILTERS:
            yield 18, "Resize", {"coordinate_transformation_mode": coordinates, **attributes}
    for rounding in NEAREST:
        yield 11, "Resize", {
            "coordinate_transformation_mode": "tf_half_pixel_for_nn",
            "mode": "nearest",
            "nearest_mode": rounding,
        }
    for mode in ("nearest", "linear"):
        yield 10, "Resize", {"mode": mode}
        yield 9, "Upsample", {"mode": mode}
        yield 18, "Resize", {
            "mode": mode,
            "coordinate_transformation_mode": "tf_crop_and_resize",
            "extrapolation_value": -1.0,
        }


def one(name, op, opset, attributes, rng):
    """Makes a resize of an image by scales or to sizes; None if ONNX Runtime refuses it."""
    net = Net(name, rng, None)
    size, scale = rng.choice(SIZES, 2), rng.choice(SCALES, 2).astype(np.float32)
    x = net.leaf(rng.standard_normal((1, 1, *size)).astype(np.float32), False)
    scales = net.leaf(np.array([1, 1, *scale], np.float32), True)
    inputs = [x, scales] if opset < 11 else [x, "", scales]
    crop = attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    if opset >= 18 and (crop or rng.random() < 0.3):
        sizes = np.maximum(1, (size * scale).astype(np.int64) + rng.integers(0, 2, 2))
        # ONNX Runtime ignores the region in dimensions that keep their size.
        if crop and (sizes == size).any():
            return None
        inputs = [x, "", "", net.leaf(sizes, True)]
        attributes = {**attributes, "axes": [2, 3]}
        if crop:
            inputs[1] = net.leaf(rng.choice([-0.2, 0.0, 0.3, 0.6, 1.0, 1.3], 4).astype(np.float32), True)
        else:
            attributes["keep_aspect_ratio_policy"] = str(rng.choice(["stretch", "not_larger", "not_smaller"]))
    node = helper.make_node(op, inputs, [f"{name}y"], f"{name}y", **attributes)
    try:
        net.values[f"{name}y"] = alone(node, net.values, opset)[0]
    except Exception:
        return None
    net.nodes.append(node)
    return net if net.values[f"{name}y"].size else None


def resizes(batch):
    """Yields an operator set and networks of one node each, as many as go into a file."""
    for opset, group in itertools.groupby(sorted(kinds(), key=lambda k: k[0]), key=lambda k: k[0]):
        nets = []
        for kind, (_, op, attributes) in enumerate(group):
            for i in range(60):
                net = one(f"r{opset}k{kind}i{i}", op, opset, attributes, np.random.default_rng([opset, kind, i]))
                nets += [net] if net else []
        for first in range(0, len(nets), batch):
            yield opset, nets[first : first + batch]
