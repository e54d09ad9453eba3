"""Losses and metrics of given outputs: those that several models agreed on, or that another runtime than Keras computed."""

import logging
from typing import Any

import keras
import numpy as np

from scena.errors import ModelError
from scena.model.built import BuiltModel
from scena.model.measures.traced_checks import label_counts_with
from scena.model.model import ModelBase
from scena.model.training_model import TrainingModel

logger = logging.getLogger(__name__)

Arrays = dict[str, np.ndarray]


class GivenOutputs:
    """Applies a model's `loss` and `metrics` to given outputs.

    Args:
        model: a model of its own, since Keras metrics keep their state in it.
        built: one of the networks, for its inputs, targets and `pre_proc_targets`.
        penalties: whether penalties on the weights of this network count. A vote has none.
    """

    def __init__(self, model: ModelBase[Any], built: BuiltModel, *, penalties: bool = False) -> None:
        self._model = model
        self._built = built
        self._penalties = penalties
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

    def label_counts(self, inputs: Arrays, targets: Arrays, outputs: Arrays) -> dict[str, int]:
        """The number of classes of each target that a loss turns into one-hot vectors."""
        if self._measuring is None:
            return {}
        return label_counts_with(self._measuring.measures, inputs, targets, outputs)

    def results(self) -> dict[str, Any]:
        """The running values by name."""
        if self._measuring is None:
            return {}
        measured: dict[str, Any] = {name: float(value) for name, value in self._measuring.results().items()}
        return measured | self._measuring.data_results()

    def no_means(self) -> set[str]:
        """Metrics that are no means over samples, such as AUC."""
        return self._measuring.no_means() if self._measuring is not None else set()

    def _create(self, outputs: Arrays) -> None:
        built = self._built
        given = {
            name: keras.KerasTensor((None, *value.shape[1:]), keras.backend.standardize_dtype(value.dtype))
            for name, value in outputs.items()
        }
        try:
            kind = TrainingModel if self._penalties else _WithoutPenalties
            self._measuring = kind(
                self._model, built.root, built.inputs, built.targets, prediction=True, outputs=given, name="given"
            )
        except ModelError as error:  # a vote may turn outputs into something else, which only an evaluator understands
            if self._penalties:
                raise
            self._failed = True
            logger.info("The vote has no losses and metrics: %s", error)
            return
        for line in self._measuring.measures.report_skipped(*([] if self._penalties else ["the vote"])):
            logger.info("%s", line)


class _WithoutPenalties(TrainingModel):
    @property
    def losses(self) -> list[Any]:
        """None: they would be those of the first network."""
        return []
