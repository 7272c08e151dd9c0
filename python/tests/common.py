"""What the tests share."""

from __future__ import annotations

import threading
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import tilewright as tw

ROOT = Path(__file__).resolve().parents[2]
LENET = ROOT / "tests/models/lenet-mnist/model_qdq_perchannel.onnx"
FLOAT = ROOT / "tests/models/lenet-mnist/model.onnx"


def sample() -> Any:
    """The sample input of the network: f32 1x1x28x28."""
    return np.load(LENET.with_suffix(".input_0.npy"))


def expected() -> Any:
    """What another program computes for the sample."""
    return np.load(LENET.with_suffix(".expected_0.npy"))


@cache
def lenet() -> tw.Artifact:
    """The network, compiled once."""
    return tw.compile(LENET, hw="1x8x8")


def until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    """Waits until a condition holds; returns whether it does."""
    end = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return holds


@contextmanager
def blocked() -> Iterator[tuple[tw.Artifact, threading.Event, threading.Event]]:
    """A model whose step sets the first event and waits for the second one: i8 4 to i8 4."""
    entered, leave = threading.Event(), threading.Event()

    def wait(x: Any) -> Any:
        entered.set()
        leave.wait(60)
        return x

    tw.register("test.blocked", wait)
    builder = tw.GraphBuilder("blocked")
    x = builder.input("x", "i8", (4,))
    builder.output("y", builder.packed("test.blocked", x, types=[("i8", [4])])[0])
    try:
        yield tw.compile(builder.finish(), offload="none"), entered, leave
    finally:
        leave.set()
        tw.unregister("test.blocked")


class Case(unittest.TestCase):
    """Tests with a check of exceptions and their texts."""

    def refused(self, kind: type[Exception], text: str, call: Any, *args: Any, **named: Any) -> Exception:
        with self.assertRaises(kind) as caught:
            call(*args, **named)
        self.assertIn(text, str(caught.exception))
        return caught.exception
