"""`Trainer`: sets up a run from its parameters, trains it, and writes its results."""

import logging
import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import keras

from scena.data.errors import EmptyDataError
from scena.devices.select import select_devices
from scena.model.tf_engine import TensorFlowEngine
from scena.training.callbacks.base import TrainerCallback
from scena.training.callbacks.best import BestModel
from scena.training.callbacks.history import HistoryWriter
from scena.training.callbacks.progress import ProgressDisplay
from scena.training.callbacks.tensorboard import TensorBoardEvents
from scena.training.checkpoint import CheckpointStore
from scena.training.directory import create_directory, default_directory, log_file
from scena.training.errors import TrainingError
from scena.training.loop import TrainingLoop
from scena.training.optimizers.create import create_optimizer
from scena.training.params import TrainerParams
from scena.training.run import Progress, TrainedScenario, TrainingRun
from scena.training.variables import read_variables, variable_groups, write_variables

logger = logging.getLogger(__name__)


class Trainer:
    """Trains a scenario.

    Args:
        params: everything that can be set.
        scenario: the scenario with these parameters.
    """

    def __init__(self, params: TrainerParams[Any, Any], scenario: TrainedScenario) -> None:
        self.params = params
        self.scenario = scenario
        self.history: list[dict[str, Any]] = []
        self.best: BestModel | None = None
        self.directory: Path | None = params.output_dir

    def train(
        self, callbacks: Iterable[keras.callbacks.Callback] = (), *, resume: bool = False
    ) -> list[dict[str, Any]]:
        """Runs the training and returns its history, one dict of values per epoch.

        Args:
            callbacks: any Keras callbacks to run beside Scena's own.
            resume: go on from the last checkpoint of the output directory instead of starting anew.
        """
        params = self.params
        select_devices(params.device)
        self.directory = (
            Path(params.output_dir) if params.output_dir is not None else default_directory(self.scenario.name())
        )
        params.output_dir = self.directory
        if params.random_seed is None:
            params.random_seed = random.SystemRandom().randrange(2**31)
        if not resume:
            create_directory(self.directory)
        with log_file(self.directory):
            self.scenario.store(self.directory, params)
            self._train(self.directory, list(callbacks), resume)
        return self.history

    def create_callbacks(self) -> list[keras.callbacks.Callback]:
        """Scena's own callbacks; a subclass may add more."""
        own: list[keras.callbacks.Callback] = [
            ProgressDisplay(self.params.progress_every),
            HistoryWriter(),
            TensorBoardEvents(),
        ]
        if self.params.export_best:
            own.insert(1, BestModel())
        return own

    def _train(self, directory: Path, callbacks: list[keras.callbacks.Callback], resume: bool) -> None:
        run = self._prepare(directory)
        own = self.create_callbacks()
        stateful = [callback for callback in [*own, *callbacks] if isinstance(callback, TrainerCallback)]
        for callback in stateful:
            callback.set_run(run)
        store = CheckpointStore(directory / "checkpoint", self.params.keep_checkpoints)
        if resume:
            _restore(run, store, stateful)
            if run.progress.epoch >= self.params.epochs:
                logger.info("This run is finished: %d epochs. Give more with --trainer.epochs.", run.progress.epoch)
        lav = self.scenario.create_training_lav(run.built, self.params) if self.params.lav_every_n else None
        logger.info("Training %s in %s (seed %d)", self.scenario.name(), directory, self.params.random_seed or 0)
        loop = TrainingLoop(run, [*own, *callbacks], lav, lambda: _save(run, store, stateful))
        try:
            loop.execute()
        except TrainingError as error:
            last = store.steps()
            good = (
                f" The last checkpoint is {store.directory / str(last[-1])}."
                if last
                else " There is no checkpoint yet."
            )
            raise TrainingError(f"{error}{good}") from error
        finally:
            for callback in own:
                if isinstance(callback, ProgressDisplay):
                    callback.close()
        self.history = next(callback.rows for callback in own if isinstance(callback, HistoryWriter))
        self.best = next((callback for callback in own if isinstance(callback, BestModel)), None)
        self._export(run)

    def _prepare(self, directory: Path) -> TrainingRun:
        params = self.params
        seed = params.random_seed or 0
        keras.utils.set_random_seed(seed)
        built = self.scenario.build()
        train_data = params.gen.train_data(built.data, seed=seed)
        val_data = params.gen.val_data(built.data) if params.val_every_n else None
        steps = self._steps_per_epoch(train_data)
        schedule = params.learning_rate.create(steps or 1, params.epochs)
        model = built.training_model()
        model.compile(optimizer=create_optimizer(params.optimizer, schedule, model.trainable_variables))
        engine = TensorFlowEngine(
            model, built.data.input_layer_specs(), built.data.target_layer_specs(), eager=params.force_eager
        )
        return TrainingRun(params, self.scenario, directory, built, model, engine, train_data, val_data, steps)

    def _steps_per_epoch(self, train_data: Any) -> int | None:
        if self.params.samples_per_epoch is not None:
            return math.ceil(self.params.samples_per_epoch / self.params.gen.train.batch_size)
        steps: int | None = train_data.batches_per_epoch()
        if steps == 0:
            raise EmptyDataError(f"There is no training batch: {self.params.gen.train_gen()} has too few samples.")
        return steps

    def _export(self, run: TrainingRun) -> None:
        result = {"epoch": run.progress.epoch, "step": run.progress.step, **(self.history[-1] if self.history else {})}
        if self.params.export_final:
            self.scenario.export(run.built, run.directory / "export", self.params, saved_model=True, result=result)
        if self.best is not None:
            self.scenario.complete_export(run.built, run.directory / "best")
        logger.info("Done: %s", run.directory)


def _save(run: TrainingRun, store: CheckpointStore, callbacks: list[TrainerCallback]) -> None:
    tensors, entries = read_variables(variable_groups(run.model))
    state = {
        "progress": run.progress.to_json(),
        "callbacks": {type(callback).__name__: callback.state() for callback in callbacks},
        "variables": entries,
    }
    store.save(run.progress.step, tensors, state)


def _restore(run: TrainingRun, store: CheckpointStore, callbacks: list[TrainerCallback]) -> None:
    loaded = store.load_latest()
    if loaded is None:
        raise TrainingError(f"There is no checkpoint to resume from in {store.directory}.")
    tensors, state = loaded
    write_variables(variable_groups(run.model), tensors, state["variables"])
    run.progress = Progress.from_json(state["progress"])
    for callback in callbacks:
        if type(callback).__name__ in state["callbacks"]:
            callback.restore(state["callbacks"][type(callback).__name__])
    logger.info("Resumed at epoch %d, step %d", run.progress.epoch, run.progress.step)
