"""What training together costs: two devices of one process, and two processes, against one process with the same cores.

`python -m benchmarks.distribution [--epochs N] [--rounds N]`; rounds are interleaved, the median epoch of each is printed as a ratio
to one process. All have the same batches and end with the same weights. Two networks: a tiny one, of which only the cost of the
exchange is left, and a dense one, which has something to divide. Then the cost of summing arrays over two processes, from which
the documentation computes what more of them would cost.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.options import read_options
from scena import Params, param

MEGABYTES = (0.004, 0.25, 1.0, 4.0, 16.0)
ROUNDS = 30
SEVERAL = "--device.dist_strategy mirror --device.virtual_devices 2"
CONTESTANTS = {
    "one process": ([], ""),
    "mirror, 2 devices": ([], SEVERAL),
    "2 workers": (["launch", "--workers", "2"], ""),
}
NETWORKS = {
    "tiny (178 weights, batch 16)": ("benchmarks.tiny:TinyScenario", "--data.count 16000 --train.batch_size 16"),
    "dense (2.4 million weights, batch 512)": (
        "benchmarks.dense:DenseScenario",
        "--train.batch_size 512 --model.units 1024 1024 1024",
    ),
}


class Options(Params):
    """How much is measured."""

    epochs: int = param(6, ge=3, help="epochs of each run; the first is left out, because it compiles")
    rounds: int = param(2, ge=1, help="runs of each contestant")
    probe: bool = param(False, hidden=True, help="be one of the processes whose exchange is measured")


def main() -> None:
    """Measures and prints."""
    if "--probe" in sys.argv:
        probe()
        return
    options = read_options(Options, __doc__)
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}\n")
    for network, (scenario, flags) in NETWORKS.items():
        times: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
        for _ in range(options.rounds):
            for name in CONTESTANTS:
                times[name] += epoch_seconds(name, scenario, flags.split(), options.epochs)
        one = statistics.median(times["one process"])
        print(f"{network}\n{'':24}{'s / epoch':>12}{'ratio':>8}")
        for name, seconds in times.items():
            print(f"{name:24}{statistics.median(seconds):12.3f}{statistics.median(seconds) / one:8.2f}")
        print()
    print(f"sum over two processes\n{'MB':>10}{'ms':>10}")
    rows = measured_sums()
    for megabytes, seconds in rows:
        print(f"{megabytes:10.3f}{seconds * 1000:10.2f}")
    (small, first), (large, last) = rows[0], rows[-1]
    print(
        f"about {first * 1000:.2f} ms for each exchange and {(last - first) / (large - small) * 1000:.2f} ms for each MB"
    )


def epoch_seconds(name: str, scenario: str, flags: list[str], epochs: int) -> list[float]:
    """The seconds of each epoch but the first."""
    before, more = CONTESTANTS[name]
    with tempfile.TemporaryDirectory() as folder:
        quiet = "--trainer.val_every_n 0 --trainer.checkpoint_every 0 --trainer.export_best False --trainer.export_final False"
        words = [*before, "train", scenario, "--trainer.output_dir", f"{folder}/run", "--trainer.epochs", str(epochs)]
        command = [sys.executable, "-m", "scena", *words, *quiet.split(), "--tensorboard.write", "False"]
        done = subprocess.run(
            [*command, "--trainer.random_seed", "1", *flags, *more.split()], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{name} failed:\n{done.stderr}")
        with (Path(folder) / "run" / "history.csv").open(newline="") as file:
            return [float(row["seconds"]) for row in csv.DictReader(file)][1:]


def measured_sums() -> list[tuple[float, float]]:
    """Sizes in MB, and the seconds that two processes take to sum an array of that size."""
    from scena.backends.local_cluster import LocalCluster

    with tempfile.TemporaryDirectory() as folder:
        os.environ["SCENA_BENCHMARK"] = str(Path(folder) / "sums.json")
        cluster = LocalCluster([sys.executable, "-m", "benchmarks.distribution", "--probe"], 2)
        if cluster.wait():
            raise SystemExit("The measurement of sums failed.")
        return [tuple(row) for row in json.loads(Path(os.environ["SCENA_BENCHMARK"]).read_text())]


def probe() -> None:
    """One of two processes that sum arrays; the chief writes how long it took."""
    from scena import logs
    from scena.backends.quiet import load_tensorflow

    logs.set_up_console()
    load_tensorflow()
    import tensorflow as tf

    from scena.backends.params import TrainerDeviceParams
    from scena.backends.tensorflow.distribution import start_distribution
    from scena.backends.tensorflow.replica import all_sums

    distribution = start_distribution(TrainerDeviceParams(dist_strategy="multi_worker"))
    assert distribution is not None
    rows = []
    for megabytes in MEGABYTES:
        value = tf.ones([int(megabytes * 250_000)])

        @tf.function
        def summed(count: Any, value: Any = value) -> Any:
            total = tf.constant(0.0)
            for _ in tf.range(count):
                total += distribution.strategy.run(lambda: all_sums([value])[0][0])
            return total

        summed(tf.constant(2))
        begun = time.perf_counter()
        summed(tf.constant(ROUNDS)).numpy()
        rows.append((megabytes, (time.perf_counter() - begun) / ROUNDS))
    if distribution.chief:
        Path(os.environ["SCENA_BENCHMARK"]).write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
