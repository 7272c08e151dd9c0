"""Building graphs with a function for each operator."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import tilewright as tw
import write_ops
from common import LENET, Case, sample

SQUARES = """te squares {
  input x: f32[4]
  output y: f32[i in 4] = x[i] * x[i]
}
"""

# An index behind the end reads the last element.
SUMS = """te sums {
  input x: f32[4]
  output total: f32[i in 1] = sum(k in 4) x[k]
  output sums: f32[i in 4] = x[i] + x[i + 1]
}
"""


class Networks(Case):
    def test_the_module_is_written_from_the_signatures(self) -> None:
        path = Path(str(tw.ops.__file__))
        self.assertEqual(path.read_text(), write_ops.text(), "run: python write_ops.py > ../tilewright/ops.py")

    def test_a_network_is_built_and_runs_on_the_accelerator(self) -> None:
        rng = np.random.default_rng(1)
        b = tw.GraphBuilder("net")
        x = b.input("x", "i8", (1, 8, 8, 8))
        w = rng.integers(-8, 8, (8, 3, 3, 8), "i1")
        y = tw.conv2d(x, w, pads=[1, 1, 1, 1], name="c1")
        self.assertEqual((y.dtype, y.shape), ("i32", (1, 8, 8, 8)))
        scale = [np.full(8, value, "i4") for value in (3, (1 << 31) - 1, -5)]
        b.output("y", tw.requantize(y, *scale, axis=3, name="q"))
        graph = b.finish()
        image = rng.integers(-8, 8, (1, 8, 8, 8), "i1")
        (want,) = graph.evaluate(image)
        report = tw.compile(graph, hw="1x8x8").session("fsim").report(image)
        self.assertEqual([step["place"] for step in report["steps"]], ["accel"])
        (got,) = report["outputs"]
        np.testing.assert_array_equal(got, want)
        # By another way: correlate with NumPy.
        padded = np.pad(image[0].astype("i4"), ((1, 1), (1, 1), (0, 0)))
        sums = sum(padded[i : i + 8, j : j + 8] @ w[:, i, j].T.astype("i4") for i in range(3) for j in range(3))
        assert not isinstance(sums, int)
        # A multiplier of 1 - 2^-31 and a shift of -5 divide by 32; halves round away from zero.
        sums = sums + 3
        np.testing.assert_array_equal(want[0], np.clip(np.sign(sums) * ((abs(sums) + 16) >> 5), -128, 127))

    def test_what_does_not_fit_is_named_at_once(self) -> None:
        b = tw.GraphBuilder("net")
        x = b.input("x", "f32", (1, 8, 8, 3))
        self.refused(tw.GraphError, "c1", tw.conv2d, x, np.zeros((4, 3, 3, 8), "f4"), name="c1")
        self.refused(tw.GraphError, "conv2d", tw.conv2d, x, np.zeros((4, 3, 3, 8), "f4"))
        self.refused(tw.GraphError, "add: all operands are arrays", tw.add, np.zeros(3, "f4"), np.zeros(3, "f4"))
        self.refused(tw.GraphError, "strides", tw.conv2d, x, np.zeros((4, 3, 3, 3), "f4"), strides="two")
        other = tw.GraphBuilder("other").input("x", "f32", (3,))
        self.refused(tw.GraphError, "another builder", tw.add, x, other)

    def test_an_expression_is_a_node(self) -> None:
        b = tw.GraphBuilder("net")
        x = b.input("x", "f32", (4,))
        y = tw.compute(SQUARES, tw.relu(x))
        assert isinstance(y, tw.BuilderValue)
        self.assertEqual((y.dtype, y.shape), ("f32", (4,)))
        b.output("y", tw.add(y, np.ones(4, "f4")))
        values = np.array([-1, 2, 3, 0.5], "f4")
        graph = b.finish()
        (got,) = tw.compile(graph, offload="none").session().run(values)
        np.testing.assert_array_equal(got, np.maximum(values, 0) ** 2 + 1)
        # It is no function of this process: the artifact has its code, and the graph its text.
        self.assertEqual([node.op for node in graph.nodes if node.op != "constant"], ["relu", "compute", "add"])
        self.assertEqual(tw.Graph.parse(str(graph)), graph)
        b = tw.GraphBuilder("net")
        x = b.input("x", "f32", (4,))
        both = tw.compute(SUMS, x, name="sums")
        assert isinstance(both, list)
        total, sums = both
        b.output("total", total)
        b.output("sums", sums)
        session = tw.compile(b.finish(), offload="none").session()
        np.testing.assert_array_equal(session.run(values)[0], [sum(values)])
        np.testing.assert_array_equal(session.run(values)[1], [1, 5, 3.5, 1])
        b = tw.GraphBuilder("net")
        wrong = b.input("x", "f32", (5,))
        self.refused(tw.InputError, "input x is f32 [5], but the expression has f32 [4]", tw.compute, SQUARES, wrong)
        self.refused(tw.InputError, "this is no tensor expression", tw.compute, "te x {", wrong)

    def test_a_module_of_pytorch_goes_through_onnx(self) -> None:
        class Module:
            training = True

            def eval(self) -> None:
                self.training = False

            def train(self, mode: bool) -> None:
                self.training = mode

        def export(module: Module, example: tuple[Any, ...], path: str) -> None:
            assert not module.training
            assert example[0].shape == (1, 1, 28, 28)
            Path(path).write_bytes(LENET.read_bytes())

        torch: Any = types.ModuleType("torch")
        torch.onnx = types.SimpleNamespace(export=export)
        with mock.patch.dict(sys.modules, {"torch": torch}):
            module = Module()
            self.assertEqual(tw.from_torch(module, sample()), tw.Graph.load(LENET))
            self.assertTrue(module.training)
        with mock.patch.dict(sys.modules, {"torch": None}):
            self.refused(ImportError, "pip install torch", tw.from_torch, Module(), sample())
