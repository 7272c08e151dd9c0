"""Devices that this process lends."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import tilewright as tw
from common import LENET, Case, lenet, sample


class Servers(Case):
    def test_a_session_and_commands_run_on_a_lent_device(self) -> None:
        report = lenet().session("csim").report(sample())
        with tw.serve("csim", hw="1x8x8") as server:
            self.assertEqual(server.device, f"remote:{server.address}")
            self.assertFalse(server.closed)
            session = lenet().session(server.device)
            found = session.report(sample())
            np.testing.assert_array_equal(found["outputs"][0], report["outputs"][0])
            self.assertEqual(found["cycles"], report["cycles"])
            self.refused(tw.DeviceError, "has configuration 1x8x8", tw.compile(LENET, hw="1x4x4").session, server.device)
            del session
            self.assertTrue(tw.diff(LENET, a="csim", b=server.device, hw="1x8x8").equal)
        self.assertTrue(server.closed)
        self.assertIn("closed", repr(server))
        self.refused(tw.DeviceError, server.address, lenet().session, server.device)
        server.close()

    def test_another_process_runs_on_it_with_the_token(self) -> None:
        code = (
            "import sys, numpy as np, tilewright as tw\n"
            "try: print(tw.load(sys.argv[1]).session(sys.argv[2]).report(np.load(sys.argv[3]))['cycles'])\n"
            "except tw.DeviceError as error: print(error)\n"
        )
        with tempfile.TemporaryDirectory() as folder, tw.serve("csim", hw="1x8x8", token="0123456789abcdef") as server:
            path = Path(folder, "lenet.twa")
            lenet().save(path)
            image = LENET.with_suffix(".input_0.npy")
            arguments = [sys.executable, "-c", code, str(path), server.device, str(image)]

            def printed(token: str) -> str:
                env = {**os.environ, "TILEWRIGHT_TOKEN": token}
                done = subprocess.run(arguments, env=env, capture_output=True, text=True, timeout=60, check=True)
                return done.stdout

            self.assertEqual(printed("0123456789abcdef"), f"{lenet().session('csim').report(sample())['cycles']}\n")
            self.assertIn("token", printed("fedcba9876543210"))

    def test_what_cannot_be_lent_is_told(self) -> None:
        self.refused(tw.DeviceError, "cpu cannot be lent", tw.serve, "cpu")
        self.refused(tw.DeviceError, "nothing", tw.serve, "nothing")
        self.refused(tw.DeviceError, "everywhere", tw.serve, "csim", listen="everywhere")
        self.refused(tw.DeviceError, "token", tw.serve, "csim", listen="0.0.0.0:0")
        self.refused(tw.InputError, "devices=0 is not possible", tw.serve, "csim", devices=0)

    def test_a_virtual_board_needs_verilator(self) -> None:
        with mock.patch.dict(os.environ, {"PATH": "", "VERILATOR": ""}):
            hw = tw.Config("1x4x2").replace(name="unseen", inp_depth=64)
            self.refused(tw.DeviceError, "verilator", tw.virtual_board, hw)
