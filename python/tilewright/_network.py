"""Building graphs: one function for each operator (`ops.py`), computations of one's own, and modules of PyTorch."""

from __future__ import annotations

import importlib as _importlib
import tempfile as _tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _native
from ._errors import GraphError, InputError
from ._native import BuilderValue, Expression, Graph, GraphBuilder

Operand = Any
"""A value of a builder, or an array, which becomes a constant."""


def node(op: str, operands: Sequence[Operand], name: str, attributes: Mapping[str, Any]) -> BuilderValue:
    """Adds a node to the builder of the operands. Attributes that are None have their defaults."""
    builder = _builder(op, operands)
    given = {key: value for key, value in attributes.items() if value is not None}
    values = [_value(builder, operand, name or op) for operand in operands if operand is not None]
    return builder.node(op, *values, name=name, **given)


def _builder(op: str, operands: Sequence[Operand]) -> GraphBuilder:
    for operand in operands:
        if isinstance(operand, BuilderValue):
            return operand.builder
    raise GraphError(f"{op}: all operands are arrays; at least one must be a value of a GraphBuilder")


def _value(builder: GraphBuilder, operand: Operand, name: str) -> BuilderValue:
    if isinstance(operand, BuilderValue):
        return operand
    return builder.constant(f"{name}.constant", operand)


def compute(expression: Expression | str, *operands: Operand, name: str = "") -> BuilderValue | list[BuilderValue]:
    """Adds a computation of one's own: a tensor expression as ``.te`` files have it, with an input for each operand.

    Like every operator, it is compiled, evaluated, and written into artifacts. An index that is not known to be within
    its tensor is moved to the nearest element. Returns a value for each output, or the value if there is one; each
    output is a node of its own.

    Raises InputError if the expression does not parse or an operand has another type or shape.
    """
    if isinstance(expression, str):
        expression = Expression.from_text(expression)
    builder = _builder("compute", operands)
    values = [_value(builder, operand, name or "compute") for operand in operands]
    inputs, _ = _native._expression_edges(expression)
    if len(values) != len(inputs):
        raise InputError(f"{len(values)} operands given, but the expression has {len(inputs)} inputs")
    for value, (of, dtype, shape) in zip(values, inputs):
        if (value.dtype, list(value.shape)) != (dtype, shape):
            raise InputError(f"input {of} is {value.dtype} {list(value.shape)}, but the expression has {dtype} {shape}")
    each = _native._expression_each(expression)
    results = [builder.node("compute", *values, name=name, expression=text) for text in each]
    return results[0] if len(results) == 1 else results


def from_torch(module: Any, example: Any, **options: Any) -> Graph:
    """The graph of a PyTorch module, through its export to ONNX.

    ``example`` is a tensor, or a tuple of one for each argument; its shapes are the graph's. ``options`` are those of
    ``torch.onnx.export``.

    Raises ModelError if the graph has operators that cannot be imported, ImportError without PyTorch.
    """
    try:
        torch: Any = _importlib.import_module("torch")
    except ImportError as error:
        raise ImportError("from_torch needs PyTorch; install it with: pip install torch onnx onnxscript") from error
    example = example if isinstance(example, tuple) else (example,)
    training = module.training
    module.eval()
    try:
        with _tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"{type(module).__name__}.onnx")
            torch.onnx.export(module, example, str(path), **options)
            return Graph.load(path)
    finally:
        module.train(training)
