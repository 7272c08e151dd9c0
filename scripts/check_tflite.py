#!/usr/bin/env python3
"""Compares TFLite's operators with LiteRT's reference kernels: those of 8 bits bit for bit.

It runs every operator for which docs/tflite.md lists 8 bits, in int8 and uint8 if the kernels have both, for 40 pairs of
scales with three pairs of zero points each. The data are all 256 values for one operand, all pairs of values for two, and
random numbers with many ties (sums half way between two integers) for products. For each operator it prints how many
operators were run, how many results were compared, and how many differ. It fails if one differs; softmax and logistic can
be one step apart.

Operators without 8 bits get random numbers: integers and truth values must be equal, floats within 1e-5 of the largest.

The kernels leave the shift of large factors undefined. From 2^9 on, only the sign of a sum determines the result, so the
kernels get data with a smaller scale, which reduces the factor to 2^10.

TILEWRIGHT is the program (default: target/release/tilewright). Arguments select operators.
"""
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version

import numpy as np
from ai_edge_litert import interpreter
from tflite_file import File, Q

TILEWRIGHT = os.environ.get("TILEWRIGHT", "target/release/tilewright")
PAGE = os.path.join(os.path.dirname(__file__), "..", "docs", "tflite.md")
ZEROS = [(0, 0), (-128, -128), (3, -7), (127, 127), (-128, 127), (-1, 100)]
ACTIVATIONS = [0, 1, 2, 3]  # NONE, RELU, RELU_N1_TO_1, RELU6


def pairs():
    """Returns 40 pairs of scales: of the data and of the result."""
    fixed = [
        # Quotients that are round numbers in single precision but not in double precision.
        (0.003, 0.002), (0.002, 0.003), (0.3, 0.2), (0.006, 0.004), (0.05, 0.1), (0.7, 0.1), (0.1, 0.3), (0.35, 0.1),
        # Powers of two and small multiples of them.
        (2.0**-4, 2.0**-5), (2.0**-5, 2.0**-4), (2.0**-3, 2.0**-3), (2.0**-8, 2.0**-3), (2.0**-3, 2.0**-8), (3 * 2.0**-9, 2.0**-8),
        (5 * 2.0**-6, 2.0**-4), (2.0**-7, 3 * 2.0**-7),
        # Equal and almost equal.
        (0.05, 0.05), (0.05, float(np.nextafter(np.float32(0.05), np.float32(1)))), (0.0235, 0.02349),
        # Far apart.
        (1e-4, 10.0), (10.0, 1e-4), (2.0**-20, 1.0), (1.0, 2.0**-18), (1e-6, 1e4), (1e4, 1e-6), (24.0, 2.0**-28), (2.0**-28, 24.0),
    ]
    rng = np.random.default_rng(7)
    scale = lambda: float(np.float32(2.0 ** rng.uniform(-9, -1)))
    return fixed + [(scale(), scale()) for _ in range(40 - len(fixed))]


class Case:
    """One pair of scales with one pair of zero points."""

    def __init__(self, file, dtype, number, scales, zeros, kernels):
        self.f, self.dtype, self.number, self.kernels = file, dtype, number, kernels
        self.a, self.to = np.float32(scales[0]), np.float32(scales[1])
        self.shift = 128 if dtype == "uint8" else 0
        self.za, self.zo = zeros[0] + self.shift, zeros[1] + self.shift
        self.act = ACTIVATIONS[number % 4]
        self.rng = np.random.default_rng(number)
        self.all = np.arange(256) - 128 + self.shift

    def bytes(self, values):
        return np.asarray(values).astype(self.dtype)

    def random(self, shape, lo=-128, hi=127):
        """Returns numbers within these bounds (as int8), mostly near the middle, so that not all sums saturate."""
        wide = self.rng.integers(lo, hi + 1, shape)
        near = self.rng.integers(max(lo, -12), min(hi, 12) + 1, shape)
        return self.bytes(np.where(self.rng.random(shape) < 0.5, wide, near) + self.shift)

    def data(self, values, factor=None):
        """Adds the data. For the kernels, the scale is reduced if `factor`, which multiplies the sums, is too large."""
        scale = self.a
        if self.kernels and factor is not None and factor > 2.0**9:
            scale = np.float32(scale * (2.0**10 / factor))
        self.used = scale
        return self.f.input(self.bytes(values), Q(scale, self.za))

    @property
    def result(self):
        return Q(self.to, self.zo)

    def unary(self, operator, q=None, **options):
        """Adds an operator on all values; its factor is the quotient of the scales."""
        data = self.data(self.all.reshape(1, 256), float(self.a) / float(self.to))
        self.f.add(operator, [data], [(self.dtype, [1, 256], q or self.result)], **options)

    def function(self, operator, q=None, **options):
        """Adds a function on all values, unless the kernels would convert floats above 32 bits: that is undefined."""
        q = q or self.result
        if 256 * float(self.a) / q.scale[0] >= 2.0**31:
            return
        self.f.add(operator, [self.data(self.all.reshape(1, 256))], [(self.dtype, [1, 256], q)], **options)

    def moved(self, operator, shape, result, constants=(), dtype=None, count=1, first=True, times=1, data=None, **options):
        """Adds an operator that keeps the scale, with data of this shape, then the constants."""
        values = self.random(shape) if data is None else data
        q = Q(self.to, self.zo)
        inputs = [self.f.input(values, q)] + [self.f.input(self.random(shape), q) for _ in range(times - 1)]
        constants = [self.f.constant(c) for c in constants]
        inputs = inputs + constants if first else constants + inputs
        self.f.add(operator, inputs, [(dtype or self.dtype, result, None if dtype else q)] * count, **options)

    def both(self, operator, factor, **options):
        """Adds an operator on all pairs of values."""
        x, y = np.repeat(self.all, 256).reshape(1, -1), np.tile(self.all, 256).reshape(1, -1)
        b, zb = np.float32(PAIRS[(self.number * 7 + 3) % 40][1]), ZEROS[self.number % 5][1] + self.shift
        b = np.float32(min(max(b, self.a / 64), self.a * 64))
        f = factor(float(self.a), float(b), float(self.to))
        if f is None:
            return
        data = self.data(x, f or None)
        other = self.f.input(self.bytes(y), Q(b, zb))
        self.f.add(operator, [data, other], [(self.dtype, [1, 65536], self.result)], **options)

    def weights(self, shape, channels, axis, per_channel, operator):
        """Returns weights, their Q, and the factor of the largest scale."""
        ratio = float(self.a) / float(self.to)
        # Keeps sums of a few hundred within the result's range, except for each third pair, whose scales are unchanged.
        w = 1.0 if self.number % 3 == 2 else 2.0 ** (-np.round(np.log2(ratio)) - (1, 2, 4, 7)[self.number // 3 % 4])
        w = np.float32(np.clip(w, 2.0**-40, 2.0**40))
        # The scales of a layer are close to each other, except in each tenth pair.
        spread = self.rng.integers(0, 17 if self.number % 10 == 9 else 3, channels)
        scales = w * np.float32(2.0) ** -spread.astype(np.float32) if per_channel else w
        scales = scales * (np.float32(0.7) if self.number % 3 == 0 else np.float32(1.0))
        zero = 0 if self.dtype == "int8" and (per_channel or operator != "FULLY_CONNECTED") else (0, 5, -3)[self.number % 3]
        small = self.rng.integers(-3, 4, shape)
        wide = self.rng.integers(-127, 128, shape)
        values = self.bytes(np.where(self.rng.random(shape) < 0.6, small, np.where(self.rng.random(shape) < 0.5, 0, wide)) + self.shift)
        factor = float(np.max(scales)) * ratio
        return values, Q(scales, zero + self.shift, axis), factor

    def bias(self, q, channels, operator):
        """Returns a bias with the scale of the products, or none; convolutions must have one."""
        if self.number % 4 == 3 and operator in ("FULLY_CONNECTED", "TRANSPOSE_CONV"):
            return []
        values = self.rng.integers(-200, 201, channels).astype(np.int32)
        scale = self.used * np.array(q.scale, np.float32)
        return [self.f.constant(values, Q(scale, 0))]

    def product(self, operator, data, weights, axis, per_channel, result, kind, first=None, act=True, **options):
        channels = weights[axis]
        values, q, factor = self.weights(weights, channels, axis, per_channel, operator)
        if act:
            options["fusedActivationFunction"] = self.act
        x = self.data(self.random(data), factor)
        w = self.f.constant(values, q)
        inputs = [x, w] if first is None else [self.f.constant(np.array(first, np.int32)), w, x]
        self.f.add(operator, inputs + self.bias(q, channels, operator), [(self.dtype, result, self.result)], kind=kind, **options)


PAIRS = pairs()
# Minimum number of operators per kind and type. Pairs that the kernels refuse or leave undefined are not compared.
LEAST = 90
BOTH, SIGNED = ("int8", "uint8"), ("int8",)
SIZE = np.array([5, 9], np.int32)


def add_factor(a, b, to):
    # The kernels refuse a factor of the result of 1 or more.
    return 0 if 2 * max(a, b) < to * 2.0**20 else None


def square_factor(a, b, to):
    return 0 if (2 * max(a, b)) ** 2 < to * 2.0**14 else None


def dequantize(c):
    c.f.add("DEQUANTIZE", [c.f.input(c.bytes(c.all), c.result)], [("float32", [256], None)])


def quantize(c):
    """Adds QUANTIZE from floats, and from either 8-bit type to the other."""
    steps = np.concatenate([c.all - c.zo, c.all - c.zo + 0.5, c.rng.normal(0, 100, 100)]).astype(np.float32)
    x = c.f.input((steps * c.to).astype(np.float32))
    c.f.add("QUANTIZE", [x], [(c.dtype, steps.shape, c.result)])
    c.unary("QUANTIZE")
    other = "uint8" if c.dtype == "int8" else "int8"
    less = 128 if other == "uint8" else -128
    data = c.data(c.all, float(c.a) / float(c.to))
    c.f.add("QUANTIZE", [data], [(other, [256], Q(c.to, c.zo + less))])


def concatenation(c):
    # The signed kernel requires parts with the same scale.
    q = c.result if c.dtype == "int8" else Q(c.a, c.za)
    if 256 * float(c.a) / float(c.to) >= 2.0**31:
        return
    parts = [c.f.input(c.bytes(c.all).reshape(2, 128), p) for p in (q, c.result)]
    c.f.add("CONCATENATION", parts, [(c.dtype, [2, 256], c.result)], kind="ConcatenationOptions", axis=1)


def leaky_relu(c):
    alpha = (0.1, -0.5, 0.25, -1.0, 2.0, -0.125, 0.003, 1.5, -3.0, 0.0)[c.number % 10]
    ratio = float(c.a) / float(c.to)
    if max(ratio, abs(alpha) * ratio) > 2.0**9 and min(ratio, abs(alpha) * ratio) < 2.0**11:
        return  # Reducing one factor would bring the other below saturation.
    data = c.data(c.all, ratio * min(1, abs(alpha) or 1))
    c.f.add("LEAKY_RELU", [data], [(c.dtype, [256], c.result)], kind="LeakyReluOptions", alpha=alpha)


def prelu(c):
    by = np.float32(2.0**-6 if c.number % 2 else 0.013)
    ratio = float(c.a) / float(c.to)
    if max(ratio, ratio * float(by)) > 2.0**9 and min(ratio, ratio * float(by)) < 2.0**11:
        return
    data = c.data(c.random([1, 4, 5, 16]), ratio * min(1, float(by)))
    slope = c.f.constant(c.bytes(c.rng.permutation(c.all)[:16].reshape(1, 1, 16)), Q(by, (0, 5, -3)[c.number % 3] + c.shift))
    c.f.add("PRELU", [data, slope], [(c.dtype, [1, 4, 5, 16], c.result)])


def total(c):
    for shape, axes in (([2, 7, 16], [1]), ([2, 3, 4, 5], [0, 2]), ([1, 256], [1])):
        result = [1 if i in axes else d for i, d in enumerate(shape)]
        x = c.data(c.all.reshape(shape) if shape[-1] == 256 else c.random(shape), float(c.a) / float(c.to))
        c.f.add("SUM", [x, c.f.constant(i32(*axes))], [(c.dtype, result, c.result)], kind="ReducerOptions", keepDims=True)


def rsqrt(c):
    # The kernel refuses numbers below 0.
    values = np.maximum(c.all, c.za)
    c.f.add("RSQRT", [c.f.input(c.bytes(values), Q(c.a, c.za))], [(c.dtype, [256], c.result)])


def hard_swish(c):
    # The kernel requires a result scale above the data's divided by 128.
    if c.a / np.float32(128) / c.to < 1:
        c.function("HARD_SWISH")


def fully_connected(c):
    for per_channel in (False, True) if c.dtype == "int8" else (False,):
        c.product("FULLY_CONNECTED", [64, 8], [6, 8], 0, per_channel, [64, 6], "FullyConnectedOptions")


def conv_2d(c):
    for per_channel in (False, True) if c.dtype == "int8" else (False,):
        c.product("CONV_2D", [1, 6, 6, 4], [5, 2, 2, 4], 0, per_channel, [1, 5, 5, 5], "Conv2DOptions", padding=1, strideH=1,
                  strideW=1, dilationHFactor=1, dilationWFactor=1)


def depthwise_conv_2d(c):
    for per_channel in (False, True) if c.dtype == "int8" else (False,):
        c.product("DEPTHWISE_CONV_2D", [1, 6, 6, 6], [1, 3, 3, 6], 3, per_channel, [1, 6, 6, 6], "DepthwiseConv2DOptions",
                  padding=0, strideH=1, strideW=1, depthMultiplier=1, dilationHFactor=1, dilationWFactor=1)


def transpose_conv(c):
    for per_channel in (False, True) if c.dtype == "int8" else (False,):
        c.product("TRANSPOSE_CONV", [1, 4, 4, 4], [5, 2, 2, 4], 0, per_channel, [1, 8, 8, 5], "TransposeConvOptions",
                  first=[1, 8, 8, 5], padding=1, strideH=2, strideW=2)


def batch_matmul(c):
    values, q, factor = c.weights([2, 8, 6], 6, 2, False, "BATCH_MATMUL")
    x = c.data(c.random([2, 16, 8]), factor)
    zero = (0, 5, -3)[c.number % 3]
    inputs = [x, c.f.input(values, Q(q.scale[0], zero))]
    c.f.add("BATCH_MATMUL", inputs, [(c.dtype, [2, 16, 6], c.result)], kind="BatchMatMulOptions")


def mean(c):
    for shape in ([1, 1, 256, 1], [1, 3, 5, 16], [1, 7, 7, 8], [2, 4, 4, 16]):
        factor = float(c.a) / float(c.to) / (shape[1] * shape[2])
        x = c.data(c.all.reshape(shape) if shape[2] == 256 else c.random(shape), factor)
        axes = c.f.constant(np.array([1, 2], np.int32))
        c.f.add("MEAN", [x, axes], [(c.dtype, [shape[0], 1, 1, shape[3]], c.result)], kind="ReducerOptions", keepDims=True)


def pool(c, operator):
    for size, result in ((2, [1, 3, 4, 8]), (3, [1, 3, 4, 8])):
        c.moved(operator, [1, 7, 9, 8], result, kind="Pool2DOptions", padding=1, strideW=2, strideH=2, filterWidth=size,
                filterHeight=size, fusedActivationFunction=c.act)


def softmax(c):
    for beta in (1.0, 0.5):
        data = c.f.input(c.random([4, 20]), Q(np.clip(c.to, 2.0**-16, 1), c.zo))
        c.f.add("SOFTMAX", [data], [(c.dtype, [4, 20], Q(1 / 256, c.shift - 128))], kind="SoftmaxOptions", beta=beta)


def resize(c, operator, kind, **options):
    for align, half in ((False, False), (True, False), (False, True)):
        c.moved(operator, [1, 4, 7, 3], [1, 5, 9, 3], [SIZE], kind=kind, alignCorners=align, halfPixelCenters=half, **options)


def arg(c, operator, kind):
    c.moved(operator, [5, 11], [5], [np.array([1], np.int32)], dtype="int32", kind=kind, outputType=2)


def extreme(c, operator):
    x, y = np.repeat(c.all, 256), np.tile(c.all, 256)
    inputs = [c.f.input(c.bytes(v), c.result) for v in (x, y)]
    c.f.add(operator, inputs, [(c.dtype, [65536], c.result)], kind="MaximumMinimumOptions")


def reduce(c, operator):
    c.moved(operator, [4, 5, 6], [4, 1, 6], [np.array([1], np.int32)], kind="ReducerOptions", keepDims=True)


def i32(*values):
    return np.array(values, np.int32)


def moved(operator, shape, result, constants=(), **options):
    """Returns an entry of an operator that moves elements."""
    return BOTH, 0, lambda c: c.moved(operator, shape, result, constants, **options)


def compared(operator):
    def add(c):
        # The kernels require scales below 1.
        if max(c.a, c.to) < 1:
            inputs = [c.f.input(c.random([3, 40]), q) for q in (Q(c.a, c.za), c.result)]
            c.f.add(operator, inputs, [("bool", [3, 40], None)])
    return BOTH, 0, add


def chosen(operator, *shape):
    condition = np.random.default_rng(1).random(shape) < 0.5
    return BOTH, 0, lambda c: c.moved(operator, [3, 4], [3, 4], [condition], first=False, times=2)


def top_k(c):
    data = c.f.input(c.random([4, 20]), c.result)
    c.f.add("TOPK_V2", [data, c.f.constant(i32(5))], [(c.dtype, [4, 5], c.result), ("int32", [4, 5], None)], kind="TopKV2Options")


LOGISTIC = lambda c: Q(1 / 256, c.shift - 128)
# For each operator: types, allowed difference in steps, and the function that adds it to a file.
OPERATORS = {
    "ABS": (SIGNED, 0, lambda c: c.unary("ABS")),
    "ADD": (BOTH, 0, lambda c: c.both("ADD", add_factor, kind="AddOptions", fusedActivationFunction=c.act)),
    "ARG_MAX": (BOTH, 0, lambda c: arg(c, "ARG_MAX", "ArgMaxOptions")),
    "ARG_MIN": (BOTH, 0, lambda c: arg(c, "ARG_MIN", "ArgMinOptions")),
    "AVERAGE_POOL_2D": (BOTH, 0, lambda c: pool(c, "AVERAGE_POOL_2D")),
    "BATCH_MATMUL": (SIGNED, 0, batch_matmul),
    "BATCH_TO_SPACE_ND": moved("BATCH_TO_SPACE_ND", [8, 2, 3, 2], [2, 3, 5, 2], [i32(2, 2), i32(0, 1, 1, 0).reshape(2, 2)]),
    "BROADCAST_TO": moved("BROADCAST_TO", [3, 1], [2, 3, 4], [i32(2, 3, 4)]),
    "CONCATENATION": (BOTH, 0, concatenation),
    "CONV_2D": (BOTH, 0, conv_2d),
    "DEPTHWISE_CONV_2D": (BOTH, 0, depthwise_conv_2d),
    "DEPTH_TO_SPACE": (BOTH, 0, lambda c: c.moved("DEPTH_TO_SPACE", [1, 3, 4, 8], [1, 6, 8, 2], kind="DepthToSpaceOptions", blockSize=2)),
    "DEQUANTIZE": (BOTH, 0, dequantize),
    "ELU": (SIGNED, 0, lambda c: c.function("ELU")),
    "EQUAL": compared("EQUAL"),
    "EXP": (SIGNED, 0, lambda c: c.function("EXP")),
    "EXPAND_DIMS": (BOTH, 0, lambda c: c.moved("EXPAND_DIMS", [3, 4], [3, 1, 4], [i32(1)])),
    "FULLY_CONNECTED": (BOTH, 0, fully_connected),
    "GATHER": (BOTH, 0, lambda c: c.moved("GATHER", [5, 4], [3, 4], [i32(4, 0, 2)], kind="GatherOptions")),
    "GATHER_ND": moved("GATHER_ND", [5, 4, 3], [2, 3], [i32(4, 0, 1, 3).reshape(2, 2)]),
    "GREATER": compared("GREATER"),
    "GREATER_EQUAL": compared("GREATER_EQUAL"),
    "GELU": (BOTH, 0, lambda c: c.function("GELU", kind="GeluOptions", approximate=bool(c.number % 2))),
    "HARD_SWISH": (BOTH, 0, hard_swish),
    "LEAKY_RELU": (BOTH, 0, leaky_relu),
    "LESS": compared("LESS"),
    "LESS_EQUAL": compared("LESS_EQUAL"),
    "LOG": (SIGNED, 0, lambda c: c.function("LOG")),
    "LOGISTIC": (BOTH, 1, lambda c: c.function("LOGISTIC", LOGISTIC(c))),
    "MAXIMUM": (BOTH, 0, lambda c: extreme(c, "MAXIMUM")),
    "MAX_POOL_2D": (BOTH, 0, lambda c: pool(c, "MAX_POOL_2D")),
    "MEAN": (BOTH, 0, mean),
    "MINIMUM": (BOTH, 0, lambda c: extreme(c, "MINIMUM")),
    "MIRROR_PAD": (BOTH, 0, lambda c: c.moved("MIRROR_PAD", [3, 4], [7, 6], [i32(2, 2, 2, 0).reshape(2, 2)], kind="MirrorPadOptions", mode=c.number % 2)),
    "MUL": (BOTH, 0, lambda c: c.both("MUL", lambda a, b, to: a * b / to, kind="MulOptions", fusedActivationFunction=c.act)),
    "NOT_EQUAL": compared("NOT_EQUAL"),
    "PACK": (BOTH, 0, lambda c: c.moved("PACK", [3, 4], [3, 2, 4], times=2, kind="PackOptions", valuesCount=2, axis=1)),
    "PAD": (BOTH, 0, lambda c: c.moved("PAD", [3, 4], [6, 5], [i32(1, 2, 1, 0).reshape(2, 2)])),
    "PADV2": (BOTH, 0, lambda c: padv2(c)),
    "PRELU": (BOTH, 0, prelu),
    "QUANTIZE": (BOTH, 0, quantize),
    "RANK": moved("RANK", [3, 4], [], dtype="int32"),
    "REDUCE_MAX": (BOTH, 0, lambda c: reduce(c, "REDUCE_MAX")),
    "REDUCE_MIN": (BOTH, 0, lambda c: reduce(c, "REDUCE_MIN")),
    "RELU": (BOTH, 0, lambda c: c.unary("RELU")),
    "RELU6": (BOTH, 0, lambda c: c.unary("RELU6")),
    "RELU_0_TO_1": (BOTH, 0, lambda c: c.unary("RELU_0_TO_1")),
    "RELU_N1_TO_1": (BOTH, 0, lambda c: c.unary("RELU_N1_TO_1")),
    "RESHAPE": (BOTH, 0, lambda c: c.moved("RESHAPE", [3, 4], [2, 6], [i32(2, 6)])),
    "RESIZE_BILINEAR": (BOTH, 0, lambda c: resize(c, "RESIZE_BILINEAR", "ResizeBilinearOptions")),
    "RESIZE_NEAREST_NEIGHBOR": (BOTH, 0, lambda c: resize(c, "RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")),
    "REVERSE_V2": moved("REVERSE_V2", [3, 4, 2], [3, 4, 2], [i32(1)]),
    "RSQRT": (SIGNED, 0, rsqrt),
    "SELECT": chosen("SELECT", 3),
    "SELECT_V2": chosen("SELECT_V2", 3, 1),
    "SHAPE": moved("SHAPE", [3, 4], [2], dtype="int32", kind="ShapeOptions", outType=2),
    "SLICE": (BOTH, 0, lambda c: c.moved("SLICE", [5, 6], [3, 2], [i32(1, 3), i32(3, 2)])),
    "SOFTMAX": (BOTH, 1, softmax),
    "SPACE_TO_BATCH_ND": moved("SPACE_TO_BATCH_ND", [2, 3, 5, 2], [8, 2, 3, 2], [i32(2, 2), i32(0, 1, 1, 0).reshape(2, 2)]),
    "SPACE_TO_DEPTH": (BOTH, 0, lambda c: c.moved("SPACE_TO_DEPTH", [1, 6, 8, 2], [1, 3, 4, 8], kind="SpaceToDepthOptions", blockSize=2)),
    "SPLIT": (BOTH, 0, lambda c: c.moved("SPLIT", [4, 6], [4, 3], [i32(1)[0:1].reshape([])], first=False, count=2, kind="SplitOptions", numSplits=2)),
    "SPLIT_V": (BOTH, 0, lambda c: c.moved("SPLIT_V", [4, 6], [4, 3], [i32(3, 3), i32(1)[0:1].reshape([])], count=2, kind="SplitVOptions", numSplits=2)),
    "SQUARED_DIFFERENCE": (SIGNED, 0, lambda c: c.both("SQUARED_DIFFERENCE", square_factor)),
    "SQUEEZE": (BOTH, 0, lambda c: c.moved("SQUEEZE", [3, 1, 4], [3, 4], kind="SqueezeOptions", squeezeDims=[1])),
    "STRIDED_SLICE": (BOTH, 0, lambda c: c.moved("STRIDED_SLICE", [5, 6], [2, 3], [i32(1, 0), i32(5, 6), i32(2, 2)], kind="StridedSliceOptions")),
    "SUB": (BOTH, 0, lambda c: c.both("SUB", add_factor, kind="SubOptions", fusedActivationFunction=c.act)),
    # For int8, the reference kernel does not end at the bounds of the type.
    "SUM": (("uint8",), 0, total),
    "TANH": (BOTH, 0, lambda c: c.function("TANH")),
    "TILE": moved("TILE", [3, 4], [6, 12], [i32(2, 3)]),
    "TOPK_V2": (BOTH, 0, top_k),
    "TRANSPOSE": (BOTH, 0, lambda c: c.moved("TRANSPOSE", [3, 4, 2], [2, 3, 4], [i32(2, 0, 1)])),
    "TRANSPOSE_CONV": (BOTH, 0, transpose_conv),
    "UNPACK": (BOTH, 0, lambda c: c.moved("UNPACK", [3, 2, 4], [3, 4], count=2, kind="UnpackOptions", num=2, axis=1)),
}


def padv2(c):
    value = c.f.constant(c.bytes([c.all[7]]), c.result)
    pads = c.f.constant(i32(1, 2, 1, 0).reshape(2, 2))
    c.f.add("PADV2", [c.f.input(c.random([3, 4]), c.result), pads, value], [(c.dtype, [6, 5], c.result)])


def plain(f, operator, *inputs, shape=None, dtype=None, count=1, **options):
    """Adds an operator without quantization; inputs that are lists are constants."""
    first = next(x for x in inputs if isinstance(x, np.ndarray))
    ids = [f.input(x) if isinstance(x, np.ndarray) else f.constant(i32(*x)) for x in inputs]
    result = (dtype or first.dtype.name, first.shape if shape is None else shape, None)
    f.add(operator, ids, [result] * count, **options)


def floats(rng, *shape):
    return rng.normal(0, 3, shape).astype(np.float32)


def integers(rng, *shape):
    return rng.integers(-9, 10, shape).astype(np.int32)


def truths(rng, *shape):
    return rng.random(shape) < 0.5


def function(operator, values=lambda x: x, **options):
    return lambda f, rng: plain(f, operator, values(floats(rng, 3, 50)), **options)


def two(operator, make=floats, dtype=None, **options):
    return lambda f, rng: plain(f, operator, make(rng, 4, 5), make(rng, 4, 5), dtype=dtype, **options)


def along(operator, make=floats, shape=(4, 1, 6), **options):
    return lambda f, rng: plain(f, operator, make(rng, 4, 5, 6), [1], shape=shape, **options)


def cast(f, rng):
    for x in (floats(rng, 9), integers(rng, 9), truths(rng, 9)):
        for dtype in ("float32", "int32", "int64", "bool"):
            plain(f, "CAST", x, dtype=dtype, kind="CastOptions")


def one_hot(f, rng):
    for axis, shape in ((-1, [7, 5]), (0, [5, 7])):
        on, off = np.array(2.5, np.float32), np.array(-1, np.float32)
        indices = rng.integers(-1, 6, 7).astype(np.int32)
        ids = [f.input(indices), f.constant(np.array(5, np.int32)), f.constant(on), f.constant(off)]
        f.add("ONE_HOT", ids, [("float32", shape, None)], kind="OneHotOptions", axis=axis)


def fill(f, rng):
    value = np.array(2.5, np.float32)
    f.add("FILL", [f.constant(i32(2, 3)), f.input(value)], [("float32", [2, 3], None)])


def scatter_nd(f, rng):
    ids = [f.constant(i32(4, 1, 4, 0).reshape(4, 1)), f.input(floats(rng, 4, 3)), f.constant(i32(6, 3))]
    f.add("SCATTER_ND", ids, [("float32", [6, 3], None)])


def slices(f, rng):
    """Adds slices with ellipses, new and removed dimensions."""
    for begin, end, step, shape, masks in (
        ([0, 1, 1], [0, 3, 4], [1, 1, 2], [2, 3, 2, 2], {"ellipsisMask": 1}),
        ([1, 0, 0], [2, 0, 3], [1, 1, 1], [1, 1, 3, 4, 5], {"newAxisMask": 2}),
        ([1, 0, -1, 0], [2, 0, 0, 0], [1, 1, 1, 1], [3, 4, 1], {"ellipsisMask": 2, "shrinkAxisMask": 5, "newAxisMask": 8}),
        ([0, 2], [0, 0], [1, -1], [2, 3, 4, 3], {"ellipsisMask": 1, "endMask": 2}),
    ):
        plain(f, "STRIDED_SLICE", floats(rng, 2, 3, 4, 5), begin, end, step, shape=shape, kind="StridedSliceOptions", **masks)


POSITIVE = lambda x: np.abs(x) + np.float32(0.01)
# Operators without 8 bits, and forms that those above leave out.
PLAIN = {
    "ABS": function("ABS"),
    "ADD_N": lambda f, rng: plain(f, "ADD_N", *(floats(rng, 4, 5) for _ in range(4))),
    "CAST": cast,
    "CEIL": function("CEIL"),
    "COS": function("COS"),
    "CUMSUM": lambda f, rng: [plain(f, "CUMSUM", floats(rng, 3, 7), [1], kind="CumsumOptions", exclusive=e, reverse=r) for e in (False, True) for r in (False, True)],
    "DIV": two("DIV", kind="DivOptions"),
    "FILL": fill,
    "FLOOR": function("FLOOR"),
    "FLOOR_DIV": two("FLOOR_DIV"),
    "L2_NORMALIZATION": function("L2_NORMALIZATION", kind="L2NormOptions"),
    "LOG": function("LOG", POSITIVE),
    "LOGICAL_AND": two("LOGICAL_AND", truths),
    "LOGICAL_NOT": lambda f, rng: plain(f, "LOGICAL_NOT", truths(rng, 9)),
    "LOGICAL_OR": two("LOGICAL_OR", truths),
    "LOG_SOFTMAX": function("LOG_SOFTMAX"),
    "NEG": function("NEG"),
    "ONE_HOT": one_hot,
    "POW": lambda f, rng: plain(f, "POW", POSITIVE(floats(rng, 4, 5)), floats(rng, 4, 5)),
    "PRELU": lambda f, rng: plain(f, "PRELU", floats(rng, 2, 3, 4, 5), floats(rng, 1, 1, 5)),
    "REDUCE_ALL": along("REDUCE_ALL", truths, kind="ReducerOptions", keepDims=True),
    "REDUCE_ANY": along("REDUCE_ANY", truths, (4, 6), kind="ReducerOptions"),
    "REDUCE_PROD": along("REDUCE_PROD", kind="ReducerOptions", keepDims=True),
    "ROUND": lambda f, rng: plain(f, "ROUND", np.concatenate([floats(rng, 50), np.arange(-4, 5, 0.5, np.float32)])),
    "RSQRT": function("RSQRT", POSITIVE),
    "SCATTER_ND": scatter_nd,
    "SIGN": function("SIGN"),
    "SIN": function("SIN"),
    "SQRT": function("SQRT", POSITIVE),
    "SQUARE": function("SQUARE"),
    "STRIDED_SLICE": slices,
    "SUM": along("SUM", kind="ReducerOptions", keepDims=True),
    "TOPK_V2": lambda f, rng: f.add("TOPK_V2", [f.input(floats(rng, 4, 20)), f.constant(i32(5))], [("float32", [4, 5], None), ("int32", [4, 5], None)]),
    "ZEROS_LIKE": function("ZEROS_LIKE"),
}
# Sparse constants and control flow, which the tests of the importer cover.
ELSEWHERE = {"DENSIFY", "IF", "WHILE"}


def build(operator, dtype, kernels):
    """Builds the file of all pairs; for the kernels with factors for which they are defined."""
    file = File()
    for i, scales in enumerate(PAIRS):
        for k in range(3):
            OPERATORS[operator][2](Case(file, dtype, i, scales, ZEROS[(i + 2 * k) % 6], kernels))
    return file


def reference(file, operator):
    kernels = interpreter.OpResolverType
    # These have only one kernel, which is not among the reference kernels; that of ELU for 8 bits is a table.
    only = operator in ("CEIL", "ELU", "ROUND")
    kernels = kernels.BUILTIN_WITHOUT_DEFAULT_DELEGATES if only else kernels.BUILTIN_REF
    run = interpreter.Interpreter(model_content=file.bytes(), num_threads=1, experimental_op_resolver_type=kernels)
    run.allocate_tensors()
    for d in run.get_input_details():
        run.set_tensor(d["index"], file.data[d["name"]])
    run.invoke()
    return {d["name"]: run.get_tensor(d["index"]) for d in run.get_output_details()}


def ours(file, folder):
    model, data, out = (os.path.join(folder, n) for n in ("m.tflite", "x.npz", "out"))
    with open(model, "wb") as f:
        f.write(file.bytes())
    np.savez(data, **file.data)
    command = [TILEWRIGHT, "run", model, "--device", "cpu", "--quiet", "--input", data, "--output-dir", out]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return {os.path.splitext(n)[0]: np.load(os.path.join(out, n)) for n in os.listdir(out)}


def compare(want, got, most):
    """Returns how many results differ by more than `most` of the wanted ones, how many there are, and the largest difference."""
    far, count, worst = 0, 0, 0.0
    for name, w in want.items():
        g = got[name]
        assert g.dtype == w.dtype and g.shape == w.shape, (name, g.dtype, g.shape, w.dtype, w.shape)
        apart = np.abs(g.astype(np.float64) - w.astype(np.float64))
        worst, far, count = max(worst, float(apart.max())), far + int((apart > most(w)).sum()), count + apart.size
    return far, count, worst


def check_plain(operator):
    """Compares an operator without quantization; returns how many results differ."""
    if operator not in PLAIN:
        return 0
    file = File()
    PLAIN[operator](file, np.random.default_rng(3))
    want = reference(file, operator)
    with tempfile.TemporaryDirectory() as folder:
        got = ours(file, folder)
    far, count, worst = compare(want, got, lambda w: 1e-5 * max(1.0, np.abs(w).max()) if w.dtype == np.float32 else 0)
    print(f"{operator:<24} {'plain':<6} {len(file.graph.operators):>9} {count:>9} {far:>7} {worst:>6.0e}")
    return far


def main():
    asked = sys.argv[1:] or sorted(OPERATORS.keys() | PLAIN.keys())
    with open(PAGE) as page:
        rows = re.findall(r"^\| ([A-Z0-9_]+) \| ([^|]*)\|", page.read(), re.M)
    known = OPERATORS.keys() | PLAIN.keys() | ELSEWHERE
    eight = lambda types: "8 bits" in types or types.strip() == "all"
    missing = [name for name, types in rows if name not in known or (eight(types) and name not in OPERATORS.keys() | ELSEWHERE)]
    if missing:
        sys.exit(f"docs/tflite.md lists operators that are not compared: {', '.join(missing)}; add them to OPERATORS or PLAIN")
    print(f"LiteRT {version('ai-edge-litert')}, reference kernels; {len(PAIRS)} pairs of scales")
    print(f"{'operator':<24} {'type':<6} {'operators':>9} {'results':>9} {'differ':>7} {'steps':>6}")
    wrong = 0
    for operator in asked:
        wrong += check_plain(operator)
        types, steps, _ = OPERATORS.get(operator, ((), 0, None))
        for dtype in types:
            want = reference(build(operator, dtype, True), operator)
            file = build(operator, dtype, False)
            with tempfile.TemporaryDirectory() as folder:
                got = ours(file, folder)
            if len(file.graph.operators) < LEAST:
                sys.exit(f"{operator}: only {len(file.graph.operators)} of {dtype} are compared, at least {LEAST} are required")
            far, count, worst = compare(want, got, lambda _: steps)
            print(f"{operator:<24} {dtype:<6} {len(file.graph.operators):>9} {count:>9} {far:>7} {worst:>6g}", flush=True)
            wrong += far
    print(f"{wrong} differences")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
