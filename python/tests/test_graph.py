"""Graphs, passes in Python, and steps that call functions in Python."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import tilewright as tw
from common import LENET, Case, expected, lenet, sample


def network() -> tw.Graph:
    """relu(x) - w."""
    b = tw.GraphBuilder("net")
    x = b.input("x", "f32", (2, 3))
    w = b.constant("w", np.arange(3, dtype="f4"))
    b.output("y", b.node("binary", b.node("relu", x, name="act"), w, name="sum", kind="sub"))
    return b.finish()


X = np.array([[-1, 2, -3], [4, -5, 6]], "f4")
Y = np.maximum(X, 0) - np.arange(3, dtype="f4")


class Graphs(Case):
    def test_a_graph_is_walked(self) -> None:
        graph = network()
        self.assertEqual((graph.name, list(graph.inputs), list(graph.outputs)), ("net", ["x"], ["y"]))
        self.assertEqual([(node.name, node.op) for node in graph.nodes], [("w", "constant"), ("act", "relu"), ("sum", "binary")])
        node = graph.node("sum")
        self.assertEqual(node.attrs["kind"], "sub")
        first, second = node.inputs
        self.assertEqual((first.dtype, first.shape, first.constant), ("f32", (2, 3), None))
        np.testing.assert_array_equal(second.constant, np.arange(3))
        assert first.node is not None
        self.assertEqual((first.node.name, [user.name for user in first.users]), ("act", ["sum"]))
        self.assertIsNone(graph.inputs["x"].node)
        self.assertIn("<td>relu</td>", graph._repr_html_())
        self.refused(tw.NotFoundError, "the graph net has no node nothing", graph.node, "nothing")

    def test_the_text_form_is_read_back(self) -> None:
        self.assertEqual(tw.Graph.parse(str(network())), network())
        graph = tw.Graph.load(LENET)
        text = str(graph)
        self.assertTrue(graph.to_text().startswith(text))
        self.assertEqual(tw.Graph.from_text(graph.to_text()), graph)
        form = graph.to_json()
        constants = {name: bytes.fromhex(data) for name, data in form["constants"].items()}
        self.assertEqual(tw.Graph.parse(text, constants), graph)
        self.assertNotEqual(graph, network())
        self.refused(tw.GraphError, "blob", tw.Graph.parse, text)
        self.refused(tw.GraphError, "line 2, column ", tw.Graph.parse, 'graph "x" {\n  nothing\n}')

    def test_all_objects_have_a_text_and_a_json_form(self) -> None:
        schedule = next(iter(tw.schedule(LENET, hw="1x8x8").values()))
        expression = "te y {\n  input x: i8[4]\n  output y: i32[i in 4] = i32(x[i])\n}\n"
        objects: list[Any] = [
            tw.Graph.load(LENET),
            tw.Config("1x8x8"),
            tw.manifest(lenet()),
            tw.ScheduleFile.from_text(schedule),
            tw.Expression.from_text(expression),
        ]
        for item in objects:
            with self.subTest(kind=type(item).__name__):
                kind = type(item)
                self.assertEqual(kind.from_text(item.to_text()), item)
                self.assertEqual(kind.from_json(item.to_json()), item)
                self.assertEqual(kind.from_json(json.dumps(item.to_json())), item)
                with self.assertRaises(tw.Error):
                    kind.from_text("{")
                with self.assertRaises(tw.Error):
                    kind.from_json("{")
                with self.assertRaises(tw.Error):
                    kind.from_json({"nothing": 1})

    def test_a_graph_is_computed_and_compiled(self) -> None:
        np.testing.assert_array_equal(network().evaluate(X)[0], Y)
        self.refused(tw.InputError, "x", network().evaluate, X[:1])
        np.testing.assert_array_equal(tw.compile(network()).session().run(X)[0], Y)
        (logits,) = tw.Graph.load(LENET).evaluate(sample())
        np.testing.assert_allclose(logits, expected(), atol=0.066)

    def test_a_graph_is_rewritten_and_verified(self) -> None:
        def clipped(b: tw.GraphBuilder, node: tw.Node, inputs: list[tw.BuilderValue]) -> tw.BuilderValue | None:
            return b.node("clip", *inputs, name=node.name, lo=0.0, hi=4.5) if node.op == "relu" else None

        graph = network().rewrite(clipped)
        self.assertEqual(graph.node("act").attrs, {"lo": 0.0, "hi": 4.5})
        np.testing.assert_array_equal(graph.evaluate(X)[0], np.clip(X, 0, 4.5) - np.arange(3))
        self.assertEqual(network().rewrite(lambda b, node, inputs: None), network())
        wrong = network().rewrite
        self.refused(tw.GraphError, "node `act` (clip)", wrong, lambda b, node, inputs: b.node("clip", name="act", lo=0.0, hi=1.0))
        self.refused(tw.GraphError, "0 values were returned for node act", wrong, lambda b, node, inputs: [])
        self.refused(TypeError, "a value of the builder is expected, not int", wrong, lambda b, node, inputs: [3])
        other = tw.GraphBuilder("other").input("x", "f32", ())
        self.refused(tw.GraphError, "of another builder", wrong, lambda b, node, inputs: other)

    def test_what_cannot_be_built_is_refused(self) -> None:
        b = tw.GraphBuilder("net")
        x = b.input("x", "f32", ("n", 3))
        self.assertEqual(x.shape, ("n", 3))
        self.refused(tw.GraphError, "there is no operator `convolve`", b.node, "convolve", x)
        self.refused(tw.GraphError, "attribute `hi` is missing", b.node, "clip", x, lo=0.0)
        self.refused(tw.GraphError, "`relu` has no attribute `by`", b.node, "relu", x, by=1)
        self.refused(tw.InputError, "no element type is named float", b.input, "y", "float", ())
        self.refused(tw.GraphError, "the graph has no output", b.finish)
        self.refused(tw.GraphError, "the graph is finished", b.input, "y", "f32", ())


class Steps(Case):
    def test_a_model_calls_a_function_in_python(self) -> None:
        calls: list[Any] = []

        def scaled(x: Any, attrs: dict[str, Any]) -> Any:
            calls.append(attrs)
            if x.max() > 100:
                raise OverflowError("too much")
            return x * np.float32(attrs["by"])

        tw.register("test.scaled", scaled)
        self.addCleanup(tw.unregister, "test.scaled")
        b = tw.GraphBuilder("net")
        x = b.input("x", "f32", (2, 3))
        (y,) = b.packed("test.scaled", b.node("relu", x), types=[("f32", (2, 3))], by=2.5)
        b.output("y", b.node("relu", y))
        graph = b.finish()
        wanted = np.maximum(X, 0) * np.float32(2.5)
        np.testing.assert_array_equal(graph.evaluate(X)[0], wanted)
        session = tw.compile(graph).session()
        np.testing.assert_array_equal(session.run(X)[0], wanted)
        self.assertEqual(calls[-1], {"by": 2.5})
        self.refused(tw.CallError, "test.scaled: OverflowError: too much", session.run, X * 1000)
        np.testing.assert_array_equal(session.run(X)[0], wanted)


class Passes(Case):
    def test_a_pass_runs_between_ours(self) -> None:
        seen: list[int] = []

        @tw.add_pass("test.count", after="fold_constants")
        def count(graph: tw.Graph) -> None:
            seen.append(len(graph.nodes))

        self.addCleanup(tw.remove_pass, "test.count")
        self.assertEqual(tw.passes(2)[tw.passes(2).index("test.count") - 1], "fold_constants")
        self.assertNotIn("test.count", tw.passes(0))
        dumped: list[str] = []
        artifact = tw.compile(LENET, hw="1x8x8", dump_ir=lambda name, _: dumped.append(name))
        self.assertEqual(len(seen), 1)
        self.assertIn("test.count", dumped)
        np.testing.assert_array_equal(artifact.session().run(sample())[0], lenet().session().run(sample())[0])

    def test_a_pass_changes_the_graph(self) -> None:
        def leaky(b: tw.GraphBuilder, node: tw.Node, inputs: list[tw.BuilderValue]) -> tw.BuilderValue | None:
            return b.node("clip", *inputs, name=node.name, lo=-1.0, hi=5.0) if node.op == "clip" else None

        # Canonical forms have no relu.
        tw.add_pass("test.leaky", after="canonicalize", exact=False)(lambda graph: graph.rewrite(leaky))
        try:
            artifact = tw.compile(network())
        finally:
            tw.remove_pass("test.leaky")
        np.testing.assert_array_equal(artifact.session().run(X)[0], np.clip(X, -1, 5) - np.arange(3, dtype="f4"))

    def test_a_pass_that_fails_is_named(self) -> None:
        def compiled(change: Any) -> Any:
            tw.add_pass("test.fails", after="dead_code")(change)
            try:
                return tw.compile(LENET)
            finally:
                tw.remove_pass("test.fails")

        def broken(graph: tw.Graph) -> None:
            raise RuntimeError("no idea")

        error = self.refused(tw.PassError, "pass `test.fails`: RuntimeError: no idea", compiled, broken)
        self.assertIn(str(LENET), str(error))
        self.assertIsInstance(error.__cause__, RuntimeError)
        text = "pass `test.fails`: TypeError: a pass returns a Graph or None, not int"
        self.refused(tw.PassError, text, compiled, lambda graph: 3)
        text = "pass `test.fails` changed the inputs or outputs from (input: f32[1,1,28,28])"
        self.refused(tw.PassError, text, compiled, lambda graph: network())
        self.refused(tw.NotFoundError, "test.fails", tw.remove_pass, "test.fails")
        late = tw.add_pass("test.late", after="folding")
        self.refused(tw.InputError, "there is no pass folding after which test.late could run; there are ", late, broken)
