"""The device that JAX computes on: the CPU, or one GPU."""

import glob
import logging
import os
from typing import Any

import tensorflow as tf

from scena.backends.selection import GPU_FILES, DeviceError, check_backend, tensorflow_only

logger = logging.getLogger(__name__)


def select_jax_devices(params: Any) -> None:
    """Selects the CPU or a GPU for JAX. `JAX_PLATFORMS` has precedence.

    Args:
        params: the parameters of the devices.

    Raises:
        DeviceError: there is no such GPU, or a setting works with TensorFlow only.
    """
    import jax

    check_backend(params, "device")
    asked = params.gpu_indices()
    if len(asked) > 1:
        raise tensorflow_only(f"--device.gpus {' '.join(map(str, asked))} (several devices)", "Name one GPU.")
    if tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices([], "GPU")  # TensorFlow only writes files here, but would allocate GPU memory
    named = [index for index in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if index not in ("", "-1")]
    automatic = params.gpus == ["auto"] and (named or any(glob.glob(pattern) for pattern in GPU_FILES))
    if asked or automatic or (params.gpus is None and named):
        jax.config.update("jax_default_device", _gpu(jax, (asked or [0])[0], bool(asked)))
    elif "JAX_PLATFORMS" not in os.environ:
        jax.config.update("jax_platforms", "cpu")


def _gpu(jax: Any, index: int, asked_for: bool) -> Any:
    try:
        present = jax.devices("gpu")
    except RuntimeError:
        present = []
    if 0 <= index < len(present):
        return present[index]
    if not asked_for:
        logger.info("JAX sees no GPU and computes on the CPU; GPUs need its CUDA package (pip install 'jax[cuda13]').")
        return None
    there = ", ".join(f"{i} ({gpu.device_kind})" for i, gpu in enumerate(present)) or "none"
    raise DeviceError(f"--device.gpus {index}: there is no GPU {index}. JAX sees these GPUs: {there}.")
