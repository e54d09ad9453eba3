"""Samples from the rows of arrays: in memory, or in .npy, .npz (never unpickled) and HDF5 files."""

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scena.data.generator import RandomAccessGenerator
from scena.data.params import PipelineMode
from scena.data.sample import Sample
from scena.data.sources.params import ArrayGeneratorParams, ImageArraysParams
from scena.data.sources.splits import SplitSource
from scena.errors import DataError
from scena.storage.location import is_remote, located, only_here, read_bytes, state_of

Arrays = dict[str, np.ndarray[Any, Any]]


class ArrayGenerator(RandomAccessGenerator[ArrayGeneratorParams]):
    """Row i of each array makes sample i. A .npy file is mapped, not read: processes share it."""

    def __init__(self, params: ArrayGeneratorParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        if only_here(*params.inputs.values(), *params.targets.values()):
            self.main_process = True  # type: ignore[misc]
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
        """Size and time of change of each file."""
        names = [*self.params.inputs.values(), *self.params.targets.values()]
        return [array_state(name) for name in names]

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Sample:
        return Sample(
            inputs={name: array[index] for name, array in self.inputs.items()},
            targets={name: array[index] for name, array in self.targets.items()},
        )


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
    """An array of an HDF5 file; rows are read when they are used."""
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
    """The first line of what went wrong; numpy's advice to trust a file is no advice."""
    text = (str(error).splitlines() or [""])[0]
    if "allow_pickle" in text:
        return "it holds Python objects, or is no array at all"
    return f"{type(error).__name__}: {text}"


def _common_length(arrays: Arrays) -> int:
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise DataError(f"All arrays need the same number of rows. Received: {sizes}")
    return next(iter(sizes.values()), 0)


class ImageArrays(SplitSource[ImageArraysParams]):
    """Reads rows of two arrays; its classes are named by their numbers."""

    def title(self) -> str:
        return self.params.images

    def open(self) -> dict[str, int]:
        params = self.params
        if only_here(params.images, params.labels):
            self.main_process = True  # type: ignore[misc]
        self._images = load_array(params.images)
        labels = np.asarray(load_array(params.labels)[()])
        if len(self._images.shape) not in (3, 4):
            raise DataError(
                f"{params.images} must have the axes samples, height, width and perhaps channels. "
                f"Received: shape {tuple(self._images.shape)}."
            )
        if labels.ndim == 2 and labels.shape[1] == 1:  # as Keras' data sets come
            labels = labels[:, 0]
        if labels.ndim != 1 or labels.dtype.kind not in "iu" or (labels.size and labels.min() < 0):
            raise DataError(
                f"{params.labels} must hold one whole number from 0 for each image. "
                f"Received: {labels.dtype.name} of shape {labels.shape}."
            )
        if len(labels) != len(self._images):
            raise DataError(f"{params.images} has {len(self._images)} images, {params.labels} {len(labels)} labels.")
        if not len(labels):
            raise DataError(f"{params.images} holds no image.")
        self._labels = labels
        self.classes = [str(number) for number in range(int(labels.max()) + 1)]
        return {"all": len(labels)}

    def labels(self, split: str) -> Sequence[Any] | None:
        return self._labels.tolist()

    def fingerprint(self) -> list[Any]:
        """Size and time of change of both files."""
        return [array_state(self.params.images), array_state(self.params.labels)]

    def read(self, split: str, place: int) -> Sample:
        image = np.asarray(self._images[place])
        return Sample(
            inputs={"image": image if image.ndim == 3 else image[..., None]},
            targets={"label": int(self._labels[place])},
        )
