"""`bench`, `profile`, `diff`, `bisect` and `quantize`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tilewright as tw
from common import FLOAT, LENET, Case, lenet, sample



class Stop(Exception):
    """What the test raises."""


class Examine(Case):
    def test_bench_has_a_column_for_each_device(self) -> None:
        told: list[tuple[str, int, int]] = []
        found = tw.bench(
            LENET,
            devices=["csim", "cpu", "cuda"],
            hw=["1x8x8", tw.Config("1x16x16")],
            inputs=sample(),
            warm_up=0,
            repetitions=1,
            progress=lambda *at: told.append(at),
        )
        self.assertEqual(set(found.devices), {"csim@1x8x8", "csim@1x16x16", "cpu", "cuda"})
        self.assertTrue(found.agrees)
        cycles = lenet().session("csim").report(sample())["cycles"]
        on_accel = [layer["devices"].get("csim@1x8x8", {}).get("cycles") for layer in found.layers]
        self.assertEqual(sum(n for n in on_accel if n is not None), cycles)
        for device in ("csim@1x8x8", "cpu"):
            latency = found.latency_ms(device)
            assert latency is not None
            self.assertGreater(latency, 0)
        self.assertEqual(json.loads(found.to_json()), found.to_dict())
        self.assertIn("csim@1x8x8", str(found))
        self.assertIn("<td>csim@1x8x8</td>", found._repr_html_())
        self.assertIn("csim,1x8x8", found.to_csv())
        self.assertTrue(told)
        self.refused(tw.InputError, "no device is named tpu", tw.bench, LENET, devices="tpu")
        self.refused(tw.InputError, "is given twice", tw.bench, LENET, devices=["cpu", "cpu"])
        self.refused(tw.InputError, "repetitions=0", tw.bench, LENET, repetitions=0)
        self.refused(tw.ModelError, "cannot read /nothing.onnx", tw.bench, "/nothing.onnx")

        def stop(*at: Any) -> None:
            raise Stop

        self.refused(Stop, "", tw.bench, LENET, devices="cpu", repetitions=1, progress=stop)

    def test_a_profile_is_a_page(self) -> None:
        found = tw.profile(LENET, hw="1x8x8", inputs=sample(), warm_up=0, repetitions=1)
        self.assertEqual(found.cycles, lenet().session("csim").report(sample())["cycles"])
        self.assertIn("</html>", found.html())
        self.assertTrue(found._repr_html_().startswith("<iframe"))
        self.assertIn("traceEvents", found.trace())
        with tempfile.TemporaryDirectory() as folder:
            found.save(Path(folder, "lenet.html"))
            self.assertEqual(json.loads(Path(folder, "lenet.json").read_text()), found.to_dict())
        self.refused(tw.InputError, "fsim does not report cycles", tw.profile, LENET, device="fsim")

    def test_two_devices_are_compared(self) -> None:
        found = tw.diff(LENET, a="fsim", b="cpu", hw="1x8x8", inputs=sample())
        self.assertTrue(found.equal)
        self.assertIsNone(found.first)
        self.assertIn("equal", str(found))
        kept = tw.compile(LENET, hw="1x8x8", keep_values=True)
        self.assertTrue(tw.diff(kept, a="fsim", b="csim", inputs={"input": sample()}).equal)
        graph = tw.Graph.load(LENET)
        self.assertTrue(tw.diff(graph, hw="1x8x8", inputs=sample()).equal)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "x.npz")
            (name,) = graph.outputs
            self.assertEqual(name, "logits")
            np.savez(path, logits=np.zeros((1, 10), "f4"))
            other = tw.diff(LENET, b=f"npz:{path}", hw="1x8x8", inputs=sample())
        self.assertFalse(other.equal)
        assert other.first is not None
        self.assertTrue(other.first["name"].startswith(name))
        self.assertEqual(other.first["b"], 0)
        self.assertIn("<th>index</th>", other._repr_html_())
        self.refused(tw.InputError, "--a cpu cannot run it", tw.diff, lenet(), a="cpu", b="fsim")
        self.refused(tw.InputError, "is not a tolerance", tw.diff, LENET, tolerance="x")
        self.refused(tw.InputError, "has no input image", tw.diff, LENET, inputs={"image": sample()})
        self.refused(TypeError, "not int", tw.diff, LENET, inputs=3)

    def test_bisection_finds_a_pass_of_the_program(self) -> None:
        self.assertIsNone(tw.bisect(FLOAT, inputs=sample()).suspect)

        @tw.add_pass("twice_too_much", after="canonicalize")
        def twice(graph: tw.Graph) -> tw.Graph:
            def change(builder: tw.GraphBuilder, node: tw.Node, inputs: list[tw.BuilderValue]) -> Any:
                return builder.node("add", inputs[0], inputs[0]) if node.op == "clip" else None

            return graph.rewrite(change)

        self.addCleanup(tw.remove_pass, "twice_too_much")
        found = tw.bisect(FLOAT, inputs=sample())
        assert found.suspect is not None
        self.assertEqual(found.suspect["pass"], "twice_too_much")
        self.assertIn("pass twice_too_much", str(found))

    def test_a_model_is_quantized_with_arrays(self) -> None:
        rng = np.random.default_rng(1)
        samples = np.concatenate([sample()] + [sample() * rng.uniform(0.5, 1) for _ in range(7)]).astype("f4")
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder, "int8.onnx")
            found = tw.quantize(FLOAT, output, calibrate=samples, method="min-max", eval=samples, labels=np.full(8, 6))
            self.assertEqual(found.output, str(output))
            self.assertEqual(found["samples"], 8)
            self.assertGreater(found["output_sqnr_db"][0], 10)
            self.assertIsNotNone(found["accuracy_quantized"])
            self.assertIn("<th>sqnr_db</th>", found._repr_html_())
            (logits,) = tw.compile(output, hw="1x8x8").session("csim").run(sample())
            self.assertEqual(int(logits.argmax()), 6)
            wrong = np.zeros((4, 3, 3), "f4")
            self.refused(tw.InputError, "the samples", tw.quantize, FLOAT, output, calibrate=wrong)
            self.refused(tw.InputError, "use .onnx", tw.quantize, FLOAT, Path(folder, "x.txt"), calibrate=samples)
            self.refused(tw.InputError, "use 7 or 8", tw.quantize, FLOAT, output, calibrate=samples, weights=4)
