"""What trackers cost a training: the time inside the callback that records for them, and how much longer its epochs are.

    python -m benchmarks.trackers [--epochs 6] [--rounds 1] [--uri http://localhost:5000] [--python ENVIRONMENT/bin/python]

Trains the minimal tutorial with W&B's offline files, with an MLflow server that is up (`--uri`) and one that is down, with trackio's
database (`--python`), and with senders that are stopped (SIGSTOP), which is worse than down: nothing is ever read from their pipes. The
share of the callback is measured within one run, so a busy machine makes both sides of the ratio longer. Epochs are compared with
those of trainings without a tracker, in turns; for that the machine has to be quiet. The first epoch, which compiles the model and starts
the senders, is shown on its own.
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
DOWN = ["--tracker.mlflow.uri", "http://127.0.0.1:9"]
CASES = {
    "off": [],
    "wandb": ["--tracker", "wandb"],
    "mlflow, down": ["--tracker", "mlflow", *DOWN],
    "mlflow, up": ["--tracker", "mlflow", "--tracker.mlflow.experiment", "benchmark"],
    "trackio": ["--tracker", "trackio"],
    "stopped senders": ["--tracker", "wandb", "mlflow", *DOWN],
}
HOOKS = "on_train_begin on_block_end on_validation on_data on_epoch_end state".split()


class Options(Params):
    """What to measure."""

    epochs: int = param(6, ge=3, help="epochs of each training")
    rounds: int = param(1, ge=1, help="trainings of each case")
    cases: list[str] = param(list(CASES), choices=list(CASES), help="what to measure, in turns")
    uri: str | None = param(None, help="the address of an MLflow server that is up")
    python: str | None = param(None, help="the interpreter of an environment with trackio (requirements/trackio.txt)")


def main() -> int:
    """Prints the shares; the status is 1 if the median of a case is above the bar."""
    if len(sys.argv) > 2 and sys.argv[1] == "train":
        train(sys.argv[2], Path(sys.argv[3]), sys.argv[4])
        return 0
    options = read_options(Options, __doc__)
    needed = {"mlflow, up": options.uri, "trackio": options.python}
    cases = [case for case in options.cases if needed.get(case, "") is not None]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; share of an epoch that is spent in the callback")
    rows: dict[str, list[dict[str, float]]] = {case: [] for case in cases}
    first: dict[str, list[dict[str, float]]] = {case: [] for case in cases}
    for _ in range(options.rounds):
        for case in cases:
            found = measure(case, options)
            first[case].append(found[0])
            rows[case] += found[1:]
            print(f"{case:<16} epochs", *(f"{row['epoch']:.3f}" for row in found), flush=True)
    epochs = {case: statistics.median(row["epoch"] for row in rows[case]) for case in cases}
    good = True
    for case in cases:
        if case == "off":
            print(f"{case:<16} epochs of {epochs[case]:.3f} s")
            continue
        shares = [row["callback"] / row["epoch"] for row in rows[case]]
        good = good and statistics.median(shares) <= BAR
        longer = f" ({epochs[case] / epochs['off'] - 1:+.1%})" if "off" in epochs else ""
        print(
            f"{case:<16} median {statistics.median(shares):.3%}, most {max(shares):.3%} of epochs of {epochs[case]:.3f} s{longer}; "
            f"first epoch {max(row['callback'] for row in first[case]) * 1000:.0f} ms of {first[case][0]['epoch']:.1f} s"
        )
    return 0 if good else 1


def measure(case: str, options: Options) -> list[dict[str, float]]:
    """The seconds of each epoch of one training, and those inside the callback."""
    with tempfile.TemporaryDirectory() as folder:
        python = options.python if case == "trackio" and options.python else sys.executable
        command = [python, "-m", __spec__.name, "train", case, folder, str(options.epochs)]
        places = {"TRACKIO_DIR": folder, "MLFLOW_TRACKING_URI": options.uri or ""}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | places)
        if done.returncode:
            raise SystemExit(done.stderr)
        found: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
        return found


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
    spent += [spent[-1]] * len(seconds)  # without a tracker, nothing is measured
    print(json.dumps([{**one, "epoch": epoch} for one, epoch in zip(spent, seconds, strict=False)]))
    for sender in kept:  # one whose service is down tries again for half a minute
        if sender.running():
            sender._process.kill()
        sender._process.wait()


if __name__ == "__main__":
    sys.exit(main())
