"""Running `scena` as a user does, in a folder of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start(command: str, folder: Path) -> "subprocess.Popen[str]":
    """Starts the program and returns at once."""
    return subprocess.Popen(
        [sys.executable, "-m", "scena", *command.split()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def scena(command: str, folder: Path, status: int = 0) -> "subprocess.CompletedProcess[str]":
    """Runs the program to its end."""
    process = start(command, folder)
    out, err = process.communicate(timeout=500)
    assert process.returncode == status, err + out
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    """Waits until something is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def stop(process: "subprocess.Popen[str]", number: int = signal.SIGINT) -> tuple[int, str]:
    """Sends a signal and returns the exit status and what was said on standard error."""
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    return process.returncode, err
