"""The samples of one fold of a cross-validation, or all others, and the file that says which these are."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scena.data.generator import RandomAccessGenerator, as_generator, has_random_access
from scena.data.params import FoldSourceParams, PipelineMode
from scena.data.sample import Sample
from scena.errors import DataError
from scena.storage.checksums import write_checked

Assigned = np.ndarray[Any, Any]
"""The fold of each sample, a row for each repeat."""


class FoldSource(RandomAccessGenerator[FoldSourceParams]):
    """Some samples of another source, which is opened as for training whatever this one is used for."""

    def __init__(self, params: FoldSourceParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        self.inner = open_pool(params.source)
        self.main_process = self.inner.main_process
        assigned = read_folds(Path(params.file), params.digest)
        if assigned.shape[1] != len(self.inner):
            raise DataError(
                f"{params.file} divides {assigned.shape[1]} samples, but {type(self.inner).__name__} has {len(self.inner)} now. Has the "
                "data changed since the cross-validation began?"
            )
        if params.repeat >= len(assigned):
            raise DataError(f"{params.file} has {len(assigned)} repeats; there is no number {params.repeat}.")
        tested = assigned[params.repeat] == params.number
        self.indices = np.flatnonzero(tested if params.test else ~tested)
        """The indices of its samples in the other source."""

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Sample:
        sample: Sample = self.inner[int(self.indices[index])]
        return sample

    def fingerprint(self) -> Any:
        return [self.inner.fingerprint(), self.params.digest]

    def strata(self) -> Sequence[Any] | None:
        known = self.inner.strata()
        return None if known is None else [known[index] for index in self.indices]

    def epoch_order(self, rng: np.random.Generator, chosen: Sequence[int]) -> Sequence[int] | None:
        order = self.inner.epoch_order(rng, self.indices[np.asarray(chosen)].tolist())
        if order is None:
            return None
        own = {int(index): number for number, index in enumerate(self.indices)}
        return [own[int(index)] for index in order]


def open_pool(source: Any) -> Any:
    """All samples that a cross-validation divides: what the training would read.

    Raises:
        DataError: they cannot be read by index, or are whole batches.
    """
    generator = as_generator(source, PipelineMode.TRAINING)
    name = type(generator).__name__
    if not has_random_access(generator):
        raise DataError(
            f"{name} is a stream, and cross-validation reads samples by their index: define __len__ and __getitem__, or write the samples "
            "to record files (scena records convert)."
        )
    if generator.whole_batches:
        raise DataError(f"{name} gives whole batches, which cannot be divided into folds: let it give single samples.")
    return generator


def write_folds(path: Path, assigned: Assigned, description: dict[str, Any]) -> None:
    """Writes the folds, with a description of how they were made.

    Raises:
        DataError: the file holds other folds.
    """
    digest = folds_digest(assigned)
    if path.exists():
        stored = _read(path)
        differ = [name for name in description if stored.get(name) != description[name]]
        if differ or folds_digest(stored["folds"]) != digest:
            what = (
                f"{differ[0]}: {stored.get(differ[0])!r} before, {description[differ[0]]!r} now"
                if differ
                else "other folds"
            )
            raise DataError(f"{path.parent} holds another cross-validation ({what}). Choose another --output.")
        return
    write_checked(path, json.dumps({**description, "digest": digest, "folds": assigned.tolist()}) + "\n")


def read_folds(path: Path, digest: str) -> Assigned:
    """The folds in a file, if they are those with this digest."""
    assigned = _read(path)["folds"]
    if assigned.ndim != 2 or folds_digest(assigned) != digest:
        raise DataError(f"{path} does not hold the folds that this run began with: it was changed or damaged.")
    return assigned


def _read(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_bytes())
        if not isinstance(stored, dict) or not isinstance(stored.get("folds"), list):
            raise ValueError("it holds no folds")
        stored["folds"] = np.array(stored["folds"])
        return stored
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"Cannot read the folds in {path}: {error}.") from error


def folds_digest(assigned: Assigned) -> str:
    """Identifies the folds of a cross-validation."""
    return hashlib.sha256(json.dumps(assigned.tolist()).encode()).hexdigest()[:16]
