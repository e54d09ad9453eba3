"""The process that sends a run's journal to one service while it trains: `python -m scena.training.trackers.process RUN NAME`.

It is a process of its own because libraries of services take seconds of processor time to load, hold the interpreter, install signal
handlers and may hang. The training only writes a byte to its pipe. When the pipe closes, because the training has ended or was killed,
it sends the rest, for a limited time, and ends.
"""

import contextlib
import fcntl
import importlib
import logging
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from scena.storage.durable import write_file
from scena.storage.run_layout import JOURNAL_FILE, MEDIA, PARAMS_FILE, TRACKING
from scena.training.trackers.params import TrackerServiceParams, service_folder, stored_services
from scena.training.trackers.sender import Sender, SenderStatus, reason, send_until
from scena.training.trackers.service import ServiceError

logger = logging.getLogger(__name__)

LAST_ATTEMPTS = 30.0
"""Seconds in which a service that cannot be reached is tried after the training has ended."""


_started: list[subprocess.Popen[bytes]] = []
"""Kept, because a process may outlive the training that started it."""


class SenderProcess:
    """The training's side of the process."""

    def __init__(self, directory: Path, name: str, params: TrackerServiceParams, imports: list[str]) -> None:
        self.name = name
        self.file = status_file(directory, name)
        self.file.unlink(missing_ok=True)
        environment = {**os.environ, **params.environment(), "PYTHONUNBUFFERED": "1"}
        with (directory / TRACKING / f"{name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(directory.absolute()), name, *imports],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,  # Ctrl-C is meant for the training
            )
        _started[:] = [*(process for process in _started if process.poll() is None), self._process]
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)

    def wake(self) -> None:
        """Says that the journal has grown."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended, or has not yet read what it was told before
            os.write(self._process.stdin.fileno(), b".")

    def status(self) -> SenderStatus:
        """What it has written last."""
        return read_status(self.file)

    def running(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def died(self) -> bool:
        """Whether it was killed, so another one may do better."""
        return (self._process.poll() or 0) < 0

    def finish(self, seconds: float) -> SenderStatus:
        """Lets it send the rest, and waits for that unless the service cannot be reached; the process may outlive this one."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        until = time.monotonic() + seconds
        while self.running() and time.monotonic() < until and not self.status().problem:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.1)
        status, code = self.status(), self._process.poll()
        if (
            code != 0 and not status.problem
        ):  # what it wrote last, or an older one that had not ended, is no longer true
            return SenderStatus(-1, "" if code is None else f"the process that sends ended with status {code}")
        return status


def status_file(directory: Path, name: str) -> Path:
    """Where a sender says how far it is."""
    return directory / TRACKING / f"{name}.json"


def read_status(path: Path) -> SenderStatus:
    """What a sender has written last."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=SenderStatus)
    except (OSError, ValueError, RecursionError):
        return SenderStatus(waiting=-1)


@contextmanager
def only_sender(directory: Path, name: str, wait: Callable[[float], bool]) -> Iterator[bool]:
    """Waits until no other process sends to this service; yields False if one still does when `wait`, given seconds, returns False."""
    handle = os.open(directory / TRACKING / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait(0.2):
                    yield False
                    return
            else:
                yield True
                return
    finally:
        os.close(handle)


def create_sender(directory: Path, name: str, params: TrackerServiceParams) -> Sender:
    """The sender of a run's journal to one service."""
    tracking = directory / TRACKING
    service = params.create(service_folder(tracking, name))
    return Sender(tracking / JOURNAL_FILE, service, directory, tracking / MEDIA)


def main(directory: Path, name: str, imports: list[str]) -> int:
    """Sends until the training ends; returns the exit status."""
    _yield_to_training()
    for module in imports:
        importlib.import_module(module)
    report = Report(status_file(directory, name))
    try:
        params = stored_services(msgspec.json.decode((directory / PARAMS_FILE).read_bytes()))[name]
        training = Training()
        with only_sender(directory, name, training.go_on) as alone:
            if not alone:
                raise ServiceError("Another process sends to it.")
            sender = create_sender(directory, name, params)
            done = send_until(sender, training.go_on, report)
            sender.service.close()
    except Exception as error:
        logger.error("The sender ends: %s", error, exc_info=not isinstance(error, ServiceError))
        report(SenderStatus(-1, reason(error), True))
        return 1
    return 0 if done else 75


def _yield_to_training() -> None:
    """Gives this process, and those that it starts, the least share of the processors: loading a library takes seconds of them."""
    os.nice(19)
    with contextlib.suppress(OSError):  # Linux may share processors among sessions first, and this is one of its own
        Path("/proc/self/autogroup").write_text("19")


class Training:
    """The training at the other end of standard input."""

    def __init__(self) -> None:
        self._ended: float | None = None

    def go_on(self, seconds: float) -> bool:
        """Waits until the journal has grown, or for some time; False when the training has ended and there was time enough since."""
        if self._ended is None:
            ready, _, _ = select.select([0], [], [], seconds)
            if not ready or os.read(0, 65536):
                return True
            self._ended = time.monotonic()
            return True
        left = self._ended + LAST_ATTEMPTS - time.monotonic()
        if seconds >= 3600 or left <= 0:  # everything is sent, or there is no time left
            return False
        time.sleep(min(seconds, left))
        return True


class Report:
    """Writes the status when it changes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._last = b""

    def __call__(self, status: SenderStatus) -> None:
        encoded = msgspec.json.encode(status)
        if encoded != self._last:
            self._last = encoded
            with contextlib.suppress(OSError):
                write_file(self._file, encoded)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
