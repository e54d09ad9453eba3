"""From optimizer parameters to a Keras optimizer."""

import keras

from scena.training.optimizers.params import OptimizerParams

KERAS_NAMES = {"clip_value": "clipvalue", "clip_norm": "clipnorm", "clip_global_norm": "global_clipnorm"}


def create_optimizer(
    params: OptimizerParams, learning_rate: keras.optimizers.schedules.LearningRateSchedule
) -> keras.optimizers.Optimizer:
    """The optimizer that the parameters describe, following the schedule."""
    values = {KERAS_NAMES.get(name, name): getattr(params, name) for name in type(params).__params__}
    optimizer: keras.optimizers.Optimizer = type(params).implementation()(learning_rate=learning_rate, **values)
    return optimizer
