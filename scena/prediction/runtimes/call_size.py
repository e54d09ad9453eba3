"""How many samples a call of a converted model should have: measured once, when it is converted, so that predictions can be repeated.

A large call does not fit the caches of a core; a small one spends its time on being called.
"""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scena.params import subclasses
from scena.prediction.params import ConvertedRuntimeParams, ExportFormatParams
from scena.prediction.runtimes.base import Arrays

if TYPE_CHECKING:
    from scena.prediction.runtimes.parallel import ParallelRuntime

SIZES = (16, 32, 64, 128, 256)
SAMPLES = 256
"""How many are predicted in a round, by each of the threads that call at the same time."""
ROUNDS = 5
SLOWEST = 0.02
"""Seconds of a call after which no larger ones are tried: they gain nothing, and take memory."""
EQUAL = 1.04
"""Sizes that take so many times the time of the fastest one count as equally fast; the largest of them is chosen."""


def runtime_of(form: ExportFormatParams) -> ConvertedRuntimeParams | None:
    """The runtime for models that were converted to this format."""
    name = form.create().file_name("")
    for kind in subclasses(ConvertedRuntimeParams)[1:]:
        options = {option: getattr(form, option) for option in kind.__params__ if option in type(form).__params__}
        runtime = kind(**options)
        if runtime.format().create().file_name("") == name:
            return runtime
    return None


class MeasuredExport:
    """An export of which only the converted model is used."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def build(self) -> Any:
        raise NotImplementedError("Only the converted model is measured.")


def fastest_call_size(runtime: "ParallelRuntime", inputs: Arrays) -> int | None:
    """The number of samples in a call with which a runtime predicts most samples per second, if all calls run that it makes at once.

    Args:
        runtime: the open model.
        inputs: a batch of real inputs, which is repeated as needed.

    Returns:
        None if a call of the smallest size is so slow that its size makes no difference.
    """
    with runtime.many_calls(), ThreadPoolExecutor(runtime.parallel_calls) as threads:

        def seconds(size: int, calls: int) -> float:
            batch = {name: _repeated(value, size) for name, value in inputs.items()}

            def one_thread(_: int) -> None:
                for _ in range(calls):
                    runtime.predict(batch)

            started = time.perf_counter()
            list(threads.map(one_thread, range(runtime.parallel_calls)))
            return (time.perf_counter() - started) / calls

        calls: dict[int, int] = {}
        for size in SIZES:
            taken = min(seconds(size, 1) for _ in range(3))  # the first call opens what is opened when it is needed
            if taken > SLOWEST:
                break
            calls[size] = max(1, min(SAMPLES // size, round(SLOWEST / taken)))
        # in turns, so that another program on this machine slows all of them down
        found = dict.fromkeys(calls, math.inf)
        for _ in range(ROUNDS):
            for size, count in calls.items():
                found[size] = min(found[size], seconds(size, count) / size)
    return max((size for size in found if found[size] <= EQUAL * min(found.values())), default=None)


def _repeated(values: np.ndarray, size: int) -> np.ndarray:
    return np.resize(values, (size, *values.shape[1:]))
