"""How long a training waits for a checkpoint of 240 MB, against one copy in memory and a blocking write.

`python -m benchmarks.checkpoint [--directory DIR] [--rounds N]`; rounds are interleaved, medians are printed. The bar of issue 5:
waiting ≤ 1.5 × one copy. What the write in the background costs the training's own work is measured apart.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
from safetensors.numpy import save_file

from scena.backends.base import backend
from scena.training.checkpoint.format import FORMAT, StoredState
from scena.training.checkpoint.store import CheckpointStore, CheckpointWriter

MEGABYTES = 240


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, help="where to write (default: a temporary directory)")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        measure(Path(folder), arguments.rounds)


def measure(folder: Path, rounds: int) -> None:
    """Interleaved rounds of each kind of saving."""
    variables = [keras.Variable(np.random.rand(1000, 1000).astype("float32")) for _ in range(MEGABYTES // 4)]
    names = [f"model/{i}" for i in range(len(variables))]
    source, target = np.ones(MEGABYTES * 250_000, "float32"), np.zeros(MEGABYTES * 250_000, "float32")
    writer = CheckpointWriter(CheckpointStore(folder / "store"))

    def arrays() -> dict[str, Any]:
        return dict(zip(names, backend().variable_views(variables), strict=True))

    def save(step: int) -> None:
        writer.save(step, arrays, StoredState(FORMAT, {}, {}, [], {}), lambda directory: None)

    writer.reserve(arrays())
    writer.wait()
    times: dict[str, list[float]] = {}
    for step in range(rounds):
        note(times, "one copy in memory", lambda: np.copyto(target, source))
        note(times, "training waits (background write)", lambda step=step: save(step))
        note(times, "1000 × 1000 product while it is written", lambda: work(variables[0]))
        note(times, "rest of the write", writer.wait)
        note(times, "1000 × 1000 product alone", lambda: work(variables[0]))
        note(times, "copy into fresh memory", lambda: [view.copy() for view in arrays().values()])
        note(times, "blocking write (safetensors)", lambda: save_file(arrays(), folder / "blocking"))
    one = statistics.median(times["one copy in memory"])
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:42} {median * 1e3:8.1f} ms  {median / one:6.2f} × one copy")


def work(variable: keras.Variable) -> None:
    """What a training does meanwhile."""
    for _ in range(5):
        keras.ops.convert_to_numpy(keras.ops.matmul(variable, variable))


def note(times: dict[str, list[float]], name: str, function: Callable[[], object]) -> None:
    """Adds the time of one call."""
    begun = time.perf_counter()
    function()
    times.setdefault(name, []).append(time.perf_counter() - begun)


if __name__ == "__main__":
    main()
