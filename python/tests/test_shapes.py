"""Artifacts for several shapes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import tilewright as tw
from common import LENET, Case, lenet, sample


def network(folder: str) -> Path:
    """The network's file with an open batch."""
    # A dimension's message: the number 1, or a name of as many bytes.
    one, open_size = b"\n\2\x08\1", b"\n\2\x12\0"
    file = LENET.read_bytes()
    for others in (b"\n\2\x08\1\n\2\x08\x1c", b"\n\2\x08\x0a"):
        assert file.count(one + others) == 1
        file = file.replace(one + others, open_size + others)
    path = Path(folder, "open.onnx")
    path.write_bytes(file)
    return path


@cache
def batches() -> tw.Artifact:
    """The network for batches of 1 and 4; others are padded."""
    with tempfile.TemporaryDirectory() as folder:
        return tw.compile(network(folder), hw="1x8x8", shapes={"input_0_0": [1, 4]}, bucket=True)


def pictures(count: int) -> Any:
    return np.random.default_rng(1).random((count, 1, 28, 28), dtype="f4")


@contextmanager
def open_batch() -> Iterator[Path]:
    """The network's file with an open batch, and a cache folder of its own for what is compiled meanwhile."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"XDG_CACHE_HOME": folder}):
        yield network(folder)


class Shapes(Case):
    def test_a_session_runs_each_shape_and_pads_others(self) -> None:
        artifact = batches()
        (edge,) = artifact.inputs
        self.assertEqual(edge["shape"], ["input_0_0", 1, 28, 28])
        self.assertEqual([output["shape"] for output in artifact.outputs], [[None, 10]])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "batches.twa")
            artifact.save(path)
            loaded = tw.load(path)
        image, alone = pictures(4), lenet().session("fsim")
        for artifact in (artifact, loaded):
            session = artifact.session("fsim")
            (four,) = session.run(image)
            for count in (1, 2, 3, 4):
                (found,) = session.run(image[:count])
                np.testing.assert_array_equal(found, four[:count])
                np.testing.assert_array_equal(found[-1:], alone.run(image[count - 1 : count])[0])
                out = np.empty((count, 10), "f4")
                self.assertIs(session.run(image[:count], out=out)[0], out)
                np.testing.assert_array_equal(out, found)
            self.assertEqual(session.specialized(), 2)
            np.testing.assert_array_equal(session.report(image[:3])["outputs"][0], four[:3])
            np.testing.assert_array_equal(session.submit(image[:1])()[0], session.run(image[:1])[0])
            wrong = np.empty((4, 10), "f4")
            self.refused(tw.InputError, "is for f32 4x10, but the model writes f32 3x10", session.run, image[:3], out=wrong)

    def test_a_shape_is_made_ready_before_it_is_needed(self) -> None:
        session = batches().session("fsim")
        for count in (1, 4):
            (output,) = session.specialize([count, 1, 28, 28])
            self.assertEqual(output["shape"], [count, 10])
        self.assertEqual(session.specialized(), 2)
        session.run(pictures(1))
        self.assertEqual(session.specialized(), 2)

    def test_shapes_that_the_artifact_lacks_are_told(self) -> None:
        session = batches().session("fsim")
        text = "it has the model for 1x1x28x28, 4x1x28x28; compile it with --shapes for others"
        self.refused(tw.InputError, text, session.run, pictures(5))
        self.refused(tw.InputError, "the model expects input_0_0x1x28x28", session.run, np.zeros((1, 1, 28, 27), "f4"))
        self.refused(tw.InputError, "input input is f64", session.run, np.zeros((3, 1, 28, 28)))

    def test_the_accelerator_has_a_program_for_each_shape(self) -> None:
        session = batches().session("csim")
        one, three, four = (session.report(pictures(count))["cycles"] for count in (1, 3, 4))
        self.assertEqual(one, lenet().session("csim").report(sample())["cycles"])
        assert one and four
        self.assertEqual(three, four)
        self.assertGreater(four, 2 * one)

    def test_wrong_sizes_are_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = network(folder)
            for options, error, text in (
                ({"shapes": {"n": [2]}}, tw.ModelError, "has no open dimension n; it has input_0_0"),
                ({"shapes": {"input_0_0": []}}, tw.InputError, "shapes gives no size of input_0_0; give one or more"),
                ({"shapes": {"input_0_0": [0]}}, tw.InputError, "the size 0 is not a whole number above 0"),
                ({"bucket": True}, tw.InputError, "bucket pads to the sizes of shapes; give shapes too"),
            ):
                self.refused(error, text, tw.compile, path, hw="1x8x8", **dict[str, Any](options))
            both = {"input_0_0": 1}, {"input_0_0": [2]}
            text = "bind and shapes both give sizes of input_0_0"
            self.refused(tw.InputError, text, tw.compile, path, bind=both[0], shapes=both[1])
        text = "cannot be padded along input_0_3: node Conv@0 (conv2d)"
        widths = {"input_0_3": [96, 192]}
        self.refused(tw.ModelError, text, tw.compile, "zoo:ppocr-cls", bind={"input_0_2": 48}, shapes=widths, bucket=True)
        graph = tw.Graph.load(LENET)
        for option in ("bind", "shape", "shapes"):
            self.refused(tw.InputError, "the model is a Graph, which has its sizes", tw.compile, graph, **{option: {"n": [1]}})

    def test_a_session_compiles_the_shapes_that_it_sees(self) -> None:
        with open_batch() as path:
            image = pictures(3)
            (whole,) = batches().session("csim").run(image)
            device = tw.device("csim", hw="1x8x8")
            by_name: dict[str, Any] = {"device": "csim", "hw": "1x8x8"}
            for options in ({"device": device}, by_name, {"device": "cpu", "offload": "none"}, {"hw": "1x8x8"}):
                with tw.jit(path, opt_level=1, **dict[str, Any](options)) as session:
                    self.assertEqual(session.inputs[0]["shape"], ["input_0_0", 1, 28, 28])
                    for count in (2, 1, 3, 2):
                        (found,) = session.run(image[:count])
                        np.testing.assert_array_equal(found, whole[:count])
                        out = np.empty((count, 10), "f4")
                        self.assertIs(session.run(input=image[:count], out=out)[0], out)
                        np.testing.assert_array_equal(out, found)
                    self.assertEqual(session.specialized(), 3)
                    self.assertEqual(session.specialize([2, 1, 28, 28])[0]["shape"], [2, 10])
                    np.testing.assert_array_equal(session.submit(image[:1])()[0], whole[:1])
                    self.assertEqual(session.report(image)["outputs"][0].shape, (3, 10))
                    self.refused(tw.InputError, "pass its array", session.run)
                    self.refused(tw.InputError, "input input (f32 input_0_0x1x28x28): ", session.run, "text")
                    self.refused(tw.InputError, "input input is f64", session.run, image.astype("f8"))
                    text = "the model expects input_0_0x1x28x28"
                    self.refused(tw.InputError, text, session.run, np.zeros((1, 1, 28, 27), "f4"))
                    wrong = np.empty((1, 10), "f4")
                    text = "is for f32 1x10, but the model writes f32 2x10"
                    self.refused(tw.InputError, text, session.run, image[:2], out=wrong)
                    self.refused(tw.InputError, "output 0: ", session.run, image[:2], out=["text"])
                    wrong.flags.writeable = False
                    text = "the memory for output 0 cannot be written"
                    self.refused(tw.InputError, text, session.run, image[:1], out=wrong)
                    self.refused(tw.InputError, "1", session.run, image[:1], out=[])
                self.refused(tw.ClosedError, "closed", session.run, image)
            # The shape that was given is the only one.
            session = tw.jit(path, hw="1x8x8", bind={"input_0_0": 2})
            self.assertEqual(session.run(image[:2])[0].shape, (2, 10))
            self.refused(tw.InputError, "the model expects 2x1x28x28", session.run, image)

    def test_what_cannot_be_compiled_at_shapes_is_refused(self) -> None:
        with open_batch() as path:
            device = tw.device("fsim", hw="1x8x8")
            self.refused(tw.InputError, "a Graph has one shape", tw.jit, tw.Graph.load(LENET))
            self.refused(tw.InputError, "leave hw out", tw.jit, path, hw="1x8x8", device=device)
            self.refused(tw.DeviceError, "no device is named abacus", tw.jit, path, device="abacus")
            self.refused(tw.InputError, "device is a name or an open device, not an integer", tw.jit, path, device=3)
            self.refused(tw.ModelError, "has no open dimension n; it has input_0_0", tw.jit, path, bind={"n": 1})
            self.refused(tw.ModelError, "none.onnx", tw.jit, "none.onnx")
            self.refused(tw.InputError, "opt_level=4 is not possible", tw.jit, path, opt_level=4)
            session = tw.jit("zoo:ppocr-cls", device="cpu")
            # Too narrow for the network's windows.
            text = "zoo:ppocr-cls for inputs of 1x3x8x8: "
            self.refused(tw.InputError, text, session.run, np.zeros((1, 3, 8, 8), "f4"))

    def test_parameters_are_kept_apart(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path, params = Path(folder, "lenet.twa"), Path(folder, "lenet.bin")
            artifact = lenet()
            artifact.save(path, params=params)
            self.assertLess(path.stat().st_size, params.stat().st_size)
            loaded = tw.load(path)
            np.testing.assert_array_equal(
                loaded.session("fsim").run(sample())[0], artifact.session("fsim").run(sample())[0]
            )
            moved = params.rename(Path(folder, "moved.bin"))
            self.refused(tw.ArtifactError, "lenet.bin", tw.load, path)
            self.assertEqual(tw.load(path, params=moved).to_bytes(), loaded.to_bytes())
