"""The initialiser of component kernels: a random magnitude, and a phase that is uniform on the sphere of the algebra."""

import math
from typing import Any, Literal

import keras

from scena.model.errors import ModelError

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
        """The arguments."""
        return {"criterion": self.criterion, "depthwise": self.depthwise, "seed": self.seed}
