"""Devices that this process lends."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
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

    def test_a_model_is_loaded_onto_a_server_and_runs_there(self) -> None:
        report = lenet().session("csim").report(sample())
        seen: list[tuple[str, int, int]] = []
        with tw.serve("csim", hw="1x8x8", allow_native=True) as server, tw.connect(server.device) as remote:
            self.assertEqual((remote.server, remote.device, remote.config), (server.device, "csim", tw.Config("1x8x8")))
            session = remote.load(lenet(), progress=lambda what, done, all: seen.append((what, done, all)))
            self.assertIsInstance(session, tw.Session)
            self.assertEqual((seen[-1][0], seen[-1][1]), ("upload", seen[-1][2]))
            self.assertEqual((session.inputs, session.outputs), (lenet().inputs, lenet().outputs))
            self.assertTrue(hasattr(session, "specialize"))
            self.assertFalse(hasattr(session, "anything"))
            np.testing.assert_array_equal(session.run(sample())[0], report["outputs"][0])
            found = session.report(input=sample())
            np.testing.assert_array_equal(found["outputs"][0], report["outputs"][0])
            self.assertEqual(found["cycles"], report["cycles"])
            times = session.time(3, sample())
            self.assertEqual((times["seconds"].shape, times["cycles"]), ((3,), report["cycles"]))
            out = np.empty((1, 10), "f4")
            self.assertIs(session.run(sample(), out=out)[0], out)
            np.testing.assert_array_equal(out, report["outputs"][0])
            self.refused(tw.InputError, "memory for output 0", session.run, sample(), out=np.empty((2, 10), "f4"))
            self.refused(tw.InputError, "memory for output 0", session.run, sample(), out=np.empty((1, 10), "i4"))
            self.refused(tw.InputError, "memory for 0 outputs given", session.run, sample(), out=[])
            self.refused(tw.InputError, "input input is f64, but the model expects f32", session.run, sample().astype("f8"))
            self.refused(tw.InputError, "input input has shape 1x28x28, but", session.time, 1, sample()[0])
            self.refused(tw.InputError, "has strides", session.report, sample()[..., ::-1])
            with tempfile.TemporaryDirectory() as folder:
                path, params = Path(folder, "lenet.twa"), Path(folder, "lenet.params")
                lenet().save(path, params=params)
                with remote.load(path) as other:
                    np.testing.assert_array_equal(other.run(sample())[0], report["outputs"][0])
                self.assertTrue(other.closed)
                for call in (other.run, other.report):
                    self.refused(tw.ClosedError, "this session is closed", call, sample())
                self.refused(tw.ClosedError, "this session is closed", getattr, other, "inputs")
                other.close()
            self.refused(tw.ArtifactError, "not a Tilewright artifact", remote.load, LENET)
            self.refused(tw.CallError, "1x4x4", remote.load, tw.compile(LENET, hw="1x4x4"))
            self.refused(TypeError, "", remote.load, 3)
            # What a session of the server has ends with the connection.
            remote.close()
            text = f"the connection to {server.device} is closed; open another one"
            self.refused(tw.ClosedError, text, session.run, sample())
            self.refused(tw.ClosedError, text, remote.load, lenet())
            self.refused(tw.ClosedError, text, remote.functions)
            self.assertIn("closed", repr(remote))
            remote.close()
            # The device is free again.
            with tw.connect(server.device, hw="1x8x8") as again:
                self.assertEqual(again.device, "csim")

    def test_code_of_clients_needs_the_servers_leave(self) -> None:
        with tw.serve("csim", hw="1x8x8") as server, tw.connect(server.device) as remote:
            self.refused(tw.CallError, "native", remote.load, lenet())

    def test_functions_of_a_server_are_called_by_name(self) -> None:
        def scaled(x: Any, factor: float) -> Any:
            return x * np.float32(factor)

        def fails() -> None:
            raise RuntimeError("bad luck")

        functions: dict[str, Any] = {"scaled": scaled, "fails": fails, "echo": lambda value: value}
        with tw.serve("csim", hw="1x8x8", functions=functions) as server:
            with tw.connect(server.device, device=False) as remote, tw.connect(server.device) as other:
                self.assertIsNone(remote.device)
                self.assertIsNone(remote.config)
                for name in functions:
                    self.assertIn(name, remote.functions())
                np.testing.assert_array_equal(remote.scaled(np.array([1, 2], "f4"), 1.5), np.array([1.5, 3], "f4"))
                value = [None, 7, 2.5, "text", b"bytes", {"list": [1]}]
                self.assertEqual(other.function("echo")(value), value)
                self.refused(tw.CallError, "bad luck", remote.fails)
                self.refused(tw.NotFoundError, "is named nothing; there are: ", remote.function, "nothing")
                self.refused(AttributeError, "is named nothing", getattr, remote, "nothing")
                scale = remote.function("scaled")
            self.refused(tw.ClosedError, "is closed", scale, np.array([1], "f4"), 2.0)

    def test_a_client_shows_its_token(self) -> None:
        with tw.serve("csim", hw="1x8x8", token="0123456789abcdef") as server:
            with tw.connect(server.device, token="0123456789abcdef", device=False) as remote:
                self.assertIn("load", remote.functions())
            self.refused(tw.DeviceError, "token", tw.connect, server.device, token="fedcba9876543210")
            self.refused(tw.DeviceError, "token", tw.connect, server.device)
            self.refused(tw.InputError, "visible ASCII", tw.connect, server.device, token="")
            self.refused(tw.InputError, "/nothing.pem", tw.connect, server.device, certificate="/nothing.pem")
            self.refused(tw.DeviceError, "has configuration 1x8x8", tw.connect, server.device, token="0123456789abcdef", hw="1x4x4")
        self.refused(tw.DeviceError, server.address, tw.connect, server.device)
        self.refused(tw.DeviceError, "be asked for what a server does; use remote:HOST:PORT", tw.connect, "csim")
        self.refused(tw.DeviceError, "HOST:PORT", tw.connect, "remote:nowhere")

    def test_what_cannot_be_lent_is_told(self) -> None:
        self.refused(tw.DeviceError, "cpu cannot be lent", tw.serve, "cpu")
        self.refused(tw.DeviceError, "no device is named nothing; use fsim, csim, rtl, serial", tw.serve, "nothing")
        self.refused(tw.DeviceError, "everywhere", tw.serve, "csim", listen="everywhere")
        wider = "a token and TLS (certificate, key) is missing; give it, listen on 127.0.0.1, or give insecure=True on"
        self.refused(tw.DeviceError, wider, tw.serve, "csim", listen="0.0.0.0:0")
        self.refused(tw.DeviceError, "of 1 to 512 visible ASCII characters", tw.serve, "csim", token="")
        self.refused(tw.InputError, "give both", tw.serve, "csim", certificate="c.pem")
        self.refused(tw.DeviceError, "certificate c.pem: No such file", tw.serve, "csim", certificate="c.pem", key="k.pem")
        with tw.serve("fsim", listen="0.0.0.0:0", insecure=True) as server:
            self.assertRegex(server.device, r"^remote:0\.0\.0\.0:[0-9]+$")
        self.refused(tw.InputError, "devices=0 is not possible", tw.serve, "csim", devices=0)

    def test_a_virtual_board_needs_verilator(self) -> None:
        with mock.patch.dict(os.environ, {"PATH": "", "VERILATOR": ""}):
            hw = tw.Config("1x4x2").replace(name="unseen", inp_depth=64)
            self.refused(tw.DeviceError, "verilator", tw.virtual_board, hw)
