"""Resuming a run: its stored parameters, changes since then, and whether anything is left to do."""

import json
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from scena.data.params import tell_of_rules
from scena.errors import CheckpointError, TrainingError
from scena.model.state.layer_state import LayerState
from scena.params import ParamsError, build, to_raw
from scena.params.tree import affects_results
from scena.prediction.converted import is_verified
from scena.storage.checksums import write_checked
from scena.storage.code_fingerprints import CodeChange
from scena.storage.run_layout import DIRECTORIES, EXPORT_FILE, PARAMS_FILE, RESUMES_FILE, run_paths, saved_model
from scena.training.checkpoint.format import LoadedCheckpoint
from scena.training.checkpoint.state import TrainingState, stored_layers
from scena.training.checkpoint.store import CheckpointStore
from scena.training.checks.before_start import compare_code
from scena.training.directory import read_json, read_resumes, run_identity, settle_paths
from scena.training.params import TrainerParams
from scena.training.run import Progress, TrainingRun
from scena.training.trackers.values import flag_names

if TYPE_CHECKING:
    from scena.scenario.scenario import ScenarioBase

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Change:
    """A parameter that differs from the stored one."""

    path: str
    before: Any
    after: Any

    @property
    def values(self) -> str:
        """Both values, as the log shows them."""
        return f"{_short(self.before)} → {_short(self.after)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"


def compare(before: Any, after: Any, path: str = "") -> list[Change]:
    """The differing values of two raw trees, by path."""
    if isinstance(before, dict) and isinstance(after, dict):
        changes = []
        for name in dict.fromkeys([*before, *after]):
            changes += compare(before.get(name), after.get(name), f"{path}.{name}" if path else name)
        return changes
    return [] if before == after else [Change(path, before, after)]


class Resumption:
    """A stored run that this process continues.

    Args:
        params: the parameters to resume with; their paths are converted.
        strict: refuse changed code.
    """

    def __init__(
        self,
        directory: Path,
        params: TrainerParams[Any, Any],
        scenario: "ScenarioBase[Any, Any]",
        *,
        strict: bool = False,
    ) -> None:
        self.directory = directory
        self.params = params
        self.scenario = scenario
        self.strict = strict
        description = read_json(directory / PARAMS_FILE)
        self._rules = description.get("rules")
        stored = description.get("trainer")
        if not isinstance(stored, dict):
            raise TrainingError(
                f"{directory} is not the directory of a run: it has no {PARAMS_FILE} with its parameters."
            )
        paths = {name: stored.get(name) for name in DIRECTORIES}
        self._paths = SimpleNamespace(
            **{name: Path(path) if isinstance(path, str) else None for name, path in paths.items()}
        )
        settle_paths(directory, params, self._paths)
        if params.random_seed is None:
            params.random_seed = stored.get("random_seed")
        self._start: int | Literal["latest", "best"] = "latest"
        self._loaded: LoadedCheckpoint | None = None
        self.changed_code: list[CodeChange] = []
        with suppress(ParamsError):  # parameters that cannot be read today stay as they are
            stored = to_raw(build(stored, type(params)))  # with defaults for those that Scena did not have then
        self.changes = [change for change in compare(stored, to_raw(params)) if change.path != "output_dir"]

    def report(self) -> None:
        """Logs the changes."""
        tell_of_rules(self._rules, str(self.directory))
        if not self.changes:
            return
        flags = flag_names(self.params)
        lines = [f"  {flags.get(one.path, one.path)}: {one.values}" for one in self.changes]
        logger.info("Changed parameters:\n%s", "\n".join(lines))
        inexact = [flags.get(one.path, one.path) for one in self._effective() if not self._only_longer(one)]
        if inexact:
            logger.warning(
                "The result differs from a run with these parameters from the start, because of: %s.",
                ", ".join(inexact),
            )

    def load(self, start: int | Literal["latest", "best"]) -> list[LayerState] | None:
        """Reads the checkpoint to resume from, which `restore` then uses.

        Returns:
            The layer states; None if there is no checkpoint yet and the run starts from the beginning.
        """
        self._start, store = start, self._store()
        step = _best_step(run_paths(self.directory, self._paths).best, store) if start == "best" else start
        store.clean()
        self._loaded = store.load_latest() if step == "latest" else store.load(int(step))
        if self._loaded is None and store.steps():
            raise CheckpointError(f"None of the checkpoints in {store.directory} can be read.")
        if self._loaded is None:
            return None
        code, path = self._loaded.state.code, store.path(self._loaded.step)
        self.changed_code = compare_code(code, type(self.scenario).__module__, path, strict=self.strict)
        return stored_layers(self._loaded)

    def restore(self, state: TrainingState) -> None:
        """Restores the state, records the resume in the run's directory and stores the parameters."""
        loaded, self._loaded = self._loaded, None
        if loaded is None:
            state.reset()
        else:
            other_data = any(change.path.startswith("gen.") for change in self.changes)
            if not other_data:
                other_data = self._compare_samples(loaded.state.samples, state.sample_counts, loaded.step)
            state.restore(self._store(), loaded)
            if other_data:
                _fit_into_epoch(state.run)
        progress = state.run.progress
        if loaded is not None:
            logger.info(
                "Resumed at epoch %d, step %d, from %s", progress.epoch + 1, progress.step, state.run.resumed_from
            )
        else:
            logger.info("There is no checkpoint yet: the run starts from the beginning, with the same seed.")
        self._record(
            {
                "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "from": self._start,
                "step": progress.step,
                "changes": {change.path: [change.before, change.after] for change in self.changes},
                **({"code": [str(change) for change in self.changed_code]} if self.changed_code else {}),
            }
        )

    def _compare_samples(self, before: dict[str, int], now: dict[str, int], step: int) -> bool:
        """Whether the same parameters now give another number of samples: warns of it, or raises if `strict`."""
        differing = [
            f"{count:,} samples for the {name} then, {now[name]:,} now"
            for name, count in before.items()
            if now.get(name, count) != count
        ]
        if not differing:
            return False
        text = f"The data has changed since {self._store().path(step)} was written: {', '.join(differing)}"
        if self.strict:
            raise CheckpointError(f"{text}. Restore the data of that time, or remove --strict.")
        logger.warning("%s, so the run is not exact.", text)
        return True

    def _record(self, entry: dict[str, Any]) -> None:
        """Stores the parameters, and appends an entry to the record of resumes."""
        entries = [*read_resumes(self.directory), entry]
        try:
            self.scenario.store(self.directory, self.params)
            write_checked(self.directory / RESUMES_FILE, json.dumps(entries, indent=1) + "\n")
        except OSError as error:
            raise TrainingError(f"Cannot write to {self.directory}: {error.strerror or error}.") from error

    def finished(self, progress: Progress) -> bool:
        """Whether no step is left; a run that was stopped early continues if parameters have changed."""
        if progress.epoch >= self.params.epochs:
            return True
        if progress.finished and progress.stopped and not self._effective():
            return True
        if progress.finished:
            progress.finished = progress.stopped = False
        return False

    def exported(self, run: TrainingRun) -> bool:
        """Whether the exports of a finished training are complete."""
        paths = run.paths
        if (
            self.params.export_final
            and read_json(paths.export / EXPORT_FILE).get("result", {}).get("step") != run.progress.step
        ):
            return False
        exports = [path for path in (paths.best, paths.export) if (path / EXPORT_FILE).is_file()]
        if not all(is_verified(path, form) for path in exports for form in self.params.export_formats):
            return False
        return paths.best not in exports or (paths.best / saved_model()).is_dir()

    def _store(self) -> CheckpointStore:
        """The store that has the checkpoints: the old one, or the new one if --trainer.checkpoint_dir changed."""
        old, new = (
            CheckpointStore(run_paths(self.directory, place).checkpoint, run=run_identity(self.directory))
            for place in (self._paths, self.params)
        )
        return old if old.steps() and not new.steps() else new

    def _effective(self) -> list[Change]:
        """The changes that affect results."""
        return [change for change in self.changes if affects_results(self.params, change.path)]

    def _only_longer(self, change: Change) -> bool:
        """Whether only the number of epochs differs, and the past learning rates do not depend on it."""
        if change.path != "epochs":
            return False
        rates = [self.params.learning_rate.create(10, epochs) for epochs in (change.before, change.after)]
        if not all(callable(rate) for rate in rates):
            return True
        steps = range(0, 10 * min(change.before, change.after), max(1, change.before // 10))
        return all(float(rates[0](step)) == float(rates[1](step)) for step in steps)


def _fit_into_epoch(run: TrainingRun) -> None:
    """Recounts the steps of a half-finished epoch: another batch size changes the number of remaining steps."""
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


def _best_step(best: Path, store: CheckpointStore) -> int:
    step = read_json(best / EXPORT_FILE).get("result", {}).get("step")
    if not isinstance(step, int):
        raise TrainingError(f"There is no best model in {best} to resume from.")
    if step not in store.steps():
        there = ", ".join(map(str, store.steps())) or "none"
        raise TrainingError(
            f"The best model is that of step {step}, of which there is no checkpoint (there are: {there}). "
            "To start from its weights only, start a new run with --warmstart.model."
        )
    return step
