"""Checks before a training: are samples the same when they are made again, and do two sources hold the same samples?"""

from itertools import islice
from typing import Any

import numpy as np

from scena.data.engines.in_process import InProcessEngine
from scena.data.sample import Sample
from scena.data.stages.context import PipelineContext
from scena.data.stages.mapping import apply_steps

SAMPLES = 3


def changing_part(context: PipelineContext) -> tuple[str, str] | None:
    """The source or processor that makes a sample differently the second time, and the sample; None if there is none.

    It is one that draws random numbers of its own, keeps something from sample to sample, or depends on the time. Sources that
    stay in the training's process are not looked at: reading them twice may be expensive or impossible.
    """
    if context.generator is None or context.main_source or context.first_step:
        return None
    context = context.small(None)  # what it skips is not counted
    if _change(context, len(context.steps)) is None:
        return None
    for count in range(len(context.steps) + 1):
        sample = _change(context, count)
        if sample is not None:
            return (context.steps[count - 1].name if count else type(context.generator).__name__), sample
    return None


def _change(context: PipelineContext, processors: int) -> str | None:
    """The first sample that comes out differently after the first `processors` processors."""
    # backwards the second time, so that what a processor keeps from sample to sample shows
    for first, second in zip(_first(context, processors), _first(context, processors, backwards=True), strict=False):
        if not equal(first.inputs, second.inputs) or not equal(first.targets, second.targets):
            return first.identity()
    return None


def _first(context: PipelineContext, processors: int, backwards: bool = False) -> list[Sample]:
    context = context.beginning(processors)
    if not context.random_access or context.skipped is not None or any(step.generating for step in context.steps):
        return list(islice(InProcessEngine(context).samples(), SAMPLES))
    steps, order = [context.mapping(step) for step in context.steps], context.order(0)
    ordinals = range(min(SAMPLES, len(order)))
    made = {}
    for ordinal in reversed(ordinals) if backwards else ordinals:
        for sample in context.load((order[ordinal],)):
            made[ordinal] = apply_steps(steps, sample, context.random(0), ordinal, 0)
    return [made[ordinal] for ordinal in ordinals]


def same_samples(first: PipelineContext, second: PipelineContext) -> bool:
    """Whether two sources with random access have the same samples, judged by their number, the first, the last and one between."""
    sources: list[Any] = [first.generator, second.generator]
    if not (first.random_access and second.random_access) or len(sources[0]) != len(sources[1]) or not len(sources[0]):
        return False
    count = len(sources[0])
    try:
        pairs = [[source[index] for source in sources] for index in sorted({0, count // 2, count - 1})]
    except Exception:  # a sample that cannot be read is reported, or skipped, when it is needed
        return False
    return all(equal(one.inputs, other.inputs) and equal(one.targets, other.targets) for one, other in pairs)


def equal(one: Any, other: Any) -> bool:
    """Whether two values on their way to a batch are the same; NaN is itself."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and one.dtype != object:
        return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, float | np.floating) and isinstance(other, float | np.floating) and one != one:
        return bool(other != other)
    return bool(np.all(one == other))
