"""Several record files as one sequence with random access."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scena.data.errors import DataError
from scena.data.records.files import RecordFile
from scena.data.records.infer import infer_schema
from scena.data.records.schema import SCHEMA_FILE, Schema

SHARD = re.compile(r"^(?P<split>.*?)-?(?P<number>\d{5,})-of-(?P<count>\d{5,})(?P<suffix>\.tfrecords?)?$")
_OPEN_FILES = 128


def shard_name(split: str, number: int, count: int) -> str:
    """The name of one of the files of a split."""
    return f"{split}-{number:05d}-of-{count:05d}.tfrecord"


def find_files(path: str | Path | Sequence[str | Path], split: str | None = None) -> list[Path]:
    """The record files that a path stands for: a file, several, a pattern with *, or a folder (and a split of it).

    Raises:
        DataError: there are none, a file of a set is missing, or a folder has several splits and none was named.
    """
    if not isinstance(path, str | Path):
        files = [Path(name) for name in path]
    elif any(character in str(path) for character in "*?["):
        pattern = Path(path)
        files = sorted(pattern.parent.glob(pattern.name))
        files = [file for file in files if file.suffix not in (".index", ".json")]
    elif Path(path).is_dir():
        files = _of_folder(Path(path), split)
    else:
        files = [Path(path)]
    missing = [str(file) for file in files if not file.is_file()]
    if missing or not files:
        raise DataError(f"There are no record files {', '.join(missing) or repr(str(path))}.")
    return files


def splits_of(folder: Path) -> dict[str, list[Path]]:
    """The files of each split in a folder of records, in order; a set with missing files is an error."""
    found: dict[str, dict[int, Path]] = {}
    counts: dict[str, int] = {}
    for file in sorted(folder.iterdir()):
        named = SHARD.match(file.name)
        if file.name.startswith(".") or file.suffix == ".index" or not file.is_file():
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


def _of_folder(folder: Path, split: str | None) -> list[Path]:
    splits = splits_of(folder)
    if not splits:
        raise DataError(f"The folder {str(folder)!r} holds no record files (*.tfrecord).")
    if split is None:
        if len(splits) > 1:
            raise DataError(f"{str(folder)!r} has the splits {', '.join(splits)}; name one of them (split=…).")
        return next(iter(splits.values()))
    if split not in splits:
        raise DataError(f"{str(folder)!r} has no split {split!r}; it has {', '.join(splits)}.")
    return splits[split]


def find_schema(files: Sequence[Path]) -> Schema | None:
    """The schema beside record files, if there is one."""
    path = files[0].parent / SCHEMA_FILE
    return Schema.read(path) if path.is_file() else None


class RecordSet:
    """The records of some files by index, decoded with their schema (inferred where there is none)."""

    def __init__(self, path: str | Path | Sequence[str | Path], split: str | None = None,
                 schema: Schema | None = None) -> None:  # fmt: skip
        self.paths = find_files(path, split)
        self.files = [RecordFile(file) for file in self.paths]
        stored = schema or find_schema(self.paths)
        self.inferred = stored is None
        self.schema = stored or infer_schema(self.files[0])
        self.counts = [len(file) for file in self.files]
        self._ends = np.cumsum(self.counts)
        self._open: OrderedDict[int, RecordFile] = OrderedDict()
        n, total = len(self.files), int(self._ends[-1])
        self._total = total
        self._interleaved = self.schema.interleaved and self.counts == [(total - k + n - 1) // n for k in range(n)]

    def __len__(self) -> int:
        return self._total

    def place(self, index: int) -> tuple[int, int]:
        """The file of a record, and its place within it."""
        if self._interleaved:
            return index % len(self.files), index // len(self.files)
        number = int(np.searchsorted(self._ends, index, side="right"))
        return number, index - (int(self._ends[number - 1]) if number else 0)

    def data(self, index: int) -> bytes:
        """The bytes of a record, checked."""
        if not 0 <= index < self._total:
            raise IndexError(f"There are {self._total} records; asked for number {index}.")
        if len(self.files) == 1:
            return self.files[0][index]
        number, place = self.place(index)
        if len(self.files) > _OPEN_FILES and number not in self._open:
            self._open[number] = self.files[number]
            if len(self._open) > _OPEN_FILES:
                self._open.popitem(last=False)[1].close()
        return self.files[number][place]

    def __getitem__(self, index: int) -> Any:
        return self.schema.decode(self.data(index))

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))
