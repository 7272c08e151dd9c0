"""What an import without LLVM's library says."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import tilewright


class Import(unittest.TestCase):
    def test_a_missing_library_is_named_with_the_remedy(self) -> None:
        assert tilewright.__file__ is not None
        for library, wanted in (("libLLVM.so.19.1", "apt-get install libllvm19"), ("libother.so", "libother.so")):
            with tempfile.TemporaryDirectory() as folder:
                package = Path(folder, "tilewright")
                package.mkdir()
                for file in Path(tilewright.__file__).parent.glob("*.py"):
                    shutil.copy(file, package)
                text = f"{library}: cannot open shared object file: No such file or directory"
                (package / "_native.py").write_text(f"raise ImportError({text!r})\n")
                done = subprocess.run(
                    [sys.executable, "-c", "import tilewright"], env={"PYTHONPATH": folder}, capture_output=True, text=True
                )
                self.assertEqual(done.returncode, 1)
                self.assertIn(text, done.stderr)
                self.assertIn(wanted, done.stderr.splitlines()[-1])
