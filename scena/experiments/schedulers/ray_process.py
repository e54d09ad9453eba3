"""The part of a run that happens on a node of a Ray cluster: one process, its log, and a lock against a second one."""

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import subprocess
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def run_process(
    words: list[str], environment: dict[str, str], folder: str, log: str, lock: str, grace: float
) -> tuple[int, float]:
    """Runs a command to its end and returns its exit status and how long it took.

    The lock, on the storage that all nodes share, is inherited by the process: what a lost node has left of the same run must
    have ended before this one starts.
    """
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _wait_for(handle)
        began = time.monotonic()
        with Path(log).open("ab") as file:
            process = subprocess.Popen(
                words,
                cwd=folder,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent,
                pass_fds=[handle],
            )
    finally:
        os.close(handle)
    try:
        _watch(process)
        status = process.wait()
    except KeyboardInterrupt:  # how Ray asks a task to end
        status = _stop(process, grace)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return status, time.monotonic() - began


def _watch(process: "subprocess.Popen[bytes]") -> None:
    """Waits for its end in small pieces: Ray's request to end reaches Python only between two of them."""
    descriptor = os.pidfd_open(process.pid)
    try:
        while not select.select([descriptor], [], [], 0.2)[0]:
            pass
    finally:
        os.close(descriptor)


def _wait_for(handle: int) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(0.2)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _stop(process: "subprocess.Popen[bytes]", grace: float) -> int:
    process.terminate()
    try:
        return process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
