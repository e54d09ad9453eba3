"""Writing values as sharded records with a schema beside them."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from scena.data.records.files import ShardWriter, index_path, make_folder, sync_folder, unwritable
from scena.data.records.record_set import find_schema, shard_name
from scena.data.records.schema import SCHEMA_FILE, Schema
from scena.errors import DataError
from scena.storage.checksums import IN_JSON, json_checksum
from scena.storage.location import check_writable, entries, is_folder, is_remote, located, send_folder


def parse_shard(text: str) -> tuple[int, int]:
    """`3/10` as (3, 10): job 3 of the jobs 0 to 9."""
    number, _, count = text.partition("/")
    if not (number.isdigit() and count.isdigit() and int(number) < int(count)):
        raise DataError(f"A shard is i/n with i from 0 to n-1, for example 0/4. Received: {text!r}.")
    return int(number), int(count)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Writes a JSON object with its checksum as a file that appears as a whole."""
    value = {**value, IN_JSON: json_checksum(value)}
    temporary = path.with_name(f".{path.name}.writing-{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(value, file, indent=1, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_records(
    values: Iterable[Any],
    schema: Schema,
    path: Any,
    *,
    split: str = "data",
    shards: int = 1,
    shard: tuple[int, int] | None = None,
    compression: str = "",
    overwrite: bool = False,
) -> int:
    """Writes `values` into the folder `path`; returns how many.

    Args:
        values: what `schema.encode` takes, in order.
        schema: their structure; stored as schema.json.
        path: the folder. Each file is written aside and gets its name when all are complete.
        split: the first part of the names of the files.
        shards: the number of files; value i goes into file i mod n.
        shard: (i, n): these values are those of job i of n, each of which writes one of n files.
        compression: "GZIP" or "ZLIB".
        overwrite: replace files of these names.
    """
    folder = located(path)
    number, count = shard or (0, shards)
    if count < 1:
        raise DataError(f"shards must be at least 1. Received: {count}.")
    numbers = [number] if shard else list(range(count))
    files = [folder / shard_name(split, place, count) for place in numbers]
    _check_free(folder, split, files, overwrite)
    stored = Schema(schema.structure, interleaved=True)
    _check_schema(folder, stored, overwrite)
    if is_remote(folder):
        check_writable(folder)
        with tempfile.TemporaryDirectory(prefix="scena-records-") as here:
            written = _write(values, stored, Path(here), [file.name for file in files], compression)
            send_folder(Path(here), folder)
        return written
    make_folder(folder)
    return _write(values, stored, folder, [file.name for file in files], compression)


def _write(values: Iterable[Any], stored: Schema, folder: Path, names: list[str], compression: str) -> int:
    files = [folder / name for name in names]
    written = 0
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(ShardWriter(file, compression)) for file in files]
        for value in values:
            writers[written % len(writers)].write(stored.encode(value))
            written += 1
        for writer in writers:
            writer.finish()
        # a stale index of a replaced file must not meet the new file
        for file in files:
            index_path(file).unlink(missing_ok=True)
        write_json(folder / SCHEMA_FILE, stored.to_json())
    return written


def _check_free(folder: Any, split: str, files: list[Any], overwrite: bool) -> None:
    there = [file for file, inner in entries(folder) if not inner] if is_folder(folder) else []
    whole_set = [file for file in there if fnmatch(file.name, f"{split}-*-of-*.tfrecord")]
    others = [file for file in whole_set if file.name not in {f.name for f in files}]
    same_set = {file.name.rpartition("-of-")[2] for file in files}
    strange = [file.name for file in others if file.name.rpartition("-of-")[2] not in same_set]
    if strange and not overwrite:
        raise DataError(
            f"{str(folder)!r} holds another set of {split!r} ({strange[0]}): remove it, or choose a new folder."
        )
    existing = sorted({file.name for file in there} & {file.name for file in files})
    if existing and not overwrite:
        raise DataError(
            f"{str(folder)!r} already holds {existing[0]}. Nothing was written; overwrite=True (--force) replaces it."
        )
    if overwrite:
        for name in strange:
            (folder / name).unlink()
            index_path(folder / name).unlink(missing_ok=True)


def _check_schema(folder: Any, schema: Schema, overwrite: bool) -> None:
    path = folder / SCHEMA_FILE
    known = find_schema([path]) if not overwrite else None
    if known is not None and known != schema:
        raise DataError(f"{str(path)!r} describes records of another structure: choose another folder.")
