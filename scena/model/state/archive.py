"""Files of an export: checks a Keras file before its weights are read, and reads and writes the state of layers.

Nothing in a file may point to other files or be larger than the model needs.
"""

import errno
import math
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import h5py
from safetensors import SafetensorError
from safetensors.numpy import load, save

from scena.errors import ModelError
from scena.model.state.layer_state import LayerState, decode, encode
from scena.storage.checksums import DamagedFileError, verify, verify_tree
from scena.storage.run_layout import LAYERS_FILE

WEIGHTS = "model.weights.h5"
MOST_MEMBERS = 10_000
MOST_DEPTH = 64
SLACK = 64 << 20
"""Overhead of HDF5."""
CHUNK = 1 << 20
HDF5_ERRORS = (OSError, RuntimeError, KeyError, ValueError, OverflowError)
"""What h5py raises for a damaged file; a `ModelError` is one of them."""


@contextmanager
def unpacked_weights(path: Path, weight_bytes: int) -> Iterator[Path]:
    """The weights of a `.keras` file as an HDF5 file that exists while the block runs.

    Keras would read them inside the archive, where each step back reads everything before it again: up to Python 3.12 that takes
    seconds for a model of 100 MB.

    Raises:
        ModelError: it holds more than weights of about this size, or points to other files.
        OSError: there is no space to unpack it.
    """
    with tempfile.TemporaryDirectory(prefix="scena-weights-") as folder:
        yield _unpack(path, weight_bytes, Path(folder) / WEIGHTS)


def _unpack(path: Path, weight_bytes: int, target: Path) -> Path:
    try:
        verify(path)
        with zipfile.ZipFile(path) as archive:
            _check_members(path, archive, weight_bytes)
            if WEIGHTS not in archive.namelist():
                raise ModelError(f"{path} holds no {WEIGHTS}; it is not a model that was saved by Keras 3.")
            with archive.open(WEIGHTS) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file, CHUNK)
        with h5py.File(target, "r") as weights:
            _check_group(path, weights, 4 * weight_bytes + SLACK)
    except DamagedFileError as error:
        raise ModelError(f"{error}.") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, *HDF5_ERRORS) as error:
        if isinstance(error, ModelError):
            raise
        if isinstance(error, FileNotFoundError):
            raise ModelError(f"There is no {path}.") from error
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OSError(error.errno, f"{error.strerror}, to unpack {path}", str(target.parent)) from error
        raise ModelError(f"{path} is not a Keras model, or is damaged: {error}") from error
    return target


def check_hdf5_file(path: Path) -> None:
    """Refuses an HDF5 file whose values are in other files.

    Raises:
        ModelError: it is not an HDF5 file, or points to other files.
    """
    try:
        with h5py.File(path, "r") as file:
            _check_group(path, file)
    except HDF5_ERRORS as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path} is not an HDF5 file, or is damaged: {error}") from error


def _check_members(path: Path, archive: zipfile.ZipFile, weight_bytes: int) -> None:
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise ModelError(f"{path} holds {len(members)} files, more than any model has.")
    for member in members:
        name = PurePosixPath(member.filename)
        if name.is_absolute() or ".." in name.parts or "\\" in member.filename:
            raise ModelError(f"{path} holds a file with the path {member.filename!r}, which points outside it.")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise ModelError(f"{path} holds a link ({member.filename}).")
    size = sum(member.file_size for member in members)
    if size > 4 * weight_bytes + SLACK:
        raise ModelError(f"{path} would unpack to {size:,} bytes; the model needs about {weight_bytes:,}.")


def _check_group(
    path: Path, group: h5py.Group, most: float = math.inf, depth: int = 0, seen: set[int] | None = None
) -> None:
    seen = set() if seen is None else seen
    if depth > MOST_DEPTH:
        raise ModelError(f"{path}: {group.name[:60]} … is nested more deeply than any model.")
    for name in group:
        link = group.get(name, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise ModelError(f"{path}: {group.name}/{name} is a link to {getattr(link, 'filename', 'another place')}.")
        item = group[name]
        if isinstance(item, h5py.Group):
            place = h5py.h5o.get_info(item.id).addr
            if place not in seen:
                seen.add(place)
                _check_group(path, item, most, depth + 1, seen)
        elif isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
            raise ModelError(f"{path}: the values of {item.name} are in another file.")
        elif isinstance(item, h5py.Dataset) and item.nbytes > most:
            raise ModelError(f"{path}: {item.name} would have {item.nbytes:,} bytes, more than the whole model needs.")


MOST_BYTES = 4 << 30


def write_layer_file(directory: Path, states: list[LayerState]) -> None:
    """Writes the states; no file if there are none."""
    arrays = encode(states)
    if arrays:
        (directory / LAYERS_FILE).write_bytes(save(arrays))


def read_layer_file(directory: Path) -> list[LayerState]:
    """The layer states of an export; empty if it has none.

    Raises:
        ModelError: the file is damaged.
    """
    path = directory / LAYERS_FILE
    try:
        verify_tree(directory, LAYERS_FILE)  # also reports that it is missing
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise ModelError(f"{path} is not a plain file.")
        if found.st_size > MOST_BYTES:
            raise ModelError(f"{path} has {found.st_size:,} bytes, more than layers can keep ({MOST_BYTES:,}).")
        content = path.read_bytes()
        return decode(load(content))
    except FileNotFoundError:
        return []
    except (OSError, SafetensorError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path} is not a safetensors file, or is damaged: {error}") from error
