"""`converted.json` of an export: which models of other formats are there, what they were made from, and how they were verified.

A converted model counts as verified as long as its files and the model that it was made from are those of the verification.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from scena.data.spec import ArraySpec
from scena.errors import ScenarioError
from scena.prediction.params import ExportFormatParams
from scena.storage.checksums import known_checksum, tree_checksums, warn_if_changed, write_checked
from scena.storage.run_layout import CONVERTED_FILE, LAYERS_FILE, model_file

FORMAT = 1


class NotVerifiedError(ScenarioError):
    """An export has no converted model that can be trusted."""


class Described(msgspec.Struct):
    """An input or output, without the batch."""

    shape: list[int | None]
    dtype: str

    @classmethod
    def of(cls, spec: ArraySpec) -> "Described":
        """That of a spec."""
        return cls(list(spec.shape), spec.dtype.name)

    def spec(self) -> ArraySpec:
        """As a spec."""
        return ArraySpec(tuple(self.shape), self.dtype)


class ConvertedModel(msgspec.Struct):
    """A converted graph that passed its check."""

    format: str
    graph: str
    files: dict[str, str]
    """Checksums by path inside the export."""
    source: dict[str, str]
    """Checksums of the files that it was made from."""
    inputs: dict[str, Described]
    outputs: dict[str, Described]
    differences: dict[str, float]
    """The measured difference to the model in Keras by output."""
    tolerance: float
    """The allowed difference."""
    samples: int
    """On how many samples they were compared."""
    padding: dict[str, float] = {}
    """What an input with a fixed size is padded with, if it is not 0."""
    one_by_one: bool = False
    """Whether it takes one sample at a time."""
    call_size: int | None = None
    """With how many samples in a call most were predicted per second, if that was measured."""
    model_prints: bool = False
    """Whether the scenario's model has print methods of its own, which need Keras."""
    versions: dict[str, str] = {}


class _File(msgspec.Struct):
    format: int
    models: dict[str, ConvertedModel]
    """By file or folder name."""


def read_converted(directory: Path) -> dict[str, ConvertedModel]:
    """The converted models of an export by file or folder name."""
    path = directory / CONVERTED_FILE
    try:
        data = path.read_bytes()
        content = msgspec.json.decode(data, type=_File)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ScenarioError(f"Cannot read {path}: {error}. Convert the model again with: scena export") from error
    if content.format > FORMAT:
        raise ScenarioError(
            f"{path} has format {content.format}; this version of Scena reads up to {FORMAT}. Update Scena."
        )
    warn_if_changed(path, data)
    return content.models


def note_converted(directory: Path, name: str, model: ConvertedModel) -> None:
    """Adds a converted model to the file of its export."""
    content = _File(FORMAT, {**read_converted(directory), name: model})
    write_checked(directory / CONVERTED_FILE, msgspec.json.format(msgspec.json.encode(content), indent=1))


def source_of(directory: Path, graph: str = "default") -> dict[str, str]:
    """The checksums of the files in an export that a graph is made from."""
    paths = [directory / model_file(graph), directory / LAYERS_FILE]
    return {path.name: known_checksum(path) for path in paths if path.is_file()}


def find_verified(directory: Path, form: ExportFormatParams) -> tuple[Path, ConvertedModel]:
    """The main graph of an export in one format.

    Raises:
        NotVerifiedError: it is not there, was not verified, or has changed since.
    """
    name = form.create().file_name("")
    path = directory / name
    add = f"scena export {directory} {' '.join(_flags(form))}"
    if not os.path.lexists(path):
        raise NotVerifiedError(f"{directory} has no {name}. Add it with: {add}")
    model = read_converted(directory).get(name)
    if model is None:
        raise NotVerifiedError(f"{path} was not verified against {model_file()}. Convert it again with: {add}")
    if model.source != source_of(directory):
        raise NotVerifiedError(
            f"{path} was made from another {model_file()} than the one beside it. Convert it again with: {add}"
        )
    if model.files != tree_checksums(path, directory):
        raise NotVerifiedError(f"{path} is not the file that was verified. Convert it again with: {add}")
    return path, model


def is_verified(directory: Path, form: ExportFormatParams) -> bool:
    """Whether an export has a model in this format that can be trusted."""
    try:
        find_verified(directory, form)
    except ScenarioError:
        return False
    return True


def _flags(form: ExportFormatParams) -> Iterator[Any]:
    from scena.params import short_name

    yield from ("--format", short_name(type(form)))
    for name in type(form).__params__:
        if getattr(form, name) is not None:
            yield from (f"--{name}", getattr(form, name))
