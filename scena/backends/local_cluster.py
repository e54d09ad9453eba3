"""Starts several workers on this machine, shows their output and ends them together."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from scena.signals import end_with_parent

GRACE = 30.0
"""Seconds that the others have to exit after one has failed."""
TICK = 0.1


class LocalCluster:
    """The processes of one training on this machine.

    Args:
        command: the command of each.
        count: the number of processes.
        divide_cores: give each a share of the cores.
        patience: seconds to wait for the others once one has failed.
    """

    def __init__(self, command: list[str], count: int, *, divide_cores: bool = True, patience: float = GRACE) -> None:
        self._patience = patience
        self._readers: list[threading.Thread] = []
        addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
        cores = sorted(os.sched_getaffinity(0))
        self.processes: list[subprocess.Popen[str]] = []
        for index in range(count):
            own = cores[len(cores) * index // count : len(cores) * (index + 1) // count] if divide_cores else []
            self.processes.append(self._start(command, addresses, index, own))

    def wait(self) -> int:
        """Waits for all processes; returns the status of the chief, or of the first worker that failed."""
        failed: float | None = None
        with self._passing_on_signals():
            while any(process.poll() is None for process in self.processes):
                if failed is None and any(process.poll() for process in self.processes):
                    failed = time.monotonic()
                if failed is not None and time.monotonic() > failed + self._patience:
                    self.kill()
                time.sleep(TICK)
        for reader in self._readers:
            reader.join()
        codes = [process.returncode for process in self.processes]
        statuses = [code if code >= 0 else 128 - code for code in codes]
        return statuses[0] or next((status for status in statuses if status), 0)

    def kill(self) -> None:
        """Kills all processes that still run."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()

    def _start(self, command: list[str], addresses: list[str], index: int, cores: list[int]) -> subprocess.Popen[str]:
        cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        parent = os.getpid()

        def before() -> None:
            end_with_parent(parent)
            if cores:
                os.sched_setaffinity(0, cores)

        process = subprocess.Popen(
            command,
            env={**os.environ, "TF_CONFIG": json.dumps(cluster)},
            stdin=subprocess.DEVNULL,
            stdout=None if index == 0 else subprocess.PIPE,
            stderr=None if index == 0 else subprocess.STDOUT,
            text=True,
            errors="replace",
            preexec_fn=before,
        )
        if process.stdout is not None:
            reader = threading.Thread(target=_show, args=(process.stdout, f"worker {index}"), daemon=True)
            reader.start()
            self._readers.append(reader)
        return process

    @contextmanager
    def _passing_on_signals(self) -> Iterator[None]:
        def passed_on(number: int, frame: object) -> None:
            del frame
            for process in self.processes:
                if process.poll() is None:
                    with contextlib.suppress(ProcessLookupError):
                        process.send_signal(number)

        # Ctrl-C in a terminal reaches all processes anyway; a second signal would end them before they have saved
        terminal = sys.stdin is not None and sys.stdin.isatty()
        handlers = {signal.SIGTERM: passed_on, signal.SIGINT: _ignored if terminal else passed_on}
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def free_ports(count: int) -> list[int]:
    """Ports that are free at the moment."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _ignored(number: int, frame: object) -> None:
    """Does nothing; unlike SIG_IGN it is not inherited by other processes."""


def _show(lines: IO[str], name: str) -> None:
    for line in lines:
        sys.stderr.write(f"{name}: {line}")
        sys.stderr.flush()
