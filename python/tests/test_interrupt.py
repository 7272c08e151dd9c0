"""Ctrl-C and exceptions of callbacks stop long work."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import tilewright as tw
from common import LENET, Case, blocked, sample, until

# After how many seconds the signal comes. The work that it stops would go on for much longer.
SECONDS = 0.2


@contextmanager
def signal_after(seconds: float, number: int = signal.SIGINT) -> Iterator[None]:
    """Sends this process a signal while the main thread works."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), number))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def convolution(size: int, channels: int) -> tw.Artifact:
    """A layer for the accelerator."""
    builder = tw.GraphBuilder("layer")
    x = builder.input("x", "i8", (1, size, size, channels))
    sums = tw.conv2d(x, np.ones((channels, 3, 3, channels), "i1"), pads=[1, 1, 1, 1])
    bias, multiplier, shift = (np.full(channels, value, "i4") for value in (0, 1 << 30, -8))
    builder.output("y", tw.requantize(sums, bias, multiplier, shift, axis=3))
    return tw.compile(builder.finish(), hw="1x4x4", opt_level=1)


class Interrupts(Case):
    def setUp(self) -> None:
        # A program that a shell starts in the background ignores the signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

    def stops(self, work: Callable[[], Any]) -> None:
        """The work, which would take minutes, ends soon after the signal."""
        begun = time.monotonic()
        with self.assertRaises(KeyboardInterrupt), signal_after(SECONDS):
            work()
        self.assertLess(time.monotonic() - begun, 20)

    def test_a_search_stops_and_its_log_can_be_continued(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "log.jsonl")
            self.stops(lambda: tw.tune(LENET, log, seconds=600, hw="1x8x8", tuned="none"))
            lines = log.read_text().splitlines(keepends=True) if log.exists() else []
            self.assertTrue(all(line.endswith("\n") for line in lines))
            # A trial that was stopped must not count as one that cannot run.
            self.assertNotIn('"cycles":null', log.read_text() if lines else "")
            found = tw.tune(LENET, log, trials=len(lines) + 4, hw="1x8x8", tuned="none")
            assert found.cycles is not None and found.cycles_before is not None
            self.assertLessEqual(found.cycles, found.cycles_before)

    def test_a_run_stops_inside_a_program_and_the_device_goes_on(self) -> None:
        device = tw.device("csim", hw="1x4x4")
        large = convolution(56, 256)
        session = large.session(device)
        begun = time.process_time()
        self.stops(lambda: session.run(np.ones((1, 56, 56, 256), "i1")))
        # The program has 116 million cycles, which take twice as long.
        self.assertLess(time.process_time() - begun, 2)
        small, image = convolution(8, 16), np.ones((1, 8, 8, 16), "i1")
        np.testing.assert_array_equal(small.session(device).run(image)[0], small.session("fsim").run(image)[0])

    def test_measurements_stop(self) -> None:
        self.stops(lambda: tw.bench(LENET, devices="csim", hw="1x8x8", repetitions=1_000_000))
        self.stops(lambda: tw.diff(LENET, a="csim", b="cpu", hw="1x8x8", inputs=np.tile(sample(), (100_000, 1, 1, 1))))

    def test_a_compilation_stops_and_writes_nothing(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            code = (
                "import signal, threading, os, sys, tilewright as tw\n"
                "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                "try:\n"
                "    while True: tw.compile(sys.argv[1], hw='1x8x8', opt_level=3).save(sys.argv[2])\n"
                "except KeyboardInterrupt:\n"
                "    print('stopped')\n"
            )
            path = Path(folder, "lenet.twa")
            done = subprocess.run(
                [sys.executable, "-c", code, LENET, path], capture_output=True, text=True, timeout=60, check=True
            )
            self.assertEqual(done.stdout, "stopped\n")
            self.assertLessEqual({entry.name for entry in Path(folder).iterdir()}, {"lenet.twa"})
            if path.exists():
                tw.load(path)

    def test_a_long_expression_of_constants_is_not_interpreted_by_the_compiler(self) -> None:
        builder = tw.GraphBuilder("long")
        x, one = builder.input("x", "i32", (4,)), builder.constant("one", np.ones(4, "i4"))
        long = "te long { input x: i32[4] output y: i32[i in 4] = sum(k in 3000000000) max(x[i], i32(k)) % 7i32 }"
        sums = tw.compute(long, one)
        assert isinstance(sums, tw.BuilderValue)
        builder.output("y", tw.add(sums, x))
        graph = builder.finish()
        begun = time.monotonic()
        tw.compile(graph, offload="none")
        self.assertLess(time.monotonic() - begun, 20)
        self.stops(lambda: graph.evaluate(np.zeros(4, "i4")))

    def test_a_pass_that_compiles_again_and_again_ends(self) -> None:
        builder = tw.GraphBuilder("again")
        builder.output("y", tw.relu(builder.input("x", "f32", (4,))))
        graph, depth = builder.finish(), 0

        def again(given: tw.Graph) -> tw.Graph:
            nonlocal depth
            depth += 1
            tw.compile(graph, offload="none")
            return given

        tw.add_pass("again", after="canonicalize")(again)
        try:
            self.refused(tw.PassError, "calls itself through the library", tw.compile, graph, offload="none")
        finally:
            tw.remove_pass("again")
        self.assertLess(depth, 100)
        tw.compile(graph, offload="none")

    def test_code_generation_by_llvm_stops_at_once(self) -> None:
        builder = tw.GraphBuilder("long")
        value = builder.input("x", "f32", (1, 64, 64, 3))
        # No two layers have the same shapes, so each has code of its own.
        for layer in range(60):
            shape = (8 + layer, 3, 3, int(value.shape[3]))
            value = tw.relu(tw.conv2d(value, np.ones(shape, "f4"), pads=[1, 1, 1, 1]))
        builder.output("y", value)
        graph = builder.finish()
        with tempfile.TemporaryDirectory() as cache, mock.patch.dict(os.environ, {"XDG_CACHE_HOME": cache}):
            begun = time.monotonic()
            with self.assertRaises(KeyboardInterrupt), signal_after(1.0):
                tw.compile(graph, offload="none")
            self.assertLess(time.monotonic() - begun, 2.5)

    def test_a_run_of_the_design_stops_and_the_device_goes_on(self) -> None:
        if not shutil.which("verilator"):
            self.skipTest("needs Verilator; run `make setup`")
        device = tw.device("rtl", hw="1x4x4")
        large, image = convolution(56, 256), np.ones((1, 56, 56, 256), "i1")
        session = large.session(device)
        self.stops(lambda: session.run(image))
        small, image = convolution(8, 16), np.ones((1, 8, 8, 16), "i1")
        np.testing.assert_array_equal(small.session(device).run(image)[0], small.session("fsim").run(image)[0])

    def test_a_build_of_the_design_stops_with_its_programs(self) -> None:
        if not shutil.which("verilator"):
            self.skipTest("needs Verilator; run `make setup`")
        hw = tw.Config("1x4x2").replace(name="unseen", inp_depth=128)
        with tempfile.TemporaryDirectory() as cache, mock.patch.dict(os.environ, {"XDG_CACHE_HOME": cache}):
            def running() -> list[str]:
                found = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True)
                return [line for line in found.stdout.splitlines() if cache in line]

            seen: list[str] = []

            def compiling() -> bool:
                seen.extend(running())
                return any("cc1plus" in line for line in seen)

            def stop() -> None:
                if until(compiling):
                    os.kill(os.getpid(), signal.SIGINT)

            thread = threading.Thread(target=stop)
            thread.start()
            with self.assertRaises(KeyboardInterrupt):
                tw.device("rtl", hw=hw)
            thread.join()
            self.assertTrue(any("cc1plus" in line for line in seen), seen)
            self.assertTrue(until(lambda: not running()), running())
            self.assertEqual(list(Path(cache).rglob("libtw_core.so")), [])

    def test_waits_for_frames_stop_and_frames_go_on(self) -> None:
        with blocked() as (artifact, entered, leave):
            session = artifact.session()
            image = np.arange(4, dtype="i1")
            waits = [session.submit(image) for _ in range(4)]
            self.assertTrue(entered.wait(20))
            self.stops(waits[0])
            # Two frames are computed and two wait, so this one has no room.
            self.stops(lambda: session.submit(image))
            leave.set()
            for wait in waits:
                np.testing.assert_array_equal(wait()[0], image)
            self.refused(tw.CallError, "waited for already", waits[0])

    def test_a_run_in_a_function_of_a_server_stops_when_its_client_goes(self) -> None:
        session = convolution(56, 256).session("csim")
        begun, ended = threading.Event(), threading.Event()
        raised: list[str] = []

        def slow() -> None:
            begun.set()
            try:
                session.run(np.ones((1, 56, 56, 256), "i1"))
            except tw.Error as error:
                raised.append(str(error))
                raise
            finally:
                ended.set()

        with tw.serve("fsim", hw="1x4x4", functions={"slow": slow}) as server:
            code = "import sys, tilewright as tw; tw.connect(sys.argv[1], device=False).slow()"
            client = subprocess.Popen([sys.executable, "-c", code, server.device])
            self.assertTrue(begun.wait(20))
            client.kill()
            client.wait()
            self.assertTrue(ended.wait(20))
        self.assertIn("interrupted", " ".join(raised))

    def test_what_a_handler_raises_is_raised_and_other_signals_go_by(self) -> None:
        class Enough(Exception):
            pass

        def handler(number: int, frame: Any) -> None:
            raise Enough

        seen: list[int] = []
        for handle, error in ((lambda number, frame: seen.append(number), None), (handler, Enough)):
            before = signal.signal(signal.SIGUSR1, handle)
            try:
                with signal_after(SECONDS, signal.SIGUSR1):
                    if error is None:
                        tw.bench(LENET, devices="csim", hw="1x8x8", repetitions=40)
                        self.assertEqual(seen, [signal.SIGUSR1])
                    else:
                        self.refused(error, "", tw.bench, LENET, devices="csim", hw="1x8x8", repetitions=1_000_000)
            finally:
                signal.signal(signal.SIGUSR1, before)

    def test_what_a_callback_raises_stops_the_work(self) -> None:
        calls = 0

        def progress(what: str, done: int, all: int) -> None:
            nonlocal calls
            calls += 1
            raise RuntimeError("enough")

        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "log.jsonl")
            self.refused(
                RuntimeError, "enough", tw.tune, LENET, log, seconds=600, hw="1x8x8", tuned="none", progress=progress
            )
        self.refused(
            RuntimeError, "enough", tw.bench, LENET, devices="csim", hw="1x8x8", repetitions=1_000_000, progress=progress
        )
        self.assertLess(time.monotonic() - begun, 20)
        self.assertLessEqual(calls, 4)
