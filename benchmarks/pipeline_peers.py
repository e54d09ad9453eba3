"""The contenders of benchmarks/pipeline.py: each yields batches of the same work, made its own way."""

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import numpy as np

from benchmarks.pipeline_work import TASKS, Amount, BenchData, BenchDataParams, RangeParams, TaskParams, sample_values
from scena.data import DataPipelineParams, PipelineMode, SequentialProcessorPipelineParams

COUNT = 1 << 20
Batches = Iterator[Any]


@contextmanager
def plain_loop(task: str, amount: Amount, batch_size: int, workers: int) -> Iterator[Batches]:
    """A loop over a permutation, processing and stacking."""
    function = TASKS[task]

    def batches() -> Batches:
        rows = []
        for index in np.random.default_rng(0).permutation(COUNT):
            rows.append(function(sample_values(int(index)), *amount))
            if len(rows) == batch_size:
                yield np.stack(rows)
                rows = []

    yield batches()


@contextmanager
def scena(task: str, amount: Amount, batch_size: int, workers: int) -> Iterator[Batches]:
    """This package."""
    processors = SequentialProcessorPipelineParams(
        processors=[TaskParams(task=task, units=amount.units, loops=amount.loops)]
    )
    data = BenchData(BenchDataParams(pre_proc=processors))
    params = DataPipelineParams(batch_size=batch_size, num_processes=workers)
    pipeline = data.create_pipeline(PipelineMode.TRAINING, params, RangeParams(count=COUNT))
    with closing(pipeline), pipeline.stream() as stream:
        yield stream


@contextmanager
def tf_py_function(task: str, amount: Amount, batch_size: int, workers: int) -> Iterator[Batches]:
    """tf.data with a Python function."""
    import tensorflow as tf

    def work(index: Any) -> Any:
        return TASKS[task](sample_values(int(index)), *amount)

    def mapped(index: Any) -> Any:
        made = tf.py_function(work, [index], tf.float32)
        made.set_shape((None,))
        return made

    dataset = tf.data.Dataset.range(COUNT).shuffle(1024)
    dataset = dataset.map(mapped, num_parallel_calls=workers).batch(batch_size).prefetch(tf.data.AUTOTUNE)
    yield dataset.as_numpy_iterator()


@contextmanager
def grain(task: str, amount: Amount, batch_size: int, workers: int) -> Iterator[Batches]:
    """Grain with worker processes."""
    import grain.python as pygrain
    from absl import flags

    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["benchmark"])
    function = TASKS[task]
    dataset = (
        pygrain.MapDataset.range(COUNT).shuffle(seed=0).map(lambda index: function(sample_values(int(index)), *amount))
    )
    options = pygrain.MultiprocessingOptions(num_workers=workers)
    iterator = iter(dataset.batch(batch_size).to_iter_dataset().mp_prefetch(options))
    try:
        yield iterator
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()


@contextmanager
def torch_loader(task: str, amount: Amount, batch_size: int, workers: int) -> Iterator[Batches]:
    """torch's DataLoader with worker processes."""
    import torch

    function = TASKS[task]

    class Samples(torch.utils.data.Dataset):  # type: ignore[name-defined,misc]
        def __len__(self) -> int:
            return COUNT

        def __getitem__(self, index: int) -> Any:
            return function(sample_values(index), *amount)

    loader = torch.utils.data.DataLoader(Samples(), batch_size, shuffle=True, num_workers=workers)
    yield iter(loader)


class Contender(NamedTuple):
    """One way to make batches."""

    how: Callable[[str, Amount, int, int], Any]
    workers: int = 0
    copies: int = 1
    """How many of it run at once, in processes that know nothing of each other; their batches are added."""


def contenders(tensorflow: bool = True) -> dict[str, Contender]:
    """Those that are installed; the first is what the others are compared with."""
    found = {
        "plain loop": Contender(plain_loop),
        "plain loop again": Contender(plain_loop),
        "two plain loops": Contender(plain_loop, copies=2),
    }
    found |= {f"scena, {workers}": Contender(scena, workers) for workers in (0, 1, 2)}
    if tensorflow and importlib.util.find_spec("tensorflow"):
        found |= {f"tf.py_function, {workers}": Contender(tf_py_function, workers) for workers in (1, 2)}
    for name, package, how in (("Grain", "grain", grain), ("DataLoader", "torch", torch_loader)):
        if importlib.util.find_spec(package):
            found |= {f"{name}, {workers}": Contender(how, workers) for workers in (1, 2)}
    return found
