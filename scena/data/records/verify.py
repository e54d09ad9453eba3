"""Checking record files from end to end, and saving what can be read of damaged ones."""

from pathlib import Path
from typing import Any, NamedTuple

from scena.data.records.example import check_example
from scena.data.records.files import RecordFile
from scena.data.records.framing import Damage, salvage
from scena.data.records.writing import ShardWriter, make_folder
from scena.errors import DataError


class Verified(NamedTuple):
    """What was found in one file."""

    path: Any
    records: int
    """How many whole records it has."""
    damages: list[Damage]
    """What cannot be read, with offsets (in the uncompressed data, if it is compressed)."""
    size: int
    """Bytes of the file, if it is sound."""

    @property
    def sound(self) -> bool:
        return not self.damages


def verify_file(path: Any, *, examples: bool = True, into: Any = None) -> Verified:
    """Reads a file from end to end: each checksum, and (with `examples`) that each record is a tf.train.Example.

    `into` is a writer that gets every whole record.
    """
    file = RecordFile(path)
    contents = file.contents()
    records, offset, damages = 0, 0, []
    for part in salvage(contents, str(path)):
        if isinstance(part, Damage):
            damages.append(part)
            offset = part.end
            continue
        start, offset = offset, offset + len(part) + 16
        if examples:
            try:
                check_example(part)
            except DataError as error:
                damages.append(Damage(start, offset, f"its checksum is right, but {_lower(error)}"))
                continue
        records += 1
        if into is not None:
            into.write(part)
    if file.damage is not None:
        damages.append(Damage(len(contents), len(contents), file.damage))
    mismatch = file.index_mismatch()
    if mismatch is not None and not damages:
        damages.append(Damage(file.size, file.size, mismatch))
    stored = file.size if not damages else 0
    del contents
    file.close()
    return Verified(path, records, damages, stored)


def _lower(error: Exception) -> str:
    text = str(error).rstrip(".")
    return text[:1].lower() + text[1:]


def salvage_file(path: Any, target: Path, compression: str = "") -> Verified:
    """Copies every whole record of a file to a new file."""
    make_folder(target.parent)
    if target.exists():
        raise DataError(f"{str(target)!r} exists already: salvage into an empty folder.")
    with ShardWriter(target, compression) as writer:
        return verify_file(path, into=writer)
