"""Losses and metrics of outputs that several models agreed on, rather than of one network."""

import logging
from typing import Any

import keras
import numpy as np

from scena.errors import ModelError
from scena.model.built import BuiltModel
from scena.model.model import ModelBase
from scena.model.training_model import TrainingModel

logger = logging.getLogger(__name__)

Arrays = dict[str, np.ndarray]


class VotedMeasures:
    """Applies a model's `loss` and `metrics` to given outputs; without penalties on weights.

    Args:
        model: a model of its own, since Keras metrics keep their state in it.
        built: one of the networks, for its inputs, targets and `pre_proc_targets`.
    """

    def __init__(self, model: ModelBase[Any], built: BuiltModel) -> None:
        self._model = model
        self._built = built
        self._measuring: TrainingModel | None = None
        self._failed = False

    def reset(self) -> None:
        """Starts a validation."""
        if self._measuring is not None:
            self._measuring.reset_metrics()

    def count(self, inputs: Arrays, targets: Arrays, outputs: Arrays) -> None:
        """Counts one batch."""
        if self._measuring is None and not self._failed:
            self._create(outputs)
        if self._measuring is not None:
            tensors = [
                {name: keras.ops.convert_to_tensor(value) for name, value in values.items()}
                for values in (inputs, targets, outputs)
            ]
            self._measuring.compute_loss(
                x={"inputs": tensors[0], "targets": tensors[1]}, y_pred=tensors[2], training=False
            )

    def results(self) -> dict[str, float]:
        """The running values by name."""
        if self._measuring is None:
            return {}
        return {name: float(value) for name, value in self._measuring.results().items()}

    def _create(self, outputs: Arrays) -> None:
        built = self._built
        voted = {
            name: keras.KerasTensor((None, *value.shape[1:]), keras.backend.standardize_dtype(value.dtype))
            for name, value in outputs.items()
        }
        try:
            self._measuring = _Measuring(
                self._model, built.root, built.inputs, built.targets, prediction=True, outputs=voted, name="voted"
            )
        except ModelError as error:  # a vote may turn outputs into something else, which only an evaluator understands
            self._failed = True
            logger.info("The vote has no losses and metrics: %s", error)
            return
        for line in self._measuring.measures.report_skipped("the vote"):
            logger.info("%s", line)


class _Measuring(TrainingModel):
    @property
    def losses(self) -> list[Any]:
        """None: they would be those of the first network."""
        return []
