"""Messages between two processes, over a socket pair, each with its length before it; and how failures are reported with them."""

import logging
import signal
import socket
import struct
import traceback

import msgspec

from scena.data.engines.workers.messages import Failure, FromParent, FromWorker, Message
from scena.errors import DataError, WorkerError
from scena.user_code import user_lines

logger = logging.getLogger("scena.data")

_LIMIT = 50_000


def describe_failure(error: BaseException) -> Failure:
    """An exception for the parent."""
    message = str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
    text = "".join(traceback.format_exception(error))
    lines: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        lines += [
            f"{line.file}:{line.number} in {line.function}: {line.text}" for line in user_lines(cause.__traceback__)
        ]
        cause = cause.__cause__ or cause.__context__
    return Failure(message[:_LIMIT], "\n".join(lines)[:_LIMIT], text[-_LIMIT:])


def raised(name: str, failure: Failure) -> WorkerError:
    """The error to raise in the parent: with the user's lines; the whole traceback where there are none, else in the log."""
    logger.debug("In %s:\n%s", name, failure.trace)
    if not failure.lines:
        return WorkerError(f"{failure.message}\n\nIn {name}:\n{failure.trace}")
    shown = "\n".join(f"  {line}" for line in failure.lines.splitlines())
    return WorkerError(f"{failure.message}\nIn {name} (SCENA_LOG_LEVEL=debug shows the whole traceback):\n{shown}")


def died(name: str, status: int | None) -> WorkerError:
    """The error for a worker that is gone."""
    if status is None:
        how = "closed its connection"
    elif status < 0:
        try:
            how = f"was killed by {signal.Signals(-status).name}"
        except ValueError:
            how = f"was killed by signal {-status}"
        if status == -signal.SIGKILL:
            how += " (by hand, or because the machine ran out of memory: see `dmesg`)"
    else:
        how = f"ended with exit status {status}"
    return WorkerError(
        f"The {name} of the input pipeline {how}. Resume the run, use fewer processes if memory is short, or set "
        "on_worker_death=restart to restart it automatically."
    )


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(FromParent | FromWorker).decode
_LENGTH = struct.Struct("<I")


class Channel:
    """One end of a socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._buffer = bytearray(1 << 16)  # kept: a new one for each message would be mapped and unmapped each time
        self._received = bytearray()
        self.messages: list[FromParent | FromWorker] = []
        self._taken = 0

    @classmethod
    def pair(cls) -> tuple["Channel", "Channel"]:
        """Two connected ends."""
        one, other = socket.socketpair()
        return cls(one), cls(other)

    def fileno(self) -> int:
        """For select."""
        return self.socket.fileno()

    def send(self, message: Message) -> None:
        """Sends a message; raises OSError if the other end is gone."""
        body = _encode(message)
        self.socket.sendall(_LENGTH.pack(len(body)) + body)

    def receive(self) -> FromParent | FromWorker:
        """The next message; waits for it. Raises EOFError if the other end is gone."""
        while not self.messages:
            if not self.fill():
                raise EOFError
        return self.messages.pop(0)

    def fill(self) -> bool:
        """Reads what is there (waits for something); False at the end."""
        try:
            count = self.socket.recv_into(self._buffer)
        except ConnectionResetError:
            return False
        if not count:
            return False
        received = self._received
        received += memoryview(self._buffer)[:count]
        start = 0
        while len(received) - start >= 4:
            (length,) = _LENGTH.unpack_from(received, start)
            if len(received) - start - 4 < length:
                break
            self.messages.append(_decode(memoryview(received)[start + 4 : start + 4 + length]))
            start += 4 + length
        if start:
            del received[:start]
        return True

    def close(self) -> None:
        """Closes this end."""
        self.socket.close()
