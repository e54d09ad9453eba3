"""Prediction: lazily, in order, one sample at a time or many, from several threads; the same answers on every way."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from scena import (
    ArraySpec,
    DataPipelineParams,
    PipelineMode,
    Predictor,
    PredictorParams,
    Sample,
    SequentialProcessorPipelineParams,
)
from scena.backends.tensorflow.engine import TensorFlowPredictor
from scena.data.stages.collate import Collator
from scena.errors import DataError
from tests.evaluation.exporting import export
from tests.prediction.scenarios import PairsParams, Texts, TextScenario, TextsParams, ToArray, sequence
from tests.toy.params import HalvesParams
from tests.toy.scenario import ToyScenario


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(tmp_path_factory.mktemp("texts") / "export", 1, TextScenario)


def params(batch_size: int = 4, **changes: Any) -> PredictorParams:
    return PredictorParams(pipeline=DataPipelineParams(batch_size=batch_size, num_processes=0), **changes)


def sums(predicted: Iterator[Sample]) -> list[tuple[int, int]]:
    return [(sample.meta["index"], sample.outputs["rounded"]) for sample in predicted]


EXPECTED = [(index, index * (index % 5 + 1)) for index in range(10)]


@pytest.mark.parametrize("batch_size", [1, 3, 10, 64])
def test_all_ways_give_the_same_samples_in_order(texts: Path, batch_size: int) -> None:
    predictor = TextScenario.create_predictor(texts, params(batch_size))
    assert sums(predictor.predict(TextsParams())) == EXPECTED
    assert sums(predictor.predict_raw([sequence(index) for index in range(10)])) == EXPECTED
    assert sums(predictor.predict_raw(sequence(index) for index in range(10))) == EXPECTED
    assert sums(predictor.predict_pipeline(predictor.create_pipeline(TextsParams()))) == EXPECTED
    assert [predictor.predict_sample(sequence(index)).outputs["rounded"] for index in range(10)] == [
        value for _, value in EXPECTED
    ]


@pytest.mark.parametrize("layer", [None, "keras", "tensorflow"])
def test_batches_are_predicted_at_the_same_time_unless_the_model_keeps_a_state(layer: str | None) -> None:
    class Noise(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.seed = keras.random.SeedGenerator(1)

        def call(self, x: Any) -> Any:
            if layer is None:
                return x
            return x + (keras.random.normal((1, 4), seed=self.seed) if layer == "keras" else tf.random.normal((1, 4)))

    x = keras.Input((4,), name="x")
    engine = TensorFlowPredictor(keras.Model({"x": x}, {"y": Noise()(x)}), {"x": ArraySpec((4,), "float32")})
    assert engine.parallel_calls == (3 if layer is None else 1)
    assert engine.predict({"x": np.zeros((2, 4), "float32")})["y"].shape == (2, 4)


def test_a_predicted_sample_has_inputs_outputs_meta_and_targets_on_request(texts: Path) -> None:
    (plain,) = TextScenario.create_predictor(texts, params()).predict_raw([sequence(3)])
    assert plain.inputs["x"].tolist() == [3.0] * 4
    assert plain.meta == {"index": 3}
    assert plain.targets == {}
    (full,) = TextScenario.create_predictor(texts, params(include_targets=True)).predict_raw([sequence(3)])
    assert full.targets["sum"] == 12
    assert full.outputs["rounded"] == 12


@pytest.mark.parametrize("single", [True, False])
def test_a_tf_dataset_is_predicted(texts: Path, single: bool) -> None:
    values = [np.array(sequence(index).inputs, "float32") for index in range(10)]
    dataset = tf.data.Dataset.from_generator(
        lambda: ({"x": value} for value in values), output_signature={"x": tf.TensorSpec([None], "float32")}
    )
    predictor = TextScenario.create_predictor(texts, params(3))
    predicted = predictor.predict_dataset(dataset if single else dataset.padded_batch(4))
    assert [sample.outputs["rounded"] for sample in predicted] == [value for _, value in EXPECTED]


def test_a_tf_dataset_with_targets(exports: list[Path]) -> None:
    inputs, targets = {"x": np.zeros((5, 8), "float32")}, {"y": np.arange(5)}
    dataset = tf.data.Dataset.from_tensor_slices((inputs, targets))
    predictor = ToyScenario.create_predictor(exports[0], params(2, include_targets=True))
    assert [int(sample.targets["y"]) for sample in predictor.predict_dataset(dataset)] == [0, 1, 2, 3, 4]
    wrong = tf.data.Dataset.from_tensor_slices({"z": np.zeros((5, 8), "float32")})
    with pytest.raises(DataError, match=r"has no 'x'; its elements have \['z'\]"):
        next(ToyScenario.create_predictor(exports[0]).predict_dataset(wrong))


def test_prediction_is_lazy_and_needs_constant_memory(texts: Path) -> None:
    """An endless source: only what is needed for the samples so far, and a little ahead, is read."""
    predictor = TextScenario.create_predictor(texts, params(4))
    Texts.given = 0
    predicted = predictor.predict(TextsParams(count=10**9))
    assert Texts.given == 0
    for _ in range(8):
        next(predicted)
    assert Texts.given <= 32
    predicted.close()  # type: ignore[attr-defined]


def test_a_live_source_is_answered_before_it_goes_on(texts: Path) -> None:
    predictor = TextScenario.create_predictor(texts, params(1))
    answered: list[int] = []

    def live() -> Iterator[Sample]:
        for index in range(5):
            assert len(answered) == index
            yield sequence(index)

    for sample in predictor.predict_raw(live()):
        answered.append(sample.meta["index"])
    assert answered == [0, 1, 2, 3, 4]


def test_post_processing_may_change_the_number_of_samples(texts: Path, tmp_path: Path) -> None:
    changed = TextScenario.default_trainer_params()
    changed.scenario.data.post_proc = SequentialProcessorPipelineParams(processors=[PairsParams()])
    directory = export(tmp_path / "export", 1, TextScenario, changed)
    predictor = TextScenario.create_predictor(directory, params(3))
    assert [sample.meta["index"] for sample in predictor.predict(TextsParams())] == [0, 2, 4, 6, 8]
    assert [sample.meta["index"] for sample in predictor.predict_raw([sequence(0), sequence(1)])] == [0]


def test_one_sample_at_a_time_creates_and_traces_nothing(texts: Path) -> None:
    predictor = TextScenario.create_predictor(texts, params())
    predictor.predict_sample(sequence(0))
    created, threads = ToArray.created, threading.active_count()
    for index in range(30):  # five different lengths
        assert predictor.predict_sample(sequence(index)).outputs["rounded"] == index * (index % 5 + 1)
    assert ToArray.created == created
    assert threading.active_count() == threads
    assert predictor.engine._call.experimental_get_tracing_count() == 1


def test_one_sample_takes_less_than_five_milliseconds_of_cpu_time(exports: list[Path]) -> None:
    predictor = ToyScenario.create_predictor(exports[0])
    sample = Sample(inputs={"x": np.zeros(8, "float32")})
    times = []
    for _ in range(200):
        started = time.process_time()
        predictor.predict_sample(sample)
        times.append(time.process_time() - started)
    assert sorted(times)[len(times) // 4] < 0.005  # the quarter that was least disturbed by other programs


def test_threads_share_a_predictor(texts: Path) -> None:
    predictor = TextScenario.create_predictor(texts, params())
    wrong: list[int] = []

    def ask(first: int) -> None:
        for index in range(first, first + 50):
            if predictor.predict_sample(sequence(index)).outputs["rounded"] != index * (index % 5 + 1):
                wrong.append(index)

    threads = [threading.Thread(target=ask, args=(1000 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_wrong_sample_is_named(exports: list[Path]) -> None:
    predictor = ToyScenario.create_predictor(exports[0])
    with pytest.raises(DataError, match=r"inputs\['x'\] of sample 0 does not match its spec"):
        predictor.predict_sample(Sample(inputs={"x": np.zeros(7, "float32")}))


def test_no_sample_gives_no_prediction(exports: list[Path]) -> None:
    with pytest.raises(DataError, match="empty"):
        list(ToyScenario.create_predictor(exports[0]).predict_raw([]))


def test_worker_processes_give_the_same(exports: list[Path]) -> None:
    source = HalvesParams(count=40)
    here: Predictor = ToyScenario.create_predictor(exports[0], params(8))
    pipeline = DataPipelineParams(batch_size=8, num_processes=1)
    there = ToyScenario.create_predictor(exports[0], PredictorParams(pipeline=pipeline))
    kept = list(there.predict(source))
    for ours, theirs in zip(here.predict(source), kept, strict=True):
        np.testing.assert_array_equal(ours.outputs["pred"], theirs.outputs["pred"])
        np.testing.assert_array_equal(ours.inputs["x"], theirs.inputs["x"])
    assert all(sample.inputs["x"].base.base is None for sample in kept)  # no memory of the workers is held


def test_one_sample_is_collated_as_a_batch_of_one() -> None:
    specs = {
        "fixed": ArraySpec((2, 3), "float32"),
        "variable": ArraySpec((None, 2), "int64"),
        "text": ArraySpec((), "str"),
        "number": ArraySpec((), "uint8"),
    }
    values = {"fixed": np.ones((2, 3), "float32"), "variable": [[1, 2], [3, 4]], "text": "abc", "number": 7}
    collator = Collator(specs, {}, {}, PipelineMode.PREDICTION)
    sample = Sample(inputs=values)
    for one, several in zip(collator.collate_one(sample), collator.collate([sample]), strict=True):
        assert one.dtype == several.dtype and one.shape == several.shape
        np.testing.assert_array_equal(one, several)
    assert not np.shares_memory(collator.collate_one(sample)[0], values["fixed"])
