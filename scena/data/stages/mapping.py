"""Applies mapping processors to a sample. Errors name the processor and the sample; common mistakes of sources and processors, which
would corrupt data silently, are detected."""

import logging
from typing import Any

import numpy as np

from scena.data.processor import Step, takes_rng
from scena.data.sample import Sample
from scena.data.stages.rng import SampleRandom
from scena.errors import DataError, SampleError
from scena.user_code import user_lines

logger = logging.getLogger("scena.data")


class Skipped:
    """Counts the samples that were skipped because of an error, and logs each."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.identities: list[str] = []
        self.silent = False
        """In a worker: only collect, the parent counts and logs."""

    def add(self, error: DataError | str) -> None:
        """Skips a sample; raises if there are too many."""
        error = error.reason if isinstance(error, SampleError) else error
        self.identities.append(str(error))
        if self.silent:
            return
        logger.warning("skipped a sample (on_error=skip): %s", error)
        if self.limit is not None and len(self.identities) > self.limit:
            count = len(self.identities)
            raise DataError(f"{count} samples failed, more than max_skipped={self.limit}. The last: {error}")


class MappingStep:
    """A created mapping processor."""

    __slots__ = ("apply", "name", "number", "takes_rng")

    def __init__(self, step: Step, processor: Any) -> None:
        self.apply = processor.apply
        self.name = step.name
        self.number = step.number
        self.takes_rng = takes_rng(processor.apply)


def cause(error: BaseException) -> str:
    """An exception in one line, with the line of the user's code that it came from, if there is one."""
    lines = user_lines(error.__traceback__)
    return f"{type(error).__name__}: {error}{f' ({lines[-1]})' if lines else ''}"


def apply_steps(steps: list[MappingStep], sample: Sample, random: SampleRandom, index: int, part: int) -> Sample:
    """Applies mapping processors to one sample; an exception names the processor and the sample."""
    current = sample
    for step in steps:
        try:
            if step.takes_rng:
                current = step.apply(current, random.at(index, part, step.number))
            else:
                current = step.apply(current)
        except DataError:
            raise
        except Exception as error:
            if not isinstance(current, Sample):
                raise _no_sample(steps[steps.index(step) - 1], current, sample) from error
            known = current if current.index is not None else sample
            own = isinstance(error, ValueError) and "read-only" in str(error)
            kind, hint = (DataError, _READ_ONLY) if own else (SampleError, "")
            raise kind(f"{step.name} failed on {known.identity()}: {cause(error)}{hint}") from error
    if not isinstance(current, Sample):
        raise _no_sample(steps[-1], current, sample)
    if current.index is None:
        current.index = sample.index
    return current


def _no_sample(step: MappingStep, received: Any, sample: Sample) -> DataError:
    return DataError(f"{step.name} must return a Sample. Received: {type(received).__name__} for {sample.identity()}.")


_READ_ONLY = (
    ". The array is the source's own: a change would still be there in the next epoch. Copy it first, array.copy()."
)
WATCHED = 8
"""The number of samples that are checked; a mistake of this kind affects all of them."""


def read_only(sample: Sample) -> Sample:
    """The sample for processors: dicts of its own, and arrays that cannot be changed in place."""
    copy = sample._copy()
    copy.inputs = _read_only(sample.inputs)
    copy.targets = _read_only(sample.targets)
    if type(sample.meta) is dict:
        copy.meta = sample.meta.copy()
    return copy


def _read_only(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.view()
        value.setflags(write=False)
    elif type(value) is dict:
        value = value.copy()
        for name, item in value.items():
            if isinstance(item, np.ndarray):
                value[name] = item = item.view()
                item.setflags(write=False)
    return value


class ReuseWatch:
    """Detects that making a sample changes the one before it; `maker` names the source or processors in the error."""

    def __init__(self, maker: str) -> None:
        self._maker = maker
        self._left = WATCHED
        self._last: tuple[Sample, dict[str, bytes]] | None = None

    def see(self, sample: Sample) -> "ReuseWatch | None":
        """Looks at the next sample; returns itself, or None when it has seen enough."""
        if self._last is not None:
            before, content = self._last
            for name, array in _arrays(before).items():
                if array.tobytes() != content[name]:
                    raise DataError(
                        f"{self._maker} reuses the array of {name}: that of {before.identity()} changed when "
                        f"{sample.identity()} was made, so samples of a batch would be mixed up. Return a new array for each sample."
                    )
        self._left -= 1
        self._last = (sample, {name: array.tobytes() for name, array in _arrays(sample).items()})
        return self if self._left else None


def _arrays(sample: Sample) -> dict[str, np.ndarray]:
    return {
        f"{kind}[{name!r}]": value
        for kind, values in (("inputs", sample.inputs), ("targets", sample.targets))
        if isinstance(values, dict)
        for name, value in values.items()
        if isinstance(value, np.ndarray) and value.dtype != object
    }
