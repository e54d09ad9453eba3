"""Selects the backend, TensorFlow or that of `KERAS_BACKEND`, and the GPUs; errors of features that a backend does not support.

Files are read and written by TensorFlow's tools in both cases (TensorBoard, records), so it is always installed.
"""

import glob
import os
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from scena.errors import ScenaError
from scena.plugins import names

if TYPE_CHECKING:
    from scena.backends.params import ComputeParams
    from scena.params import Params


class DeviceError(ScenaError, RuntimeError):
    """A requested device cannot be used; the message lists those that can."""


class WorkerLostError(DeviceError):
    """Another process of the training is lost, or never connected."""


class BackendError(DeviceError):
    """The backend is not installed, or does not support a feature; the message names one that does."""


def load_keras() -> str:
    """Imports Keras and returns the name of its backend.

    Raises:
        BackendError: Scena does not run on this backend, or it is not installed.
    """
    wanted = os.environ.get("KERAS_BACKEND", "")
    if wanted not in ("", "tensorflow", "jax") and wanted not in names("Backend"):
        raise _unknown(wanted)
    try:
        import keras
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("jax", "jaxlib"):
            raise
        raise BackendError(
            f"KERAS_BACKEND=jax: {error.name} is not installed. Install it with: pip install 'scena[jax]'"
        ) from error
    name: str = keras.config.backend()
    if name != wanted and name not in names("Backend"):  # from Keras' own configuration file
        raise _unknown(name)
    return name


def check_backend(params: "Params", prefix: str) -> None:
    """Refuses flags, those of `params` with this prefix, that the current backend does not support.

    Raises:
        BackendError: names the flag.
    """
    from scena.params.tree import changed_flags  # late: `scena --help` imports this module, and needs no parameters

    name = load_keras()
    for flag, field in changed_flags(params, prefix):
        if field.backends and name not in field.backends:
            raise only_with(field.backends, flag)


def tensorflow_only(what: str, instead: str = "") -> BackendError:
    """The error of something that only TensorFlow can do.

    Args:
        what: the flag or method, as a user wrote it.
        instead: an alternative for the current backend, a whole sentence.
    """
    return only_with(("tensorflow",), what, instead)


def only_with(backends: Sequence[str], what: str, instead: str = "") -> BackendError:
    """The error of something that only some backends can do."""
    able = " or ".join({"tensorflow": "TensorFlow", "jax": "JAX"}.get(name, name) for name in backends)
    how = f"{instead} Or run it" if instead else "Run it"
    return BackendError(
        f"{what} works with {able} only, and the backend is {load_keras()}. {how} with KERAS_BACKEND={backends[0]}."
    )


def _unknown(name: str) -> BackendError:
    return BackendError(f"KERAS_BACKEND={name}: Scena runs on {' and '.join(names('Backend'))}. Choose one of them.")


GPU_FILES = ("/dev/nvidia[0-9]*", "/dev/kfd", "/dev/dxg")
"""Device files of GPUs: of NVIDIA, of AMD, and of Windows in WSL."""


def check_present(params: "ComputeParams") -> None:
    """Refuses `--device.gpus` on a machine without any; TensorFlow checks the indices later.

    Raises:
        DeviceError: there is no GPU.
    """
    wanted = params.gpu_indices()
    if not wanted or sys.platform != "linux" or os.environ.get("KERAS_BACKEND") not in (None, "", "tensorflow"):
        return
    if not any(glob.glob(pattern) for pattern in GPU_FILES):
        raise DeviceError(
            f"--device.gpus {' '.join(map(str, wanted))}: there is no GPU {wanted[0]}. This machine has none."
        )


def choose_gpus(params: "ComputeParams", present: Sequence[str], named: str) -> list[int]:
    """The indices of the GPUs to use.

    Args:
        params: the parameters. None, in runs stored by earlier versions, means the GPUs of CUDA_VISIBLE_DEVICES, else none.
        present: the names of the GPUs that the backend sees.
        named: the value of CUDA_VISIBLE_DEVICES.
    """
    if params.gpus is None:
        return list(range(len(present))) if named else []
    if params.gpus == ["auto"]:
        shared = getattr(params, "dist_strategy", "default") != "default"
        return list(range(len(present) if shared else min(len(present), 1)))
    return params.gpu_indices()


def gpu_names(indices: Sequence[int], flag: str) -> list[str]:
    """The names of these GPUs in CUDA_VISIBLE_DEVICES; without that variable, their indices.

    Raises:
        DeviceError: an index is too large.
    """
    present, named = visible_gpus(), "CUDA_VISIBLE_DEVICES" in os.environ
    counted = named or not present or bool(glob.glob(GPU_FILES[0]))  # other systems have one file for all GPUs
    missing = [index for index in indices if index >= len(present)]
    if missing and counted and (named or sys.platform == "linux"):
        where = f"CUDA_VISIBLE_DEVICES={os.environ['CUDA_VISIBLE_DEVICES']}" if named else "This machine"
        there = f"{where} has {', '.join(map(str, range(len(present)))) if present else 'none'}."
        raise DeviceError(f"{flag} {' '.join(map(str, indices))}: there is no GPU {missing[0]}. {there}")
    return [present[index] if named else str(index) for index in indices]


def visible_gpus() -> list[str]:
    """The GPUs of this machine as CUDA_VISIBLE_DEVICES names them, found without loading a backend."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        # CUDA ignores what follows an invalid entry
        return list(takewhile(lambda name: name not in ("", "-1"), (name.strip() for name in named.split(","))))
    return [str(index) for index, _ in enumerate(file for pattern in GPU_FILES for file in glob.glob(pattern))]
