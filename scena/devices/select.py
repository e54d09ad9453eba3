"""Choosing devices. Must happen before TensorFlow starts them, that is before the first tensor is made."""

import logging
import os

import tensorflow as tf

from scena.devices.backend import on_tensorflow
from scena.devices.errors import DeviceError
from scena.devices.params import DeviceParams

logger = logging.getLogger(__name__)


def select_devices(params: DeviceParams) -> None:
    """Makes the chosen GPUs visible to TensorFlow, and no others; JAX has a way of its own.

    Raises:
        DeviceError: a GPU was asked for that this machine does not have.
    """
    if not on_tensorflow():
        from scena.devices.jax_devices import select_jax_devices

        select_jax_devices(params)
        return
    present = tf.config.list_physical_devices("GPU")
    wanted = params.gpus
    if wanted is None:
        wanted = list(range(len(present))) if os.environ.get("CUDA_VISIBLE_DEVICES") else []
        if present and not wanted:
            logger.info("%d GPU(s) left unused; choose with --device.gpus 0 …", len(present))
    missing = [index for index in wanted if not 0 <= index < len(present)]
    if missing:
        there = ", ".join(f"{i} ({gpu.name})" for i, gpu in enumerate(present)) or "none"
        raise DeviceError(
            f"--device.gpus {' '.join(map(str, wanted))}: there is no GPU {missing[0]}. TensorFlow sees these GPUs: {there}."
        )
    try:
        chosen = [present[index] for index in wanted]
        tf.config.set_visible_devices(chosen, "GPU")
        for gpu in chosen:
            tf.config.experimental.set_memory_growth(gpu, True)
        if params.threads:
            tf.config.threading.set_intra_op_parallelism_threads(params.threads)
    except RuntimeError as error:
        if wanted or params.threads:  # TensorFlow runs already (a notebook): without wishes nothing has to change
            raise DeviceError(
                f"The devices must be chosen before TensorFlow starts: {error} Restart the process."
            ) from error
