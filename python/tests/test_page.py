"""The examples of the page print what the page shows."""

from __future__ import annotations

import doctest
import os
import re
import tempfile
import unittest

from common import ROOT

PAGE = ROOT / "docs/python.md"


class Page(unittest.TestCase):
    def test_examples_print_what_the_page_shows(self) -> None:
        blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        text = "\n".join(blocks)
        test = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
        self.assertGreater(len(test.examples), 10)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(ROOT / "tests", os.path.join(folder, "tests"))
            os.chdir(folder)
            failed: list[str] = []
            flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            doctest.DocTestRunner(optionflags=flags).run(test, out=failed.append)
            os.chdir(before)
        self.assertFalse(failed, "".join(failed))
