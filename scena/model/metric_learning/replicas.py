"""How a sum over the samples of a batch becomes right when several replicas each have a part of it."""

from typing import Any

import keras


def whole_over_part() -> Any:
    """How many times larger the whole batch is than the part of this replica; 1 on a single device.

    What replicas change of a variable that is not trained is averaged by their shares; a sum, times this, stays a sum.
    """
    if keras.backend.backend() != "tensorflow":
        return 1.0
    import tensorflow as tf

    from scena.backends.tensorflow.replica import running_step

    step = running_step()
    if step is not None:
        return tf.math.divide_no_nan(1.0, step.share)
    return float(tf.distribute.get_strategy().num_replicas_in_sync)
