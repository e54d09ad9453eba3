"""What verifying exports costs: seconds of processor time (which a busy machine changes less), and below them seconds on the clock.

    python -m benchmarks.verification [--scenarios examples.atr examples.tagging] [--rounds 3]

For each scenario the model is built and exported as a training does it, without one. The columns:

    write    writing a best model, for comparison
    run      the model in memory on four samples, each time a best model is written
    read     building the model of an export, reading its weights and running it: once in a training
    again    the same with other weights: at most twice at the end of a training
    saved    reading and running the SavedModel: once, or twice if the best model is not the last
    short    all that a training of one epoch does
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.example_data import create_trainer, make_data
from benchmarks.options import read_options
from scena.params import Params, param
from scena.training.checks.verification import SAMPLES

SCENARIOS = [
    "examples.tutorial.min",
    "examples.tutorial.full",
    "examples.tabular",
    "examples.imageclassification",
    "examples.faces",
    "examples.tagging",
    "examples.atr",
    "examples.seq2seq",
    "examples.text.finetuningbert",
]
COLUMNS = ("write", "run", "read", "again", "saved", "short")


class Options(Params):
    """What to measure."""

    scenarios: list[str] = param(list(SCENARIOS), help="the scenarios")
    rounds: int = param(3, ge=1, help="how often a best model is written")


def measure(name: str, rounds: int, folder: Path, data: Path) -> tuple[dict[str, float], dict[str, float]]:
    """The seconds of one scenario: of the processor, and on the clock."""
    import keras

    from scena.model.building import precision_policy

    keras.utils.set_random_seed(1)
    params, scenario = create_trainer(name, 1, data)
    with precision_policy(params.precision):
        built = scenario.build()
        built.training_model()
    scenario.initialise(built, params)
    pipeline = params.gen.val_data(built.data) or params.gen.train_data(built.data)
    with pipeline.stream(repeat=False) as stream:
        batch = next(iter(stream))
    inputs = {key: np.array(value[:SAMPLES]) for key, value in {**batch.targets, **batch.inputs}.items()}
    check = scenario.create_export_check(built, params)
    check.keep = True
    check.expect(inputs)  # as the sanity check of a training does
    best, final = folder / "best", folder / "export"
    cpu: dict[str, list[float]] = {column: [] for column in COLUMNS}
    clock: dict[str, list[float]] = {column: [] for column in COLUMNS}

    def timed(column: str, function: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        begun = time.process_time(), time.perf_counter()
        result = function(*arguments, **more)
        cpu[column].append(time.process_time() - begun[0])
        clock[column].append(time.perf_counter() - begun[1])
        return result

    for number in range(rounds):
        for variable in built.root.trainable_variables[:1]:
            variable.assign(variable + 1e-3)
        expected = timed("run", check.expect, inputs)
        timed("write", scenario.export, built, best, params, saved_model=False)
        timed("again" if number else "read", check.verify_model, best, best, expected)
    scenario.export(built, final, params, saved_model=True)
    timed("saved", check.verify_saved_models, final, final, expected)
    return summary(cpu), summary(clock)


def summary(found: dict[str, list[float]]) -> dict[str, float]:
    seconds = {column: statistics.median(values or [float("nan")]) for column, values in found.items()}
    seconds["short"] = 2 * seconds["run"] + seconds["read"] + seconds["saved"]
    return seconds


def main() -> None:
    options = read_options(Options, __doc__)
    print(f"{'scenario':30}" + "".join(f"{column:>8}" for column in COLUMNS), flush=True)
    for name in options.scenarios:
        with tempfile.TemporaryDirectory() as folder:
            make_data(Path(folder, "data"))
            cpu, clock = measure(name, options.rounds, Path(folder), Path(folder, "data"))
        for label, seconds in ((name, cpu), ("    on the clock", clock)):
            print(f"{label:30}" + "".join(f"{seconds[column]:8.2f}" for column in COLUMNS), flush=True)


if __name__ == "__main__":
    main()
