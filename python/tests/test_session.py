"""Artifacts, sessions and devices."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tilewright as tw
from common import LENET, Case, blocked, expected, lenet, sample


NAMES = ["close", "inputs", "outputs", "report", "run", "specialize", "specialized", "submit", "time"]


class Artifacts(Case):
    def test_an_artifact_is_saved_and_loaded(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "lenet.twa")
            lenet().save(path)
            self.assertEqual(path.read_bytes(), lenet().to_bytes())
            loaded = tw.load(path)
            self.refused(tw.ArtifactError, "No such file or directory", lenet().save, Path(folder, "none", "x"))
        again = tw.Artifact.from_bytes(loaded.to_bytes())
        for artifact in (lenet(), loaded, again):
            self.assertEqual(artifact.inputs, [{"name": "input", "dtype": "f32", "shape": [1, 1, 28, 28]}])
            self.assertEqual(artifact.outputs[0]["shape"], [1, 10])
            self.assertEqual(artifact.config, tw.Config("1x8x8"))
            self.assertEqual(artifact.kind, "artifact")
            self.assertEqual(len(artifact.steps), len(artifact.manifest["steps"]))
        self.refused(tw.ArtifactError, f"{LENET} is not a Tilewright artifact", tw.load, LENET)
        self.refused(tw.ArtifactError, "artifact", tw.Artifact.from_bytes, loaded.to_bytes()[:1000])

    def test_options_of_compile_are_checked(self) -> None:
        self.refused(tw.NotFoundError, "the zoo has no network nothing; it has lenet", tw.compile, "zoo:nothing")
        self.refused(tw.ModelError, "cannot read /nothing.onnx", tw.compile, "/nothing.onnx")
        self.refused(TypeError, "not int", tw.compile, 3)
        self.refused(tw.InputError, "opt_level=4 is not possible", tw.compile, LENET, opt_level=4)
        self.refused(tw.InputError, "offload=\"most\" is not possible; use all, auto, none", tw.compile, LENET, offload="most")
        self.refused(tw.InputError, "the size 0 is not a whole number above 0", tw.compile, LENET, bind={"n": 0})
        self.refused(tw.ConfigError, "no configuration is named 9x9", tw.compile, LENET, hw="9x9")

    def test_graphs_are_dumped_after_each_pass(self) -> None:
        passes: list[str] = []
        tw.compile(LENET, hw="1x8x8", dump_ir=lambda name, text: passes.append(f"{name}: {text[:5]}"))
        self.assertEqual(passes[0], "import: graph")
        self.assertIn("legalize_qdq: graph", passes)

        def stop(name: str, text: str) -> None:
            raise RuntimeError("enough")

        self.refused(RuntimeError, "enough", tw.compile, LENET, dump_ir=stop)


class Sessions(Case):
    def setUp(self) -> None:
        self.session = lenet().session("csim")

    def test_a_network_answers_as_another_program(self) -> None:
        (logits,) = self.session.run(sample())
        np.testing.assert_allclose(logits, expected(), atol=0.066)
        (named,) = self.session.run(input=sample())
        np.testing.assert_array_equal(named, logits)
        (cpu,) = tw.compile(LENET, offload="none").session().run(sample())
        np.testing.assert_array_equal(cpu, logits)
        logits += 1

    def test_outputs_are_written_to_the_callers_memory(self) -> None:
        out = np.empty((1, 10), "f4")
        (same,) = self.session.run(sample(), out=out)
        self.assertIs(same, out)
        np.testing.assert_array_equal(out, self.session.run(sample())[0])
        self.assertIs(self.session.run(sample(), out=[out])[0], out)
        run = self.session.run
        self.refused(tw.InputError, "output logits is for f64 1x10", run, sample(), out=np.empty((1, 10)))
        self.refused(tw.InputError, "memory for 2 outputs given", run, sample(), out=[out, out.copy()])
        self.refused(tw.InputError, "memory for 0 outputs given", run, sample(), out=[])
        out.flags.writeable = False
        self.refused(tw.InputError, "output logits cannot be written", run, sample(), out=out)
        image = sample()
        overlapping = image.reshape(-1)[:10].reshape(1, 10)
        self.refused(tw.InputError, "overlaps", run, image, out=overlapping)

    def test_a_wrong_array_is_refused_by_name(self) -> None:
        run, x = self.session.run, sample()
        self.refused(tw.InputError, "input input is f64, but the model expects f32", run, x.astype("f8"))
        self.refused(tw.InputError, "input input has shape 1x28x28, but the model expects 1x1x28x28", run, x[0])
        text = "input input (f32 1x1x28x28): the array is float32 1x1x28x14: the tensor of shape 1x1x28x14 has strides"
        self.refused(tw.InputError, text, run, x[..., ::2])
        packed = np.zeros((1, 1, 28, 28), [("pixel", "f4"), ("flag", "i1")])["pixel"]
        self.refused(tw.InputError, "a stride of 5 bytes, which is not a whole number of elements", run, packed)
        self.refused(tw.InputError, "big-endian", run, x.astype(">f4"))
        self.refused(tw.InputError, "has strides", run, x[..., ::-1])
        self.refused(tw.InputError, "input input is bool, but", run, x > 0)
        self.refused(tw.InputError, "its elements are |O", run, x.astype(object))
        self.refused(tw.InputError, "input input (f32 1x1x28x28): list: this is no array", run, [1, 2])
        self.refused(tw.InputError, "input input (f32 1x1x28x28) is missing", run)
        self.refused(tw.InputError, "2 arrays given, but the model has 1 inputs", run, x, x)
        self.refused(tw.InputError, "the model has no input image; it has input", run, image=x)
        self.refused(tw.InputError, "input input is given twice", run, x, input=x)

    def test_a_report_says_what_steps_took(self) -> None:
        report = self.session.report(sample())
        np.testing.assert_array_equal(report["outputs"][0], self.session.run(sample())[0])
        cycles = report["cycles"]
        assert cycles is not None
        self.assertGreater(cycles, 10_000)
        self.assertEqual([step["name"] for step in report["steps"]], lenet().steps)
        self.assertIsNone(lenet().session("fsim").report(sample())["cycles"])

    def test_frames_are_submitted_and_waited_for(self) -> None:
        waits = [self.session.submit(sample()) for _ in range(3)]
        for wait in waits:
            np.testing.assert_array_equal(wait()[0], self.session.run(sample())[0])
        self.refused(tw.CallError, "waited for already", waits[0])

    def test_runs_are_timed(self) -> None:
        times = self.session.time(3, sample())
        self.assertEqual((times["seconds"].shape, times["cycles"]), ((3,), self.session.report(sample())["cycles"]))
        self.assertGreater(times["seconds"].min(), 0)
        self.refused(tw.CallError, "0 runs cannot be timed", self.session.time, 0, sample())
        self.refused(tw.InputError, "input input (f32 1x1x28x28) is missing", self.session.time, 1)

    def test_a_closed_session_refuses_every_call_and_gives_its_memory_back(self) -> None:
        device = tw.device("csim", hw="1x8x8")
        free = device.free_bytes()
        with lenet().session(device) as session:
            self.assertLess(device.free_bytes(), free)
            wait, run = session.submit(sample()), session.function("run")
            (wanted,) = session.run(sample())
            self.assertFalse(session.closed)
        self.assertEqual(device.free_bytes(), free)
        self.assertTrue(session.closed)
        # A frame that was submitted before is finished.
        np.testing.assert_array_equal(wait()[0], wanted)
        text = "this session is closed; open another one"
        shape = [1, 1, 28, 28]
        arguments: dict[str, tuple[Any, ...]] = {"run": (sample(),), "report": (sample(),), "submit": (sample(),)}
        arguments |= {"time": (1, sample()), "specialize": (shape,), "specialized": ()}
        for name, given in arguments.items():
            self.refused(tw.ClosedError, text, getattr(session, name), *given)
            self.refused(tw.ClosedError, text, session.function(name), *given)
        for name in ("inputs", "outputs"):
            self.refused(tw.ClosedError, text, getattr, session, name)
        self.refused(tw.ClosedError, text, run, sample())
        self.refused(tw.ClosedError, text, session.run, sample(), out=np.empty((1, 10), "f4"))
        self.assertEqual(set(arguments) | {"inputs", "outputs", "close"}, set(session.functions()))
        session.close()
        # The device goes on.
        np.testing.assert_array_equal(lenet().session(device).run(sample())[0], wanted)

    def test_a_session_that_runs_is_neither_run_by_another_thread_nor_closed(self) -> None:
        with blocked() as (artifact, entered, leave):
            session = artifact.session()
            results: list[Any] = []
            thread = threading.Thread(target=lambda: results.extend(session.run(np.arange(4, dtype="i1"))))
            thread.start()
            self.assertTrue(entered.wait(20))
            text = "another thread runs this session, or this call is made by a function that it runs; open a session for each"
            self.refused(tw.BusyError, text, session.run, np.zeros(4, "i1"))
            self.refused(tw.BusyError, text, session.report, np.zeros(4, "i1"))
            self.refused(tw.BusyError, text, session.close)
            self.assertFalse(session.closed)
            leave.set()
            thread.join()
        np.testing.assert_array_equal(results, [[0, 1, 2, 3]])
        session.close()
        self.refused(tw.ClosedError, "closed", session.run, np.zeros(4, "i1"))

    def test_modules_have_their_functions_as_attributes(self) -> None:
        self.assertEqual(self.session.functions(), NAMES)
        self.assertEqual(self.session.inputs, lenet().inputs)
        self.assertEqual(self.session.function("outputs")(), lenet().outputs)
        self.refused(AttributeError, "is named nothing; there are: close, inputs", getattr, self.session, "nothing")
        self.refused(tw.NotFoundError, "is named nothing", self.session.function, "nothing")

    def test_sessions_share_a_device(self) -> None:
        device = tw.device("csim", hw="1x8x8")
        self.assertEqual((device.kind, device.name), ("device", "csim"))
        before = device.free_bytes()
        sessions = [lenet().session(device) for _ in range(2)]
        self.assertLess(device.free_bytes(), before)
        first, second = [session.run(sample())[0] for session in sessions]
        np.testing.assert_array_equal(first, second)
        address = device.alloc(100)
        device.write(address, b"abc")
        self.assertEqual(device.read(address, 3), b"abc")
        device.free(address, 100)
        self.refused(tw.CallError, "negative", device.alloc, -1)
        self.refused(tw.ArtifactError, "1x4x4", lenet().session, tw.device("fsim", hw="1x4x4"))

    def test_unknown_devices_are_told(self) -> None:
        self.refused(tw.DeviceError, "there is no device tpu here; there are: csim, fsim, remote, rtl", lenet().session, "tpu")
        self.refused(tw.DeviceError, "there is no device tpu here", tw.device, "tpu")
        self.refused(tw.CallError, "no device but a module of kind artifact", lenet().session, lenet())

    def test_other_threads_run_meanwhile(self) -> None:
        session = tw.compile("zoo:efficientnet-lite0-int8", offload="none").session()
        image = np.zeros(session.inputs[0]["shape"], "f4")
        (wanted,) = session.run(image)
        stop, ticks, busy = threading.Event(), 0, 0

        def tick() -> None:
            nonlocal ticks
            while not stop.is_set():
                ticks += 1
                time.sleep(1e-4)

        def once() -> None:
            nonlocal busy
            try:
                np.testing.assert_array_equal(session.run(image)[0], wanted)
            except tw.BusyError as error:
                busy += "open a session for each" in str(error)

        def run() -> None:
            while not stop.is_set():
                once()

        def until(work: Callable[[], None], done: Callable[[], bool]) -> None:
            """Runs the session while another thread works, until `done` and for at most a minute."""
            thread, end = threading.Thread(target=work), time.monotonic() + 60
            stop.clear()
            thread.start()
            while time.monotonic() < end and not done():
                once()
            stop.set()
            thread.join()

        # The ticks within the latest call, of which the switches at its two ends are at most two.
        last, within = 0, 0

        def ticked() -> bool:
            nonlocal last, within
            within, last = ticks - last, ticks
            return within > 4

        until(tick, ticked)
        self.assertGreater(within, 4)
        until(run, lambda: busy > 0)
        self.assertGreater(busy, 0)


class Configs(Case):
    def test_a_configuration_has_its_parameters_as_attributes(self) -> None:
        config = tw.Config("1x16x16")
        self.assertEqual((config.name, config.batch, config.block_in, config.vector_mac), ("1x16x16", 1, 16, True))
        self.assertEqual(config.host["target"], "cortex-a9")
        self.assertIn("inp_depth", dir(config))
        self.assertIn("1x8x8", tw.Config.presets())
        self.refused(AttributeError, "a configuration has no parameter depth", getattr, config, "depth")
        self.assertIn("<td>inp_depth</td>", config._repr_html_())

    def test_a_configuration_is_changed_and_written(self) -> None:
        config = tw.Config("1x16x16")
        other = config.replace(name="mine", inp_depth=4096, host={"clock_mhz": 50.0})
        self.assertEqual((other.inp_depth, other.host["clock_mhz"], other.name), (4096, 50.0, "mine"))
        self.assertEqual(other.host["target"], config.host["target"])
        self.assertNotEqual(other, config)
        self.assertEqual(config.replace(), config)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "mine.toml")
            path.write_text(other.to_toml())
            self.assertEqual(tw.Config.from_file(path), other)
            self.assertEqual(tw.Config(str(path)), other)
        self.assertEqual(tw.Config.from_toml(str(other)), other)

    def test_everything_that_is_wrong_is_told_at_once(self) -> None:
        change = {"batch": 3, "block_in": 5, "speed": 1}
        error = self.refused(tw.ConfigError, "1x16x16: 3 violation(s)", tw.Config().replace, **change)
        for key in change:
            self.assertIn(f"\n  {key}: is ", str(error))
        self.refused(tw.ConfigError, "cannot read /nothing.toml", tw.Config.from_file, "/nothing.toml")
        self.refused(tw.ConfigError, "not a TOML file", tw.Config.from_toml, "=")


