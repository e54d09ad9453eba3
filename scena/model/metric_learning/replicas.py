"""How many workers or devices compute one step together."""

import keras


def count_replicas() -> int:
    """The replicas of TensorFlow's current strategy; 1 without one and on other backends."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return int(tf.distribute.get_strategy().num_replicas_in_sync)
