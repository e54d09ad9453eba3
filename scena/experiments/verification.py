"""Checking what Scena has written, file by file: runs, checkpoints, exports, record sets, caches, dumps, journals, event files.

Files of a directory with a manifest are compared with it; others hold their own checksums. Nothing is changed.
"""

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from scena.data.image.statistics import INFO_FILE, parse_info
from scena.data.params import PipelineMode
from scena.data.records.files import RecordFile
from scena.data.records.framing import Damage, salvage
from scena.data.records.record_set import SHARD, splits_of
from scena.data.records.verify import Verified, verify_file
from scena.data.stages.sample_cache import StoredSamples, is_complete
from scena.errors import CheckpointError, DataError, ExperimentError, ScenaError
from scena.evaluation.dump import CHECKSUM, FORMAT, read_dump
from scena.experiments.sheets.run_registry import Entry
from scena.experiments.stored_run import FINISHED, read_run
from scena.storage.checksums import (
    IN_JSON,
    DamagedFileError,
    each_verified,
    file_checksum,
    head_checksum,
    json_checksum,
    verify,
)
from scena.storage.run_layout import (
    CHECKPOINTS,
    DIRECTORIES,
    DISCARDED,
    JOURNAL_FILE,
    LOG_FILE,
    MANIFEST,
    MEDIA,
    PARAMS_FILE,
    STATE_FILE,
    TRACKING,
    run_paths,
    step_of,
)
from scena.training.checkpoint.store import CheckpointStore
from scena.training.directory import read_json, run_identity
from scena.training.trackers.journal import Data, End, JournalReader, damage_in

ENTRY_FIELDS = {field.name for field in msgspec.structs.fields(Entry)}
RECORD_SUFFIXES = (".tfrecord", ".tfrecords")


class Checked(NamedTuple):
    """One file, or a directory that is wrong as a whole."""

    path: Any
    problem: str | None
    """What is wrong; None if nothing is."""
    known: bool = True
    """Whether it has a checksum; without one nothing is known about it."""
    records: int = 0
    """How many whole records a record file has."""


def verify_path(path: Path) -> Iterator[Checked]:
    """Checks a file, or everything below a directory. Hidden files are skipped: nothing reads them, or they are being written.

    Raises:
        ExperimentError: there is nothing, or nothing in it can be checked.
    """
    if path.is_dir():
        yield from _directory(path)
    elif path.is_file():
        yield _single(path)
    else:
        raise ExperimentError(f"There is no file or directory {path}.")


def _single(path: Path) -> Checked:
    try:
        if path.name != MANIFEST and _listed(path):
            verify(path)
            return Checked(path, None)
        found = list(each_verified(path.parent)) if path.name == MANIFEST else []
    except (DamagedFileError, OSError) as error:
        return Checked(path, str(error))
    if found:
        return Checked(path, next((problem for _, problem in found if problem), None))
    result = _by_its_own(path)
    if result.known:
        return result
    return result._replace(problem="it has no checksum, so nothing is known about it")


def _listed(path: Path) -> bool:
    return any(listed == path for listed, _ in each_verified(path.parent))


def _directory(root: Path) -> Iterator[Checked]:
    covered: set[Path] = set()
    for name, folders, files in os.walk(root):
        folder = Path(name)
        folders[:] = sorted(inner for inner in folders if not inner.startswith(".") and not inner.endswith(DISCARDED))
        wrong = False
        if MANIFEST in files:
            for checked in _with_manifest(folder):
                covered.add(checked.path)
                wrong = wrong or checked.problem is not None
                yield checked
        if not wrong and STATE_FILE in files and step_of(folder.name) is not None:
            yield from _checkpoint(folder)
        own = [path for file in files if (path := folder / file) not in covered]
        if any(_is_record_file(path) or _is_index(path) for path in own):
            yield from _record_set(folder)
        if PARAMS_FILE in files:
            yield from _curves(folder)
        for file in sorted(files):
            path = folder / file
            if path not in covered and not file.startswith(".") and file not in (MANIFEST, LOG_FILE):
                yield _by_its_own(path)


def _with_manifest(folder: Path) -> Iterator[Checked]:
    try:
        for path, problem in each_verified(folder):
            yield Checked(path, problem and problem.removeprefix(f"{path} "))
    except DamagedFileError as error:
        yield Checked(folder / MANIFEST, str(error))


def _checkpoint(folder: Path) -> Iterator[Checked]:
    """A whole checkpoint: it is that of its step and of its run, and has all its tensors."""
    run = folder.parents[1] if folder.parent.name == CHECKPOINTS else folder
    step = step_of(folder.name)
    try:
        CheckpointStore(folder.parent, run=run_identity(run)).load(step or 0)
    except CheckpointError as error:
        yield Checked(folder, str(error))


def _record_set(folder: Path) -> Iterator[Checked]:
    """What a folder of records lacks: files of a set, files of indices, records that its info counts."""
    try:
        splits = splits_of(folder)
        info = parse_info((folder / INFO_FILE).read_bytes(), INFO_FILE) if (folder / INFO_FILE).is_file() else {}
    except DataError as error:
        yield Checked(folder, str(error))
        return
    indices = filter(_is_index, sorted(folder.glob("*.index")))
    lost = [path for path in indices if not path.with_suffix("").exists()]
    for path in lost:
        yield Checked(path, f"its record file {path.stem} is missing")
    for split, files in splits.items():
        counted = info.get("splits", {}).get(split, {}).get("count")
        try:
            count = sum(len(RecordFile(file)) for file in files)
        except DataError:
            continue  # reported with its file
        if counted not in (None, count):
            yield Checked(folder / INFO_FILE, f"it counts {counted} records of {split}, and there are {count}")


def _curves(run: Path) -> Iterator[Checked]:
    """What the event files and the journal of a run lack: they grow, so a cut may go unnoticed in the files themselves."""
    paths = run_paths(run, read_json(run / PARAMS_FILE).get("trainer") or dict.fromkeys(DIRECTORIES))
    steps = [path for path in paths.checkpoint.glob("*") if step_of(path.name) is not None]
    newest = max(steps, key=lambda path: step_of(path.name) or 0, default=None)
    callbacks = read_json(newest / STATE_FILE).get("callbacks") if newest is not None else None
    callbacks = callbacks if isinstance(callbacks, dict) else {}
    events, journal = callbacks.get("TensorBoardEvents", {}), callbacks.get("JournalTracker", {})
    for name, size in events.get("sizes", {}).items():
        path = paths.tensorboard / name
        if not path.is_file() or path.stat().st_size < size:
            yield Checked(path, "it is missing" if not path.is_file() else "it is shorter than at the last checkpoint")
        elif events.get("heads", {}).get(name, head_checksum(path, size)) != head_checksum(path, size):
            yield Checked(path, "it is another file than at the last checkpoint")
    path = run / TRACKING / JOURNAL_FILE
    if not path.is_file():
        if journal:
            yield Checked(path, "it is missing")
        return
    reader = JournalReader(path)
    entries = list(reader.read())
    if reader.offset < journal.get("size", 0):
        yield Checked(path, "it is shorter than at the last checkpoint")
    elif _finished(run) and not any(isinstance(entry, End) for entry in entries):
        yield Checked(path, "it lacks the end of the training")
    elif {getattr(entry, "run", run_identity(run)) for entry in entries} - {run_identity(run)}:
        yield Checked(path, "it is that of another run")
    for entry in entries:
        if isinstance(entry, Data) and entry.checksum:
            media = run / TRACKING / MEDIA / Path(entry.file).name
            if not media.is_file() or file_checksum(media) != entry.checksum:
                yield Checked(
                    media, "it is not the file that the journal names" if media.is_file() else "it is missing"
                )


def _finished(run: Path) -> bool:
    try:
        return read_run(run).status == FINISHED
    except ScenaError:
        return False


# ---- files with checksums of their own --------------------------------------------------------------------------------


def _by_its_own(path: Path) -> Checked:
    try:
        if _is_record_file(path):
            return _records(path)
        if _is_index(path):
            return Checked(path, None)  # with its record file
        if path.suffix == ".samples":
            return Checked(path, _cache(path))
        if "tfevents" in path.name:
            return Checked(path, _events(path))
        if (path.parent.name, path.name) == (TRACKING, JOURNAL_FILE):
            return Checked(path, damage_in(path))
        if path.parent.name == MEDIA:
            return Checked(path, None)  # with the journal
        if path.suffix == ".json":
            return _json(path)
        if _is_dump(path):
            return Checked(path, _dump(path))
    except OSError as error:
        return Checked(path, error.strerror or str(error))
    return Checked(path, None, known=False)


def _is_record_file(path: Path) -> bool:
    others = path.suffix == ".index" or path.suffix.startswith(".data-")  # the latter has variables of TensorFlow
    return path.suffix in RECORD_SUFFIXES or (SHARD.match(path.name) is not None and not others)


def _is_index(path: Path) -> bool:
    """Whether it is the index of a record file; a SavedModel has another kind."""
    return path.suffix == ".index" and _is_record_file(path.with_suffix(""))


def _records(path: Path) -> Checked:
    try:
        return of_records(verify_file(path))
    except DataError as error:
        return Checked(path, str(error))


def of_records(found: Verified) -> Checked:
    """What was found in a record file."""
    damages = [f"bytes {damage.offset} to {damage.end}: {damage.reason}" for damage in found.damages]
    if found.damages:
        damages.append(f"{found.records} whole records can be read")
    return Checked(found.path, "; ".join(damages) or None, records=found.records)


def _cache(path: Path) -> str | None:
    if not is_complete(path):
        return "it is damaged, or was made under another name: it will be made again"
    stored = StoredSamples(os.open(path, os.O_RDONLY | os.O_CLOEXEC), PipelineMode.TRAINING, path)
    wrong = [index for index in range(len(stored)) if not stored.is_sound(index)]
    return (
        f"{len(wrong)} of {len(stored)} samples are damaged, the first is {wrong[0]}. Delete it: it is then made again"
        if wrong
        else None
    )


def _events(path: Path) -> str | None:
    wrong = next((part for part in salvage(path.read_bytes(), path.name) if isinstance(part, Damage)), None)
    return None if wrong is None else f"bytes {wrong.offset} to {wrong.end}: {wrong.reason}"


def _json(path: Path) -> Checked:
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        return Checked(path, f"it is not JSON: {error}")
    if not isinstance(value, dict) or IN_JSON not in value:
        return Checked(path, None, known=False)
    if value[IN_JSON] != json_checksum(value):
        return Checked(path, "it is not as Scena wrote it: it was edited, or it is damaged")
    if value.keys() >= ENTRY_FIELDS and value["run"] != path.stem:
        return Checked(path, f"it belongs to the run {value['run']}")
    return Checked(path, None)


def _is_dump(path: Path) -> bool:
    """Whether a file is a dump, by its first line, or by its last one if that is damaged."""
    if path.suffix == ".gz":
        return True
    with path.open("rb") as file:
        head = file.read(64)
        file.seek(max(0, file.seek(0, os.SEEK_END) - 64))
        return FORMAT.encode() in head or CHECKSUM.encode() in file.read()


def _dump(path: Path) -> str | None:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                head = file.read(64)
                while file.read(1 << 20):
                    pass
            if FORMAT.encode() not in head:
                return None if head else "it is empty"
        for _ in read_dump(path):
            pass
    except ScenaError as error:
        return str(error)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        return f"the compressed data is damaged: {error}"
    return None
