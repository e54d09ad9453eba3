"""Operations of layers that can be counted by hand."""

import keras
import pytest
from keras import layers

from scena.errors import ModelError
from scena.model.layers import AlgebraConv2D, AlgebraConv2DTranspose, AlgebraDense, AlgebraDepthwiseConv2D, IntoAlgebra
from scena.model.zoo import count_flops

PICTURE = (8, 6, 3)
KNOWN = {
    "dense": (layers.Dense(5), (7,), 7 * 5),
    "dense at each place": (layers.Dense(5), PICTURE, 8 * 6 * 3 * 5),
    "convolution": (layers.Conv2D(4, 3, padding="same"), PICTURE, 8 * 6 * 3 * 3 * 3 * 4),
    "stride": (layers.Conv2D(4, 3, strides=2), PICTURE, 3 * 2 * 3 * 3 * 3 * 4),
    "groups": (layers.Conv2D(6, 3, padding="same", groups=3), PICTURE, 8 * 6 * 3 * 3 * 1 * 6),
    "depthwise": (layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2), PICTURE, 8 * 6 * 3 * 3 * 3 * 2),
    "separable": (layers.SeparableConv2D(4, 3, padding="same"), PICTURE, 8 * 6 * (3 * 3 * 3 + 3 * 4)),
    "transposed": (layers.Conv2DTranspose(4, 3, strides=2), PICTURE, 8 * 6 * 3 * 3 * 3 * 4),
    "quaternion dense": (AlgebraDense(5, algebra="type2"), (4 * 7,), 16 * 7 * 5),
    "quaternion convolution": (AlgebraConv2D(4, 3, algebra="type2"), (8, 6, 4 * 3), 16 * 6 * 4 * 9 * 3 * 4),
    "complex depthwise": (AlgebraDepthwiseConv2D(3, algebra="type1", strides=2), (8, 6, 2 * 3), 4 * 3 * 2 * 9 * 3),
    "complex transposed": (AlgebraConv2DTranspose(4, 3, algebra="type1"), (8, 6, 2 * 3), 4 * 8 * 6 * 9 * 3 * 4),
    "learned way in": (IntoAlgebra("learned", algebra="type1"), PICTURE, 2 * 8 * 6 * 9 * 3 * 3),
    "pooling": (layers.MaxPooling2D(2), PICTURE, 0),
    "normalisation": (layers.BatchNormalization(), PICTURE, 0),
}


@pytest.mark.parametrize("kind", KNOWN)
def test_known_layers(kind: str) -> None:
    layer, shape, multiply_adds = KNOWN[kind]
    model = keras.Sequential([keras.Input(shape), layer])
    assert count_flops(model) == 2 * multiply_adds


def test_a_layer_counts_as_often_as_it_is_used() -> None:
    shared = layers.Dense(7)
    inputs = keras.Input((7,))
    inner = keras.Sequential([keras.Input((7,)), layers.Dense(3)])
    model = keras.Model(inputs, inner(shared(shared(inputs))))
    assert count_flops(model) == 2 * (2 * 7 * 7 + 7 * 3)


def test_an_unknown_size() -> None:
    inputs = keras.Input((None, None, 3))
    with pytest.raises(
        ModelError, match=r"for a known size only. Received a tensor of the shape \(None, None, None, 3\)"
    ):
        count_flops(keras.Model(inputs, layers.Conv2D(4, 3)(inputs)))
