"""Verifies exports during a training: chooses the samples and the weights to compare with."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scena.data.sample import Arrays, Batch
from scena.errors import ScenaError, TrainingError

if TYPE_CHECKING:
    from scena.training.run import TrainingRun

SAMPLES = 4
"""Enough to see a difference, at almost no cost."""


class Verification:
    """Compares exports of a training with its model in memory.

    Args:
        run: the training.
    """

    def __init__(self, run: "TrainingRun") -> None:
        self._run = run
        self._check = run.scenario.create_export_check(run.built, run.params)
        self._samples: dict[str, Any] = {}
        self._of_validation = False

    def see(self, batch: Batch, *, validation: bool = False) -> None:
        """Keeps some samples of the first batch, preferably of the validation."""
        if not self._samples or (validation and not self._of_validation):
            arrays = {**batch.targets, **batch.inputs}
            self._samples = {name: np.array(value[:SAMPLES]) for name, value in arrays.items()}
            self._of_validation = validation

    def finish(self) -> None:
        """The training is over; its last exports follow one after the other."""
        self._check.keep = True

    def retrace(self) -> None:
        """Compiles again, because a layer has replaced tensors."""
        self._check.retrace()

    def expect(self) -> Any:
        """The current outputs of the model; None if it cannot be verified."""
        return self._check.expect(self._inputs())

    def of_export(self, name: Path, expected: Any) -> "Callable[[Path], None] | None":
        """A function that checks a complete export before it is moved into place.

        Args:
            name: its final directory.
            expected: its expected outputs.
        """
        if expected is None:
            return None

        def check(directory: Path) -> None:
            with _explained():
                self._check.verify_model(directory, name, expected)
                self._check.verify_saved_models(directory, name, expected)

        return check

    def of_saved_models(self, name: Path, expected: Any, *, known: bool) -> "Callable[[Path], None] | None":
        """A function that checks the SavedModels that are added to an export.

        Args:
            name: the export.
            expected: its expected outputs; None if another process wrote it: then those of the model in memory, which has its
                weights when the check is called.
            known: whether the rest of the export was verified before.
        """

        def check(directory: Path) -> None:
            with _explained():
                wanted = expected if expected is not None else self.expect()
                if wanted is None:
                    return
                if not known:
                    self._check.verify_model(name, name, wanted)
                self._check.verify_saved_models(directory, name, wanted)

        return check

    def _inputs(self) -> dict[str, Any]:
        if not self._samples:
            pipeline = self._run.val_data or self._run.train_data
            with pipeline.stream(repeat=False) as stream:
                batch = next(iter(stream), None)
            if batch is not None:
                self.see(batch)
        return self._samples


def first_inputs(run: "TrainingRun", count: int = 16) -> Arrays:
    """Inputs of the first samples of the validation, or else of the training."""
    with (run.val_data or run.train_data).stream(repeat=False) as stream:
        batch = next(iter(stream))
    return {name: np.array(value[:count]) for name, value in batch.inputs.items()}


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except ScenaError as error:
        raise TrainingError(str(error)) from error
