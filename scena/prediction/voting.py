"""Several models of one scenario predict together: whether they can, what combines their outputs, and the predictor that asks it.

It needs no Keras.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from scena.data.params import PipelineMode
from scena.data.resource import Resource
from scena.data.sample import Arrays, Batch
from scena.errors import ScenarioError
from scena.overriding import Overridable
from scena.params import Params
from scena.prediction.params import PredictorParams, VoterParams
from scena.prediction.predictor import Predictor

TVoterParams = TypeVar("TVoterParams", bound=VoterParams)


class Voter(Overridable, Generic[TVoterParams]):
    """Combines the outputs of several models. Override `vote` and name the voter's parameters in the scenario's `voter_params`.

    Args:
        params: the voter's parameters, also available as `self.params`.
    """

    def __init__(self, params: TVoterParams) -> None:
        self.params = params

    def vote(self, outputs: list[Arrays]) -> Arrays:
        """The outputs on which the models agree: by default the mean of floating-point outputs, the majority of whole numbers.

        Args:
            outputs: the batched outputs of each model, by name.
        """
        return {name: _vote([output[name] for output in outputs]) for name in outputs[0]}


class MultiModelPredictor(Predictor):
    """Predicts with several models; each batch is prepared once, with the pipeline of the first model.

    Args:
        params: batch size, device, what to keep.
        predictors: one for each model.
    """

    voter: Voter[Any]
    """Combines the outputs; the scenario sets its own."""

    def __init__(self, params: PredictorParams, predictors: Sequence[Predictor]) -> None:
        if not predictors:
            raise ValueError("A MultiModelPredictor needs at least one model. Received: none.")
        super().__init__(params, predictors[0].built)
        self.predictors = list(predictors)
        self.voter = Voter(VoterParams())

    def predict_batch(self, batch: Batch) -> Arrays:
        """The outputs on which the models agreed."""
        return self.vote([predictor.predict_batch(batch) for predictor in self.predictors])

    def prepare_service(self, inputs: Arrays) -> None:
        for predictor in self.predictors:
            predictor.prepare_service(inputs)

    def vote(self, outputs: list[Arrays]) -> Arrays:
        """Combines the outputs of the models as the voter does."""
        return self.voter.vote(outputs)


def mean_vote(values: list[np.ndarray]) -> np.ndarray:
    """The mean over the models, for probabilities and other real values."""
    return np.asarray(np.mean(np.stack(values), axis=0), dtype=values[0].dtype)


def majority_vote(values: list[np.ndarray]) -> np.ndarray:
    """The most frequent value over the models, the smallest of them in a tie, for class numbers."""
    stacked = np.stack(values)
    counts = np.stack([np.sum(stacked == candidate, axis=0) for candidate in np.unique(stacked)])
    return np.asarray(np.unique(stacked)[np.argmax(counts, axis=0)], dtype=values[0].dtype)


def _vote(values: list[np.ndarray]) -> np.ndarray:
    return (mean_vote if np.issubdtype(values[0].dtype, np.floating) else majority_vote)(values)


def check_same_inputs(exports: Sequence[Any], mode: PipelineMode) -> None:
    """Raises if two exports would prepare the same sample differently. Only processors of this mode count: another augmentation in
    training does not matter.
    """
    first, *others = exports
    expected = _preparation(first.scenario.params.data, mode)
    for other in others:
        same = _content(other.processing()) == _content(first.processing())
        if not same or _preparation(other.scenario.params.data, mode) != expected:
            where = "--data" if same else f"--val.{' or --val.'.join(first.processing())}"
            raise ScenarioError(
                f"{first.directory} and {other.directory} prepare their inputs differently ({where} of the two runs), so they cannot "
                "work on the same batches. `scena params MODEL` shows how each was trained."
            )


def _preparation(data: Any, mode: PipelineMode) -> Any:
    """Everything about the data's parameters that decides what the model gets; files count by their content."""
    steps = [processor for processor in data.pre_proc if mode in processor.modes]
    own = {name: getattr(data, name) for name in type(data).__params__ if name not in ("pre_proc", "post_proc")}
    return [_content(own), [[type(step).__name__, _content(step)] for step in steps]]


def _content(value: Any) -> Any:
    if isinstance(value, Resource):
        return _digest(value.path)
    if isinstance(value, Params):
        return {name: _content(getattr(value, name)) for name in type(value).__params__ if name != "modes"}
    if isinstance(value, dict):
        return {name: _content(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_content(item) for item in (sorted(value, key=str) if isinstance(value, set) else value)]
    return str(value)


def _digest(path: Path) -> str:
    if path.is_dir():
        return hashlib.sha256(
            "".join(_digest(file) for file in sorted(path.rglob("*")) if file.is_file()).encode()
        ).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest()
