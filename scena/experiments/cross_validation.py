"""A cross-validation: its folds, its runs, and what is made of them once all are done."""

import hashlib
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scena.data.folds import assign_folds
from scena.data.params import FoldParams, FoldSourceParams
from scena.data.sample import Sample
from scena.data.sources.fold import folds_digest, open_pool, write_folds
from scena.errors import ExperimentError
from scena.evaluation.statistics.bootstrap import numbers
from scena.evaluation.statistics.student import Summary, fold_variance_factor, summarize
from scena.experiments.seeds import derived_seeds
from scena.experiments.sheets.sheet import Flag, SheetRun
from scena.params.declare import complete_repr
from scena.scenario.finding import AnyScenario
from scena.scenario.stored import describe, write_description
from scena.storage.run_layout import BEST, EXPORT, EXPORT_FILE, FOLDS_FILE, PARAMS, RUNS


class Fold(NamedTuple):
    """One training of a cross-validation."""

    name: str
    repeat: int
    number: int


class CrossValidation:
    """The folds of a source. They are drawn at once, and written by `store`.

    Args:
        source: all samples, as they are trained on.
        output: where everything goes.
        folds: how many folds.
        repeats: how often to divide the samples anew.
        seed: draws the folds, and begins the seeds of the trainings.
        stratify: where the class of a sample is, such as targets.gt.
        group: where the group of a sample is, such as meta.site.
    """

    def __init__(
        self, source: Any, output: Path, folds: int, repeats: int, seed: int, stratify: str | None, group: str | None
    ) -> None:
        self.source, self.output, self.seed = source, output, seed
        pool = open_pool(source)
        self.count = len(pool)
        strata, groups = values_at(pool, stratify, "--stratify"), values_at(pool, group, "--group")
        drawn = [assign_folds(self.count, folds, [seed, repeat], strata, groups) for repeat in range(repeats)]
        self.assigned = np.stack(drawn)
        self.digest = folds_digest(self.assigned)
        self.file = (output / FOLDS_FILE).absolute()
        self._described = {"samples": self.count, "seed": seed, "stratify": stratify, "group": group}
        self._described |= {"number of folds": folds, "repeats": repeats}
        self.folds = [
            Fold(f"repeat-{repeat + 1}-fold-{number + 1}" if repeats > 1 else f"fold-{number + 1}", repeat, number)
            for repeat in range(repeats)
            for number in range(folds)
        ]

    def store(self) -> None:
        """Writes the folds.

        Raises:
            DataError: the runs in `output` belong to other folds.
        """
        self.output.mkdir(parents=True, exist_ok=True)
        if not (self.output / RUNS).exists():  # nothing depends on the folds of a dry run
            self.file.unlink(missing_ok=True)
        write_folds(self.file, self.assigned, self._described)

    def runs(self, words: list[str], scenario: AnyScenario, trainer: Any) -> list[SheetRun]:
        """The trainings; those of one repeat have the same seed.

        The parameters of each are stored in a file that it starts from, since no flag sets the fold. The name of the file depends on
        them, so that changed parameters show.

        Args:
            words: `scena train SCENARIO` and options that are no parameters.
            scenario: the scenario.
            trainer: its trainer parameters.
        """
        seeds = derived_seeds(self.seed, len(self.assigned))
        runs = []
        for fold in self.folds:
            left_out = FoldParams(file=str(self.file), digest=self.digest, repeat=fold.repeat, number=fold.number)
            params = trainer.replace(gen=trainer.gen.replace(fold=left_out), random_seed=seeds[fold.repeat])
            digest = hashlib.sha256(complete_repr(params).encode()).hexdigest()[:8]
            path = self.output / PARAMS / f"{fold.name}-{digest}.json"
            path.parent.mkdir(exist_ok=True)
            write_description(path, describe(scenario, params))
            runs.append(SheetRun(fold.name, words, [Flag("params", [str(path)])], where=fold.name))
        return runs

    def test_source(self, fold: Fold) -> FoldSourceParams:
        """The samples that a fold tests."""
        return FoldSourceParams(
            source=self.source,
            file=str(self.file),
            digest=self.digest,
            repeat=fold.repeat,
            number=fold.number,
            test=True,
        )

    def tested(self, fold: Fold) -> np.ndarray[Any, Any]:
        """The indices of the samples that a fold tests."""
        found: np.ndarray[Any, Any] = np.flatnonzero(self.assigned[fold.repeat] == fold.number)
        return found

    def export(self, fold: Fold, *, last: bool) -> Path:
        """The model of a fold: the best one if there is one, unless the last is asked for."""
        run = self.output / RUNS / fold.name
        for name in (EXPORT,) if last else (BEST, EXPORT):
            if (run / name / EXPORT_FILE).is_file():
                return run / name
        raise ExperimentError(f"{run} has no {EXPORT if last else BEST} model to test.")

    def summary(self, results: dict[str, dict[str, Any]]) -> dict[str, Summary]:
        """Mean, deviation and corrected interval of each result over the folds."""
        found = {}
        found_numbers = [numbers(values) for values in results.values()]
        test = self.count / len({fold.number for fold in self.folds})
        for name in found_numbers[0]:
            values = [one[name] for one in found_numbers if name in one]
            if len(values) == len(found_numbers):
                found[name] = summarize(values, fold_variance_factor(len(values), test, self.count - test))
        return found


def values_at(pool: Any, path: str | None, flag: str) -> list[Hashable] | None:
    """What each sample of a source has at a path, such as targets.gt or meta.site, before any processor.

    Raises:
        ExperimentError: a sample has nothing there, or something that is no single value.
    """
    return (
        None
        if path is None
        else [_value_at(pool[index], path.split("."), f"{flag} {path}") for index in range(len(pool))]
    )


def _value_at(sample: Sample, path: list[str], flag: str) -> Hashable:
    parts = ("targets", "meta", "inputs")
    if path[0] not in parts:
        raise ExperimentError(
            f"{flag}: it begins with {', '.join(parts[:-1])} or {parts[-1]}, such as targets.gt or meta.site."
        )
    value: Any = getattr(sample, path[0])
    for name in path[1:]:
        if not isinstance(value, dict) or name not in value:
            there = (
                f"it has {', '.join(map(str, value))}" if isinstance(value, dict) else f"it is {type(value).__name__}"
            )
            raise ExperimentError(
                f"{flag}: {sample.identity()} of the source has no {name!r}; {there}, before any processor."
            )
        value = value[name]
    if isinstance(value, np.ndarray | np.generic):
        if np.size(value) != 1:
            raise ExperimentError(
                f"{flag} is an array of shape {np.shape(value)}, and a class or group is a single value."
            )
        value = np.asarray(value).item()
    if not isinstance(value, str | int | float | bool | bytes | type(None)):
        raise ExperimentError(f"{flag} is a {type(value).__name__}, and a class or group is a number or a text.")
    if value is None or value == "" or value != value:
        raise ExperimentError(
            f"{flag}: {sample.identity()} has no value there ({value!r}), so its fold cannot be chosen. Give it one, or leave it out."
        )
    found: Hashable = value
    return found
