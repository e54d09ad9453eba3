"""A tf.data.Dataset as a source, and a pipeline as a tf.data.Dataset."""

import logging

import numpy as np
import pytest

from scena.data import Cursor, DataError, PipelineMode
from tests.data.toys import NoiseParams, NumbersParams, facts, first_batches, sequence, toy_pipeline

tf = pytest.importorskip("tensorflow")


def dataset(count: int = 23):
    numbers = tf.data.Dataset.range(count)
    return numbers.map(lambda i: ({"x": tf.fill([i % 3 + 1], tf.cast(i, tf.float32))}, {"y": tf.cast(i, tf.int32)}))


def test_a_dataset_is_a_source() -> None:
    expected = first_batches(toy_pipeline(dataset(), sequence(NoiseParams()), num_processes=0), 14)
    assert [size for _, size, *_ in expected[:6]] == [4, 4, 4, 4, 4, 3]
    pipeline = toy_pipeline(dataset(), sequence(NoiseParams()), num_processes=1)
    assert pipeline.samples_per_epoch() == 23
    assert first_batches(pipeline, 14) == expected
    pipeline.close()


def test_a_dataset_may_not_know_its_length() -> None:
    odd = dataset().filter(lambda inputs, targets: targets["y"] % 2 == 1)
    pipeline = toy_pipeline(odd, num_processes=0)
    assert pipeline.samples_per_epoch() is None
    assert [size for _, size, *_ in first_batches(pipeline, 3)] == [4, 4, 3]


def test_it_resumes_by_replay_and_says_so(caplog) -> None:
    expected = first_batches(toy_pipeline(dataset()), 12)
    with caplog.at_level(logging.INFO):
        rest = first_batches(toy_pipeline(dataset()), 8, Cursor.from_json(expected[3][-1]))
    assert rest == expected[4:]
    assert "replays the 16 samples that were used in epoch 0" in caplog.text


def test_one_that_is_not_deterministic_is_not_resumed() -> None:
    shuffled = dataset().shuffle(100)
    cursor = Cursor(epoch=0, batch=2, samples=8, state={"piece": 2, "out": 8})
    with pytest.raises(
        DataError, match="cannot be restarted at sample 8 of epoch 0: .* gives other elements each time"
    ):
        toy_pipeline(shuffled).stream(cursor)
    seeded = dataset().shuffle(100, seed=3, reshuffle_each_iteration=False)
    expected = first_batches(toy_pipeline(seeded), 6)
    assert first_batches(toy_pipeline(seeded), 4, Cursor.from_json(expected[1][-1])) == expected[2:]


def test_a_batched_dataset() -> None:
    from scena.data.tensorflow.dataset import DatasetSource

    class Batched(DatasetSource):
        whole_batches = True

    source = Batched(dataset(6).padded_batch(4), PipelineMode.EVALUATION)
    with toy_pipeline(source, mode=PipelineMode.EVALUATION).stream() as stream:
        assert [(batch.size, batch.targets["y"].tolist()) for batch in stream] == [(4, [0, 1, 2, 3]), (2, [4, 5])]


def test_a_pipeline_as_a_dataset() -> None:
    from scena.data.tensorflow.dataset import to_dataset

    pipeline = toy_pipeline(NumbersParams(), mode=PipelineMode.EVALUATION, num_processes=0)
    changed = to_dataset(pipeline).map(lambda inputs, targets: (inputs["x"] * 2, targets["y"]))
    with pipeline.stream() as stream:
        for (x, y), batch in zip(changed.as_numpy_iterator(), stream, strict=True):
            np.testing.assert_array_equal(x, batch.inputs["x"] * 2)
            np.testing.assert_array_equal(y, batch.targets["y"])
            assert facts(batch)
