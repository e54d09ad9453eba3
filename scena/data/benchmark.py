"""How fast is an input pipeline, and what slows it down?"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from scena.data.engines.in_process import InProcessEngine
from scena.data.engines.parallel import usable_cores
from scena.data.pipeline import DataPipeline

T = TypeVar("T")


class Clock:
    """Seconds per name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def timed(self, name: str, function: Callable[..., T]) -> Callable[..., T]:
        """`function`, measured."""

        def measured(*arguments: Any) -> T:
            start = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                self.seconds[name] += time.perf_counter() - start

        return measured

    def timed_iterator(self, name: str, items: Iterable[T], sign: int = 1) -> Iterator[T]:
        """`items`; the time of getting each counts (or, with `sign` -1, does not)."""
        iterator = iter(items)
        while True:
            start = time.perf_counter()
            try:
                item = next(iterator)
            except StopIteration:
                return
            finally:
                self.seconds[name] += sign * (time.perf_counter() - start)
            yield item

    def timed_stream(self, name: str, generate: Callable[..., Iterable[T]]) -> Callable[..., Iterator[T]]:
        """A generating function, measured without the time it waits for its input."""

        def measured(items: Iterable[Any], *arguments: Any) -> Iterator[T]:
            return self.timed_iterator(name, generate(self.timed_iterator(name, items, sign=-1), *arguments))

        return measured


BATCHING = "batching"


class InputBenchmark(NamedTuple):
    """What `benchmark_input` measured."""

    samples_per_second: float
    batches_per_second: float
    first_batch_seconds: float
    samples: int
    batches: int
    shares: dict[str, float]
    """The share of the processing time that the source, each processor and batching take."""
    serial_samples_per_second: float
    """Samples per second in one process, where the shares were measured."""
    bottleneck: str

    def lines(self) -> list[str]:
        """The result as text, line by line."""
        width = max(map(len, self.shares), default=0)
        speed = f"{self.samples_per_second:,.1f} samples/s, {self.batches_per_second:,.1f} batches/s"
        return [
            f"{speed} ({self.samples} samples in {self.batches} batches)",
            f"first batch after {self.first_batch_seconds:.2f} s",
            f"one process alone: {self.serial_samples_per_second:,.1f} samples/s, of which",
            *(f"  {name:<{width}}  {share:6.1%}" for name, share in self.shares.items()),
            f"bottleneck: {self.bottleneck}",
        ]


def benchmark_input(pipeline: DataPipeline, time_limit: float = 10.0) -> InputBenchmark:
    """Reads batches for `time_limit` seconds, and measures each processor for a part of that time.

    Args:
        pipeline: the pipeline to measure; it is used as training uses it, but repeats its data if that ends.
        time_limit: seconds in all.
    """
    shares, serial = _shares(pipeline, 0.3 * time_limit)
    start = time.perf_counter()
    samples = batches = 0
    with pipeline.stream(repeat=True) as stream:
        samples += next(stream).size
        batches += 1
        first = time.perf_counter()
        while time.perf_counter() - first < 0.7 * time_limit:
            for batch in stream.take_block(32):
                samples += batch.size
                batches += 1
        elapsed = time.perf_counter() - first
    size = samples / batches
    speed = (samples - size) / elapsed if batches > 1 else size / (first - start)
    return InputBenchmark(
        samples_per_second=speed,
        batches_per_second=speed / size,
        first_batch_seconds=first - start,
        samples=samples,
        batches=batches,
        shares=shares,
        serial_samples_per_second=serial,
        bottleneck=_bottleneck(pipeline, shares, serial, speed),
    )


def _shares(pipeline: DataPipeline, time_limit: float) -> tuple[dict[str, float], float]:
    pipeline.prepare()
    clock = Clock()
    context = pipeline.timed_context(clock)
    start = time.perf_counter()
    samples = 0
    collate = clock.timed(BATCHING, context.collator.collate)
    for group in InProcessEngine(context).groups(repeat=True):
        collate(group)
        samples += len(group)
        if time.perf_counter() - start > time_limit:
            break
    elapsed = time.perf_counter() - start
    shares = {name: max(0.0, seconds) / elapsed for name, seconds in clock.seconds.items()}
    shares["the pipeline itself"] = max(0.0, 1.0 - sum(shares.values()))
    return dict(sorted(shares.items(), key=lambda pair: -pair[1])), samples / elapsed


def _bottleneck(pipeline: DataPipeline, shares: dict[str, float], serial: float, speed: float) -> str:
    name, share = next(iter(shares.items()))
    if share < 0.3 and name == "the pipeline itself":
        return "nothing in particular: the work per sample is too light to matter"
    text = f"{name} takes {share:.0%} of the processing time"
    cores = usable_cores()
    processes = pipeline.params.num_processes
    if speed < 1.3 * serial and processes == 0 and cores > 1:
        text += f"; num_processes is 0 and this machine has {cores} cores"
    elif processes and speed < serial:
        text += "; the work is so light that handing it over costs more: num_processes=0 is faster"
    elif processes and speed < 0.6 * min(processes, cores) * serial:
        text += "; more processes did not help as much as they could: a serial processor, the disk or the cores hold them up"
    return text
