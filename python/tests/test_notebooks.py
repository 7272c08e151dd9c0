"""The notebooks run from top to bottom. `python test_notebooks.py NOTEBOOK` prints one with its results as HTML."""

from __future__ import annotations

import ast
import contextlib
import html
import io
import json
import shutil
import sys
import unittest
from pathlib import Path
from typing import Any

from common import ROOT

FOLDER = ROOT / "examples/notebooks"


def run(path: Path) -> list[str]:
    """Runs the cells of a notebook in order; returns what each shows, as HTML."""
    shown: list[str] = []
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text())["cells"], 1):
        text = "".join(cell["source"])
        if cell["cell_type"] != "code":
            shown.append("".join(f"<p>{html.escape(line)}</p>" for line in text.split("\n\n")))
            continue
        tree = ast.parse(text, f"{path.name}, cell {number}")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        value: Any = None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, f"{path.name}, cell {number}", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), f"{path.name}, cell {number}", "eval"), names)
        result = "" if value is None else f"<pre>{html.escape(repr(value))}</pre>"
        if hasattr(value, "_repr_html_"):
            result = value._repr_html_()
        shown.append(f"<pre class=code>{html.escape(text)}</pre><pre>{html.escape(printed.getvalue())}</pre>{result}")
    return shown


class Notebooks(unittest.TestCase):
    def test_notebooks_run_and_have_no_results_in_them(self) -> None:
        paths = sorted(FOLDER.glob("*.ipynb"))
        self.assertGreaterEqual(len(paths), 4)
        for path in paths:
            with self.subTest(notebook=path.name):
                for cell in json.loads(path.read_text())["cells"]:
                    self.assertFalse(cell.get("outputs"), "clear the outputs before you commit")
                if "tw.virtual_board" in path.read_text() and shutil.which("verilator") is None:
                    self.skipTest("needs Verilator; run `make setup`")
                self.assertTrue(any("<table>" in shown for shown in run(path)))


if __name__ == "__main__":
    style = "<style>body{font-family:sans-serif;max-width:70em}.code{background:#eee;padding:1em}td,th{padding:2px 8px}</style>"
    print("<meta charset=utf-8>" + style + "".join(run(Path(sys.argv[1]))))
