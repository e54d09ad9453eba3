"""A contract test for scenarios: import `run_scenario_test` into your own tests.

Example:
    def test_my_scenario(tmp_path):
        run_scenario_test(MyScenario, directory=tmp_path)
"""

import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

from scena.data.params import DataGeneratorParams, DataPipelineParams, PipelineMode
from scena.evaluation.params import LAVParams
from scena.params import Params, build, dump_words, parse, to_raw
from scena.prediction.params import PredictorParams
from scena.scenario.scenario import ScenarioBase
from scena.storage.run_layout import EXPORT, saved_model
from scena.training.params import TrainerParams


def run_scenario_test(
    scenario: type[ScenarioBase[Any, Any]],
    params: TrainerParams[Any, Any] | None = None,
    *,
    directory: Path | None = None,
    predict_source: DataGeneratorParams | None = None,
    samples: int = 12,
    tolerance: float = 1e-5,
) -> None:
    """Checks that a scenario keeps Scena's guarantees; raises AssertionError with what is wrong.

    Its parameters survive storing, a tiny training runs, LAV gives the same numbers for batches of 1 and of 5, the exported model gives
    the same outputs as the trained one (also as a SavedModel), and prediction yields a sample for each input.

    Args:
        scenario: the class to test.
        params: trainer parameters to use instead of the default ones, for example with lists of files.
        directory: an empty directory for the run; a temporary one by default.
        predict_source: what to predict; default: what `scena predict` would read.
        samples: how many samples to train and validate with.
        tolerance: allowed relative difference of numbers.
    """
    params = params if params is not None else scenario.default_trainer_params()
    check_parameters(params)
    if directory is None:
        with tempfile.TemporaryDirectory() as folder:
            _check_run(scenario, params, Path(folder), predict_source, samples, tolerance)
    else:
        _check_run(scenario, params, directory, predict_source, samples, tolerance)


def check_parameters(params: Params) -> None:
    """Checks that parameters come back unchanged from JSON and from a command line."""
    assert build(to_raw(params), type(params)) == params, "the parameters change when they are stored and read back"
    words = dump_words(params)
    assert parse(type(params)(), words).params == params, f"the command line {words} does not give the parameters back"


def _check_run(
    scenario: type[ScenarioBase[Any, Any]],
    params: TrainerParams[Any, Any],
    directory: Path,
    predict_source: DataGeneratorParams | None,
    samples: int,
    tolerance: float,
) -> None:
    trained = params.replace(epochs=1, output_dir=directory / "run", random_seed=params.random_seed or 1)
    trained.gen.train = trained.gen.train.replace(limit=samples, num_processes=0)
    trained.gen.val = trained.gen.val.replace(limit=samples, num_processes=0)
    outputs = _Outputs()
    history = scenario.create_trainer(trained).train([outputs])
    assert len(history) == 1 and np.isfinite(history[0]["loss"]), f"one epoch of training gave {history}"
    export = directory / "run" / EXPORT
    source = trained.gen.val_gen()
    pipeline = DataPipelineParams(batch_size=4, limit=samples, num_processes=0)
    predictor = scenario.create_predictor(export, PredictorParams(pipeline=pipeline))
    if source is not None:
        _check_lav(scenario, export, source, samples, tolerance)
        _check_outputs(predictor, export, source, outputs, tolerance)
    _check_prediction(predictor, predict_source or scenario.default_predict_source(trained.gen))


class _Outputs(keras.callbacks.Callback):
    """Keeps the trained network, to compare it with the exports."""

    network: Any = None

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        self.network = self.model.root


def _check_lav(scenario: Any, export: Path, source: DataGeneratorParams, samples: int, tolerance: float) -> None:
    pipeline = DataPipelineParams(batch_size=1, limit=samples, num_processes=0)
    lav = scenario.create_lav(export, LAVParams(pipeline=pipeline, print_limit=1))
    one = lav.run(source)
    lav.params.pipeline = lav.params.pipeline.replace(batch_size=5)
    five = lav.run_pipeline(lav.create_pipeline(source))
    assert set(one) == set(five), f"LAV gives {sorted(one)} for batches of 1 and {sorted(five)} for batches of 5"
    for name, value in one.items():
        assert np.allclose(value, five[name], rtol=tolerance, atol=tolerance), (
            f"LAV gives {name} = {value} for batches of 1 and {five[name]} for batches of 5"
        )


def _check_outputs(
    predictor: Any, export: Path, source: DataGeneratorParams, trained: _Outputs, tolerance: float
) -> None:
    import tensorflow as tf

    pipeline = predictor.params.pipeline.replace(batch_size=3)
    with predictor.data.create_pipeline(PipelineMode.EVALUATION, pipeline, source).stream(repeat=False) as batches:
        batch = next(batches)
    reloaded = predictor.predict_batch(batch)
    tensors = {name: tf.convert_to_tensor(value) for name, value in batch.inputs.items()}
    _same(reloaded, trained.network(tensors), "the reloaded model", tolerance)
    served = tf.saved_model.load(str(export / saved_model())).signatures["serving_default"](**tensors)
    _same(reloaded, served, "the SavedModel", tolerance)


def _same(expected: dict[str, np.ndarray], received: dict[str, Any], what: str, tolerance: float) -> None:
    assert set(expected) == set(received), f"{what} puts out {sorted(received)}, expected {sorted(expected)}"
    for name, value in expected.items():
        other = np.asarray(received[name])
        assert np.allclose(value, other, rtol=tolerance, atol=tolerance), f"{what} gives other values of {name!r}"


def _check_prediction(predictor: Any, source: DataGeneratorParams | None) -> None:
    if source is None:
        return
    predicted = list(predictor.predict(source))
    assert predicted, "prediction gave no sample"
    assert all(isinstance(sample.outputs, dict) or sample.outputs is not None for sample in predicted), (
        "a predicted sample has no outputs"
    )
