"""Regularization by the gradient of the loss with respect to the inputs (double backpropagation)."""

from typing import Any

import keras
import tensorflow as tf

from scena.errors import ModelError
from scena.model.training_model import TrainingModel


class InputGradientPenalty:
    """Mixed in front of a `TrainingModel`: adds weight · mean over the samples of |∂ loss / ∂ inputs|² to the loss."""

    penalty_weight = 0.0
    penalty_mean: keras.metrics.Mean

    def train_step(self, data: Any) -> dict[str, Any]:
        """One training step with the penalty."""
        model: Any = self
        x = data[0]
        watched = [tensor for tensor in x["inputs"].values() if tensor.dtype.is_floating]
        with tf.GradientTape() as tape:
            with tf.GradientTape(watch_accessed_variables=False) as inner:
                inner.watch(watched)
                outputs = model(x, training=True)
                loss = model.compute_loss(x=x, y_pred=outputs, training=True)
            gradients = [gradient for gradient in inner.gradient(loss, watched) if gradient is not None]
            # the loss is a mean over the batch, so the gradient of a sample is the batch size times this
            size = tf.cast(tf.shape(watched[0])[0], tf.float32)
            penalty = size * tf.add_n([tf.reduce_sum(tf.square(tf.cast(g, tf.float32))) for g in gradients])
            scaled = model.optimizer.scale_loss(loss + model.penalty_weight * penalty)
        model.penalty_mean.update_state(penalty, sample_weight=size)
        weights = model.trainable_weights
        model.optimizer.apply_gradients(zip(tape.gradient(scaled, weights), weights, strict=True))
        return {**model.results(), "input_gradient": model.penalty_mean.result()}


def with_input_gradient_penalty(cls: type[TrainingModel], weight: float, inputs: dict[str, Any]) -> Any:
    """The class with the penalty; creates a model when it is called as the class would be.

    Raises:
        ModelError: the class overrides `train_step`, or no input has a gradient.
    """
    if cls.train_step is not TrainingModel.train_step:
        raise ModelError(
            f"--trainer.input_gradient_penalty cannot be added to {cls.__name__}, which overrides train_step. "
            "Add the penalty there."
        )
    if not any("float" in tensor.dtype for tensor in inputs.values()):
        kinds = ", ".join(f"{name}: {tensor.dtype}" for name, tensor in inputs.items())
        raise ModelError(
            f"--trainer.input_gradient_penalty needs an input of floating-point numbers. There are {kinds}."
        )

    def create(*args: Any, **kwargs: Any) -> TrainingModel:
        model = type(cls.__name__, (InputGradientPenalty, cls), {"penalty_weight": weight})(*args, **kwargs)
        model.penalty_mean = keras.metrics.Mean(name="input_gradient")
        return model

    return create
