"""The results of single samples: what the bootstrap resamples, and what two models are compared by."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import tee
from typing import TYPE_CHECKING, Any

import numpy as np

from scena.data.params import PipelineMode
from scena.data.sample import Batch, Sample
from scena.errors import ScenaError
from scena.evaluation.dump import DumpError, to_json
from scena.evaluation.evaluator import Evaluator
from scena.evaluation.statistics.bootstrap import is_number, mean_intervals, result_intervals
from scena.evaluation.statistics.student import Interval

if TYPE_CHECKING:
    from scena.evaluation.multi import MultiLAV

TOLERANCE = 1e-3
"""How far the mean over samples may be from the result of the validation, relative to it."""


class StatisticsError(ScenaError):
    """Samples or results do not allow what was asked for."""


@dataclass
class SampleResults:
    """What one model made of each sample."""

    values: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    """Losses and metrics: a value for each sample, in order."""
    samples: list[Sample] = field(default_factory=list)
    """The post-processed samples as a dump has them."""

    def add(self, other: "SampleResults") -> None:
        """Adds the samples of another part of the data."""
        for name, values in other.values.items():
            self.values[name] = np.concatenate([self.values[name], values]) if name in self.values else values
        self.samples += other.samples

    def digests(self) -> list[str]:
        """What identifies each sample: a hash of its targets and its meta."""
        return [_digest(sample) for sample in self.samples]


def measure_samples(
    lav: "MultiLAV", source: Any, progress: Callable[[int], None] = lambda count: None
) -> dict[str, SampleResults]:
    """Runs the models of a LAV over a source sample by sample; by name, like the results of the LAV."""
    first = next(iter(lav.lavs.values()))
    kept: dict[str, list[dict[str, float]]] = {name: [] for name in lav.names()}
    found = {name: SampleResults() for name in kept}

    def stream(name: str, steps: Iterator[tuple[Batch, Any]]) -> Iterator[Sample]:
        for batch, measured in steps:
            outputs, values = measured[name]
            kept[name].append(values)
            yield from batch.samples(outputs)

    with first.single_batches(source).stream(repeat=False) as batches:
        steps = tee(_measured(lav, batches, progress), len(kept))
        streams = {
            name: lav.lavs.get(name, first)
            .built.data.create_post_proc(PipelineMode.EVALUATION)
            .apply(stream(name, copy))
            for name, copy in zip(kept, steps, strict=True)
        }
        del steps  # an unused copy would keep every batch
        iterators = {name: iter(samples) for name, samples in streams.items()}
        while iterators:
            for name, samples in list(iterators.items()):
                if (sample := next(samples, None)) is None:
                    del iterators[name]
                else:
                    found[name].samples.append(own_sample(lav.lavs.get(name, first).extract_dump_data(sample)))
    for name, rows in kept.items():
        others = lav.lavs.get(name, first).no_means()
        columns = [key for key in (rows[0] if rows else {}) if key not in others]
        found[name].values = {key: np.array([row[key] for row in rows], np.float64) for key in columns}
    return found


def _measured(
    lav: "MultiLAV", batches: Iterable[Batch], progress: Callable[[int], None]
) -> Iterator[tuple[Batch, Any]]:
    for batch in batches:
        if batch.size != 1:
            raise StatisticsError("The source gives whole batches, and statistics over samples need single ones.")
        yield batch, lav.measure(batch)
        progress(1)


def own_sample(sample: Sample) -> Sample:
    """A copy: the arrays of a batch may lie in memory that is used again."""
    return Sample(_copied(sample.inputs), _copied(sample.targets), _copied(sample.outputs), sample.meta)


def _copied(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: _copied(value) for name, value in values.items()}
    return np.array(values) if isinstance(values, np.ndarray) else values


def _digest(sample: Sample) -> str:
    parts = [sample.targets]
    try:
        parts.append(to_json(sample.meta))
    except DumpError:  # meta of any type; targets are arrays
        parts.append(None)
    return hashlib.sha256(json.dumps(to_json(parts), sort_keys=True).encode()).hexdigest()


def evaluate(evaluator: Evaluator[Any], samples: list[Sample], chosen: Iterable[int]) -> dict[str, Any]:
    """The results of an evaluator on some samples, each as often as it is chosen."""
    with evaluator:
        for index in chosen:
            evaluator.update_state(samples[int(index)])
        return dict(evaluator.result())


@dataclass
class Intervals:
    """The 95 % intervals of one model's results."""

    n: int
    by_name: dict[str, Interval]
    notes: list[str]
    """Why a result has none."""


def bootstrap(
    measured: SampleResults,
    results: dict[str, Any],
    evaluator: Evaluator[Any],
    number: int,
    progress: Callable[[int], None] = lambda done: None,
) -> Intervals:
    """Percentile intervals of the results of a validation over its samples.

    Args:
        measured: what the model made of each sample.
        results: what the validation as a whole found.
        evaluator: it runs on resampled samples.
        number: how many resamples to draw.
        progress: called with 1 after each resample of the evaluator.
    """
    values, notes = {}, []
    for name, column in measured.values.items():
        if name in results and _close(float(column.mean()), results[name]):
            values[name] = column
    found = mean_intervals(values, number)
    samples, own = measured.samples, {}
    if samples:
        own = evaluate(evaluator, samples, range(len(samples)))
    if own:
        differ = [name for name, value in own.items() if is_number(value) and not _close(value, results.get(name))]
        if differ:
            notes.append(
                f"{', '.join(differ)}: no interval. The evaluator finds another value on the samples of a dump than in the validation."
            )
        drawn, without = result_intervals(
            lambda chosen: evaluate(evaluator, samples, chosen), len(samples), number, progress=progress
        )
        found |= {name: interval for name, interval in drawn.items() if name not in differ}
        if without:
            notes.append(f"{', '.join(without)}: no interval. Some resamples have no finite value.")
    others = [name for name, value in results.items() if is_number(value) and name not in found and name not in own]
    if others:
        notes.append(
            f"{', '.join(others)}: no interval. It is not a mean over samples; compute it in an evaluator, which is resampled as a whole."
        )
    count = len(next(iter(measured.values.values()), measured.samples))
    return Intervals(count, found, notes)


def _close(one: float, other: Any) -> bool:
    return is_number(other) and math.isclose(one, float(other), rel_tol=TOLERANCE, abs_tol=1e-6)
