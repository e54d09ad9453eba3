"""Input pipelines side by side: pure Python and numpy work per sample, heavy, medium and light, with 0, 1 and 2 workers.

    python -m benchmarks.pipeline [--rounds 4] [--turns 100] [--picture docs/images/pipeline.svg] [--tensorflow False]

In a round each contender runs in new processes, and they take turns of a twentieth of a second
(benchmarks/pipeline_turns.py). What counts is the speed in the best turns of all rounds, as its ratio to that of the plain loop; the
loop runs twice, so that its second row shows how far equal things scatter, and once as two loops at once, which is the limit for two
workers. Heavy samples come in batches of 4, the others of 32.
Then: whether memory grows with a million samples, and how fast samples of 50 MB pass.
"""

import itertools
import resource
import signal
import statistics
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks.options import read_options
from benchmarks.pipeline_peers import contenders
from benchmarks.pipeline_turns import best, turns_of_round
from benchmarks.pipeline_work import (
    TASKS,
    BytesData,
    BytesDataParams,
    BytesParams,
    RangeStreamParams,
    calibrated,
)
from scena.data import DataPipelineParams, PipelineMode
from scena.params import Params, param

BATCH = {"heavy": 4, "medium": 32, "light": 32}
"""Samples in a batch."""
WEIGHTS = {"heavy": 0.015, "medium": 0.0003, "light": 0.000005}
BARS = {"heavy": {1: 0.97, 2: 1.85}, "medium": {1: 0.97, 2: 1.85}, "light": {2: 0.8}}
Cell = tuple[str, str]


class Options(Params):
    """What to measure."""

    rounds: int = param(4, ge=1, help="how often each contender starts anew in each cell")
    turns: int = param(100, ge=1, help="how many turns each has in a round")
    seconds: float = param(0.05, gt=0, help="how long a turn is")
    cells: list[str] = param([], help="only these, such as PYTHON-medium NUMPY-heavy; all if empty")
    tensorflow: bool = param(True, help="measure tf.py_function too")
    memory: bool = param(True, help="measure large samples and a million samples too")
    picture: Path | None = param(None, help="draw the ratios into this file (needs matplotlib)")


def main() -> None:
    """Measures and prints."""
    options = read_options(Options, __doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no contender is left behind, halted
    ratios = measure(options)
    print_table(ratios)
    if options.picture is not None:
        draw(ratios, options.picture)
    if options.memory:
        measure_memory()
        measure_bytes()


def measure(options: Options) -> dict[Cell, dict[str, float]]:
    """The speed of each contender in each cell in its best turns, as its ratio to the plain loop."""
    names = list(contenders(options.tensorflow))
    cells = {f"{task}-{weight}": (task, weight) for task, weight in itertools.product(TASKS, WEIGHTS)}
    unknown = set(options.cells) - set(cells)
    if unknown:
        raise SystemExit(f"There is no cell {min(unknown)!r}; choose from: {', '.join(cells)}")
    ratios: dict[Cell, dict[str, float]] = {}
    for task, weight in [cells[cell] for cell in options.cells or cells]:
        amount = calibrated(task, WEIGHTS[weight])
        turns: list[list[float]] = [[] for _ in names]
        for _ in range(options.rounds):
            made = turns_of_round(names, task, amount, BATCH[weight], options.turns, options.seconds)
            for known, new in zip(turns, made, strict=True):
                known += new
        fastest, usual = ([how(speeds) for speeds in turns] for how in (best, statistics.mean))
        ratios[task, weight] = {name: speed / fastest[0] for name, speed in zip(names, fastest, strict=True)}
        print(f"{task} {weight}: {1e6 * amount.units / fastest[0]:.1f} µs a sample in a plain loop", flush=True)
        for name, speed, mean in zip(names, fastest, usual, strict=True):
            print(f"    {name}: {speed / fastest[0]:.3f}, mean of all turns {mean / usual[0]:.3f}", flush=True)
    return ratios


def print_table(ratios: dict[Cell, dict[str, float]]) -> None:
    """Ratios to the plain loop, and what is missed."""
    names = list(next(iter(ratios.values())))
    print("\n| | " + " | ".join(f"{task} {weight}" for task, weight in ratios) + " |")
    print("| --- |" + " ---: |" * len(ratios))
    for name in names:
        cells = [f"{values[name]:.2f}" for values in ratios.values()]
        print(f"| {name} | " + " | ".join(cells) + " |")
    for (task, weight), values in ratios.items():
        for workers, bar in BARS[weight].items():
            ratio = values[f"scena, {workers}"]
            if ratio < bar:
                print(f"below its bar: {task} {weight}, {workers} workers: {ratio:.2f} < {bar}")
        for name, value in values.items():
            ours = values.get(f"scena, {name[-1]}", 0.0)
            if not name.startswith(("scena", "plain", "two plain")) and value > ours:
                print(f"behind {name}: {task} {weight}: {ours / value:.2f}")


def draw(ratios: dict[Cell, dict[str, float]], path: Path) -> None:
    """The same as bars."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows, columns = -(-len(ratios) // 3), min(3, len(ratios))
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.3 * columns, 2.9 * rows), sharex=True, sharey=True, squeeze=False
    )
    for axis, ((task, weight), values) in zip(axes.flat, ratios.items(), strict=False):
        names = [name for name in values if name != "plain loop"]
        colors = ["#2a6f97" if name.lower().startswith("scena") else "#b8bec6" for name in names]
        axis.barh(names[::-1], [values[name] for name in names[::-1]], color=colors[::-1])
        axis.axvline(1, color="#444", linewidth=0.8)
        axis.set_title(f"{task} {weight}", fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("speed relative to a plain loop", fontsize=10)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def measure_bytes() -> None:
    """How fast samples of 50 MB pass."""
    source = np.ones(50 << 20, np.uint8)
    target = np.empty_like(source)
    copies = []
    for _ in range(20):
        start = time.perf_counter()
        target[:] = source
        copies.append(time.perf_counter() - start)
    memcpy = 50 / 1024 / statistics.median(copies)
    for workers in (1, 2):
        params = DataPipelineParams(batch_size=1, num_processes=workers)
        pipeline = BytesData(BytesDataParams()).create_pipeline(PipelineMode.TRAINING, params, BytesParams())
        with closing(pipeline), pipeline.stream() as stream:
            for _ in range(20):
                next(stream)
            start = time.perf_counter()
            for _ in range(60):
                next(stream)
            passed = 60 * 50 / 1024 / (time.perf_counter() - start)
        print(f"samples of 50 MB, {workers} workers: {passed:.1f} GB/s (memcpy {memcpy:.1f} GB/s)")


def measure_memory() -> None:
    """Whether memory grows with the number of samples."""
    from benchmarks.pipeline_work import BenchData, BenchDataParams

    for count in (100_000, 1_000_000):
        params = DataPipelineParams(batch_size=256, num_processes=2)
        source = RangeStreamParams(count=count)
        pipeline = BenchData(BenchDataParams()).create_pipeline(PipelineMode.EVALUATION, params, source)
        with closing(pipeline), pipeline.stream() as stream:
            seen = sum(batch.size for batch in stream)
        ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        theirs = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"{seen:,} samples: peak {ours:.0f} MB here, {theirs:.0f} MB in the largest worker")


if __name__ == "__main__":
    main()
