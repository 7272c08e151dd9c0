"""What the tests share."""

from __future__ import annotations

import unittest
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


class Case(unittest.TestCase):
    """Tests with a check of exceptions and their texts."""

    def refused(self, kind: type[Exception], text: str, call: Any, *args: Any, **named: Any) -> Exception:
        with self.assertRaises(kind) as caught:
            call(*args, **named)
        self.assertIn(text, str(caught.exception))
        return caught.exception
