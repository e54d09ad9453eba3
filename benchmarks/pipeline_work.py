"""The work that benchmarks/pipeline.py measures, in a module of its own because worker processes import it."""

import mmap
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scena.data import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    DataGenerator,
    DataGeneratorParams,
    DataProcessorParams,
    MappingDataProcessor,
    RandomAccessGenerator,
    Sample,
)
from scena.params import param

SIZE = 32
"""Numbers in a sample."""


UNIT_SECONDS = 0.0003
"""Progress is counted in units of work of about this time: a heavy sample is many of them, a light one a short one."""


class Done:
    """How many units this process has done, in a file that the benchmark reads while it runs."""

    FOLDER = "SCENA_BENCHMARK_COUNTS"
    """Names the folder of these files in the environment of all processes of a contender."""

    def __init__(self) -> None:
        self.count = memoryview(bytearray(8)).cast("q")
        if self.FOLDER in os.environ:
            with (Path(os.environ[self.FOLDER]) / str(os.getpid())).open("w+b") as file:
                file.truncate(8)
                self.count = memoryview(mmap.mmap(file.fileno(), 8)).cast("q")

    @staticmethod
    def total(folder: Path) -> int:
        """What all processes have done together."""
        return sum(int.from_bytes(file.read_bytes(), "little") for file in folder.iterdir())


done = Done()
os.register_at_fork(after_in_child=lambda: done.__init__())  # type: ignore[misc]


def python_task(values: np.ndarray[Any, Any], units: int, loops: int) -> np.ndarray[Any, Any]:
    """Pure Python functions: arithmetic on single numbers."""
    total = int(values[0])
    for _ in range(units):
        for step in range(loops):
            total = (total * 31 + step) % 65_521
        done.count[0] += 1
    result = values.copy()
    result[0] = total
    return result


def numpy_task(values: np.ndarray[Any, Any], units: int, loops: int) -> np.ndarray[Any, Any]:
    """Several numpy operations on a small array."""
    for _ in range(units):
        for _ in range(loops):
            values = np.sqrt(values * values + 1.0)
        done.count[0] += 1
    return values


TASKS = {"PYTHON": python_task, "NUMPY": numpy_task}


class Amount(NamedTuple):
    """How much work a sample is."""

    units: int
    loops: int
    """Of each unit."""


def calibrated(task: str, seconds: float) -> Amount:
    """The amount that takes about so long when nothing disturbs."""
    function, values, loops = TASKS[task], sample_values(1), 1
    unit = min(seconds, UNIT_SECONDS)
    while min(_time(function, values, loops) for _ in range(10)) < unit:
        loops *= 2
    end = time.perf_counter() + 3.0
    best = _time(function, values, loops)
    while time.perf_counter() < end:
        best = min(best, _time(function, values, loops))
    return Amount(round(seconds / unit), max(1, round(loops * unit / best)))


def _time(function: Any, values: np.ndarray[Any, Any], loops: int) -> float:
    start = time.perf_counter()
    function(values, 1, loops)
    return time.perf_counter() - start


def sample_values(index: int) -> np.ndarray[Any, Any]:
    """The raw values of a sample."""
    return np.full(SIZE, index % 1000, np.float32)


class RangeParams(DataGeneratorParams, builds=":Range"):
    """Numbered samples."""

    count: int = param(1000, help="number of samples")


class Range(RandomAccessGenerator[RangeParams]):
    """Reads a sample by its number."""

    def __len__(self) -> int:
        return self.params.count

    def __getitem__(self, index: int) -> Sample:
        return Sample(inputs={"x": sample_values(index)})


class RangeStreamParams(RangeParams, builds=":RangeStream"):
    """The same, one after the other."""


class RangeStream(DataGenerator[RangeStreamParams]):
    """Yields samples in order."""

    def generate(self) -> Any:
        """All samples."""
        return (Sample(inputs={"x": sample_values(index)}) for index in range(self.params.count))


class BytesParams(DataGeneratorParams, builds=":Bytes"):
    """Large samples."""

    count: int = param(40, help="number of samples")
    megabytes: int = param(50, help="size of each")


class Bytes(RandomAccessGenerator[BytesParams]):
    """Hands out the same large array again and again: nothing but moving it takes time."""

    _array: np.ndarray[Any, Any] | None = None

    def __len__(self) -> int:
        return self.params.count

    def __getitem__(self, index: int) -> Sample:
        if self._array is None:
            self._array = np.ones(self.params.megabytes << 20, np.uint8)
        return Sample(inputs={"x": self._array})


class TaskParams(DataProcessorParams, builds=":Task"):
    """One of the tasks."""

    task: str = param("PYTHON", choices=sorted(TASKS), help="which")
    units: int = param(1, help="how heavy, in units")
    loops: int = param(1, help="how heavy a unit is")


class Task(MappingDataProcessor[TaskParams]):
    """Applies the task to a sample."""

    def apply(self, sample: Sample) -> Sample:
        """One sample."""
        return sample.new_inputs(
            {"x": TASKS[self.params.task](sample.inputs["x"], self.params.units, self.params.loops)}
        )


class BenchDataParams(DataBaseParams, builds=":BenchData"):
    """No parameters of its own."""


class BenchData(DataBase[BenchDataParams]):
    """A vector of numbers."""

    def _input_layer_specs(self) -> dict[str, Any]:
        return {"x": ArraySpec((SIZE,), "float32")}


class BytesDataParams(DataBaseParams, builds=":BytesData"):
    """No parameters of its own."""


class BytesData(DataBase[BytesDataParams]):
    """A vector of bytes."""

    def _input_layer_specs(self) -> dict[str, Any]:
        return {"x": ArraySpec((None,), "uint8")}
