"""The sanity check before the first step: a few samples of each mode, so that a mistake in validation does not cost an epoch.

It restores variables, random numbers and the data's position, so results are the same with and without it.
"""

import logging
import math
import random
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np

from scena.backends.base import backend
from scena.data.image.params import ImagePipelineParams, NormalizeParams
from scena.data.pipeline import DataPipeline
from scena.data.sample import Batch
from scena.errors import ScenaError, TrainingError
from scena.evaluation.lav import LAV
from scena.model.measures.bad_data import NOT_FINITE, check_labels, explaining_step, not_finite
from scena.model.measures.batch_checks import FURTHER, mistakes, padding_effects
from scena.model.measures.traced_checks import check_broadcasts
from scena.model.state.randomness import global_seed_variables
from scena.model.tensorboard import split_results
from scena.model.training_model import TrainingModel
from scena.training.callbacks.keras_callbacks import check_monitors
from scena.training.callbacks.monitored import MonitoredCallback
from scena.training.run import TrainingRun
from scena.training.steps import stacked
from scena.user_code import reason, user_line

logger = logging.getLogger(__name__)

BATCHES = 2
SAMPLES = 8
"""Samples in each batch; batches have their full size where a step is compiled for each shape."""

INITIAL_SHARE = 0.3
"""Moving averages that keep more than this of their initial values are worth a warning."""

_MAY_NEED_MORE = (ValueError, ArithmeticError, IndexError, AssertionError)
"""Errors that `Evaluator.result` may raise because it has seen only a few samples."""


class SanityCheck:
    """Runs losses, metrics, validation and LAV once, and checks the names that callbacks monitor.

    Args:
        run: the training, at its beginning.
        callbacks: all callbacks.
        lav: LAV on the prediction graph, if enabled.
    """

    def __init__(self, run: TrainingRun, callbacks: list[keras.callbacks.Callback], lav: LAV | None) -> None:
        self._run = run
        self._callbacks = callbacks
        self._lav: Any = lav
        self._names: dict[str, set[str] | None] = {}

    def run(self, first: Batch) -> None:
        """Checks all parts of the training; `first` is its first batch.

        Raises:
            ScenaError: what is wrong, in one line.
        """
        parts = ["training"] + ["validation"] * (self._run.val_data is not None) + ["LAV"] * (self._lav is not None)
        logger.info(
            "Sanity check: a few samples of %s before the first step.",
            " and ".join([", ".join(parts[:-1]), parts[-1]][len(parts) == 1 :]),
        )
        with self._unchanged():
            self._check_training(first)
            if self._run.val_data is not None:
                self._check_validation()
            if self._lav is not None:
                for name, source in self._run.params.gen.lav_gen().items():
                    self._check_lav(name, source)
        self._check_names()

    def _check_training(self, batch: Batch) -> None:
        model: Any = self._run.model
        self._run.label_counts = check_broadcasts(model.measures, self._run.built.root, batch.inputs, batch.targets)
        self._warn_of_not_finite(batch, "training")
        warn_of_data(self._run, batch)
        warn_of_averages(self._run)
        own_step = type(model).train_step is not TrainingModel.train_step
        self._names["train"] = None if own_step else set(model.results())

    def _check_validation(self) -> None:
        run, pipeline = self._run, self._run.val_data
        assert pipeline is not None
        if pipeline.batches_per_epoch() == 0:
            pipeline.peek(1)  # raises an error that tells why
        batches = pipeline.peek(BATCHES, self._batch_size())
        if not batches:
            logger.info("The validation data can be read only once, so the sanity check skips it.")
            return
        engine = run.engine
        if run.steps.distributed:
            specs = run.built.data.input_layer_specs(), run.built.data.target_layer_specs()
            engine = backend().create_engine(run.model, *specs)
        logs: dict[str, float] = {}
        with self._explaining("the validation"):
            for batch in batches:
                check_labels(batch, run.label_counts or {})
                with explaining_step([batch], "the validation"):
                    logs = engine.test(stacked([batch], "inputs"), stacked([batch], "targets"))
                self._check_finite(batch, logs.get("loss", 0.0), "validation")
        self._names["val"] = {f"val_{name}" for name in logs}

    def _check_lav(self, name: str, source: Any) -> None:
        where = f"LAV of {name!r}" if name else "LAV"
        if not hasattr(self._lav, "rehearse"):
            return
        pipeline = self._lav.create_pipeline(source)
        batches = pipeline.peek(BATCHES, self._batch_size())
        if not batches:
            return
        with self._explaining(where):
            try:
                results, _ = split_results(self._lav.rehearse(batches))
            except _MAY_NEED_MORE as error:
                if not _is_result_of(self._lav.evaluator, error):
                    raise
                place = user_line(error)
                logger.warning(
                    "%s.result fails on the few samples of the sanity check%s: %s. If it also fails with all samples, "
                    "the first LAV will end the training.",
                    type(self._lav.evaluator).__name__,
                    f" at {place}" if place is not None else "",
                    reason(error),
                )
                self._names["lav"] = None
                return
        for batch in batches:
            self._check_finite(batch, results.get("loss", 0.0), where)
        prefix = f"lav_{name}_" if name else "lav_"
        known = self._names.setdefault("lav", set())
        if known is not None:
            known |= {f"{prefix}{key}" for key in results}

    def _check_finite(self, batch: Batch, loss: float, where: str) -> None:
        found = not_finite(batch)
        if found and not math.isfinite(loss) and self._run.params.stop_on_nan:
            raise TrainingError(
                f"The {where} data is not finite: {found}. The model does not handle it: the loss is not finite either. Replace missing "
                "values in the data or in the graph, and leave them out when a layer is adapted."
            )
        self._warn_of_not_finite(batch, where)

    def _warn_of_not_finite(self, batch: Batch, where: str) -> None:
        """Once: what is missing in the training is missing in the validation, too."""
        found = not_finite(batch, allow_nan=self._run.built.data.allow_nan)
        if found and not self._run.not_finite_reported:
            self._run.not_finite_reported = True
            logger.warning(NOT_FINITE, where, found)

    def _check_names(self) -> None:
        """Checks the values that select the best model and those that callbacks monitor."""
        there = set().union(*(names for names in self._names.values() if names))
        for callback in self._callbacks:
            if isinstance(callback, MonitoredCallback) and self._names.get(callback.source) is not None:
                callback.check_name(there)
        if self._names and all(names is not None for names in self._names.values()):
            check_monitors(self._callbacks, there)

    def _batch_size(self) -> int | None:
        return SAMPLES if backend().any_batch_size and not self._run.params.xla else None

    @contextmanager
    def _explaining(self, where: str) -> Iterator[None]:
        """Converts an error of the user's code into one line."""
        try:
            yield
        except ScenaError:
            raise
        except _MAY_NEED_MORE as error:
            if self._lav is not None and _is_result_of(self._lav.evaluator, error):
                raise
            raise _failed(error, where) from error
        except Exception as error:
            raise _failed(error, where) from error

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Restores what a validation changes: metrics, seeds, and the random numbers of Python and numpy."""
        model = self._run.model
        variables = [*model.non_trainable_variables, *model.metrics_variables, *global_seed_variables()]
        values = [keras.ops.convert_to_numpy(variable.value) for variable in variables]
        numpy_state, python_state = np.random.get_state(), random.getstate()
        try:
            model.reset_metrics()
            yield
        finally:
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
            np.random.set_state(numpy_state)
            random.setstate(python_state)


def _failed(error: Exception, where: str) -> TrainingError:
    line = user_line(error)
    place = f" at {line.file}:{line.number}" if line is not None else ""
    return TrainingError(
        f"The sanity check fails in {where}{place}: {reason(error)}. (SCENA_LOG_LEVEL=debug shows the traceback; "
        "--trainer.sanity_check False skips the check.)"
    )


def _is_result_of(evaluator: Any, error: BaseException) -> bool:
    """Whether an error came from the evaluator's `result`."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(frame.f_code.co_name == "result" and frame.f_locals.get("self") is evaluator for frame in frames)


def warn_of_data(run: TrainingRun, first: Batch) -> None:
    """Warns of data and losses that would give plausible but wrong numbers."""
    for pipeline in (run.train_data, run.val_data):
        if pipeline is not None:
            _warn_if_changing(pipeline)
    if run.val_data is not None and run.val_data.has_samples_of(run.train_data):
        logger.warning(
            "Training and validation read the same samples, so the validation tells nothing about new data. Let the source use its "
            "mode, or set other data with --val."
        )
    _warn_of_normalization(run.params.gen.train, run.params.gen.val)
    with backend().fast_loops():
        lines = mistakes(run.model, first.inputs, first.targets)
        effects = padding_effects(run.model, run.built.data, first.inputs, first.targets)
    for line in lines:
        logger.warning("%s", line)
    for name, (value, padded) in effects.items():
        logger.warning(
            "Padding counts in %r: it changes from %.4g to %.4g when the samples of a batch are padded by %d more, so it depends on the "
            "batch size. Mask the padding.",
            name, value, padded, FURTHER,
        )  # fmt: skip


def warn_of_averages(run: TrainingRun) -> None:
    """Warns if a training is so short that moving averages, which validation and prediction use, keep their initial values."""
    layers = [layer for layer in run.built.root._flatten_layers() if hasattr(layer, "moving_mean") and layer.trainable]
    if run.steps_per_epoch is None or not layers:
        return
    steps = run.steps_per_epoch * run.params.epochs
    left = max(layer.momentum for layer in layers) ** steps
    if left > INITIAL_SHARE:
        logger.warning(
            "Batch normalization: after the %d steps of this training, %.0f %% of its moving averages are still their initial values, so "
            "validation and predictions lag behind. Take more steps (--trainer.epochs, a smaller --train.batch_size), or give the layers "
            "a lower momentum.",
            steps, 100 * left,
        )  # fmt: skip


def _warn_of_normalization(train: Any, val: Any) -> None:
    """Warns if the images of a training are normalized in another way than those of its validation."""
    if not (isinstance(train, ImagePipelineParams) and isinstance(val, ImagePipelineParams)):
        return
    trained, checked = ([op for op in one.augment if isinstance(op, NormalizeParams)] for one in (train, val))
    if trained != checked:
        logger.warning(
            "Training and validation normalize their images in different ways, so the model is validated, and predicts, on other values "
            "than it was trained on: --train.augment has %s, and --val.augment %s. Give both the same Normalize.",
            *(" and ".join(map(repr, ops)) or "no Normalize" for ops in (trained, checked)),
        )


def _warn_if_changing(pipeline: DataPipeline) -> None:
    part = pipeline.changing_part()
    if part is not None:
        logger.warning(
            "%s makes %s of the %s data differently each time, so the run cannot be repeated or resumed exactly. Draw random numbers "
            "from `rng` (apply(self, sample, rng)), or seed them by the index of the sample, and keep no state between samples.",
            *part, pipeline.mode.value,
        )  # fmt: skip
