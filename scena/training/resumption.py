"""Going on with a run: what its directory says about it, what has changed since, and whether anything is left to do."""

import json
import logging
import time
from pathlib import Path
from typing import Any, Literal

from scena.data.rules import tell_of_rules
from scena.params import to_raw
from scena.training.changes import Change, compare, record
from scena.training.checkpoint import CheckpointStore
from scena.training.directory import run_paths, settle_paths
from scena.training.errors import TrainingError
from scena.training.params import TrainerParams
from scena.training.run import Progress, TrainedScenario, TrainingRun
from scena.training.state import TrainingState

logger = logging.getLogger(__name__)

RUN_FILE = "trainer_params.json"
EXPORT_FILE = "scenario.json"


class Resumption:
    """A run that was there before this process.

    Args:
        directory: its directory.
        params: the parameters to go on with; paths in them are settled.
        scenario: the scenario, which stores the parameters.
        strict: refuse to go on with changed code.
    """

    def __init__(
        self, directory: Path, params: TrainerParams[Any, Any], scenario: TrainedScenario, *, strict: bool = False
    ) -> None:
        self.directory = directory
        self.params = params
        self.scenario = scenario
        self.strict = strict
        description = _read(directory / RUN_FILE)
        self._rules = description.get("rules")
        stored = description.get("trainer")
        if not isinstance(stored, dict):
            raise TrainingError(f"{directory} is not the directory of a run: it has no {RUN_FILE} with its parameters.")
        self._paths = _StoredPaths(stored)
        settle_paths(directory, params, self._paths)
        if params.random_seed is None:
            params.random_seed = stored.get("random_seed")
        self.changes = [change for change in compare(stored, to_raw(params)) if change.path != "output_dir"]

    def report(self) -> None:
        """Says what has changed."""
        tell_of_rules(self._rules, str(self.directory))
        if not self.changes:
            return
        logger.info("Changed parameters:\n%s", "\n".join(f"  {change}" for change in self.changes))
        inexact = [change.path for change in self.changes if not change.harmless and not self._only_longer(change)]
        if inexact:
            logger.warning(
                "The result is not that of a run with these parameters from the start, because of: %s.",
                ", ".join(inexact),
            )

    def has_checkpoints(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        paths = {run_paths(self.directory, place).checkpoint for place in (self._paths, self.params)}
        return any(CheckpointStore(path).steps() for path in paths)

    def restore(self, state: TrainingState, start: int | Literal["latest", "best"]) -> None:
        """Puts the state back, notes that in the run's directory, and stores the parameters."""
        store = state.store
        old = CheckpointStore(run_paths(self.directory, self._paths).checkpoint, run=store.run)
        if not store.steps() and old.steps():
            store = old  # checkpoints go elsewhere from now on
        step = _best_step(run_paths(self.directory, self._paths).best, store) if start == "best" else start
        found = state.restore(store, None if step == "latest" else int(step), strict=self.strict)
        progress = state.run.progress
        if found and any(change.path.startswith("gen.") for change in self.changes):
            _fit_into_epoch(state.run)
        if found:
            logger.info(
                "Resumed at epoch %d, step %d, from %s", progress.epoch + 1, progress.step, state.run.resumed_from
            )
        else:
            logger.info("There is no checkpoint yet: the run starts from its beginning, with the same seed.")
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "from": start,
            "step": progress.step,
            "changes": {change.path: [change.before, change.after] for change in self.changes},
            **({"code": [str(change) for change in state.changed_code]} if state.changed_code else {}),
        }
        try:
            self.scenario.store(self.directory, self.params)
            record(self.directory, entry)
        except OSError as error:
            raise TrainingError(f"Cannot write to {self.directory}: {error.strerror or error}.") from error

    def finished(self, progress: Progress) -> bool:
        """Whether there is no step left to take; a run that was stopped early goes on if parameters have changed."""
        if progress.epoch >= self.params.epochs:
            return True
        if progress.finished and progress.stopped and all(change.harmless for change in self.changes):
            return True
        if progress.finished:
            progress.finished = progress.stopped = False
        return False

    def exported(self, run: TrainingRun) -> bool:
        """Whether the exports of a finished training are complete."""
        paths = run.paths
        if (
            self.params.export_final
            and _read(paths.export / EXPORT_FILE).get("result", {}).get("step") != run.progress.step
        ):
            return False
        return not (paths.best / EXPORT_FILE).is_file() or (paths.best / "saved_model").is_dir()

    def _only_longer(self, change: Change) -> bool:
        """Whether more or fewer epochs leave the past of the run as it was: not if the learning rate depends on them."""
        if change.path != "epochs":
            return False
        rates = [self.params.learning_rate.create(10, epochs) for epochs in (change.before, change.after)]
        if not all(callable(rate) for rate in rates):
            return True
        steps = range(0, 10 * min(change.before, change.after), max(1, change.before // 10))
        return all(float(rates[0](step)) == float(rates[1](step)) for step in steps)


def _fit_into_epoch(run: TrainingRun) -> None:
    """Counts the steps of a half-finished epoch anew: with another batch size, its rest has another number of them."""
    samples, steps, progress = run.train_data.samples_per_epoch(), run.steps_per_epoch, run.progress
    if (
        progress.step_in_epoch
        and samples is not None
        and steps is not None
        and steps == run.train_data.batches_per_epoch()
    ):
        left = max(samples - progress.cursor.samples, 0)
        size = run.params.gen.train.batch_size
        rest = left // size if run.params.gen.train.batch_drop_remainder else -(-left // size)
        progress.step_in_epoch = max(steps - rest, 1)  # 0 would mean that nothing of the epoch is done yet


class _StoredPaths:
    """The paths in stored parameters."""

    def __init__(self, stored: dict[str, Any]) -> None:
        self.checkpoint_dir = _path(stored.get("checkpoint_dir"))
        self.log_dir = _path(stored.get("log_dir"))
        self.export_dir = _path(stored.get("export_dir"))


def _path(value: Any) -> Path | None:
    return Path(value) if isinstance(value, str) else None


def _best_step(best: Path, store: CheckpointStore) -> int:
    step = _read(best / EXPORT_FILE).get("result", {}).get("step")
    if not isinstance(step, int):
        raise TrainingError(f"There is no best model in {best} to go on from.")
    if step not in store.steps():
        there = ", ".join(map(str, store.steps())) or "none"
        raise TrainingError(
            f"The best model is that of step {step}, of which there is no checkpoint (there are: {there}). "
            "To start from its weights only, train anew with --warmstart."
        )
    return step


def _read(path: Path) -> dict[str, Any]:
    """A JSON object, empty if there is none to be read."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
