"""Training speed and accuracy beside bare Keras `fit`: the minimal tutorial and a tiny model, same data, same network.

    python -m benchmarks.training [--epochs 10] [--seeds 3] [--only tiny|tutorial]

Each contestant is a process of its own that trains one epoch whenever it is its turn, so that a busy machine is unfair to none of
them. Times are medians of an epoch without the first one (which compiles), with validation; the bars are those of issue 4. The
accuracy of validation is the mean of the last three epochs.
CPU time is printed beside them: it tells more on a machine that is busy with other things.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.options import read_options
from scena.params import Params, param

CASES = ("tutorial", "tiny")
LAST_EPOCHS = 3
"""The accuracy of validation is the mean of so many: a single one scatters by half a point."""
CONTESTANTS = ("keras", "keras-tuned", "scena-bare", "scena")
BARS = [
    # case, contestant, against, most
    ("tutorial", "scena", "keras", 0.85),
    ("tutorial", "scena", "keras-tuned", 1.03),
    ("tutorial", "scena", "scena-bare", 1.03),
    ("tiny", "scena-bare", "keras", 0.20),
    ("tiny", "scena", "keras", 0.25),
]


class Options(Params):
    """What to measure."""

    epochs: int = param(10, ge=3, help="epochs of each training")
    seeds: int = param(3, ge=1, help="trainings of each contestant")
    only: str = param("", choices=["", *CASES], help="measure one case only")
    contestants: list[str] = param(list(CONTESTANTS), help="who takes part; bars between those who do are checked")


def main() -> None:
    """Runs the contestants in turns and prints tables."""
    if len(sys.argv) > 1 and sys.argv[1] == "contestant":
        compete(*sys.argv[2:5], int(sys.argv[5]), int(sys.argv[6]))
        return
    options = read_options(Options, __doc__)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for case in CASES:
        if options.only in ("", case):
            report(case, [race(case, seed, options.epochs, options.contestants) for seed in range(options.seeds)])


def race(case: str, seed: int, epochs: int, names: list[str]) -> dict[str, dict[str, Any]]:
    """One training of each contestant, epoch by epoch in turns."""
    with tempfile.TemporaryDirectory() as folder:
        runners = {
            name: subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "benchmarks.training",
                    "contestant",
                    case,
                    name,
                    f"{folder}/{name}",
                    str(seed),
                    str(epochs),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for name in names
        }
        for runner in runners.values():
            _answer(runner, "ready")
        times: dict[str, list[float]] = {name: [] for name in names}
        cpu: dict[str, list[float]] = {name: [] for name in names}
        for number in range(epochs):
            for name in names if number % 2 else reversed(names):  # so that nobody always follows the same one
                runner = runners[name]
                assert runner.stdin is not None
                runner.stdin.write("go\n")
                runner.stdin.flush()
                wall, busy = map(float, _answer(runner, "epoch").split())
                times[name].append(wall)
                cpu[name].append(busy)
        results = {name: json.loads(_answer(runner, "result")) for name, runner in runners.items()}
        for runner in runners.values():
            runner.communicate()
    return {name: {**results[name], "times": times[name], "cpu": cpu[name]} for name in names}


def _answer(runner: "subprocess.Popen[str]", kind: str) -> str:
    assert runner.stdout is not None
    for line in runner.stdout:
        word, _, rest = line.partition(" ")
        if word.strip() == kind:
            return rest
    raise RuntimeError(f"a contestant ended before it said {kind!r}")


def report(case: str, races: list[dict[str, dict[str, Any]]]) -> None:
    """Prints times, accuracies, memory and the bars."""
    names = list(races[0])
    first = races[0][names[0]]
    print(f"\n{case}: {len(races)} seeds, {len(first['times'])} epochs, batch 16, {first['steps']} steps an epoch")
    print(f"{'':<14}{'s/epoch':>9}{'ms/step':>9}{'cpu ms':>9}{'train':>8}{'val':>8}{'best':>8}{'MB':>7}")
    middle: dict[str, float] = {}
    for name in names:
        own = [race[name] for race in races]
        middle[name] = statistics.median(seconds for one in own for seconds in one["times"][1:])
        busy = statistics.median(seconds for one in own for seconds in one["cpu"][1:])
        means = [statistics.mean(one[key] for one in own) for key in ("train", "val", "best")]
        values = "".join(f"{value:>8.4f}" for value in means)
        memory = max(one["megabytes"] for one in own)
        wall_step, cpu_step = 1000 * middle[name] / own[0]["steps"], 1000 * busy / own[0]["steps"]
        print(f"{name:<14}{middle[name]:>9.3f}{wall_step:>9.3f}{cpu_step:>9.3f}{values}{memory:>7.0f}")
    for which, name, against, most in BARS:
        if which == case and {name, against} <= set(names):
            # of the same round, so that what the machine did meanwhile cancels out
            ratio, busy = (_ratio(races, kind, name, against) for kind in ("times", "cpu"))
            print(
                f"{'ok  ' if ratio <= most else 'MISS'} {name} / {against}: {ratio:.3f} (bar {most}; CPU time {busy:.3f})"
            )
    if case == "tutorial" and {"scena", "keras"} <= set(names):
        gap = 100 * abs(
            statistics.mean(race["scena"]["val"] for race in races)
            - statistics.mean(race["keras"]["val"] for race in races)
        )
        print(f"{'ok  ' if gap <= 0.5 else 'MISS'} accuracy of validation differs by {gap:.2f} points (bar 0.5)")


def _ratio(races: list[dict[str, dict[str, Any]]], kind: str, name: str, against: str) -> float:
    return statistics.median(
        a / b for race in races for a, b in zip(race[name][kind][1:], race[against][kind][1:], strict=True)
    )


# ---- one contestant, in its own process -----------------------------------------------------------------------------


def compete(case: str, name: str, folder: str, seed: int, epochs: int) -> None:
    """Trains, an epoch for each line on standard input."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras

    class Gate(keras.callbacks.Callback):
        """Waits for its turn and says how long an epoch took."""

        begun = cpu = 0.0

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self._end()
            if epoch == 0:
                print("ready", flush=True)
            sys.stdin.readline()
            self.begun, self.cpu = time.perf_counter(), time.process_time()

        def on_train_end(self, logs: Any = None) -> None:
            self._end()

        def _end(self) -> None:
            if self.begun:
                print(f"epoch {time.perf_counter() - self.begun} {time.process_time() - self.cpu}", flush=True)
                self.begun = 0.0

    keras.utils.set_random_seed(seed)
    run = train_scena if name.startswith("scena") else train_keras
    rows, steps = run(case, name, Path(folder), seed, epochs, Gate())
    accuracies = [row["val_acc"] for row in rows]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result = {
        "train": rows[-1]["acc"],
        "val": statistics.mean(accuracies[-LAST_EPOCHS:]),
        "best": max(accuracies),
        "megabytes": peak,
        "steps": steps,
    }
    print(f"result {json.dumps(result)}", flush=True)


def scenario_of(case: str) -> Any:
    """The scenario of a case."""
    if case == "tiny":
        from benchmarks.tiny import TinyScenario

        return TinyScenario
    from examples.tutorial.min.scenario import TutorialScenario

    return TutorialScenario


def train_scena(case: str, name: str, folder: Path, seed: int, epochs: int, gate: Any) -> tuple[list[Any], int]:
    """Scena, with all that is on by default or with nothing."""
    from scena.training.trigger import Trigger

    scenario = scenario_of(case)
    params = scenario.default_trainer_params()
    params.epochs, params.output_dir, params.random_seed, params.export_final = epochs, folder, seed, False
    if name == "scena-bare":
        params.tensorboard.write, params.export_best, params.checkpoint_every = False, False, Trigger(0)
    trainer = scenario.create_trainer(params)
    rows = trainer.train([gate])
    return rows, rows[0]["step"]


def train_keras(case: str, name: str, folder: Path, seed: int, epochs: int, gate: Any) -> tuple[list[Any], int]:
    """Bare Keras on arrays: as `fit` comes, or with many steps in an execution and tf.data."""
    import keras
    import tensorflow as tf

    del folder, seed
    from scena.data.params import PipelineMode

    scenario = scenario_of(case)
    params = scenario.default_trainer_params()
    built = scenario(params.scenario).build()
    key = next(iter(built.data.input_layer_specs()))
    # a layer of its own, so that dropout works in `fit` as it does in Scena's training graph
    model = keras.Sequential([built.inputs[key], _logits_layer(built.root.graph, key)])
    data = {
        mode: arrays(params.gen.train_gen().create(mode)) for mode in (PipelineMode.TRAINING, PipelineMode.EVALUATION)
    }
    (x, y), validation = data[PipelineMode.TRAINING], data[PipelineMode.EVALUATION]
    model.compile(
        optimizer=keras.optimizers.Adam(0.001),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="acc")],
        steps_per_execution=32 if name == "keras-tuned" else 1,
    )
    if name == "keras-tuned":
        train = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).batch(16).prefetch(tf.data.AUTOTUNE)
        val = tf.data.Dataset.from_tensor_slices(validation).batch(16).cache().prefetch(tf.data.AUTOTUNE)
        history = model.fit(train, epochs=epochs, validation_data=val, callbacks=[gate], verbose=0)
    else:
        history = model.fit(x, y, batch_size=16, epochs=epochs, validation_data=validation, callbacks=[gate], verbose=0)
    values = history.history
    return [{name: values[name][i] for name in values} for i in range(epochs)], -(-len(x) // 16)


def _logits_layer(graph: Any, key: str) -> Any:
    """The scenario's network as a layer from one input to its logits."""
    import keras

    class Logits(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.graph = graph

        def call(self, inputs: Any, training: bool | None = None) -> Any:
            return self.graph.build_graph({key: inputs}, training=training)["logits"]

    return Logits()


def arrays(generator: Any) -> tuple[Any, Any]:
    """All inputs and targets of a source."""
    import numpy as np

    samples = list(generator.generate())
    return tuple(
        np.stack([next(iter(getattr(sample, part).values())) for sample in samples]) for part in ("inputs", "targets")
    )  # type: ignore[return-value]


if __name__ == "__main__":
    main()
