"""TensorFlow as a backend, and its devices, which must be chosen before the first tensor initializes them."""

import functools
import logging
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from scena.backends.base import Arrays, Backend, Engine, PredictionEngine, Specs
from scena.backends.params import ComputeParams
from scena.backends.quiet import silenced_unless_failing
from scena.backends.selection import DeviceError, choose_gpus
from scena.backends.tensorflow.engine import TensorFlowEngine, TensorFlowPredictor
from scena.backends.tensorflow.op_by_op import compiled_when_it_pays, fast_loops

logger = logging.getLogger(__name__)


class TensorFlowBackend(Backend):
    """Compiles blocks of steps with `tf.function`."""

    name = "tensorflow"
    any_batch_size = True
    saved_model_writer = "scena.prediction.formats.saved_model:write_tensorflow_saved_model"

    def select_devices(self, params: ComputeParams) -> None:
        select_devices(params)

    def compute_deterministically(self) -> None:
        tf.config.experimental.enable_op_determinism()

    def create_engine(
        self, model: keras.Model, input_specs: Specs, target_specs: Specs, *, eager: bool = False, xla: bool = False
    ) -> Engine:
        return TensorFlowEngine(model, input_specs, target_specs, eager=eager, xla=xla)

    def create_prediction_engine(
        self, model: keras.Model, input_specs: Specs, *, eager: bool = False
    ) -> PredictionEngine:
        return TensorFlowPredictor(model, input_specs, eager=eager)

    def run_unchanged(self, graph: keras.Model) -> Callable[[Arrays], Arrays]:
        return compiled_when_it_pays(super().run_unchanged(graph), graph)

    def fast_loops(self, traced: dict[int, Callable[..., Any]] | None = None) -> AbstractContextManager[None]:
        return fast_loops(traced)

    def variable_views(self, variables: Iterable[keras.Variable]) -> list[np.ndarray]:
        # measured for 200 variables: this raw operation 7 ms, Variable.read_value 50 ms, convert_to_numpy a whole copy;
        # while the views exist, TensorFlow copies a variable before its next change
        return [
            np.asarray(tf.raw_ops.ReadVariableOp(resource=variable.value.handle, dtype=variable.value.dtype))
            if isinstance(getattr(variable.value, "handle", None), tf.Tensor)
            else keras.ops.convert_to_numpy(variable.value)
            for variable in variables
        ]


def present_gpus() -> list[Any]:
    """The GPUs that TensorFlow sees, in the order of their indices."""
    with silenced_unless_failing():  # the first call looks for drivers, and complains about missing ones
        return list(tf.config.list_physical_devices("GPU"))


def describe_devices(environment: Mapping[str, str]) -> list[str]:
    """A line for each device that TensorFlow sees, and how to use it."""
    cores = len(os.sched_getaffinity(0))
    lines = [f"CPU    {cores} core{'s' if cores > 1 else ''}"]
    gpus = present_gpus()
    lines += [f"GPU {index}  {_details(gpu)}" for index, gpu in enumerate(gpus)]
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if not gpus:
        lines.append("TensorFlow sees no GPU" + (f" (CUDA_VISIBLE_DEVICES={visible})." if visible is not None else "."))
    else:
        lines.append("GPU 0 is used unless you choose others, --device.gpus 1, or the CPU, --device.gpus none")
    several = "--device.gpus 0 1" if len(gpus) > 1 else "--device.virtual_devices 2"
    lines.append(f"Several devices at once: --device.dist_strategy mirror {several}")
    lines.append("Several processes or machines: scena launch --workers 2 train …")
    return lines


def _details(gpu: Any) -> str:
    details = tf.config.experimental.get_device_details(gpu)
    capability = details.get("compute_capability")
    return details.get("device_name", gpu.name) + (
        f", compute capability {capability[0]}.{capability[1]}" if capability else ""
    )


def select_devices(params: ComputeParams) -> None:
    """Makes the chosen GPUs visible to TensorFlow, and no others.

    Raises:
        DeviceError: this machine does not have the requested GPU.
    """
    present = present_gpus()
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    wanted = choose_gpus(params, [gpu.name for gpu in present], named)
    if params.gpus in (None, ["auto"]):
        if wanted:
            _mention_used(" ".join(map(str, wanted)), len(present))
        elif named and not present and named != "-1":
            logger.info("CUDA_VISIBLE_DEVICES=%s, but TensorFlow sees no GPU: computing on the CPU.", named)
    missing = [index for index in wanted if not 0 <= index < len(present)]
    if missing:
        there = ", ".join(f"{i} ({gpu.name})" for i, gpu in enumerate(present)) or "none"
        raise DeviceError(
            f"--device.gpus {' '.join(map(str, wanted))}: there is no GPU {missing[0]}. TensorFlow sees these GPUs: {there}."
        )
    if params.memory_limit is not None and not wanted:
        how = "Choose one with --device.gpus 0." if present else "TensorFlow sees no GPU here."
        raise DeviceError(f"--device.memory_limit {params.memory_limit} is for GPUs, and none is used. {how}")
    try:
        _configure(params, [present[index] for index in wanted], wanted)
    except RuntimeError as error:
        # TensorFlow runs already (a notebook), which does not matter without settings
        if wanted or params.threads or params.virtual_devices > 1 or not params.soft_placement:
            raise DeviceError(
                f"The devices must be chosen before TensorFlow starts: {error} Restart the process."
            ) from error


def _configure(params: ComputeParams, gpus: list[Any], indices: list[int]) -> None:
    tf.config.set_visible_devices(gpus, "GPU")
    for gpu, index in zip(gpus, indices, strict=True):
        if params.memory_limit is None and params.virtual_devices == 1:
            tf.config.experimental.set_memory_growth(gpu, True)
            continue
        whole = memory_in_mb(params.memory_limit or "100%", index)
        share = tf.config.LogicalDeviceConfiguration(memory_limit=whole // params.virtual_devices)
        _divide(gpu, [share] * params.virtual_devices)
    if not gpus and params.virtual_devices > 1:
        parts = [tf.config.LogicalDeviceConfiguration()] * params.virtual_devices
        _divide(tf.config.list_physical_devices("CPU")[0], parts)
    if not params.soft_placement:
        tf.config.set_soft_device_placement(False)
    if params.threads:
        tf.config.threading.set_intra_op_parallelism_threads(params.threads)


def _divide(device: Any, parts: list[Any]) -> None:
    before = tf.config.get_logical_device_configuration(device)
    if before is None or len(before) != len(parts):  # equal settings are fine even if TensorFlow runs already
        tf.config.set_logical_device_configuration(device, parts)


def memory_in_mb(limit: str, gpu: int) -> int:
    """Converts a limit such as 4000MB or 40% to MB of a GPU.

    Raises:
        DeviceError: a share was given, and nvidia-smi does not report the size of the GPU.
    """
    if not limit.endswith("%"):
        return int(float(limit.removesuffix("MB").strip()))
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits", f"--id={_system_index(gpu)}"]
    try:
        total = float(subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.split()[0])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise DeviceError(
            f"The size of GPU {gpu} is unknown, because nvidia-smi failed ({error}). "
            "Give --device.memory_limit in MB, for example 4000MB."
        ) from error
    return int(total * float(limit[:-1]) / 100)


def _system_index(gpu: int) -> str:
    """nvidia-smi counts all GPUs, TensorFlow those of CUDA_VISIBLE_DEVICES."""
    named = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return named[gpu] if gpu < len(named) else str(gpu)


@functools.cache
def _mention_used(used: str, count: int) -> None:
    logger.info("Computing on GPU %s of %d; --device.gpus none uses the CPU, indices choose others.", used, count)
