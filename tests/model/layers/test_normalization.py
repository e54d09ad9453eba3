"""Batch normalisation that whitens the components, and the one for each component."""

from pathlib import Path

import keras
import numpy as np
import pytest

from scena.model.layers import WhiteningBatchNormalization
from tests.model.layers.naive import components


def correlated(name: str, channels: int = 3) -> np.ndarray:
    """Components that depend on each other, with a mean that is not zero."""
    size = len(components(np.zeros(8), name))
    rng = np.random.default_rng(0)
    mixture = rng.normal(size=(channels, size, size))
    elements = np.einsum("bhwnc,cmn->bhwmc", rng.normal(size=(16, 8, 8, size, channels)), mixture)
    return (elements + rng.normal(size=(size, channels))).reshape(16, 8, 8, -1).astype("float32")


def covariances(x: np.ndarray, name: str) -> np.ndarray:
    elements = np.stack(components(x, name)).reshape(len(components(np.zeros(8), name)), -1, 3)
    return np.stack([np.cov(elements[..., channel], bias=True) for channel in range(3)])


@pytest.mark.parametrize("name", ["type1", "type2"])
def test_the_output_has_mean_zero_and_covariance_one(name: str) -> None:
    x = correlated(name)
    layer = WhiteningBatchNormalization(algebra=name, epsilon=1e-6)
    outputs = np.asarray(layer(x, training=True))
    size = len(components(np.zeros(8), name))
    np.testing.assert_allclose(outputs.mean(axis=(0, 1, 2)), 0, atol=1e-4)
    np.testing.assert_allclose(covariances(outputs, name), np.tile(np.eye(size), (3, 1, 1)), atol=1e-3)
    assert layer.gamma.shape == (3, size * (size + 1) // 2)  # 3 and 10 numbers, as in the papers


def test_moving_statistics() -> None:
    x = correlated("type2")
    layer = WhiteningBatchNormalization(algebra="type2", momentum=0.5, epsilon=1e-6)
    for _ in range(25):
        trained = np.asarray(layer(x, training=True))
    np.testing.assert_allclose(layer(x, training=False), trained, atol=1e-3)
    np.testing.assert_allclose(layer.moving_covariance, covariances(x, "type2"), rtol=1e-3, atol=1e-3)
    layer.trainable = False
    before = layer.moving_mean.numpy()
    layer(x + 1, training=True)
    np.testing.assert_array_equal(layer.moving_mean, before)


def test_with_one_component_it_is_the_ordinary_one() -> None:
    x = correlated("real")
    ours, keras_own = WhiteningBatchNormalization(algebra="real"), keras.layers.BatchNormalization()
    np.testing.assert_allclose(ours(x, training=True), keras_own(x, training=True), atol=1e-4)
    np.testing.assert_allclose(ours(x, training=False), keras_own(x, training=False), atol=1e-4)


def test_channels_first_and_vectors() -> None:
    x = correlated("type2")
    outputs = np.asarray(WhiteningBatchNormalization(algebra="type2")(x, training=True))
    first = WhiteningBatchNormalization(algebra="type2", data_format="channels_first")
    np.testing.assert_allclose(first(x.transpose(0, 3, 1, 2), training=True), outputs.transpose(0, 3, 1, 2), atol=1e-4)
    vectors = WhiteningBatchNormalization(algebra="type2")(x.reshape(-1, 12), training=True)
    np.testing.assert_allclose(vectors, outputs.reshape(-1, 12), atol=1e-4)


def test_gamma_is_symmetric_and_gradients_flow() -> None:
    import tensorflow as tf

    x = correlated("type1")
    layer = WhiteningBatchNormalization(algebra="type1")
    layer(x)
    layer.gamma.assign(np.tile([2.0, 0.5, 3.0], (3, 1)))
    matrix = np.asarray(layer._symmetric(layer.gamma.value))
    np.testing.assert_array_equal(matrix[0], [[2, 0.5], [0.5, 3]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x, training=True) ** 3)
    gradients = tape.gradient(loss, [weight.value for weight in layer.trainable_weights])
    assert all(np.all(np.isfinite(g)) and np.any(g) for g in gradients)


def test_half_precision_and_saving(tmp_path: Path) -> None:
    layer = WhiteningBatchNormalization(algebra="type2", dtype="mixed_float16", scale=False)
    model = keras.Sequential([keras.Input((8, 8, 12)), layer])
    x = correlated("type2")
    assert keras.backend.standardize_dtype(model(x, training=True).dtype) == "float16"
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(x), model(x))
