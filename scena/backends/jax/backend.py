"""JAX as a backend, on the CPU or one GPU."""

import glob
import logging
import os
from collections.abc import Callable
from typing import Any

import jax
import keras
import tensorflow as tf

from scena.backends.base import Arrays, Backend, Engine, PredictionEngine, Specs
from scena.backends.jax.engine import JaxEngine, JaxPredictor
from scena.backends.params import ComputeParams
from scena.backends.selection import GPU_FILES, BackendError, DeviceError, check_backend, tensorflow_only

logger = logging.getLogger(__name__)

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"


class JaxBackend(Backend):
    """Compiles single steps, always with XLA."""

    name = "jax"
    packages = ("jax", "jaxlib")
    saved_model_writer = "scena.prediction.formats.saved_model:write_jax_saved_model"

    def select_devices(self, params: ComputeParams) -> None:
        """Selects the CPU or one GPU; `JAX_PLATFORMS` has precedence."""
        check_backend(params, "device")
        asked = params.gpu_indices()
        if len(asked) > 1:
            raise tensorflow_only(f"--device.gpus {' '.join(map(str, asked))} (several devices)", "Name one GPU.")
        if tf.config.list_physical_devices("GPU"):
            tf.config.set_visible_devices([], "GPU")  # TensorFlow only writes files here, but would allocate GPU memory
        named = [index for index in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if index not in ("", "-1")]
        automatic = params.gpus == ["auto"] and (named or any(glob.glob(pattern) for pattern in GPU_FILES))
        if asked or automatic or (params.gpus is None and named):
            jax.config.update("jax_default_device", _gpu((asked or [0])[0], bool(asked)))
        elif "JAX_PLATFORMS" not in os.environ:
            jax.config.update("jax_platforms", "cpu")

    def compute_deterministically(self) -> None:
        if jax.default_backend() != "cpu" and DETERMINISTIC not in os.environ.get("XLA_FLAGS", ""):
            raise BackendError(
                f"--trainer.deterministic: JAX decides this when it starts. Set XLA_FLAGS={DETERMINISTIC} for the command."
            )

    def create_engine(
        self, model: keras.Model, input_specs: Specs, target_specs: Specs, *, eager: bool = False, xla: bool = False
    ) -> Engine:
        del xla
        return JaxEngine(model, input_specs, target_specs, eager=eager)

    def create_prediction_engine(
        self, model: keras.Model, input_specs: Specs, *, eager: bool = False
    ) -> PredictionEngine:
        return JaxPredictor(model, input_specs, eager=eager)

    def run_unchanged(self, graph: keras.Model) -> Callable[[Arrays], Arrays]:
        return JaxPredictor(graph, {}).predict


def _gpu(index: int, asked_for: bool) -> Any:
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
