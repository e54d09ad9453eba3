"""From Enter to the first step of a training: `scena train examples.tutorial.min`, a bare Keras script, and `import keras` alone.

    python -m benchmarks.first_step [--rounds 5]

The script has the same network, data and optimizer, and validates as Scena's sanity check does. Each process ends right after its first
step; they take turns. Times are from the start of the process; a ratio is the median of the ratios of the rounds.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.options import read_options
from scena import CallbackParams, TrainerCallback
from scena.params import Params, param

BAR = 1.1
"""Scena may take so many times the CPU time of importing Keras until it has, and the time of the script until the first step."""

SCRIPT = """
import os
import keras
from scena import load_digits

model = keras.Sequential([
    keras.Input((28, 28)), keras.layers.Rescaling(1 / 255), keras.layers.Reshape((28, 28, 1)),
    keras.layers.Conv2D(16, 3, padding="same", activation="relu"), keras.layers.MaxPool2D(),
    keras.layers.Conv2D(32, 3, padding="same", activation="relu"), keras.layers.MaxPool2D(),
    keras.layers.Flatten(), keras.layers.Dense(128, activation="relu"), keras.layers.Dropout(0.3), keras.layers.Dense(10),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
train, val = load_digits("digits", "train"), load_digits("digits", "test")
model.evaluate(val[0][:32], val[1][:32], batch_size=16, verbose=0)
end = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: os._exit(0))
model.fit(*train, batch_size=16, callbacks=[end], verbose=0)
"""

IMPORTS = """
from scena.backends.quiet import load_tensorflow
from scena.commands.main import main

load_tensorflow()
import scena.training.loop, scena.training.prepare, scena.training.trainer
import examples.tutorial.min.scenario
"""
"""What `scena train` imports before it does anything."""


class Options(Params):
    """What to measure."""

    rounds: int = param(5, ge=1, help="how often each is started")


class EndAtFirstStepParams(CallbackParams, builds=":EndAtFirstStep"):
    """Ends the process."""


class EndAtFirstStep(TrainerCallback):
    """Ends the process after the first step."""

    def on_block_end(self, steps: int, logs: dict[str, float]) -> None:
        os._exit(0)


def main() -> int:
    """Prints the figures; the status is 1 if a bar is missed."""
    options = read_options(Options, __doc__)
    train = ["-m", "scena", "train", "examples.tutorial.min", "--import", "benchmarks.first_step"]
    ways: dict[str, list[str]] = {
        "import keras": ["-c", "import keras"],
        "imports of scena train": ["-c", IMPORTS],
        "script": ["-c", SCRIPT],
        "scena train": [*train, "--trainer.callbacks", "EndAtFirstStep", "--trainer.steps_per_execution", "1"],
        "scena, no sanity check": [
            *train, "--trainer.callbacks", "EndAtFirstStep", "--trainer.steps_per_execution", "1",
            "--trainer.sanity_check", "False",
        ],
    }  # fmt: skip
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for number in range(options.rounds + 1):
        for name, way in ways.items():
            seen = measure(way)
            print(f"round {number}, {name}: {seen[0]:.2f} s, {seen[1]:.2f} s of CPU time", flush=True)
            if number:  # the first round fills the caches of the disk
                found[name].append(seen)
    for name, values in found.items():
        wall, cpu = (statistics.median(value[kind] for value in values) for kind in (0, 1))
        print(f"{name:<24}{wall:>7.2f} s, {cpu:>6.2f} s of CPU time")
    good = []
    for text, name, against, kind in (
        ("CPU time of what scena train imports, to that of import keras", "imports of scena train", "import keras", 1),
        ("time to the first step, to that of the script", "scena train", "script", 0),
        ("CPU time to the first step, to that of the script", "scena train", "script", 1),
    ):
        ratio = statistics.median(a[kind] / b[kind] for a, b in zip(found[name], found[against], strict=True))
        good.append(ratio <= BAR)
        print(f"{text}: {ratio:.2f} (bar: {BAR})")
    print(f"load average {os.getloadavg()[0]:.1f}")
    return 0 if all(good) else 1


def measure(way: list[str]) -> tuple[float, float]:
    """Seconds and CPU seconds of a process."""
    environment: dict[str, Any] = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryDirectory() as folder:
        more = ["--trainer.output_dir", f"{folder}/run"] if "train" in way else []
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, *way, *more], check=True, capture_output=True, env=environment)
        wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
