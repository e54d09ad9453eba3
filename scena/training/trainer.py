"""`Trainer`: sets up a run from its parameters, trains it and writes its results."""

import logging
import random
import shlex
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import keras

from scena.backends.base import backend
from scena.backends.selection import WorkerLostError, check_backend
from scena.errors import TrainingError, TrainingInterrupted
from scena.model.built import summarize
from scena.model.measures.bad_data import checked_numerics
from scena.params import check
from scena.storage.code_fingerprints import noted_imports
from scena.storage.run_layout import run_paths
from scena.training.callbacks.base import TrainerCallback
from scena.training.callbacks.best import BestModel
from scena.training.callbacks.event_files import DISK_ERRORS, disk_reason
from scena.training.callbacks.history import HistoryWriter
from scena.training.callbacks.keras_callbacks import check_callbacks, continue_logs
from scena.training.callbacks.progress import ProgressDisplay
from scena.training.checkpoint.resume import Resumption
from scena.training.checkpoint.state import TrainingState
from scena.training.checkpoint.store import CheckpointStore
from scena.training.checks.sanity import SanityCheck
from scena.training.checks.verification import Verification, first_inputs
from scena.training.directory import (
    claimed,
    create_directory,
    default_directory,
    flags_for,
    locked,
    log_file,
    paths_outside,
    release,
    run_identity,
    settle_paths,
    withdrawn_if_it_fails,
)
from scena.training.history import History
from scena.training.loop import TrainingLoop
from scena.training.params import TrainerParams
from scena.training.prepare import prepare_run
from scena.training.run import TrainingRun
from scena.training.stopping import StopRequested, StopRequests

if TYPE_CHECKING:
    from scena.scenario.scenario import ScenarioBase
    from scena.training.distribution.control_channel import ControlChannel

logger = logging.getLogger(__name__)


class Trainer:
    """Trains a scenario.

    Args:
        params: everything that can be set.
        scenario: the scenario with these parameters.
    """

    def __init__(self, params: TrainerParams[Any, Any], scenario: "ScenarioBase[Any, Any]") -> None:
        self.params = params
        self.scenario = scenario
        self.history = History()
        self.best: BestModel | None = None
        self.directory: Path | None = params.output_dir
        self._run: TrainingRun | None = None

    def train(
        self,
        callbacks: Iterable[keras.callbacks.Callback] = (),
        *,
        resume: bool = False,
        start: int | Literal["latest", "best"] = "latest",
        strict: bool = False,
    ) -> History:
        """Runs the training and returns its history, one dict of values per epoch.

        It shows its log and progress, unless the program has set up logging that does not.

        Args:
            callbacks: Keras callbacks to run in addition to Scena's own.
            resume: continue from a checkpoint of the output directory instead of starting a new run. Parameters may differ from
                the stored ones: changes are logged and recorded.
            start: the checkpoint to resume from: the latest, that of the best model, or that of a step.
            strict: raise an error instead of a warning if the code has changed since the checkpoint was written.

        Raises:
            TrainingInterrupted: a signal or the time limit ended the training; its state was saved.
        """
        params = check(self.params)
        callbacks = list(callbacks)
        check_callbacks(callbacks)
        backend().check_training()
        backend().select_devices(params.device)
        check_backend(params, "trainer")
        channel = _connect(params)
        if channel is not None and not channel.distribution.chief:
            from scena.training.distribution.replica_group import run_worker

            run_worker(channel, params, self.scenario)
            return History()
        directory = Path(params.output_dir or default_directory(self.scenario.name()))
        self.directory = params.output_dir = directory
        requests = StopRequests(params.time_limit.seconds())
        made = [] if resume else create_directory(directory)
        with locked(directory), requests.listening():
            before = Resumption(directory, params, self.scenario, strict=strict) if resume else None
            with nullcontext() if resume else withdrawn_if_it_fails(directory, made, lambda: self._steps() > 0):
                if before is None:
                    settle_paths(directory, params)
                    if params.random_seed is None:
                        params.random_seed = random.SystemRandom().randrange(2**31)
                    self.scenario.store(directory, params)
                with claimed(directory, params, fresh=before is None), log_file(run_paths(directory, params).logs):
                    if before is not None:
                        before.report()
                    self._train(directory, callbacks, requests, before, start, channel)
        return self.history

    def _steps(self) -> int:
        """The steps that the run has taken."""
        return 0 if self._run is None else self._run.progress.step

    def create_callbacks(self, run: TrainingRun) -> list[keras.callbacks.Callback]:
        """The callbacks of the parameters; a subclass may add more."""
        del run
        return [callback.create() for callback in self.params.all_callbacks()]

    def _train(
        self,
        directory: Path,
        callbacks: list[keras.callbacks.Callback],
        requests: StopRequests,
        before: Resumption | None,
        start: int | Literal["latest", "best"],
        channel: "ControlChannel | None",
    ) -> None:
        layers = None if before is None else before.load(start)
        run: TrainingRun | None = None
        try:
            self._run = run = prepare_run(self.params, self.scenario, directory, layers=layers, channel=channel)
            with run.steps.leading():
                self._lead(run, callbacks, requests, before)
        except TrainingInterrupted:
            raise
        except BaseException:
            if before is None and self._steps() == 0:
                release(directory, self.params)
            raise
        finally:
            for callback in run.callbacks if run is not None else ():
                if isinstance(callback, TrainerCallback):
                    callback.release()

    def _lead(
        self,
        run: TrainingRun,
        callbacks: list[keras.callbacks.Callback],
        requests: StopRequests,
        before: Resumption | None,
    ) -> None:
        params = self.params
        own = self.create_callbacks(run)
        check_callbacks(own)
        run.callbacks = callbacks = [*own, *callbacks]
        self.best = run.callback(BestModel)
        for callback in callbacks:
            if isinstance(callback, TrainerCallback):
                callback.set_run(run)
        if params.verify_export and (params.export_best or params.export_final):
            run.verification = Verification(run)
        store = CheckpointStore(
            run.paths.checkpoint,
            params.keep_checkpoints,
            params.keep_every_checkpoint,
            run_identity(run.directory),
            params.checkpoint_name,
        )
        state = TrainingState(run, store)
        if before is not None:
            before.restore(state)
            continue_logs(callbacks, run.progress.epoch)
            if before.finished(run.progress):
                self._finish(run, before)
                return
        run.steps.begin()
        lav = self.scenario.create_training_lav(run.built, params) if params.lav_every_n else None
        run.retraces += [part.retrace for part in (run.steps, lav) if part is not None]
        logger.info("Training %s in %s (seed %d)", self.scenario.name(), run.directory, params.random_seed or 0)
        if params.summary:
            logger.info("%s", summarize(run.built.root.graph, run.model.optimizer))
        rehearsal = SanityCheck(run, callbacks, lav).run if params.sanity_check and before is None else None
        loop = TrainingLoop(run, lav, state, requests, rehearsal)
        try:
            with checked_numerics() if params.check_numerics else nullcontext():
                loop.execute()
            requests.finishing()
            state.writer.close()
        except StopRequested:
            raise self._interrupted(state, requests) from None
        except WorkerLostError as error:
            state.writer.close()
            raise WorkerLostError(f"{error} {store.last_good()} Resume with: {_resume_command(run)}") from error
        except TrainingError as error:
            if run.progress.step == 0:
                raise
            raise type(error)(f"{error} {store.last_good()}") from error
        finally:
            display = run.callback(ProgressDisplay)
            if display is not None:
                display.close()
        self._export(run)
        if state.writer.failure is not None:
            raise state.writer.failure

    def _interrupted(self, state: TrainingState, requests: StopRequests) -> TrainingError:
        """Saves the state after a signal or at the time limit; returns the error to raise."""
        progress = state.run.progress
        where = f"Stopped by {requests.reason} at step {progress.step} (epoch {progress.epoch + 1})."
        if progress.step and state.begun:
            state.save()
        state.writer.close()
        if state.writer.failure is not None:
            return TrainingError(f"{where} {state.writer.failure}")
        return TrainingInterrupted(
            f"{where} Nothing is lost; resume with: {_resume_command(state.run)}", requests.exit_status
        )

    def _finish(self, run: TrainingRun, before: Resumption) -> None:
        """Writes missing exports of a training that has taken its last step."""
        if before.exported(run):
            self._take_history(run)
            how = "was stopped early" if run.progress.stopped else "has trained all its epochs"
            logger.info("This run is finished: it %s (%d). Set more with --trainer.epochs.", how, run.progress.epoch)
            self._exported(run)
            return
        logger.info("The training is finished; writing the exports that were missing.")
        self._export(run)

    def _take_history(self, run: TrainingRun) -> None:
        writer = run.callback(HistoryWriter)
        self.history = History(writer.rows if writer is not None else [])

    def _export(self, run: TrainingRun) -> None:
        self._take_history(run)
        try:
            self._write_exports(run)
        except DISK_ERRORS as error:
            raise TrainingError(
                f"The training is finished, but its exports cannot be written: {disk_reason(error)}. "
                f"Write them later with: {_resume_command(run)}"
            ) from error
        self._exported(run)
        logger.info("Done: %s", run.directory)

    def _exported(self, run: TrainingRun) -> None:
        for callback in run.callbacks:
            if isinstance(callback, TrainerCallback):
                callback.on_exported()

    def _write_exports(self, run: TrainingRun) -> None:
        verification = run.verification
        if verification is not None:
            verification.finish()
        result = {"epoch": run.progress.epoch, "step": run.progress.step, **(self.history[-1] if self.history else {})}
        if self.params.export_final:
            with run.averaged_weights():
                check = verification.of_export(run.paths.export) if verification else None
                self.scenario.export(
                    run.built,
                    run.paths.export,
                    self.params,
                    saved_model=True,
                    check=check,
                    result=result,
                    code=run.code,
                )
            self._complete(run, run.paths.export)
        if self.best is not None:
            self.best.verify()
            check = verification.of_saved_models(run.paths.best, self.best.expected) if verification else None
            if self.params.export_final:
                self.scenario.link_saved_models(run.built, run.paths.best, run.paths.export)
            self._complete(run, run.paths.best, check)
        if verification is not None:
            verification.report()

    def _complete(self, run: TrainingRun, directory: Path, check: Callable[[Path], None] | None = None) -> None:
        formats = self.params.export_formats
        self.scenario.complete_export(run.built, directory, check, formats, lambda: first_inputs(run))


def _connect(params: TrainerParams[Any, Any]) -> "ControlChannel | None":
    """Connects several devices or processes if there are any; imports TensorFlow's distribution only then."""
    if params.device.dist_strategy != "default":
        from scena.training.distribution.control_channel import connect

        return connect(params)
    gpus = params.device.gpu_indices()
    if len(gpus) > 1:
        logger.warning(
            "--device.gpus %s: the training runs on the first of them. --device.dist_strategy mirror uses all.",
            " ".join(map(str, gpus)),
        )
    return None


def _resume_command(run: TrainingRun) -> str:
    together = run.params.device.dist_strategy == "multi_worker"
    outside = flags_for(paths_outside(run.directory, run.params))
    imports = f" --import {' '.join(noted_imports())}" if noted_imports() else ""
    return (
        f"scena {'launch --workers N ' if together else ''}resume {shlex.quote(str(run.directory))}{imports}{outside}"
    )
