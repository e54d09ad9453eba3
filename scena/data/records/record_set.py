"""Several record files as one sequence with random access."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from itertools import islice
from typing import Any

import numpy as np

from scena.data.records.example import Values, decode_example
from scena.data.records.files import RecordFile
from scena.data.records.leaf import Leaf
from scena.data.records.schema import SCHEMA_FILE, Schema
from scena.errors import DataError
from scena.storage.checksums import warn_if_changed
from scena.storage.location import entries, is_folder, is_remote, located, read_bytes

SHARD = re.compile(r"^(?P<split>.*?)-?(?P<number>\d{5,})-of-(?P<count>\d{5,})(?P<suffix>\.tfrecords?)?$")
_OPEN_FILES = 128


def shard_name(split: str, number: int, count: int) -> str:
    return f"{split}-{number:05d}-of-{count:05d}.tfrecord"


def find_files(path: Any, split: str | None = None) -> list[Any]:
    """The record files that a path or address stands for: a file, several, a pattern with *, or a folder (and a split of it)."""
    if isinstance(path, list | tuple):
        files = [located(name) for name in path]
    elif any(character in str(path) for character in "*?["):
        pattern = located(path)
        found = [file for file, folder in entries(pattern.parent) if not folder and fnmatch(file.name, pattern.name)]
        files = [file for file in found if file.suffix not in (".index", ".json")]
    else:
        files = _of_folder(located(path), split) if is_folder(located(path)) else [located(path)]
    # an address that does not exist is reported when it is opened
    missing = [str(file) for file in files if not is_remote(file) and not file.is_file()]
    if missing or not files:
        raise DataError(f"There are no record files {', '.join(missing) or repr(str(path))}.")
    return files


def splits_of(folder: Any) -> dict[str, list[Any]]:
    """The files of each split in a folder of records, in order; a set with missing files is an error."""
    found: dict[str, dict[int, Any]] = {}
    counts: dict[str, int] = {}
    for file, inner in entries(folder):
        named = SHARD.match(file.name)
        if inner or file.suffix == ".index":
            continue
        if named is None:
            if file.suffix in (".tfrecord", ".tfrecords"):
                found.setdefault(file.stem, {})[0] = file
                counts.setdefault(file.stem, 1)
            continue
        split, count = named["split"], int(named["count"])
        if counts.setdefault(split, count) != count:
            raise DataError(f"{str(folder)!r} mixes two sets of {split!r}: of {counts[split]} and of {count} files.")
        found.setdefault(split, {})[int(named["number"])] = file
    for split, files in found.items():
        missing = sorted(set(range(counts[split])) - set(files))
        if missing:
            names = ", ".join(shard_name(split, number, counts[split]) for number in missing[:3])
            raise DataError(
                f"{str(folder)!r} is not complete: {len(missing)} of {counts[split]} files of {split!r} are missing "
                f"({names}{', …' if len(missing) > 3 else ''}). Write them, for example with --shard."
            )
    return {split: [files[number] for number in sorted(files)] for split, files in found.items()}


def no_records(folder: Any) -> DataError:
    """The error for a folder without record files; a folder inside it that has some was meant."""
    inside = [] if is_remote(folder) else sorted({str(file.parent) for file in folder.glob("*/*.tfrecord")})
    close = f" Did you mean {' or '.join(inside[:3])}?" if inside else ""
    return DataError(f"The folder {str(folder)!r} holds no record files (*.tfrecord).{close}")


def _of_folder(folder: Any, split: str | None) -> list[Any]:
    splits = splits_of(folder)
    if not splits:
        raise no_records(folder)
    if split is None:
        if len(splits) > 1:
            raise DataError(f"{str(folder)!r} has the splits {', '.join(splits)}; name one of them (split=…).")
        return next(iter(splits.values()))
    if split not in splits:
        raise DataError(f"{str(folder)!r} has no split {split!r}; it has {', '.join(splits)}.")
    return splits[split]


def find_schema(files: Sequence[Any]) -> Schema | None:
    """The schema beside record files, if there is one."""
    path = files[0].parent / SCHEMA_FILE
    try:
        data = read_bytes(path)
        if not is_remote(path):
            warn_if_changed(path, data)
        return Schema.parse(data, str(path))
    except OSError as error:
        if is_remote(path) or isinstance(error, FileNotFoundError):
            return None
        raise DataError(f"The schema {str(path)!r} cannot be read: {error.strerror}.") from None


class RecordSet:
    """The records of some files by index, decoded with their schema (inferred where there is none)."""

    def __init__(self, path: Any, split: str | None = None, schema: Schema | None = None) -> None:
        self.paths = find_files(path, split)
        self.files = [RecordFile(file) for file in self.paths]
        stored = schema or find_schema(self.paths)
        self.inferred = stored is None
        self.schema = stored or infer_schema(self.files[0])
        self.counts = [_counted(file, keep=len(self.files) == 1) for file in self.files]
        self._ends = np.cumsum(self.counts)
        self._open: OrderedDict[int, RecordFile] = OrderedDict()
        n, total = len(self.files), int(self._ends[-1])
        self._total = total
        self._many = n > _OPEN_FILES
        self._interleaved = self.schema.interleaved and self.counts == [(total - k + n - 1) // n for k in range(n)]

    def __len__(self) -> int:
        return self._total

    def locate(self, index: int) -> tuple[int, int]:
        """The file of a record, and its index there."""
        if self._interleaved:
            within, number = divmod(index, len(self.files))
            return number, within
        number = int(np.searchsorted(self._ends, index, side="right"))
        return number, index - (int(self._ends[number - 1]) if number else 0)

    def data(self, index: int) -> bytes:
        """The bytes of a record, checked."""
        if not 0 <= index < self._total:
            raise IndexError(f"There are {self._total} records; asked for number {index}.")
        number, within = self.locate(index)
        if self._many and number not in self._open:
            self._open[number] = self.files[number]
            if len(self._open) > _OPEN_FILES:
                self._open.popitem(last=False)[1].close()
        return self.files[number][within]

    def __getitem__(self, index: int) -> Any:
        return self.schema.decode(self.data(index))

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))


def _counted(file: RecordFile, *, keep: bool) -> int:
    """The number of records; the file is closed again unless it is kept, because there may be many, and without an index they were read."""
    count = len(file)
    if not keep:
        file.close()
    return count


def infer_schema(file: RecordFile, records: int = 100) -> Schema:
    """The features of the first `records` records: scalars where each has one value, else a list of fixed or open length."""
    seen: dict[str, list[Values]] = {}
    count = 0
    for data in islice(file, records):
        count += 1
        for name, values in decode_example(data).items():
            seen.setdefault(name, []).append(values)
    if not count:
        raise DataError(f"{str(file.path)!r} has no records, so its schema cannot be inferred.")
    return Schema({name: _leaf(name, values, count) for name, values in sorted(seen.items())})


def _leaf(name: str, values: list[Values], count: int) -> Leaf:
    kinds = {(v.dtype.name if isinstance(v, np.ndarray) else "string") for v in values if len(v)} or {"string"}
    if len(kinds) > 1:
        raise DataError(f"The feature {name!r} holds different kinds of values: {', '.join(sorted(kinds))}.")
    dtype = kinds.pop()
    stored = {"int64": "int64", "float32": "float"}.get(dtype, "bytes")
    lengths = {len(value) for value in values}
    optional = len(values) < count
    shape: tuple[int | None, ...] = (None,)
    if len(lengths) == 1 and not optional:
        shape = () if lengths == {1} else (lengths.pop(),)
    return Leaf(name, dtype, shape, stored=stored, optional=optional)
