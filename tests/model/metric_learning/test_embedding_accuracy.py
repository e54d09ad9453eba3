"""The nearest other embedding of a batch: by its definition, batch by batch."""

import keras
import numpy as np
import pytest

from scena.model.metric_learning import EmbeddingAccuracy, nearest_is_same


def by_definition(labels: np.ndarray, embeddings: np.ndarray) -> list[float]:
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    same = []
    for i, x in enumerate(unit):
        distances = [np.inf if i == j else np.linalg.norm(x - other) for j, other in enumerate(unit)]
        same.append(float(labels[int(np.argmin(distances))] == labels[i]))
    return same


def random_batch(seed: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4, size), rng.normal(size=(size, 3)).astype("float32") * rng.uniform(0.1, 9, (size, 1))


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_definition(seed: int) -> None:
    labels, embeddings = random_batch(seed, 30)
    expected = by_definition(labels, embeddings)
    assert 0 < sum(expected) < 30
    np.testing.assert_array_equal(nearest_is_same(labels, embeddings), expected)


def test_only_directions_count() -> None:
    embeddings = np.array([[1, 0], [100, 1], [0, 1], [1, 9]], "float32")
    np.testing.assert_array_equal(nearest_is_same(np.array([0, 0, 1, 1]), embeddings), [1, 1, 1, 1])


def test_the_metric_is_the_mean_over_all_samples_of_all_batches() -> None:
    metric = EmbeddingAccuracy()
    expected: list[float] = []
    for seed, size in enumerate((20, 7, 1)):
        batch = random_batch(seed, size)
        metric.update_state(*batch)
        if size > 1:  # alone there is no other
            expected += by_definition(*batch)
    assert float(metric.result()) == pytest.approx(np.mean(expected))
    again = keras.metrics.deserialize(keras.metrics.serialize(metric))
    assert isinstance(again, EmbeddingAccuracy) and float(again.result()) == 0


def test_half_precision_is_compared_in_single() -> None:
    labels, embeddings = random_batch(5, 12)
    half = embeddings.astype("float16")
    np.testing.assert_array_equal(nearest_is_same(labels, half), by_definition(labels, half.astype("float32")))
