"""Modules of PyTorch, with PyTorch itself: `python -m unittest torch_modules`."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np
import tilewright as tw
import torch


class Attention(torch.nn.Module):
    """A block of a transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.query, self.key, self.value = (torch.nn.Linear(width, width) for _ in range(3))
        self.out = torch.nn.Sequential(torch.nn.Linear(width, 2 * width), torch.nn.GELU(), torch.nn.Linear(2 * width, width))

    def forward(self, x: Any) -> Any:
        y = self.norm(x)
        weights = torch.softmax(self.query(y) @ self.key(y).transpose(1, 2) / 4, dim=-1)
        return x + self.out(weights @ self.value(y))


class Modules(unittest.TestCase):
    def check(self, module: Any, shape: tuple[int, ...]) -> None:
        torch.manual_seed(1)
        example = torch.randn(shape)
        graph = tw.from_torch(module, example, dynamo=False)
        self.assertTrue(module.training, "the module is as it was")
        with torch.no_grad():
            wanted = module.eval()(example).numpy()
        (found,) = tw.compile(graph, offload="none").session().run(example)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)

    def test_a_convolutional_network(self) -> None:
        torch.manual_seed(0)
        layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, stride=2, padding=1),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(8, 8, 3, padding=1, groups=8),
            torch.nn.Hardswish(),
            torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(8, 10),
        )
        self.check(layers, (1, 3, 32, 32))

    def test_a_transformer_block(self) -> None:
        torch.manual_seed(0)
        self.check(Attention(16), (1, 7, 16))


if __name__ == "__main__":
    unittest.main()
