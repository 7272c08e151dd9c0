"""Builds random ONNX networks and computes all their values, for floats with NaN, infinities and signed zeros.

Each node runs alone in ONNX Runtime on the expected values of the nodes before it, so every value of a network is known.
RULES has the values and the reasons where Tilewright differs by intent. Data are small multiples of 1/2, so most
operators are exact. An operator that rounds is followed only by operators that do not amplify small differences.
"""

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

OPSET = 20

ort.set_default_logger_severity(4)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
NUMBERS = np.array([-3, -2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 3], np.float32)
LOWEST = np.finfo(np.float32).min


def model(nodes, inputs, constants, outputs, opset=OPSET):
    """Makes a model; inputs and constants are arrays by name."""
    types = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()
    ]
    constants = [numpy_helper.from_array(a, n) for n, a in constants.items()]
    outputs = [helper.make_empty_tensor_value_info(n) if isinstance(n, str) else n for n in outputs]
    graph = helper.make_graph(nodes, "random", types, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def run(file, inputs):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return ort.InferenceSession(file.SerializeToString(), options).run(None, inputs)


def alone(node, values, opset=OPSET):
    """Runs one node in ONNX Runtime."""
    inputs = {n: values[n] for n in node.input if n}
    return run(model([node], inputs, {}, list(node.output), opset), inputs)


def attribute(node, name, default):
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


# Rules for intended differences from ONNX Runtime. Each is a function of a node, its operands and ONNX Runtime's
# results; it returns the expected results and the reason, or None if ONNX Runtime's results are expected.


def reduced(node, operands, results):
    x = operands[0]
    if not np.isnan(x).any():
        return None
    axes = tuple(int(a) for a in operands[1]) if len(operands) > 1 else tuple(range(x.ndim))
    f = np.max if node.op_type == "ReduceMax" else np.min
    return [np.asarray(f(x, axis=axes, keepdims=bool(attribute(node, "keepdims", 1))))], "NaN if an element is NaN"


def summed(node, operands, results):
    x = operands[0]
    axes = tuple(int(a) for a in operands[1]) if len(operands) > 1 else tuple(range(x.ndim))
    none = np.isnan(x).any(axis=axes, keepdims=bool(attribute(node, "keepdims", 1)))
    if not none.any():
        return None
    return [np.where(none, np.float32(np.nan), results[0])], "NaN wherever one is reduced"


def pooled(node, operands, results):
    x, y = operands[0], results[0].copy()
    # Windows with a NaN, and windows of only -infinity, for which ONNX Runtime returns the lowest finite number.
    some = alone(node, {node.input[0]: np.isnan(x).astype(np.float32)})[0] > 0
    low = y == LOWEST
    if not (some.any() or low.any()):
        return None
    y[low], y[some] = -np.inf, np.nan
    return [y], "NaN if a window has one; -infinity for windows of only -infinity"


def placed(node, operands, results):
    x, axis = operands[0], attribute(node, "axis", 0)
    if not np.isnan(x).any():
        return None
    f = np.argmax if node.op_type == "ArgMax" else np.argmin
    if attribute(node, "select_last_index", 0):
        y = x.shape[axis] - 1 - f(np.flip(x, axis), axis)
    else:
        y = f(x, axis)
    y = np.expand_dims(y, axis) if attribute(node, "keepdims", 1) else y
    return [np.asarray(y, np.int64)], "the index of the NaN"


def sorted_first(node, operands, results):
    x, k, axis = operands[0], int(operands[1][0]), attribute(node, "axis", -1)
    if not np.isnan(x).any():
        return None
    order = np.where(np.isnan(x), 2.0, np.sign(np.where(np.isinf(x), x, 0))).astype(np.float64)
    number = np.where(np.isfinite(x), x, 0).astype(np.float64)
    sign = -1 if attribute(node, "largest", 1) else 1
    # NaN is above infinity; among equals the first counts.
    place = np.lexsort((sign * number, sign * order), axis=axis)
    place = np.take(place, range(k), axis=axis)
    return [np.take_along_axis(x, place, axis), place.astype(np.int64)], "a NaN is greater than every number"


def converted(node, operands, results):
    x, kind = operands[0], results[0].dtype
    if x.dtype != np.float32 or kind.kind not in "iu":
        return None
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    whole = np.trunc(np.where(np.isnan(x), 0, x).astype(np.float64))
    outside = ~np.isfinite(x) | (whole < least) | (whole > most)
    if not outside.any():
        return None
    held = np.where(whole >= most, most, np.where(whole <= least, least, 0))
    return [np.where(outside, held, results[0]).astype(kind)], "undefined in ONNX; Tilewright saturates, and NaN becomes 0"


def quantized(node, operands, results):
    x, zero, none = operands[0], operands[2], np.isnan(operands[0])
    if not none.any():
        return None
    return [
        np.where(none, zero, results[0])
    ], "NaN becomes the zero point; in ONNX Runtime it depends on the processor"


RULES = {
    "ReduceMax": reduced,
    "ReduceMin": reduced,
    "ReduceLogSumExp": summed,
    "MaxPool": pooled,
    "GlobalMaxPool": pooled,
    "ArgMax": placed,
    "ArgMin": placed,
    "TopK": sorted_first,
    "Cast": converted,
    "QuantizeLinear": quantized,
}


class Net:
    """A network under construction: its nodes, and every value by name."""

    def __init__(self, name, rng, accepted):
        self.name, self.rng, self.accepted = name, rng, accepted
        self.nodes, self.values, self.inputs, self.constants = [], {}, {}, {}
        self.exact, self.signed = set(), set()  # values that are exact; values whose zeros have a known sign

    def new(self):
        return f"{self.name}v{len(self.values)}"

    def leaf(self, array, constant=None):
        """Adds data, as an input or as a constant."""
        name, array = self.new(), np.asarray(array)
        constant = self.rng.random() < 0.3 if constant is None else constant
        (self.constants if constant else self.inputs)[name] = array
        self.values[name] = array
        self.exact.add(name)
        self.signed.add(name)
        return name

    def data(self, shape, constant=None, special=None):
        """Adds floats with no, few or many special values."""
        x = self.rng.choice(NUMBERS, shape)
        share = self.rng.choice([0.0, 0.05, 0.3]) if special is None else special
        chosen = self.rng.random(shape) < share
        return self.leaf(np.where(chosen, self.rng.choice(SPECIAL, shape), x).astype(np.float32), constant)

    def numbers(self, list):
        return self.leaf(np.array(list, np.int64), True)

    def pick(self, exact=False, signed=False, test=lambda x: True):
        """Returns a float value, preferably a recent one; None if none fits."""
        fit = [
            n
            for n, x in self.values.items()
            if x.dtype == np.float32
            and x.size > 1
            and (not exact or n in self.exact)
            and (not signed or n in self.signed)
            and test(x)
        ]
        if not fit:
            return None
        return fit[-1] if self.rng.random() < 0.6 else fit[self.rng.integers(len(fit))]

    def node(self, op, inputs, exact=False, signed=False, outputs=1, **attributes):
        """Adds a node and returns the names of its results; None if ONNX Runtime refuses it."""
        names = [f"{self.new()}{'abc'[i]}" for i in range(outputs)]
        node = helper.make_node(op, inputs, names, names[0], **attributes)
        try:
            results = alone(node, self.values)
        except Exception:
            return None
        if any(r.size == 0 or r.size > 5000 for r in results):
            return None
        rule = RULES.get(op)
        other = rule and rule(node, [self.values[n] for n in inputs], results)
        if other:
            results, reason = other
            self.accepted[(op, reason)] += 1
        floats = [self.values[n] for n in inputs if n and self.values[n].dtype == np.float32]
        exact = exact and all(n in self.exact for n in inputs if n)
        signed = signed and all(n in self.signed for n in inputs if n)
        for name, result in zip(names, results):
            self.values[name] = result
            small = result.dtype != np.float32 or not (np.abs(result[np.isfinite(result)]) > 2**16).any()
            if exact and small:
                self.exact.add(name)
            if signed:
                self.signed.add(name)
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def outputs(self):
        """Returns the values that no node reads."""
        read = {n for node in self.nodes for n in node.input}
        return [n for node in self.nodes for n in node.output if n not in read]
