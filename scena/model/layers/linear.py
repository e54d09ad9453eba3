"""The base of the linear layers of an algebra, with initializer and block kernel, and the dense layer."""

import math
from typing import Any, Literal

import keras
from keras import ops

from scena.errors import ModelError
from scena.model.layers.algebra import Algebra, get_algebra
from scena.model.layers.portable import add_bias, channels_of
from scena.model.layers.windows import Shape

Criterion = Literal["glorot", "he"]


@keras.saving.register_keras_serializable(package="scena")
class AlgebraInitializer(keras.initializers.Initializer):
    """Component kernels with E|W|² = 1 / (inputs + outputs) (Glorot) or 1 / inputs (He), counted in one component.

    Every component is normal with the same variance: then the magnitude has a chi distribution (Rayleigh for two components), and
    the phase, that is the direction of the element, is uniform and independent of it.

    Args:
        criterion: "glorot" or "he".
        depthwise: the kernel is (components, *window, channels, multiplier), and each output sees one channel only.
        seed: makes the numbers repeatable.
    """

    def __init__(self, criterion: Criterion = "glorot", depthwise: bool = False, seed: int | None = None) -> None:
        if criterion not in ("glorot", "he"):
            raise ModelError(f"The criterion of an AlgebraInitializer is 'glorot' or 'he'. Received: {criterion!r}")
        self.criterion = criterion
        self.depthwise = depthwise
        self.seed = seed
        self._normal = keras.initializers.RandomNormal(mean=0.0, stddev=1.0, seed=seed)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Draws a kernel of shape (components, *window, inputs, outputs)."""
        components, *window, inputs, outputs = shape
        size = math.prod(window)
        n_in, n_out = size * (1 if self.depthwise else inputs), size * outputs
        energy = 1 / (n_in + n_out) if self.criterion == "glorot" else 1 / n_in
        return self._normal(shape, dtype=dtype) * math.sqrt(energy / components)

    def get_config(self) -> dict[str, Any]:
        return {"criterion": self.criterion, "depthwise": self.depthwise, "seed": self.seed}


def block_kernel(kernel: Any, algebra: Algebra, transposed: bool = False) -> Any:
    """Builds the real kernel that computes the product with the component kernels.

    Concatenation copies whole rows; measured on a CPU, it is faster than a product with the sign table, in the backward pass too.

    Args:
        kernel: the component kernels, (components, *window, inputs, outputs).
        algebra: gives the component kernel and the sign of each block.
        transposed: the last two axes are (outputs, inputs), as transposed convolutions have them.

    Returns:
        The kernel of shape (*window, components × inputs, components × outputs), or with the last two axes swapped.
    """
    positive = ops.unstack(kernel, axis=0)
    if algebra.components == 1:
        return positive[0]
    negative = ops.unstack(ops.negative(kernel), axis=0)
    blocks = {
        (term.input, term.output): (positive if term.sign > 0 else negative)[term.kernel] for term in algebra.terms()
    }
    numbers = range(algebra.components)
    rows = [
        ops.concatenate([blocks[(column, row) if transposed else (row, column)] for column in numbers], axis=-1)
        for row in numbers
    ]
    return ops.concatenate(rows, axis=-2)


Serializable = Any
"""What Keras accepts for an initialiser, regulariser or activation: an object, a name, a config or None."""


class AlgebraLinear(keras.layers.Layer):
    """Base of the layers that multiply with a kernel from the right: for output component k the sum of ± x_i · W_j over β_i β_j = ± β_k.

    Args:
        algebra: "real", "type1", "type2" or "type3".
        activation: applied to each component after the product.
        use_bias: adds one value for each component and output channel.
        kernel_initializer: draws the component kernels; None: Glorot for the magnitude and a uniform phase (Keras' own for real numbers).
        bias_initializer: draws the bias.
        kernel_regularizer, bias_regularizer: penalties on the component kernels and on the bias.
        data_format: "channels_last" or "channels_first".
    """

    depthwise = False

    def __init__(
        self,
        *,
        algebra: str = "type2",
        activation: Serializable = None,
        use_bias: bool = True,
        kernel_initializer: Serializable = None,
        bias_initializer: Serializable = "zeros",
        kernel_regularizer: Serializable = None,
        bias_regularizer: Serializable = None,
        data_format: str = "channels_last",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.algebra: Algebra = get_algebra(algebra)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        if kernel_initializer is None:
            kernel_initializer = (
                "glorot_uniform" if self.algebra.components == 1 else AlgebraInitializer(depthwise=self.depthwise)
            )
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.data_format = data_format

    def add_kernel(self, shape: tuple[int, ...], outputs: int) -> None:
        """Adds the component kernels of this shape, and the bias of that many output channels."""
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.algebra.components, *shape),
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias",
                shape=(self.algebra.components * outputs,),
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
            )

    def block_kernel(self, transposed: bool = False) -> Any:
        """The real kernel of the whole product, in the precision the layer computes in."""
        kernel = ops.cast(ops.convert_to_tensor(self.kernel), self.compute_dtype)
        return block_kernel(kernel, self.algebra, transposed)

    def finish(self, outputs: Any) -> Any:
        """Adds the bias, once, and applies the activation."""
        if self.bias is not None:
            outputs = add_bias(outputs, self.bias, self.data_format)
        return self.activation(outputs)

    def channels_of(self, shape: Shape) -> int:
        """The channels of one component of a tensor of this shape."""
        return channels_of(shape, self.data_format, self.algebra.components)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "algebra": self.algebra.name,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
            "data_format": self.data_format,
        }


@keras.saving.register_keras_serializable(package="scena")
class AlgebraDense(AlgebraLinear):
    """A dense layer over an algebra: (…, components × inputs) to (…, components × units), with one matrix product.

    Args:
        units: output features of one component.
        kwargs: see `AlgebraLinear`.
    """

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape: Shape) -> None:
        inputs = channels_of(input_shape, "channels_last", self.algebra.components)
        self.add_kernel((inputs, self.units), self.units)

    def call(self, inputs: Any) -> Any:
        outputs = ops.matmul(inputs, self.block_kernel())
        if self.bias is not None:
            outputs = ops.add(outputs, self.bias)
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], self.algebra.components * self.units)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}
