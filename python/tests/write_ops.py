"""Writes `tilewright/ops.py` from the operators' own signatures: `python write_ops.py > ../tilewright/ops.py`."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import tilewright as tw

HEAD = '''"""A function for each operator of graphs. Written by `python/tests/write_ops.py`.

Operands are values of a `GraphBuilder`, or arrays, which become constants. Types and shapes are checked at once; errors
name the operator and what does not fit. Attributes that are left out have their defaults.
"""

from __future__ import annotations

from typing import Any

from ._native import BuilderValue
from ._network import Operand, node
'''

# Names of Python's own.
TAKEN = {"max", "min", "sum", "abs", "pow", "range", "slice", "lambda", "and", "or", "not", "if"}


def text() -> str:
    """The module's text."""
    return HEAD + "".join(map(function, operators()))


def operators() -> list[dict[str, Any]]:
    """The operators by name."""
    found: list[dict[str, Any]] = json.loads(tw._native._operators())
    # `compute` has a function of its own, which takes expressions of several outputs.
    found = [operator for operator in found if operator["name"] != "compute"]
    return sorted(found, key=lambda operator: str(operator["name"]))


def function(operator: dict[str, Any]) -> str:
    """The function for an operator."""
    name = operator["name"] + ("_" if operator["name"] in TAKEN else "")
    operands, given = [], []
    several = False
    for operand in operator["operands"]:
        match operand["count"]:
            case "one":
                operands.append(f"{operand['name']}: Operand")
                given.append(operand["name"])
            case "optional":
                operands.append(f"{operand['name']}: Operand | None = None")
                given.append(operand["name"])
            case _:
                several = True
                operands.append(f"*{operand['name']}: Operand")
                given.append(f"*{operand['name']}")
    attributes = operator["attributes"]
    named = [f"{a['name']}: Any{' = None' if a['default'] is not None else ''}" for a in attributes]
    star = [] if several else ["*"]
    arguments = ", ".join(operands + star + named + ['name: str = ""'])
    lines = [one_line(operator["doc"].split("\n\n")[0])]
    for a in attributes:
        default = f" (default {a['default']})" if a["default"] is not None else ""
        lines.append(f"{a['name']}: {one_line(a['doc'])} Takes {a['expected']}{default}.")
    body = "\n\n".join(textwrap.fill(line, 110) for line in lines).replace("\\", "\\\\")
    doc = textwrap.indent(f'"""{body}\n"""', "    ") if len(lines) > 1 or len(body) > 100 else f'    """{body}"""'
    pairs = ", ".join(f'"{a["name"]}": {a["name"]}' for a in attributes)
    call = f'    return node("{operator["name"]}", [{", ".join(given)}], name, {{{pairs}}})'
    signature = f"def {name}({arguments}) -> BuilderValue:"
    if len(signature) > 120:
        inner = "".join(f"    {part},\n" for part in operands + star + named + ['name: str = ""'])
        signature = f"def {name}(\n{inner}) -> BuilderValue:"
    return f"\n\n{signature}\n{doc}\n{call}\n"


def one_line(text: str) -> str:
    """The text in one line."""
    return " ".join(text.split())


if __name__ == "__main__":
    print(text(), end="")
