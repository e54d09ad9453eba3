"""Samples per second of the predictor beside `model.predict` and a SavedModel, on the same model and data; and one sample at a time.

    python -m benchmarks.prediction [--samples 2048] [--rounds 5] [--batch_sizes 16 64 256]

The model is the CNN of examples.tutorial.full. The ways take turns, and the best round of each counts, so that a busy machine is unfair
to none of them. The predictor does more than the others: it reads each sample, batches it, and hands out samples again.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from benchmarks.options import read_options
from scena.backends.quiet import load_tensorflow
from scena.params import Params, param

BATCH_BAR = 1.3
"""The predictor must be at least so many times as fast as `model.predict`."""
SINGLE_BAR = 0.1
"""One sample may take at most this share of a `model.predict` call."""
SINGLE_MS = 5.0


class Options(Params):
    """What to measure."""

    samples: int = param(2048, ge=256, help="samples in a round")
    rounds: int = param(5, ge=1, help="how often each way is run")
    batch_sizes: list[int] = param([16, 64, 256], help="the batch sizes")
    single: int = param(100, ge=10, help="how often one sample is predicted")


def main() -> int:
    """Prints the figures; the status is 1 if a bar is missed."""
    options = read_options(Options, __doc__)
    load_tensorflow()
    with tempfile.TemporaryDirectory() as folder:
        directory = export(Path(folder) / "export")
        good = [batches(directory, size, options) for size in options.batch_sizes]
        good.append(single(directory, options))
    print(f"load average {os.getloadavg()[0]:.1f}")
    return 0 if all(good) else 1


def export(directory: Path) -> Path:
    """The tutorial's CNN with random weights: they do not change the time."""
    from examples.tutorial.full.scenario import TutorialScenario

    params = TutorialScenario.default_trainer_params()
    scenario = TutorialScenario(params.scenario)
    scenario.export(scenario.build(), directory, params)
    return directory


def batches(directory: Path, size: int, options: Options) -> bool:
    """Throughput at one batch size."""
    import tensorflow as tf

    from examples.tutorial.full.scenario import TutorialScenario
    from scena import DataPipelineParams, PredictorParams, Sample

    pixels = np.random.default_rng(0).integers(0, 256, (options.samples, 28, 28)).astype("uint8")
    samples = [Sample(inputs={"img": image}, targets={"gt": np.uint8(0)}) for image in pixels]
    # in mode EVALUATION the pictures are taken as they are, without being read from files
    pipeline = DataPipelineParams(batch_size=size, num_processes=0)
    predictor = TutorialScenario.create_predictor(directory, PredictorParams(pipeline=pipeline, include_targets=True))
    model = predictor.built.prediction_model
    serve = tf.saved_model.load(str(directory / "saved_model")).signatures["serving_default"]

    def saved_model() -> None:
        for first in range(0, len(pixels), size):
            outputs = serve(img=tf.convert_to_tensor(pixels[first : first + size]))
            {name: np.asarray(value) for name, value in outputs.items()}

    ways: dict[str, Callable[[], Any]] = {
        "predictor": lambda: sum(1 for _ in predictor.predict_raw(samples)),
        "model.predict": lambda: model.predict({"img": pixels}, batch_size=size, verbose=0),
        "saved_model": saved_model,
    }
    best = {name: options.samples / seconds for name, seconds in fastest(ways, options.rounds).items()}
    ratio = best["predictor"] / best["model.predict"]
    figures = ", ".join(f"{name} {speed:.0f}/s" for name, speed in best.items())
    print(f"batch {size:>3}: {figures}; predictor / model.predict {ratio:.2f} (bar: {BATCH_BAR})")
    return ratio >= BATCH_BAR


def single(directory: Path, options: Options) -> bool:
    """The latency of one sample."""
    from examples.tutorial.full.scenario import TutorialScenario
    from scena import PredictorParams, Sample

    predictor = TutorialScenario.create_predictor(directory, PredictorParams(include_targets=True))
    model = predictor.built.prediction_model
    image = np.zeros((28, 28), "uint8")
    sample = Sample(inputs={"img": image}, targets={"gt": np.uint8(0)})
    ways: dict[str, Callable[[], Any]] = {
        "predictor": lambda: predictor.predict_sample(sample),
        "model.predict": lambda: model.predict({"img": image[None]}, verbose=0),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(options.single + 3):
        for name, way in ways.items():
            started = time.perf_counter()
            way()
            if number >= 3:
                times[name].append(1000 * (time.perf_counter() - started))
    middle = {name: statistics.median(values) for name, values in times.items()}
    ratio = middle["predictor"] / middle["model.predict"]
    print(
        f"one sample: predictor {middle['predictor']:.2f} ms (bar: {SINGLE_MS} ms), model.predict {middle['model.predict']:.2f} ms; "
        f"share {ratio:.3f} (bar: {SINGLE_BAR})"
    )
    return ratio <= SINGLE_BAR and middle["predictor"] < SINGLE_MS


def fastest(ways: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The seconds of the best round of each way."""
    best = dict.fromkeys(ways, float("inf"))
    for number in range(rounds + 1):
        for name, way in ways.items():
            started = time.perf_counter()
            way()
            if number:  # the first round traces
                best[name] = min(best[name], time.perf_counter() - started)
    return best


if __name__ == "__main__":
    sys.exit(main())
