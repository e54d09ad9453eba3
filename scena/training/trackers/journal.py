"""The journal of a run: everything its trackers get, in order, in a file that is only appended to.

A line is the CRC32C of an entry and the entry as JSON. A process that is killed leaves at most half a line, which the next writer
removes and readers ignore. Services are brought up to the journal's state by the sender; nothing else says what to send.
"""

import contextlib
import logging
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from scena.storage.checksums import checksum
from scena.storage.durable import make_directory, sync

logger = logging.getLogger(__name__)

Number = float | str
"""A number; JSON has no way to write those that are not finite, so they are texts."""


class Branch(msgspec.Struct, tag="branch"):
    """The beginning of a tracker run. The first one is that of the training itself, a later one continues another from some step."""

    run: str
    """The identity of the training."""
    branch: int
    parent: int | None
    step: int
    """Its first step; the parent's values at earlier steps are those of this branch, too."""
    time: int
    """Milliseconds since 1970."""
    scenario: str
    directory: str
    """The name of the run's directory."""
    params: dict[str, Any]


class Points(msgspec.Struct, tag="points"):
    """Numbers of one step."""

    branch: int
    step: int
    time: int
    values: dict[str, Number]


class Data(msgspec.Struct, tag="data"):
    """Something to look at: an image, a curve, a text. Its arrays are in a file of the media folder."""

    branch: int
    step: int
    time: int
    key: str
    kind: str
    file: str
    checksum: str = ""
    """That of the file."""


class Tags(msgspec.Struct, tag="tags"):
    """Facts about the run that are not parameters."""

    branch: int
    tags: dict[str, str]


class Artifact(msgspec.Struct, tag="artifact"):
    """A file or folder of the run's directory, as it is when it is sent."""

    branch: int
    name: str
    path: str


class End(msgspec.Struct, tag="end"):
    """The training has taken its last step. A resume with more epochs continues the branch."""

    branch: int
    time: int


Entry = Branch | Points | Data | Tags | Artifact | End

_CHUNK = 65536
_decoder = msgspec.json.Decoder(Entry)
_encoder = msgspec.json.Encoder()


def to_number(value: float) -> Number:
    """A number as an entry holds it."""
    return value if math.isfinite(value) else repr(value)


def encode(entry: Entry) -> bytes:
    """The line of an entry."""
    body = _encoder.encode(entry)
    return b"%s %s\n" % (checksum(body).encode(), body)


def decode(line: bytes) -> Entry | None:
    """The entry of a complete line; None if it is damaged."""
    crc, _, body = line.rstrip(b"\n").partition(b" ")
    if crc.decode("ascii", "replace") != checksum(body):
        return None
    try:
        return _decoder.decode(body)
    except (ValueError, RecursionError):
        return None


class JournalReader:
    """Reads entries as they are appended, from the beginning."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        """How many bytes of complete lines are read."""

    def read(self) -> Iterator[Entry]:
        """The entries since the last call; an unfinished last line is left for the next one."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self.offset += len(line)
                entry = decode(line)
                if entry is None:
                    logger.warning("%s is damaged at byte %d: this entry is skipped.", self.path, self.offset)
                else:
                    yield entry


def damage_in(path: Path) -> str | None:
    """What is wrong with a journal. Half a line at its end is not: a killed process leaves it."""
    lines = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    wrong = [number for number, line in enumerate(lines, 1) if decode(line) is None]
    if not wrong:
        return None
    return f"{len(wrong)} of its {len(lines)} entries cannot be read, the first in line {wrong[0]}"


class JournalWriter:
    """Appends entries. What a full disk refuses is kept and written with the next entry."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unwritten: list[Entry] = []
        make_directory(path.parent)
        new = not path.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._handle = os.open(path, flags, 0o666)
        if new:
            sync(path.parent)
        _remove_half_line(self._handle)

    @property
    def size(self) -> int:
        """How many bytes are written."""
        return os.fstat(self._handle).st_size

    def append(self, *entries: Entry) -> None:
        """Appends entries, or keeps them for later."""
        failed = bool(self.unwritten)
        self.unwritten += entries
        data = b"".join(map(encode, self.unwritten))
        size = self.size
        try:
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, size)
            if not failed:
                logger.warning("Cannot write %s: %s. Its entries are kept in memory.", self.path, error.strerror)
            return
        if failed:
            logger.info("%s can be written again; nothing was lost.", self.path)
        self.unwritten = []

    def sync(self) -> None:
        """Waits until the entries are on the disk, so that a checkpoint is never ahead of the journal."""
        if self.unwritten:
            self.append()
        with contextlib.suppress(OSError):  # reported when the entry was written
            os.fsync(self._handle)

    def close(self) -> None:
        """Closes the file."""
        self.sync()
        os.close(self._handle)


def _remove_half_line(handle: int) -> None:
    """Truncates what a killed process left behind the last complete line."""
    size = end = os.fstat(handle).st_size
    while end > 0:
        start = max(end - _CHUNK, 0)
        newline = os.pread(handle, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(handle, end)
