"""From parameters to a run that is ready to train: seeds, precision, model, initial weights, optimizer, compiled step."""

import logging
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from scena.backends.base import backend
from scena.data.sources.fold import FoldSource
from scena.display import reporting
from scena.errors import EmptyDataError, TrainingError
from scena.model.building import precision_policy
from scena.model.state.layer_state import Layers, LayerState
from scena.training.optimizers.create import MovingAverage, create_optimizer
from scena.training.optimizers.params import GradientOptimizerParams, Lookahead
from scena.training.params import TrainerParams
from scena.training.run import TrainingRun
from scena.training.schedules.params import Constant, ReduceOnPlateau
from scena.training.steps import Steps

if TYPE_CHECKING:
    from scena.scenario.scenario import ScenarioBase
    from scena.training.distribution.control_channel import ControlChannel


logger = logging.getLogger(__name__)

SHOWN = 8
"""Layers that are named in the log."""
AUTOMATIC = -1.0
SHARE = 0.1
"""The automatic average spans about this share of all updates: the last tenth."""
SLOWEST = 0.9999


def prepare_run(
    params: TrainerParams[Any, Any],
    scenario: "ScenarioBase[Any, Any]",
    directory: Path,
    *,
    layers: list[LayerState] | None = None,
    channel: "ControlChannel | None" = None,
) -> TrainingRun:
    """Builds all parts of a training, in an order in which the seed determines all of them.

    Args:
        layers: the layer states of the checkpoint to resume from; None for a new run, whose initial weights are then set.
        channel: to the other processes, if the training uses several devices.
    """
    seed = params.random_seed or 0
    if channel is not None:
        channel.set_up({"seed": seed})
    keras.utils.set_random_seed(seed)
    if params.deterministic:
        backend().compute_deterministically()
    if params.scenario.debug_graph_construction:
        with precision_policy(params.precision):
            scenario.check_graph(params.gen)
        keras.utils.set_random_seed(seed)
    with precision_policy(params.precision):
        built = scenario.build()
        model = create_training_model(params, built)
    all_layers = Layers(built.root, model)
    if layers is None:
        scenario.initialise(built, params)
        check_initialised(built.root)
        if params.warmstart.model is not None:
            starter = params.warmstart.create(scenario)
            starter.apply(built.root.weights)
            starter.apply_layers(all_layers)
            keras.utils.set_random_seed(seed)  # building a model to read its weights must not change what follows
        all_layers.read()  # raises now, not at the first checkpoint, if a state cannot be stored
    else:
        all_layers.quantize(layers)
    quantized = [] if channel is None else channel.agree(all_layers)
    if params.preload_data:
        params.gen.train.preload = params.gen.val.preload = True
    train_data = params.gen.train_data(built.data, seed=seed)
    check_fold(params.gen, train_data)
    val_data = params.gen.val_data(built.data) if params.val_every_n else None
    for what, pipeline in (("training", train_data), ("validation", val_data)):
        if pipeline is not None and pipeline.keeps_samples:
            with reporting(f"Preparing {what} data") as progress:
                pipeline.prepare(progress)
    steps = epoch_steps(params, train_data)
    average, schedule = compile_model(params, built, model, steps, distributed=channel is not None)
    specs = built.data.input_layer_specs(), built.data.target_layer_specs()
    engine: Any
    if channel is None:
        engine = backend().create_engine(model, *specs, eager=params.force_eager, xla=params.xla)
        training_steps = Steps(engine, train_data)
    else:
        from scena.training.distribution import replica_group

        engine = replica_group.create_engine(params, scenario, channel, model, specs, steps, quantized)
        channel.divide(train_data, val_data)
        training_steps = replica_group.ReplicaGroup(channel, engine, train_data)
    run = TrainingRun(params, scenario, directory, built, model, engine, training_steps, train_data, val_data, steps)
    run.code, run.schedule, run.average = scenario.code(params), schedule, average
    return run


def check_fold(gen: Any, train_data: Any) -> None:
    """Raises if a cross-validation would train on the fold it tests because the pipelines do not leave it out."""
    if gen.fold.file is not None and not isinstance(train_data.generator, FoldSource):
        raise TrainingError(
            f"{type(gen).__name__}.train_data does not leave out the fold of the cross-validation: read self.fold.of(self.train_gen()), or "
            "call super().train_data."
        )


def create_training_model(params: TrainerParams[Any, Any], built: Any) -> Any:
    """The model of a training step, with the trainer's penalties on its loss."""
    if not params.input_gradient_penalty:
        return built.training_model()
    from scena.backends.tensorflow.penalty import with_input_gradient_penalty

    return built.training_model(
        lambda cls: with_input_gradient_penalty(cls, params.input_gradient_penalty, built.inputs)
    )


def compile_model(
    params: TrainerParams[Any, Any], built: Any, model: Any, steps: int | None, *, distributed: bool = False
) -> tuple[Any, Any]:
    """Freezes layers and compiles the model with its optimizer; returns the moving average, if there is one, and the schedule."""
    if params.no_train_scope is not None:
        freeze_layers(built.root, params.no_train_scope)
    average = create_average(params, steps)
    schedule = create_schedule(params, steps)
    optimizer = create_optimizer(
        params.optimizer,
        schedule,
        model.trainable_variables,
        average,
        scale_loss=params.precision == "mixed_float16",
        distributed=distributed,
        frozen=[variable.path for variable in model.non_trainable_variables],
    )
    model.compile(optimizer=optimizer, auto_scale_loss=False)
    return average, schedule


def epoch_steps(params: TrainerParams[Any, Any], train_data: Any) -> int | None:
    """The number of steps in an epoch; None if the source does not know its size."""
    size = params.gen.train.batch_size
    if params.samples_per_epoch is not None:
        return math.ceil(params.samples_per_epoch * params.scale_epoch_size / size)
    steps: int | None = train_data.batches_per_epoch()
    if steps == 0:
        raise EmptyDataError(f"There is no training batch: {params.gen.train_gen()} has too few samples.")
    if params.scale_epoch_size != 1:
        if steps is None:
            raise TrainingError(
                "--trainer.scale_epoch_size needs the number of samples, which this source does not know. "
                "Give --trainer.samples_per_epoch instead."
            )
        return max(1, round(steps * params.scale_epoch_size))
    return steps


def create_schedule(params: TrainerParams[Any, Any], steps: int | None) -> Any:
    """The schedule of the learning rate."""
    rate = params.learning_rate
    if steps is None and (
        not isinstance(rate, Constant | ReduceOnPlateau) or (rate.warmup.unit == "epochs" and rate.warmup)
    ):
        raise TrainingError(
            f"--learning_rate {type(rate).__name__} counts epochs, but this source does not know how many samples an epoch has. "
            "Give --trainer.samples_per_epoch."
        )
    return rate.create(steps or 1, params.epochs)


def create_average(params: TrainerParams[Any, Any], steps_per_epoch: int | None) -> MovingAverage | None:
    """The moving average of the weights, or None."""
    if params.ema_decay == 0:
        return None
    if params.ema_decay != AUTOMATIC:
        return MovingAverage(params.ema_decay)
    if steps_per_epoch is None:
        raise TrainingError(
            "--trainer.ema_decay -1 is computed from the number of steps, which this source does not know. "
            "Give a rate, for example 0.99, or --trainer.samples_per_epoch."
        )
    inner = params.optimizer.inner if isinstance(params.optimizer, Lookahead) else params.optimizer
    accumulated = inner.gradient_accumulation_steps if isinstance(inner, GradientOptimizerParams) else 1
    return MovingAverage(automatic_decay(steps_per_epoch * params.epochs // accumulated), ramp=True)


def automatic_decay(updates: int) -> float:
    """The decay whose average spans about a tenth of all updates of the weights."""
    return min(1 - 1 / max(SHARE * updates, 1.0), SLOWEST)


def check_initialised(root: keras.layers.Layer) -> None:
    """Refuses weights that are NaN before the first step; infinite ones may be meant, as in a mask.

    `Normalization` that was adapted to a column with a NaN has a mean that is NaN: a graph that replaces missing values by 0 would then
    ignore the whole column without a word.
    """
    for weight in root.weights:
        if "float" in weight.dtype and np.isnan(keras.ops.convert_to_numpy(weight)).any():
            raise TrainingError(
                f"The weight {weight.path} has a NaN before the first step. If `initialise` adapts a layer to data, leave missing "
                "values out there: np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)."
            )


def freeze_layers(root: keras.layers.Layer, scope: str) -> list[str]:
    """Freezes the layers whose whole path matches the regular expression, and all layers inside them; returns the matched paths."""
    # a layer without weights has no path
    layers: list[Any] = [layer for layer in root._flatten_layers() if layer is not root and layer.path]
    matched = [layer for layer in layers if re.fullmatch(scope, layer.path)]
    if not matched:
        there = "\n  ".join(sorted({layer.path for layer in layers}))
        raise TrainingError(f"--trainer.no_train_scope {scope!r} matches no layer. The layers are:\n  {there}")
    for layer in matched:
        layer.trainable = False
    if not root.trainable_variables:
        raise TrainingError(f"--trainer.no_train_scope {scope!r} leaves nothing to train.")
    paths = [layer.path for layer in matched]
    shown = [*sorted(paths)[:SHOWN], "…"] if len(paths) > SHOWN else sorted(paths)
    logger.info("Not trained: %d layers (%s)", len(paths), ", ".join(shown))
    return paths
