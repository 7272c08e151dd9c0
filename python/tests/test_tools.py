"""`tune`, `schedule`, `zoo`, `synth` and `targets`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import tilewright as tw
from common import FLOAT, LENET, Case, sample


class Tools(Case):
    def test_plans_are_searched_and_used(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "lenet.jsonl")
            found = tw.tune(LENET, log, trials=20, hw="1x8x8", tuned="none")
            self.assertEqual(found.log, str(log))
            assert found.cycles is not None and found.cycles_before is not None
            self.assertLessEqual(found.cycles, found.cycles_before)
            self.assertIsNone(found.ns)
            self.assertGreaterEqual(found["trials"], 1)
            self.assertIn("<th>gain</th>", found._repr_html_())
            tuned = tw.compile(LENET, hw="1x8x8", opt_level=3, tuned=log).session("csim").report(sample())
            self.assertEqual(tuned["cycles"], found.cycles)
            self.refused(tw.InputError, "number of trials", tw.tune, LENET, log)
            self.refused(tw.InputError, "above 0", tw.tune, LENET, log, seconds=-1)

    def test_code_of_the_cpu_is_searched_and_used(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "cpu.jsonl")
            told: list[str] = []
            tell = lambda what, done, all: told.append(f"{what} {done} {all}")
            found = tw.tune(FLOAT, log, device="cpu", trials=3, tuned="none", progress=tell)
            self.assertEqual(len(log.read_text().splitlines()) >= 3, True)
            assert found.ns is not None and found.ns_before is not None
            self.assertLessEqual(found.ns, found.ns_before)
            self.assertGreater(found.ns, 0)
            self.assertIsNone(found.cycles)
            self.assertIn("<th>ns_before</th>", found._repr_html_())
            self.assertEqual(told[-1], "trials on the CPU 3 3")
            plain = tw.compile(FLOAT, offload="none", tuned="none").session().run(sample())[0]
            tuned = tw.compile(FLOAT, offload="none", opt_level=3, tuned=log).session().run(sample())[0]
            np.testing.assert_allclose(tuned, plain, atol=1e-4)
        self.refused(tw.InputError, "device=\"gpu\" is not possible; use csim, cpu", tw.tune, LENET, "x", trials=1, device="gpu")

    def test_a_schedule_is_edited_and_given_back(self) -> None:
        found = tw.schedule(LENET, hw="1x8x8")
        self.assertGreater(len(found), 3)
        layer, text = next(iter(found.items()))
        self.assertIn("schedule", text)
        self.refused(tw.NotFoundError, "no layer is named nothing; there are:", found.__getitem__, "nothing")
        plain = tw.compile(LENET, hw="1x8x8").session("csim").report(sample())
        with tempfile.TemporaryDirectory() as folder:
            found.write(folder)
            same = tw.compile(LENET, hw="1x8x8", schedules=folder).session("csim").report(sample())
            self.assertEqual(same["cycles"], plain["cycles"])
            found[layer] = text + "\n  split nothing\n"
            found.write(folder)
            self.refused(tw.ModelError, ".te", tw.compile, LENET, hw="1x8x8", schedules=folder)

    def test_the_zoo_is_listed_and_makes_networks(self) -> None:
        networks = tw.zoo()
        self.assertIn("zoo:lenet-int8", [network["name"] for network in networks])
        (lenet,) = tw.zoo("lenet-int8")
        self.assertTrue(Path(lenet["file"]).exists())
        self.assertIn("zoo:lenet-int8", networks._repr_html_())
        self.refused(tw.NotFoundError, "the zoo has no network nothing", tw.zoo, "nothing")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "layer.onnx")
            tw.make_network("resnet18-c11", path)
            self.assertGreater(len(tw.Graph.load(path).nodes), 0)
            self.refused(tw.NotFoundError, "nothing", tw.make_network, "nothing", path)

    def test_targets_and_boards_are_listed(self) -> None:
        self.assertIn("csim", str(tw.targets()))
        self.assertIn("<pre>", tw.targets()._repr_html_())
        names = [board["name"] for board in tw.boards()]
        self.assertIn("icebreaker", names)
        self.refused(tw.InputError, "nothing", tw.synth, "nothing")
        self.refused(tw.InputError, "MHz", tw.synth, "icebreaker", mhz=-1)
