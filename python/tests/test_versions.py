"""Files of released formats are still read (docs/versions.md)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import tilewright as tw
from common import LENET, ROOT, Case, sample

FILES = ROOT / "tests/versions"


class Versions(Case):
    def test_artifacts_of_each_format_are_read_and_run(self) -> None:
        (want,) = tw.compile(LENET, hw="1x4x4").session("csim").run(sample())
        for name in ("artifact-1.twa", "artifact-2.twa"):
            with self.subTest(file=name):
                (got,) = tw.load(FILES / name).session("csim").run(sample())
                np.testing.assert_array_equal(got, want)

    def test_a_log_of_each_schema_is_read(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "log.jsonl")
            shutil.copy(FILES / "log-3.jsonl", log)
            found = tw.tune(LENET, log, trials=7, hw="1x4x4", tuned="none")
            self.assertNotIn("schema", " ".join(found["skipped_lines"]))
            self.assertEqual(found["stale_trials"], 0, "cycles have changed; add a log that this version writes")
            self.assertGreater(found["known_trials"], 0, found["skipped_lines"])
