"""What a training loses to its input pipeline: the same compiled steps on batches from the pipeline and on batches held in RAM.

    python -m benchmarks.feeding [--rounds 15] [--blocks 8] [--processes 0 1 2]

Both ways run in one process and take turns, with the same network and the same size of blocks; the median of the rounds' ratios counts.
In RAM is a whole epoch: a few blocks over and over again train up to 10 % faster, because the network soon knows them by heart and the
processor's caches do too.
The bar is that of issue 3: less than 5 % slower than from RAM, when the workers keep up. For the tiny network, whose step is about
as expensive as making its batch, the figure is printed without a bar.
"""

import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.options import read_options
from benchmarks.training import CASES, scenario_of
from scena.params import Params, param

BLOCK = {"tutorial": 8, "tiny": 32}
BAR = 1.05


class Options(Params):
    """What to measure."""

    rounds: int = param(15, ge=3, help="how often both ways take turns")
    blocks: int = param(8, ge=1, help="blocks of steps in a turn")
    processes: list[int] = param([0, 1, 2], help="the numbers of data workers to measure")


def main() -> None:
    """Measures and prints."""
    options = read_options(Options, __doc__)
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for case in CASES:
        for processes in options.processes:
            ratio, step = slowdown(case, processes, options)
            verdict = "" if case == "tiny" else ("  ok" if ratio < BAR else f"  MISS (bar {BAR})")
            print(
                f"{case}, {processes} workers: {ratio:.3f} of the time from RAM ({step * 1e3:.2f} ms a step){verdict}"
            )


def slowdown(case: str, processes: int, options: Options) -> tuple[float, float]:
    """The ratio of both times, and the seconds of a step from RAM."""
    from scena.training.prepare import prepare_run
    from scena.training.steps import stacked

    scenario, size = scenario_of(case), BLOCK[case]
    params = scenario.default_trainer_params()
    params.gen.train.num_processes = processes
    with tempfile.TemporaryDirectory() as folder:
        run = prepare_run(params, scenario(params.scenario), Path(folder))
        with run.train_data.stream(repeat=True) as stream:

            def block() -> tuple[Any, Any]:
                batches = stream.take_block(size)
                return stacked(batches, "inputs"), stacked(batches, "targets")

            held = itertools.cycle([_copied(block()) for _ in range((run.steps_per_epoch or 0) // size)])
            turns: dict[str, Callable[[], tuple[Any, Any]]] = {"pipeline": block, "RAM": held.__next__}
            times: dict[str, list[float]] = {name: [] for name in turns}
            for number in range(options.rounds + 1):
                for name in turns if number % 2 else reversed(turns):
                    begun = time.perf_counter()
                    for _ in range(options.blocks):
                        run.engine.train(*turns[name]())
                    times[name].append(time.perf_counter() - begun)
    pairs = list(zip(times["pipeline"], times["RAM"], strict=True))[1:]
    steps = options.blocks * size
    return statistics.median(a / b for a, b in pairs), statistics.median(b for _, b in pairs) / steps


def _copied(block: tuple[Any, Any]) -> tuple[Any, Any]:
    inputs, targets = ({name: array.copy() for name, array in part.items()} for part in block)
    return inputs, targets


if __name__ == "__main__":
    main()
