"""Verifies exports during a training: chooses the samples and the weights to compare with."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scena.data.sample import Arrays, Batch
from scena.errors import ScenaError, TrainingError

if TYPE_CHECKING:
    from scena.training.run import TrainingRun

logger = logging.getLogger(__name__)

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
        self._begun = time.monotonic()
        self._spent = 0.0

    def see(self, batch: Batch, *, validation: bool = False) -> None:
        """Keeps some samples of the first batch, preferably of the validation."""
        if not self._samples or (validation and not self._of_validation):
            arrays = {**batch.targets, **batch.inputs}
            self._samples = {name: np.array(value[:SAMPLES]) for name, value in arrays.items()}
            self._of_validation = validation

    def finish(self) -> None:
        """The training is over; its last exports follow one after the other."""
        self._check.keep = True

    def report(self) -> None:
        """Logs how long it took."""
        logger.debug("Verifying exports took %.2f s of %.1f s.", self._spent, time.monotonic() - self._begun)

    def expect(self) -> Any:
        """The current outputs of the model; None if it cannot be verified."""
        with self._timed():
            return self._check.expect(self._inputs())

    def of_export(self, name: Path, expected: Any = None) -> "Callable[[Path], None]":
        """A function that checks a complete export.

        Args:
            name: where it is going to be, or is already.
            expected: what the model in memory put out when it was written; default: what it puts out now.
        """

        def check(directory: Path) -> None:
            wanted = expected if expected is not None else self.expect()
            if wanted is not None:
                with _explained(), self._timed():
                    self._check.verify_model(directory, name, wanted)
                    self._check.verify_saved_models(directory, name, wanted)

        return check

    def of_saved_models(self, name: Path, expected: Any) -> "Callable[[Path], None]":
        """A function that checks the SavedModels that are added to an export, when the model in memory has its weights.

        Args:
            name: the export.
            expected: what it put out when it was written, and the rest of it was verified. None if another process wrote it: then
                all of it is compared with the model in memory.
        """

        def check(directory: Path) -> None:
            wanted = expected if expected is not None else self.expect()
            if wanted is not None:
                with _explained(), self._timed():
                    if expected is None:
                        self._check.verify_model(name, name, wanted)
                    self._check.verify_saved_models(directory, name, wanted)

        return check

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self._spent += time.monotonic() - begun

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
