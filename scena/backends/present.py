"""Whether this machine can have a GPU at all, known without TensorFlow."""

import glob
import os
import sys

from scena.backends.errors import DeviceError
from scena.backends.params import ComputeParams

FILES = ("/dev/nvidia[0-9]*", "/dev/kfd", "/dev/dxg")
"""Device files of GPUs: NVIDIA's, AMD's, and those of Windows seen from WSL."""


def check_present(params: ComputeParams) -> None:
    """Refuses `--device.gpus` on a machine that has none; which of several there are, TensorFlow says later.

    Raises:
        DeviceError: there is no GPU.
    """
    if not params.gpus or sys.platform != "linux" or os.environ.get("KERAS_BACKEND") == "jax":
        return
    if not any(glob.glob(pattern) for pattern in FILES):
        wanted = " ".join(map(str, params.gpus))
        raise DeviceError(f"--device.gpus {wanted}: there is no GPU {params.gpus[0]}. This machine has none.")
