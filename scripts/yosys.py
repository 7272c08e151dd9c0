"""Runs a Yosys script with the `pyosys` package. SymbiYosys calls it instead of the `yosys` program.

Usage: yosys.py -ql LOG SCRIPT

Like `yosys -q`, it prints only warnings and errors; everything goes to LOG.
"""
import ctypes
import os
import signal
import sys


def end_with_parent(parent):
    """On Linux, lets the system kill this process when its parent ends."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)


def main(log, script):
    # The library writes to standard output, so redirect that to the file before loading the library.
    shown = os.dup(1)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(file, 1)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        end_with_parent(parent)
        from pyosys import libyosys as ys

        design = ys.Design()
        ys.run_pass(f"script {script}", design)
        sys.stdout.flush()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    with open(log, errors="replace") as text:
        for line in text:
            if "warning:" in line.lower() or "error:" in line.lower():
                os.write(shown, line.encode())
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] != "-ql":
        sys.exit(__doc__)
    sys.exit(main(sys.argv[2], sys.argv[3]))
