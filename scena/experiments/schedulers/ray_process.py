"""Runs a process on a node of a Ray cluster, with its log and a lock against a second one."""

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import time
from pathlib import Path

from scena.signals import end_with_parent


def run_process(
    words: list[str], environment: dict[str, str], folder: str, log: str, lock: str, grace: float
) -> tuple[int, float]:
    """Runs a command and returns its exit status and its duration.

    The process inherits a lock on the storage that all nodes share, so that it starts only when the process that a lost node may
    have left has ended.
    """
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _wait_for(handle)
        began, parent = time.monotonic(), os.getpid()
        with Path(log).open("ab") as file:
            process = subprocess.Popen(
                words,
                cwd=folder,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: end_with_parent(parent),
                pass_fds=[handle],
            )
    finally:
        os.close(handle)
    try:
        _watch(process)
        status = process.wait()
    except KeyboardInterrupt:  # Ray's stop request
        status = _stop(process, grace)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return status, time.monotonic() - began


def _watch(process: "subprocess.Popen[bytes]") -> None:
    """Waits for its end in short intervals: Ray's stop request reaches Python only between two of them."""
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


def _stop(process: "subprocess.Popen[bytes]", grace: float) -> int:
    process.terminate()
    try:
        return process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
