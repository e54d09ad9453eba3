"""What trackers cost a training: the time inside the callback that records for them, as a share of each epoch.

    python -m benchmarks.trackers [--epochs 6] [--rounds 1]

Trains the minimal tutorial with W&B's offline files, with an MLflow server that is down, and with senders that are
stopped (SIGSTOP), which is worse than down: nothing is ever read from their pipes. Time is measured within one run, so a busy machine
makes both sides of the ratio longer. The first epoch, which compiles the model and starts the senders, is shown on its own.
"""

import csv
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.options import read_options
from scena.params import Params, param

BAR = 0.01
CASES = {
    "wandb": ["--tracker", "wandb"],
    "mlflow, down": ["--tracker", "mlflow", "--tracker.mlflow.uri", "http://127.0.0.1:9"],
    "stopped senders": ["--tracker", "wandb", "mlflow", "--tracker.mlflow.uri", "http://127.0.0.1:9"],
}
HOOKS = "on_train_begin on_block_end on_validation on_data on_epoch_end state".split()


class Options(Params):
    """What to measure."""

    epochs: int = param(6, ge=3, help="epochs of each training")
    rounds: int = param(1, ge=1, help="trainings of each case")


def main() -> int:
    """Prints the shares; the status is 1 if the median of a case is above the bar."""
    if len(sys.argv) > 2 and sys.argv[1] == "train":
        train(sys.argv[2], Path(sys.argv[3]), sys.argv[4])
        return 0
    options = read_options(Options, __doc__)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; share of an epoch that is spent in the callback")
    good = True
    for case in CASES:
        rows: list[dict[str, float]] = []
        first: list[dict[str, float]] = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-m", __spec__.name, "train", case, folder, str(options.epochs)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise SystemExit(done.stderr)
                found = json.loads(done.stdout.splitlines()[-1])
                first.append(found[0])
                rows += found[1:]
        shares = [row["callback"] / row["epoch"] for row in rows]
        cpu = [row["cpu"] / row["epoch"] for row in rows]
        good = good and statistics.median(shares) <= BAR
        print(
            f"{case:<20} median {statistics.median(shares):.3%}, most {max(shares):.3%}, processor {statistics.median(cpu):.3%} "
            f"of epochs of {statistics.median(row['epoch'] for row in rows):.2f} s; "
            f"first epoch {max(row['callback'] for row in first) * 1000:.0f} ms of {first[0]['epoch']:.1f} s"
        )
    return 0 if good else 1


def train(case: str, folder: Path, epochs: str) -> None:
    """Trains, and prints the seconds of each epoch and those inside the callback as a line of JSON."""
    from scena.commands.main import main as scena
    from scena.training.trackers.callback import JournalTracker

    spent: list[dict[str, float]] = [{"callback": 0.0, "cpu": 0.0}]

    def timed(method: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            wall, cpu = time.perf_counter(), time.thread_time()
            try:
                return method(self, *args, **kwargs)
            finally:
                spent[-1]["callback"] += time.perf_counter() - wall
                spent[-1]["cpu"] += time.thread_time() - cpu
                if method.__name__ == "on_epoch_end":
                    spent.append({"callback": 0.0, "cpu": 0.0})
                if case == "stopped senders":
                    for sender in self._senders:
                        os.kill(sender._process.pid, signal.SIGSTOP)

        return call

    for name in HOOKS:
        setattr(JournalTracker, name, timed(getattr(JournalTracker, name)))
    words = ["train", "examples.tutorial.min", "--trainer.epochs", epochs, "--trainer.output_dir", str(folder / "run")]
    kept: list[Any] = []
    own = JournalTracker.on_exported

    def on_exported(self: Any) -> None:
        kept.extend(self._senders)
        for sender in self._senders:
            os.kill(sender._process.pid, signal.SIGCONT)
        own(self)

    JournalTracker.on_exported = on_exported  # type: ignore[method-assign]
    assert scena([*words, *CASES[case]]) == 0
    with (folder / "run" / "history.csv").open() as file:
        seconds = [float(row["seconds"]) for row in csv.DictReader(file)]
    print(json.dumps([{**one, "epoch": epoch} for one, epoch in zip(spent, seconds, strict=False)]))
    for sender in kept:  # one whose service is down tries again for half a minute
        if sender.running():
            sender._process.kill()
        sender._process.wait()


if __name__ == "__main__":
    sys.exit(main())
