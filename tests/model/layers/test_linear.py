"""Dense layers and convolutions of every algebra, against products that are made component by component."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from scena.errors import ModelError
from scena.model.layers import (
    AlgebraConv2D,
    AlgebraConv2DTranspose,
    AlgebraDense,
    AlgebraDepthwiseConv2D,
    AlgebraSeparableConv2D,
)
from tests.model.layers.naive import NAMES, components, product

TYPED = [name for name in NAMES if name != "real"]
Layer = Any

# (the typed layer, Keras' layer, the real operation) with some settings of each
CASES: dict[str, tuple[Callable[..., Layer], Callable[..., Layer], Callable[[Any, Any], Any]]] = {
    "dense": (
        lambda **kw: AlgebraDense(3, **kw),
        lambda **kw: keras.layers.Dense(3, **kw),
        ops.matmul,
    ),
    "conv": (
        lambda **kw: AlgebraConv2D(3, (3, 2), strides=2, padding="same", **kw),
        lambda **kw: keras.layers.Conv2D(3, (3, 2), strides=2, padding="same", **kw),
        lambda x, w: ops.conv(x, w, strides=2, padding="same"),
    ),
    "dilated": (
        lambda **kw: AlgebraConv2D(2, 3, dilation_rate=2, **kw),
        lambda **kw: keras.layers.Conv2D(2, 3, dilation_rate=2, **kw),
        lambda x, w: ops.conv(x, w, dilation_rate=2),
    ),
    "depthwise": (
        lambda **kw: AlgebraDepthwiseConv2D(3, strides=2, depth_multiplier=2, **kw),
        lambda **kw: keras.layers.DepthwiseConv2D(
            3, strides=2, depth_multiplier=2, **{"depthwise_initializer" if k.startswith("kernel_i") else k: v for k, v in kw.items()}
        ),
        lambda x, w: ops.depthwise_conv(x, w, strides=2),
    ),
    "transpose": (
        lambda **kw: AlgebraConv2DTranspose(3, 3, strides=2, **kw),
        lambda **kw: keras.layers.Conv2DTranspose(3, 3, strides=2, **kw),
        lambda x, w: ops.conv_transpose(x, w, strides=2),
    ),
}  # fmt: skip


def inputs_of(case: str, name: str, channels: int = 2, seed: int = 0) -> np.ndarray:
    size = len(components(np.zeros(8), name))
    shape = (3, size * channels) if case == "dense" else (2, 6, 5, size * channels)
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def filled(layer: Layer, x: np.ndarray) -> Layer:
    """The layer, with a bias too that is not zero."""
    layer.build(x.shape)
    rng = np.random.default_rng(1)
    layer.set_weights([rng.normal(size=weight.shape) for weight in layer.get_weights()])
    return layer


def naive(case: str, name: str, x: Any, kernel: Any, bias: Any) -> Any:
    size = kernel.shape[0]
    parts = product(name, ops.split(x, size, axis=-1), ops.unstack(kernel, axis=0), CASES[case][2])
    return ops.concatenate(parts, axis=-1) + bias


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_the_product(case: str, name: str) -> None:
    x = inputs_of(case, name)
    layer = filled(CASES[case][0](algebra=name), x)
    expected = naive(case, name, x, layer.kernel, layer.bias)
    np.testing.assert_allclose(layer(x), expected, atol=1e-4)
    assert layer.compute_output_shape(x.shape) == tuple(expected.shape)


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("case", ["dense", "conv", "depthwise"])
def test_each_pair_of_blades(case: str, name: str) -> None:
    """An input with one component only and a kernel with one component only give one component, with its sign."""
    size = len(components(np.zeros(8), name))
    x = inputs_of(case, name)
    layer = filled(CASES[case][0](algebra=name, use_bias=False), x)
    kernel = layer.get_weights()[0]
    for i in range(size):
        only = np.concatenate([p if n == i else np.zeros_like(p) for n, p in enumerate(components(x, name))], axis=-1)
        for j in range(size):
            layer.set_weights([np.where(np.arange(size).reshape(-1, *[1] * (kernel.ndim - 1)) == j, kernel, 0)])
            found = np.asarray(layer(only))
            np.testing.assert_allclose(found, naive(case, name, only, layer.kernel, 0.0), atol=1e-4)
            assert sum(bool(np.any(part)) for part in components(found, name)) == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_with_imaginary_parts_of_zero_it_is_the_real_layer(case: str, name: str) -> None:
    real_x = inputs_of(case, "real")
    real = filled(CASES[case][1](activation="tanh"), real_x)
    size = len(components(np.zeros(8), name))
    layer = CASES[case][0](algebra=name, activation="tanh")
    x = np.concatenate([real_x, *[np.zeros_like(real_x)] * (size - 1)], axis=-1)
    layer.build(x.shape)
    kernel, bias = real.get_weights()
    layer.set_weights(
        [np.stack([kernel, *[np.zeros_like(kernel)] * (size - 1)]), np.pad(bias, (0, (size - 1) * len(bias)))]
    )
    outputs = components(np.asarray(layer(x)), name)
    np.testing.assert_allclose(outputs[0], real(real_x), atol=1e-5)
    assert not any(np.any(part) for part in outputs[1:])
    assert layer.count_params() == size * real.count_params()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_gradients(case: str, name: str) -> None:
    """Those of the block kernel are those of the naive product."""
    import tensorflow as tf

    x = tf.constant(inputs_of(case, name))
    layer = filled(CASES[case][0](algebra=name), x.numpy())
    variables = [layer.kernel.value, layer.bias.value]
    gradients = []
    for function in (layer, lambda x: naive(case, name, x, *variables)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.sin(function(x)))
        gradients.append(tape.gradient(loss, [x, *variables]))
    for found, expected in zip(*gradients, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("name", ["real", "type2"])
@pytest.mark.parametrize("case", ["conv", "dilated", "depthwise", "transpose", "separable"])
def test_channels_first_is_equal(case: str, name: str) -> None:
    make = CASES[case][0] if case in CASES else lambda **kw: AlgebraSeparableConv2D(3, 3, strides=2, **kw)
    x = inputs_of("conv", name)
    last = filled(make(algebra=name), x)
    first = make(algebra=name, data_format="channels_first")
    turned = x.transpose(0, 3, 1, 2)
    outputs = first(turned)
    first.set_weights(last.get_weights())
    outputs = first(turned)
    np.testing.assert_allclose(np.transpose(outputs, (0, 2, 3, 1)), last(x), atol=1e-5)
    assert first.compute_output_shape(turned.shape) == tuple(outputs.shape)


@pytest.mark.parametrize("name", NAMES)
def test_separable_is_depthwise_and_then_pointwise(name: str) -> None:
    x = inputs_of("conv", name)
    layer = filled(AlgebraSeparableConv2D(3, 3, padding="same", algebra=name), x)
    spread, mix, bias = layer.get_weights()
    depthwise = AlgebraDepthwiseConv2D(3, padding="same", algebra=name, use_bias=False)
    pointwise = AlgebraConv2D(3, 1, algebra=name)
    middle = depthwise(x)
    depthwise.set_weights([spread])
    pointwise.build(middle.shape)
    pointwise.set_weights([mix, bias])
    np.testing.assert_allclose(layer(x), pointwise(depthwise(x)), atol=1e-5)


@pytest.mark.parametrize("case", [*CASES, "separable"])
def test_saving_and_loading(case: str, tmp_path: Path) -> None:
    make = CASES[case][0] if case in CASES else lambda **kw: AlgebraSeparableConv2D(3, 3, **kw)
    x = inputs_of(case if case in CASES else "conv", "type2")
    layer = make(
        algebra="type2",
        activation="relu",
        kernel_regularizer=keras.regularizers.L2(0.1),
        kernel_initializer="he_normal",
    )
    model = keras.Sequential([keras.Input(x.shape[1:]), layer])
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(x), model(x))
    assert loaded.layers[0].get_config() == layer.get_config()
    assert keras.saving.get_registered_name(type(layer)).startswith("scena>")
    assert type(layer).from_config(layer.get_config()).get_config() == layer.get_config()
    assert len(loaded.losses) == len(model.losses) > 0


@pytest.mark.parametrize("case", ["dense", "separable"])
def test_mixed_precision(case: str) -> None:
    """Computes in half precision, keeps its weights in single precision."""
    x = inputs_of("dense" if case == "dense" else "conv", "type3")
    keywords = {"algebra": "type3", "dtype": "mixed_float16"}
    layer: Layer = AlgebraDense(3, **keywords) if case == "dense" else AlgebraSeparableConv2D(3, 3, **keywords)
    outputs = layer(x)
    assert keras.backend.standardize_dtype(outputs.dtype) == "float16"
    assert {keras.backend.standardize_dtype(weight.dtype) for weight in layer.weights} == {"float32"}
    precise = type(layer).from_config(layer.get_config() | {"dtype": "float32"})
    precise.build(x.shape)
    precise.set_weights(layer.get_weights())
    np.testing.assert_allclose(outputs, precise(x), atol=0.02)


def test_channels_that_do_not_divide() -> None:
    with pytest.raises(
        ModelError, match=r"multiple of 4\. Received the shape \(None, 8, 8, 3\); bring it into the alg"
    ):
        AlgebraConv2D(3, 3, algebra="type2").build((None, 8, 8, 3))
