"""Messages between two processes: small lists of plain values over a socket pair, each with its length before it."""

import socket
import struct
from typing import Any

import msgspec

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_LENGTH = struct.Struct("<I")


class Channel:
    """One end of a socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._buffer = bytearray(
            1 << 16
        )  # one for all: a new one for each message would be mapped and unmapped each time
        self._received = bytearray()
        self.messages: list[Any] = []
        self._taken = 0

    @classmethod
    def pair(cls) -> tuple["Channel", "Channel"]:
        """Two connected ends."""
        one, other = socket.socketpair()
        return cls(one), cls(other)

    def fileno(self) -> int:
        """For select."""
        return self.socket.fileno()

    def send(self, message: list[Any]) -> None:
        """Sends a message; raises OSError if the other end is gone."""
        body = _encode(message)
        self.socket.sendall(_LENGTH.pack(len(body)) + body)

    def receive(self) -> Any:
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
