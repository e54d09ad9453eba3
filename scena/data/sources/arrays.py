"""Samples from the rows of arrays: in memory, or in .npy, .npz (never unpickled) and HDF5 files."""

import io
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from scena.data.generator import RandomAccessGenerator
from scena.data.params import PipelineMode
from scena.data.sample import Sample
from scena.data.sources.params import ArrayGeneratorParams
from scena.errors import DataError
from scena.storage.location import is_remote, located, only_here, read_bytes, state_of

Arrays = dict[str, np.ndarray[Any, Any]]


class ArrayGenerator(RandomAccessGenerator[ArrayGeneratorParams]):
    """Row i of each array makes sample i. A .npy file is mapped, not read: processes share it."""

    def __init__(self, params: ArrayGeneratorParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        self.main_process = self.main_process or only_here(*params.inputs.values(), *params.targets.values())
        self.inputs: Arrays = {name: load_array(file) for name, file in params.inputs.items()}
        self.targets: Arrays = {name: load_array(file) for name, file in params.targets.items()}
        self._count = _common_length({**self.inputs, **self.targets})

    @classmethod
    def of(cls, inputs: Mapping[str, Any], targets: Mapping[str, Any] | None = None,
           mode: PipelineMode = PipelineMode.TRAINING) -> "ArrayGenerator":  # fmt: skip
        """A source of arrays that are in memory already."""
        generator = MemoryArrayGenerator(ArrayGeneratorParams(), mode)
        generator.inputs = {name: np.asarray(array) for name, array in inputs.items()}
        generator.targets = {name: np.asarray(array) for name, array in (targets or {}).items()}
        generator._count = _common_length({**generator.inputs, **generator.targets})
        return generator

    def fingerprint(self) -> list[list[Any]]:
        return [array_state(name) for name in (*self.params.inputs.values(), *self.params.targets.values())]

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Sample:
        inputs = {name: array[index] for name, array in self.inputs.items()}
        return Sample(inputs=inputs, targets={name: array[index] for name, array in self.targets.items()})


class MemoryArrayGenerator(ArrayGenerator):
    """Arrays that exist in this process only."""

    main_process = True


_MEMBER = re.compile(r"\.(?:npz|h5|hdf5)(:(?!:)([^:]+))(?=::|$)", re.IGNORECASE)
_HDF5 = re.compile(r"\.(h5|hdf5)(?=:|$)", re.IGNORECASE)


def _split(file: str) -> tuple[str, str]:
    """File and member of "file.npz:member" or "file.h5:member", also within an address: "zip://file.h5:member::all.zip"."""
    found = _MEMBER.search(file)
    return (file[: found.start(1)] + file[found.end(1) :], found[2]) if found else (file, "")


def array_state(file: str) -> list[Any]:
    """Size and time of change of the file of an array."""
    return state_of(located(_split(file)[0]))


def load_array(file: str) -> np.ndarray[Any, Any]:
    """The array of file.npy, file.npz:array or file.h5:array. Rows of .npy and HDF5 files are read when they are used."""
    if _HDF5.search(file):
        return _load_hdf5(file)
    name, member = _split(file)
    path = located(name)
    try:
        source = io.BytesIO(read_bytes(path)) if is_remote(path) else path
        if path.suffix == ".npz":
            with np.load(source, allow_pickle=False) as archive:
                if member not in archive:
                    raise DataError(f"{file!r}: name one of its arrays as {path.name}:array. It has {sorted(archive)}.")
                found = archive[member]
                if not isinstance(found, np.ndarray):
                    raise ValueError(f"{member} is no array")
                return found
        # an array elsewhere is read as a whole, one on this machine is mapped
        return np.asanyarray(np.load(source, mmap_mode=None if is_remote(path) else "r", allow_pickle=False))
    except (DataError, FileNotFoundError):
        raise
    except Exception as error:  # a header that is none makes numpy raise whatever its parsers do
        raise DataError(f"{str(path)!r} cannot be read as an array: {_what(error)}") from None


def _load_hdf5(file: str) -> np.ndarray[Any, Any]:
    import h5py

    path, member = _split(file)
    place = located(path)
    try:
        opened = h5py.File(place.open("rb") if is_remote(place) else place, "r")
        names = [name for name in opened if _is_inside(opened, name) and hasattr(opened[name], "shape")]
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise DataError(f"{path!r} cannot be read as an HDF5 file: {_what(error)}") from None
    if not member and len(names) == 1:
        member = names[0]
    if not _is_inside(opened, member):
        raise DataError(f"{file!r} is a link to another file, or its data is in another file. Name that file itself.")
    if not hasattr(opened.get(member or "/"), "shape"):
        raise DataError(f"{file!r}: name one of its arrays as {place.name}:array. It has {sorted(names)}.")
    array: Any = opened[member]
    return array


def _is_inside(file: Any, name: str) -> bool:
    """Whether what a name leads to lies in the file itself; a file must not choose which other files are read."""
    import h5py

    parts = name.split("/")
    for depth in range(1, len(parts) + 1):
        link = file.get("/".join(parts[:depth]), getlink=True) if parts[:depth] != [""] else None
        if isinstance(link, h5py.ExternalLink):
            return False
        if isinstance(link, h5py.SoftLink) and not _is_inside(file, link.path.lstrip("/")):
            return False
    item = file.get(name or "/")
    return not (isinstance(item, h5py.Dataset) and (item.external or item.is_virtual))


def _what(error: Exception) -> str:
    """The first line of an error, without numpy's advice to allow pickled objects."""
    text = (str(error).splitlines() or [""])[0]
    if "allow_pickle" in text:
        return "it holds Python objects, or is no array at all"
    return f"{type(error).__name__}: {text}"


def _common_length(arrays: Arrays) -> int:
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise DataError(f"All arrays need the same number of rows. Received: {sizes}")
    return next(iter(sizes.values()), 0)
