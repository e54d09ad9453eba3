"""Batch normalisation that whitens: the components of a channel become uncorrelated, with variance one.

Normalising each component by itself needs no layer of its own: that is Keras' BatchNormalization on the stacked components.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from scena.model.layers.algebra import get_algebra
from scena.model.layers.portable import channels_of, join_components, split_components
from scena.model.layers.windows import Shape


@keras.saving.register_keras_serializable(package="scena")
class WhiteningBatchNormalization(keras.layers.Layer):
    """Subtracts the mean, multiplies with the inverse of a Cholesky root of the covariance of the components, then scales and shifts.

    For complex numbers and quaternions this is the normalisation of Trabelsi et al. (2018) and Gaudet and Maida (2018). With one component
    it is the ordinary batch normalisation.

    Args:
        algebra: "real", "type1", "type2" or "type3".
        momentum: of the moving mean and covariance.
        epsilon: added to the variances.
        center: adds a learned value to each component and channel.
        scale: multiplies with a learned symmetric matrix for each channel; it starts as the identity.
        data_format: "channels_last" or "channels_first".
    """

    def __init__(
        self,
        algebra: str = "type2",
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        data_format: str = "channels_last",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.algebra = get_algebra(algebra)
        self.momentum = momentum
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.data_format = data_format

    def build(self, input_shape: Shape) -> None:
        n = self.algebra.components
        channels = channels_of(input_shape, self.data_format, n)
        rows, columns = np.tril_indices(n)
        self._corners = [int(row * n + column) for row, column in zip(rows, columns, strict=True)]
        self.gamma = self.beta = None
        if self.scale:
            # one number for each entry on and below the diagonal
            identity = keras.initializers.Constant(np.tile((rows == columns).astype("float32"), (channels, 1)))
            self.gamma = self.add_weight(name="gamma", shape=(channels, len(rows)), initializer=identity)
        if self.center:
            self.beta = self.add_weight(name="beta", shape=(n, channels), initializer="zeros")
        self.moving_mean = self.add_weight(
            name="moving_mean", shape=(n, channels), initializer="zeros", trainable=False, autocast=False
        )
        eye = keras.initializers.Constant(np.tile(np.eye(n, dtype="float32"), (channels, 1, 1)))
        self.moving_covariance = self.add_weight(
            name="moving_covariance", shape=(channels, n, n), initializer=eye, trainable=False, autocast=False
        )

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Normalises with the statistics of the batch in training, else with the moving ones."""
        stacked, axis = split_components(inputs, self.algebra.components, self.data_format)
        if axis == 1 and len(stacked.shape) == 5:
            stacked = ops.transpose(stacked, (0, 3, 4, 1, 2))  # height and width in front
        precise = ops.cast(stacked, "float32")  # covariances of half precision would not be positive
        if training and self.trainable:
            mean, covariance = self._batch_statistics(precise)
            self._follow(self.moving_mean, mean)
            self._follow(self.moving_covariance, covariance)
        else:
            mean, covariance = ops.convert_to_tensor(self.moving_mean), ops.convert_to_tensor(self.moving_covariance)
        outputs = ops.einsum("...nc,ckn->...kc", precise - mean, self._transform(covariance))
        if self.beta is not None:
            outputs = outputs + ops.cast(self.beta, "float32")
        outputs = ops.cast(outputs, self.compute_dtype)
        if axis == 1 and len(outputs.shape) == 5:
            outputs = ops.transpose(outputs, (0, 3, 4, 1, 2))
        return join_components(outputs, axis)

    def _batch_statistics(self, stacked: Any) -> tuple[Any, Any]:
        around = tuple(range(len(stacked.shape) - 2))
        mean = ops.mean(stacked, axis=around)
        centred = stacked - mean
        flat = ops.reshape(centred, (-1, *centred.shape[-2:]))
        samples = ops.cast(ops.shape(flat)[0], "float32")
        return mean, ops.einsum("snc,smc->cnm", flat, flat) / samples

    def _follow(self, variable: Any, value: Any) -> None:
        variable.assign(variable * self.momentum + ops.stop_gradient(value) * (1 - self.momentum))

    def _transform(self, covariance: Any) -> Any:
        """The matrix of each channel that whitens and scales."""
        n = self.algebra.components
        eye = ops.eye(n, dtype="float32")
        root = ops.cholesky(covariance + self.epsilon * eye)
        whiten = ops.solve_triangular(root, ops.broadcast_to(eye, ops.shape(root)), lower=True)
        if self.gamma is None:
            return whiten
        return ops.matmul(self._symmetric(ops.cast(self.gamma, "float32")), whiten)

    def _symmetric(self, gamma: Any) -> Any:
        """The symmetric matrices whose lower corners are the rows of gamma."""
        n = self.algebra.components
        place = {corner: number for number, corner in enumerate(self._corners)}
        numbers = [place[max(row, column) * n + min(row, column)] for row in range(n) for column in range(n)]
        return ops.reshape(ops.stack([gamma[:, number] for number in numbers], axis=-1), (-1, n, n))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "algebra": self.algebra.name,
            "momentum": self.momentum,
            "epsilon": self.epsilon,
            "center": self.center,
            "scale": self.scale,
            "data_format": self.data_format,
        }
