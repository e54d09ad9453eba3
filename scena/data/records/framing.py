"""The frames of a TFRecord file: length, checksum, data, checksum.

Nothing here knows what is inside a record; opening files and compression live in `files.py`.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from google_crc32c import value as crc32c

from scena.errors import DataError

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")
OVERHEAD = HEADER.size + FOOTER.size
_MASK_DELTA = 0xA282EAD8


class RecordError(DataError):
    """A record file is damaged; `offset` and `file` are where."""

    def __init__(self, file: str, offset: int, reason: str) -> None:
        super().__init__(f"{file}: {reason} at byte {offset}.")
        self.file = file
        self.offset = offset
        self.reason = reason


class Buffer(Protocol):
    """What frames are read from: bytes, a memory-mapped file, or a remote one."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: slice, /) -> bytes: ...


def masked_crc(data: bytes) -> int:
    """The checksum of `data` as record files store it."""
    crc: int = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def frame(data: bytes) -> tuple[bytes, bytes, bytes]:
    """`data` as one record: what comes before it, itself, and what comes after it. Large data is not copied."""
    length = _LENGTH.pack(len(data))
    return length + FOOTER.pack(masked_crc(length)), data, FOOTER.pack(masked_crc(data))


def record_between(buffer: Buffer, start: int, end: int, file: str) -> bytes:
    """The data of the record whose frame goes from `start` to `end`, as an index says; raises RecordError if it is not whole."""
    # a checksum that fits the data is enough; the header adds nothing
    stop = end - 4
    data = buffer[start + 12 : stop]
    crc = crc32c(data)
    if buffer[stop:end] == (((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF).to_bytes(4, "little"):
        return data
    data = record_at(buffer, start, file)
    if start + OVERHEAD + len(data) != end:
        raise RecordError(file, start, f"the index beside the file is that of another one (it has {end - start} bytes)")
    return data


def record_at(buffer: Buffer, offset: int, file: str) -> bytes:
    """The data of the record that starts at `offset`; raises RecordError if it is not whole."""
    # one function for speed: a damaged length cannot lead to data with a fitting checksum, so that of the length is looked at
    # only to say what is wrong
    header = buffer[offset : offset + 12]
    if len(header) == 12:
        start = offset + 12
        end = start + int.from_bytes(header[:8], "little")
        if end + 4 <= len(buffer):
            data = buffer[start:end]
            crc = crc32c(data)
            masked = ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF
            if buffer[end : end + 4] == masked.to_bytes(4, "little"):
                return data
    length = length_at(buffer, offset, file)
    raise RecordError(file, offset, f"the checksum of a record of {length} bytes is wrong, in the record")


def length_at(buffer: Buffer, offset: int, file: str) -> int:
    """The length of the data of the record at `offset`, checked to lie within the file."""
    header = buffer[offset : offset + HEADER.size]
    if len(header) < HEADER.size:
        raise RecordError(file, offset, "the file ends within the header of a record")
    length, crc = HEADER.unpack(header)
    if crc != masked_crc(header[:8]):
        raise RecordError(file, offset, "this is not the start of a record (the checksum of its length is wrong)")
    if offset + OVERHEAD + length > len(buffer):
        missing = offset + OVERHEAD + length - len(buffer)
        raise RecordError(file, offset, f"the file ends {missing} bytes before the end of a record")
    return int(length)


def scan(buffer: Buffer, file: str) -> Iterator[tuple[int, int]]:
    """(offset, length) of each record, from headers alone."""
    offset = 0
    while offset < len(buffer):
        length = length_at(buffer, offset, file)
        yield offset, length
        offset += OVERHEAD + length


class Damage(NamedTuple):
    """A part of a file that cannot be read: from `offset` up to `end`."""

    offset: int
    end: int
    reason: str


def salvage(buffer: Buffer, file: str) -> Iterator[bytes | Damage]:
    """Every whole record of a damaged file, and what lies between them.

    After a damaged record the next one is searched for byte by byte. The checksums of its header and its data must both fit, so that
    data is not taken for a header.
    """
    offset, total = 0, len(buffer)
    while offset < total:
        try:
            data = record_at(buffer, offset, file)
        except RecordError as error:
            following = _next_record(buffer, offset + 1, file)
            yield Damage(offset, following, error.reason)
            offset = following
            continue
        header = buffer[offset : offset + HEADER.size]
        if HEADER.unpack(header)[1] != masked_crc(header[:8]):  # other readers stop here
            yield Damage(offset, offset, "the checksum of the length of this record is wrong; its data is intact")
        yield data
        offset += OVERHEAD + len(data)


def _next_record(buffer: Buffer, offset: int, file: str) -> int:
    total = len(buffer)
    while offset + OVERHEAD <= total:
        header = buffer[offset : offset + HEADER.size]
        length, crc = HEADER.unpack(header)
        if offset + OVERHEAD + length <= total and crc == masked_crc(header[:8]):
            try:
                record_at(buffer, offset, file)
                return offset
            except RecordError:
                pass
        offset += 1
    return total
