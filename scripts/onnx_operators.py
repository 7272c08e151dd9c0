"""Operators for random ONNX networks: functions that add a node to a network (onnx_random.Net)."""

import numpy as np
from onnx import TensorProto

from onnx_random import Net

# Each operator is a function of a network and its random generator. It adds a node, or none if no value fits.


def unary(op, exact=False, signed=False, stable=False, **attributes):
    def add(net, rng):
        x = net.pick(exact=not stable, signed=op == "Reciprocal")
        return x and net.node(op, [x], exact, signed, **attributes)

    return add


def shape_like(net, rng, x):
    """Returns a shape that broadcasts with the shape of a value."""
    shape = [int(n) if rng.random() < 0.6 else 1 for n in net.values[x].shape]
    return shape[rng.integers(len(shape)) :] if shape and rng.random() < 0.3 else shape


def partner(net, rng, x, exact, signed=False):
    """Returns a value that broadcasts with another."""
    shape = net.values[x].shape
    same = [n for n, v in net.values.items() if v.dtype == np.float32 and v.shape == shape and n != x]
    same = [n for n in same if (not exact or n in net.exact) and (not signed or n in net.signed)]
    if same and rng.random() < 0.5:
        return same[rng.integers(len(same))]
    return net.data(shape_like(net, rng, x))


def binary(op, exact=False, signed=False, stable=False, divides=False):
    def add(net, rng):
        x = net.pick(exact=not stable, signed=divides)
        if not x:
            return None
        pair = [x, partner(net, rng, x, not stable, divides)]
        if rng.random() < 0.5:
            pair.reverse()
        return net.node(op, pair, exact, signed)

    return add


def many(op, exact=False, stable=False):
    def add(net, rng):
        x = net.pick(exact=not stable)
        if not x:
            return None
        return net.node(op, [x] + [partner(net, rng, x, not stable) for _ in range(rng.integers(0, 4))], exact)

    return add


def compare(net, rng):
    x = net.pick(exact=True)
    if not x:
        return None
    op = str(rng.choice(["Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"]))
    truth = net.node(op, [x, partner(net, rng, x, True)])
    if truth and rng.random() < 0.3:
        truth = net.node("Not", [truth])
    if not truth:
        return None
    if rng.random() < 0.3:
        return net.node("Cast", [truth], True, True, to=TensorProto.FLOAT)
    y = net.data(net.values[truth].shape)
    return net.node("Where", [truth, y, partner(net, rng, y, False)], True, True)


def clip(net, rng):
    x = net.pick()
    if not x:
        return None
    bound = lambda: (
        "" if rng.random() < 0.2 else net.leaf(np.float32(rng.choice([-2, -0.5, 0.5, 2, np.nan, np.inf, -np.inf])))
    )
    return net.node("Clip", [x, bound(), bound()], True)


def prelu(net, rng):
    x = net.pick()
    if not x:
        return None
    slope = net.data(shape_like(net, rng, x), special=rng.choice([0, 0, 0.2]))
    # With a slope of 0 or below, the sign of a result of 0 is not ONNX Runtime's (docs/onnx.md).
    return net.node("PRelu", [x, slope], True, bool((net.values[slope] > 0).all()))


def reduce(op, exact=False, stable=False):
    def add(net, rng):
        x = net.pick(exact=not stable)
        if not x:
            return None
        rank = net.values[x].ndim
        inputs = [x]
        if rng.random() < 0.8 and rank:
            inputs.append(net.numbers(sorted(rng.choice(rank, rng.integers(1, rank + 1), replace=False))))
        return net.node(op, inputs, exact, keepdims=int(rng.integers(2)))

    return add


def axis_of(net, rng, x):
    return int(rng.integers(net.values[x].ndim))


def with_axis(op, exact=False, stable=False):
    def add(net, rng):
        x = net.pick(exact=not stable, test=lambda x: x.ndim > 0)
        return x and net.node(op, [x], exact, axis=axis_of(net, rng, x))

    return add


def arg(net, rng):
    x = net.pick(exact=True, test=lambda x: x.ndim > 0)
    if not x:
        return None
    op = str(rng.choice(["ArgMax", "ArgMin"]))
    flags = {"keepdims": int(rng.integers(2)), "select_last_index": int(rng.integers(2))}
    return net.node(op, [x], axis=axis_of(net, rng, x), **flags)


def top_k(net, rng):
    x = net.pick(exact=True, test=lambda x: x.ndim > 0)
    if not x:
        return None
    axis = axis_of(net, rng, x)
    k = net.numbers([rng.integers(1, min(6, net.values[x].shape[axis]) + 1)])
    return net.node("TopK", [x, k], axis=axis, largest=int(rng.integers(2)), outputs=2)


def cum_sum(net, rng):
    x = net.pick(exact=True, test=lambda x: x.ndim > 0)
    if not x:
        return None
    axis = net.leaf(np.int64(axis_of(net, rng, x)), True)
    return net.node("CumSum", [x, axis], True, exclusive=int(rng.integers(2)), reverse=int(rng.integers(2)))


def image(x):
    return x.ndim in (3, 4)


def window(net, rng, x):
    spatial = net.values[x].shape[2:]
    kernel = [int(rng.integers(1, min(3, n) + 1)) for n in spatial]
    pads = [int(rng.integers(0, k)) for k in kernel * 2]
    return {"kernel_shape": kernel, "strides": [int(rng.integers(1, 3)) for _ in spatial], "pads": pads}


def pool(op, exact=False, stable=False):
    def add(net, rng):
        x = net.pick(exact=not stable, test=image)
        if not x:
            return None
        more = {"count_include_pad": int(rng.integers(2))} if op == "AveragePool" else {}
        return net.node(op, [x], exact, **window(net, rng, x), **more)

    return add


def conv(net, rng):
    x = net.pick(exact=True, test=image)
    if not x:
        return None
    attributes = window(net, rng, x)
    channels = net.values[x].shape[1]
    group = channels if rng.random() < 0.3 else 1
    outputs = channels if group > 1 else int(rng.integers(1, 6))
    kernel = attributes["kernel_shape"]
    if rng.random() < 0.3:
        w = net.data([channels, outputs // group] + kernel, True, 0)
        return net.node("ConvTranspose", [x, w], True, group=group, strides=attributes["strides"])
    w = net.data([outputs, channels // group] + kernel, None, rng.choice([0, 0, 0.1]))
    inputs = [x, w] + ([net.data([outputs], True, 0)] if rng.random() < 0.5 else [])
    return net.node("Conv", inputs, True, group=group, **attributes)


def matmul(net, rng):
    x = net.pick(exact=True, test=lambda x: x.ndim >= 2)
    if not x:
        return None
    shape = net.values[x].shape
    if len(shape) > 2 or rng.random() < 0.4:
        return net.node("MatMul", [x, net.data([shape[-1], int(rng.integers(1, 6))])], True)
    factor = lambda: float(rng.choice([0.0, 1.0, 1.0, 0.5]))
    turned, outputs = int(rng.integers(2)), int(rng.integers(1, 6))
    w = net.data([outputs, shape[1]] if turned else [shape[1], outputs])
    inputs = [x, w] + ([net.data([outputs])] if rng.random() < 0.6 else [])
    return net.node("Gemm", inputs, True, alpha=factor(), beta=factor(), transB=turned)


def transpose(net, rng):
    x = net.pick()
    return x and net.node("Transpose", [x], True, True, perm=[int(i) for i in rng.permutation(net.values[x].ndim)])


def reshape(net, rng):
    x = net.pick()
    if not x:
        return None
    shape = list(net.values[x].shape)
    at = int(rng.integers(len(shape))) if shape else 0
    shape = shape[:at] + [-1] + shape[at + 2 :]
    return net.node("Reshape", [x, net.numbers(shape)], True, True)


def slice_(net, rng):
    x = net.pick(test=lambda x: x.ndim > 0)
    if not x:
        return None
    axis = axis_of(net, rng, x)
    start = int(rng.integers(net.values[x].shape[axis]))
    ends = [1000, 1] if rng.random() < 0.7 else [-1000, -1]
    return net.node("Slice", [x] + [net.numbers([v]) for v in (start, ends[0], axis, ends[1])], True, True)


def concat(net, rng):
    x = net.pick(test=lambda x: x.ndim > 0)
    return x and net.node("Concat", [x, net.data(net.values[x].shape)], True, True, axis=axis_of(net, rng, x))


def pad(net, rng):
    x = net.pick(test=lambda x: x.ndim > 0)
    if not x:
        return None
    value = net.leaf(np.float32(rng.choice([0, -0.0, 1.5, np.nan, np.inf])), True)
    mode = str(rng.choice(["constant", "edge", "reflect"]))
    pads = rng.integers(0, 2, 2 * net.values[x].ndim)
    return net.node("Pad", [x, net.numbers(pads)] + ([value] if mode == "constant" else []), True, True, mode=mode)


def gather(net, rng):
    x = net.pick(test=lambda x: x.ndim > 0)
    if not x:
        return None
    axis = axis_of(net, rng, x)
    n = net.values[x].shape[axis]
    return net.node("Gather", [x, net.numbers(rng.integers(-n, n, 3))], True, True, axis=axis)


def expand(net, rng):
    x = net.pick()
    return x and net.node("Expand", [x, net.numbers([2] + [1] * net.values[x].ndim)], True, True)


def trilu(net, rng):
    x = net.pick(test=lambda x: x.ndim >= 2)
    return x and net.node("Trilu", [x], True, upper=int(rng.integers(2)))


def batch_norm(net, rng):
    x = net.pick(exact=True, test=lambda x: x.ndim >= 2)
    if not x:
        return None
    channels = [net.values[x].shape[1]]
    variance = net.leaf(rng.choice([0.5, 1, 2], channels).astype(np.float32), True)
    return net.node("BatchNormalization", [x] + [net.data(channels, True, 0) for _ in range(3)] + [variance])


def layer_norm(net, rng):
    x = net.pick(exact=True, test=lambda x: x.ndim >= 2)
    if not x:
        return None
    scale = net.data([net.values[x].shape[-1]], True, 0)
    return net.node("LayerNormalization", [x, scale], axis=-1)


def instance_norm(net, rng):
    x = net.pick(exact=True, test=image)
    if not x:
        return None
    channels = [net.values[x].shape[1]]
    return net.node("InstanceNormalization", [x, net.data(channels, True, 0), net.data(channels, True, 0)])


def convert(net, rng):
    x = net.pick(exact=True)
    kinds = [TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL]
    y = x and net.node("Cast", [x], to=int(rng.choice(kinds)))
    return y and net.node("Cast", [y], True, True, to=TensorProto.FLOAT)


def quantize(net, rng):
    x = net.pick(exact=True)
    if not x:
        return None
    zero = np.int8(rng.integers(-20, 20)) if rng.random() < 0.5 else np.uint8(rng.integers(100, 150))
    parameters = [net.leaf(np.float32(0.25), True), net.leaf(zero, True)]
    y = net.node("QuantizeLinear", [x] + parameters)
    return y and net.node("DequantizeLinear", [y] + parameters, True, True)


def resize(net, rng):
    x = net.pick(exact=True, test=lambda x: x.ndim == 4)
    if not x:
        return None
    scales = net.leaf(np.array([1, 1] + list(rng.choice([0.4, 0.7, 0.9, 1.3, 2.1, 3], 2)), np.float32), True)
    kind = str(rng.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]))
    mode = str(rng.choice(["nearest", "linear"]))
    return net.node("Resize", [x, "", scales], mode=mode, coordinate_transformation_mode=kind)


OPERATORS = [
    *[unary(op, True, True, True) for op in ("Abs", "Neg", "Relu", "Identity")],
    *[unary(op, True, True) for op in ("Floor", "Ceil", "Round", "Sign")],
    unary("LeakyRelu", True, True, True, alpha=0.25),
    unary("LeakyRelu", True, True, True, alpha=-0.5),
    unary("ThresholdedRelu", True, alpha=0.5),
    unary("HardSigmoid", True, alpha=0.25, beta=0.5),
    unary("Gelu", approximate="none"),
    unary("Gelu", approximate="tanh"),
    *[unary(op, stable=True) for op in ("Sigmoid", "Tanh")],
    *[unary(op) for op in ("Exp", "Log", "Sqrt", "Sin", "Cos", "Erf", "Softplus", "Softsign", "Elu", "Selu", "Celu")],
    *[unary(op) for op in ("HardSwish", "Mish", "Reciprocal")],
    *[binary(op, True, True) for op in ("Add", "Sub", "Mul")],
    *[binary(op, divides=True) for op in ("Div", "Pow")],
    *[many(op, True, True) for op in ("Max", "Min", "Max", "Min")],
    *[many(op, True) for op in ("Sum",)],
    *[many(op) for op in ("Mean",)],
    *[reduce(op, True, True) for op in ("ReduceMax", "ReduceMin", "ReduceMax", "ReduceMin")],
    *[reduce(op, True) for op in ("ReduceSum", "ReduceL1", "ReduceSumSquare")],
    *[reduce(op) for op in ("ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceProd")],
    *[with_axis(op) for op in ("Softmax", "LogSoftmax", "LpNormalization")],
    *[pool(op, True, True) for op in ("MaxPool", "MaxPool")],
    pool("AveragePool"),
    lambda net, rng: (x := net.pick(test=image)) and net.node("GlobalMaxPool", [x], True),
    lambda net, rng: (x := net.pick(exact=True, test=image)) and net.node("GlobalAveragePool", [x]),
    *[
        compare,
        compare,
        clip,
        clip,
        prelu,
        arg,
        top_k,
        cum_sum,
        conv,
        conv,
        matmul,
        matmul,
        transpose,
        reshape,
        slice_,
    ],
    *[concat, pad, gather, expand, trilu, batch_norm, layer_norm, instance_norm, convert, quantize, resize],
]


def network(name, seed, accepted):
    """Makes a network of two to seven operators."""
    rng = np.random.default_rng(seed)
    net = Net(name, rng, accepted)
    rank = int(rng.choice([1, 2, 2, 3, 4, 4]))
    net.data(
        [int(n) for n in rng.integers(1, 8, rank)] if rank < 4 else [1] + [int(n) for n in rng.integers(1, 7, 3)],
        False,
    )
    count = int(rng.integers(2, 8))
    for _ in range(8 * count):
        OPERATORS[rng.integers(len(OPERATORS))](net, rng)
        if len(net.nodes) >= count:
            break
    return net
