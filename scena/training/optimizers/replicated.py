"""Optimizers of a model that is trained on several devices: gradients are summed first, then each device updates its own weights.

Keras sums gradients of TensorFlow's strategies late, after clipping and inside of conditions where TensorFlow does not allow it. Here
the sum comes first, so that everything an optimizer does is done with the gradients of the whole batch, as on one device.
"""

from typing import Any

import keras
from keras.src.optimizers.base_optimizer import BaseOptimizer  # Keras has no public name for it

from scena.model.metric_learning.replicas import running_step


class SummedGradients:
    """Mixed in front of the outermost optimizer: hands it the gradients of the whole batch."""

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Updates the weights."""
        step = running_step()
        if step is not None:
            grads = step.reduce(list(grads))
        super().apply(grads, trainable_variables)  # type: ignore[misc]


class LocalUpdates:
    """Mixed in front of the optimizer that changes the weights: as on one device, whatever strategy is active.

    Keras' optimizers for TensorFlow hand these over to the active strategy; those of their base are what other backends use.
    """

    _apply_weight_decay = BaseOptimizer._apply_weight_decay
    _backend_update_step = BaseOptimizer._backend_update_step
    _backend_increment_gradient_accumulators = BaseOptimizer._backend_increment_gradient_accumulators


class ScaledLoss(SummedGradients, keras.optimizers.LossScaleOptimizer):
    """Loss scaling that looks at the gradients of the whole batch, so that all devices take or skip a step together."""

    def _tf_apply(self, grads: Any, trainable_variables: Any = None) -> None:
        self._common_apply(grads, trainable_variables=trainable_variables)


def replicated(base: type[Any], *, outermost: bool) -> type[Any]:
    """The optimizer class for a replica.

    Args:
        base: the class for one device.
        outermost: whether it gets the gradients itself, and not from an optimizer around it.
    """
    return type(base.__name__, (SummedGradients, LocalUpdates, base) if outermost else (LocalUpdates, base), {})
