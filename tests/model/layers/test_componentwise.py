"""Layers that treat each component alike, and the ways into an algebra and out of it."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from scena.errors import ModelError
from scena.model.layers import (
    AlgebraConcatenate,
    AlgebraDropout,
    AlgebraFlatten,
    AlgebraInitializer,
    AlgebraPadChannels,
    IntoAlgebra,
    OutOfAlgebra,
    PortableConv2D,
    Transpose,
)
from tests.model.layers.naive import NAMES, components

RNG = np.random.default_rng(0)
QUATERNIONS = RNG.normal(size=(2, 4, 3, 4 * 2)).astype("float32")


def first(x: np.ndarray) -> np.ndarray:
    return x.transpose(0, 3, 1, 2)


@pytest.mark.parametrize("name", NAMES)
def test_concatenate_and_flatten(name: str) -> None:
    size = len(components(np.zeros(8), name))
    a, b = (RNG.normal(size=(2, 4, 3, size * n)).astype("float32") for n in (2, 3))
    together = AlgebraConcatenate(algebra=name)([a, b])
    for x, y, both in zip(*(components(np.asarray(t), name) for t in (a, b, together)), strict=True):
        np.testing.assert_array_equal(both, np.concatenate([x, y], axis=-1))
    flat = AlgebraFlatten(algebra=name)(a)
    for x, vector in zip(components(a, name), components(np.asarray(flat), name), strict=True):
        np.testing.assert_array_equal(vector, x.reshape(2, -1))
    channels_first: dict[str, Any] = {"algebra": name, "data_format": "channels_first"}
    np.testing.assert_array_equal(AlgebraConcatenate(**channels_first)([first(a), first(b)]), first(together.numpy()))
    np.testing.assert_array_equal(AlgebraFlatten(**channels_first)(first(a)), flat)


def test_pad_channels() -> None:
    padded = np.asarray(AlgebraPadChannels(5, algebra="type2")(QUATERNIONS))
    for before, after in zip(components(QUATERNIONS, "type2"), components(padded, "type2"), strict=True):
        np.testing.assert_array_equal(after, np.pad(before, [(0, 0)] * 3 + [(1, 2)]))
    turned = AlgebraPadChannels(5, algebra="type2", data_format="channels_first")(first(QUATERNIONS))
    np.testing.assert_array_equal(turned, first(padded))


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_dropout_with_one_mask_for_all_components(data_format: str) -> None:
    x = np.ones((4, 8, 8, 4 * 8), "float32")
    axis = -1
    if data_format == "channels_first":
        x, axis = first(x), 1
    layer = AlgebraDropout(0.5, seed=3, algebra="type2", data_format=data_format)
    outputs = np.asarray(layer(x, training=True))
    for part in components(outputs, "type2", axis)[1:]:
        np.testing.assert_array_equal(part, components(outputs, "type2", axis)[0])
    assert set(np.unique(outputs)) == {0, 2}
    assert abs(outputs.mean() - 1) < 0.1
    np.testing.assert_array_equal(layer(x, training=False), x)


@pytest.mark.parametrize("name", NAMES)
def test_basic_way_in_and_ways_out(name: str) -> None:
    image = RNG.normal(size=(2, 4, 3, 3)).astype("float32")
    inside = IntoAlgebra("basic", algebra=name)(image)
    parts = components(np.asarray(inside), name)
    np.testing.assert_array_equal(parts[0], image)
    assert not any(np.any(part) for part in parts[1:])
    stacked = RNG.normal(size=(2, 4, 3, 3 * len(parts))).astype("float32")
    array = np.stack(components(stacked, name))
    expected = {
        "basic": array[0],
        "concat": stacked,
        "avg_pool": array.mean(axis=0),
        "max_pool": array.max(axis=0),
        "norm": np.sqrt((array**2).sum(axis=0)),
    }
    for way, value in expected.items():
        layer = OutOfAlgebra(way, algebra=name)
        np.testing.assert_allclose(layer(stacked), value, atol=1e-5)
        assert layer.compute_output_shape(stacked.shape) == value.shape
        turned = OutOfAlgebra(way, algebra=name, data_format="channels_first")(first(stacked))
        np.testing.assert_allclose(turned, first(value), atol=1e-5)


def test_norm_has_a_gradient_at_zero() -> None:
    import tensorflow as tf

    x = tf.zeros((1, 8))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(OutOfAlgebra("norm", algebra="type2")(x))
    assert float(y) == 0
    np.testing.assert_array_equal(tape.gradient(y, x), np.zeros((1, 8)))


def test_colours_as_a_quaternion() -> None:
    image = RNG.random((2, 4, 3, 3)).astype("float32")
    joint = np.asarray(IntoAlgebra("joint", algebra="type2")(image))
    np.testing.assert_array_equal(joint, np.concatenate([np.zeros_like(image[..., :1]), image], axis=-1))
    grey = np.asarray(IntoAlgebra("grayscale", algebra="type2")(image))
    np.testing.assert_allclose(grey[..., 0], image @ [0.299, 0.587, 0.114], atol=1e-6)
    np.testing.assert_array_equal(grey[..., 1:], image)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_learned_way_in(data_format: str) -> None:
    image = RNG.normal(size=(2, 4, 5, 3)).astype("float32")
    layer = IntoAlgebra("learned", algebra="type2", data_format=data_format)
    outputs = np.asarray(layer(image if data_format == "channels_last" else first(image)))
    parts = components(outputs, "type2", -1 if data_format == "channels_last" else 1)
    np.testing.assert_array_equal(parts[0], image if data_format == "channels_last" else first(image))
    assert all(np.any(part) for part in parts[1:])
    assert len(layer.trainable_weights) == 3 * 2 * 4


def test_errors_of_the_doors() -> None:
    with pytest.raises(ModelError, match=r"'joint' makes quaternions \(type2\)\. Received the algebra 'type1'"):
        IntoAlgebra("joint", algebra="type1")
    with pytest.raises(ModelError, match=r"'joint' needs red, green and blue\. Received the shape \(None, 8, 8, 1\)"):
        IntoAlgebra("joint", algebra="type2").build((None, 8, 8, 1))
    with pytest.raises(
        ModelError,
        match="The conversion out of an algebra must be basic, concat, avg_pool, max_pool or norm. Received: 'sum'",
    ):
        OutOfAlgebra("sum")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="at least 0 and below 1. Received: 1"):
        AlgebraDropout(1)


@pytest.mark.parametrize("criterion", ["glorot", "he"])
@pytest.mark.parametrize("name", NAMES)
def test_initialiser(name: str, criterion: Any) -> None:
    """E|W|² is 1 / (inputs + outputs) or 1 / inputs of one component; every direction is as likely as any other."""
    size = len(components(np.zeros(8), name))
    kernel = np.asarray(AlgebraInitializer(criterion, seed=1)((size, 3, 3, 16, 32)))
    energy = (kernel**2).sum(axis=0).mean()
    expected = 1 / (9 * (16 + 32)) if criterion == "glorot" else 1 / (9 * 16)
    assert abs(energy / expected - 1) < 0.05
    direction = (kernel / np.sqrt((kernel**2).sum(axis=0))).reshape(size, -1)
    np.testing.assert_allclose(direction @ direction.T / direction.shape[1], np.eye(size) / size, atol=0.03)
    assert np.abs(direction.mean(axis=1)).max() < 0.05
    depthwise = np.asarray(AlgebraInitializer(criterion, depthwise=True, seed=1)((size, 3, 3, 512, 1)))
    assert abs((depthwise**2).sum(axis=0).mean() * (18 if criterion == "glorot" else 9) - 1) < 0.06


def test_initialiser_with_a_seed_repeats() -> None:
    copy = AlgebraInitializer.from_config(AlgebraInitializer("he", seed=4).get_config())
    np.testing.assert_array_equal(copy((2, 3, 3)), AlgebraInitializer("he", seed=4)((2, 3, 3)))
    with pytest.raises(ModelError, match="'glorot' or 'he'. Received: 'lecun'"):
        AlgebraInitializer("lecun")  # type: ignore[arg-type]


def test_a_bias_along_the_channels_of_nchw() -> None:
    """The width equals the number of channels: Keras' own layer takes one for the other here."""
    x = RNG.normal(size=(2, 4, 3, 2)).astype("float32")
    plain = keras.layers.Conv2D(3, 1, bias_initializer="random_normal")
    portable = PortableConv2D(3, 1, data_format="channels_first", activation="relu")
    plain(x)
    portable(first(x))
    portable.set_weights(plain.get_weights())
    expected = np.maximum(plain(x), 0)
    np.testing.assert_allclose(portable(first(x)), first(expected), atol=1e-6)


def test_saving_and_loading(tmp_path: Path) -> None:
    image = keras.Input((6, 6, 3))
    x = Transpose("channels_first")(image)
    settings: dict[str, Any] = {"algebra": "type2", "data_format": "channels_first"}
    x = IntoAlgebra("learned", **settings)(x)
    x = AlgebraConcatenate(**settings)([x, AlgebraPadChannels(5, **settings)(x)])
    x = AlgebraDropout(0.2, seed=1, **settings)(x)
    x = OutOfAlgebra("norm", algebra="type2")(AlgebraFlatten(**settings)(x))
    model = keras.Model(image, x)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    picture = RNG.random((2, 6, 6, 3)).astype("float32")
    np.testing.assert_array_equal(loaded(picture), model(picture))
    assert [one.get_config() for one in loaded.layers] == [one.get_config() for one in model.layers]


def test_every_layer_can_be_made_known_to_keras() -> None:
    import scena.model.layers as package

    for name in package.__all__:
        thing = getattr(package, name)
        if isinstance(thing, type) and issubclass(thing, keras.layers.Layer | keras.initializers.Initializer):
            assert keras.saving.get_registered_object(f"scena>{name}") is thing
