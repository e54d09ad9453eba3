"""JAX as a backend."""

import os
from collections.abc import Callable

import keras

from scena.backends.base import Arrays, Backend, Engine, PredictionEngine
from scena.backends.jax.devices import select_jax_devices
from scena.backends.jax.engine import JaxEngine, JaxPredictor
from scena.backends.params import ComputeParams
from scena.backends.selection import BackendError
from scena.data.spec import ArraySpec

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"


class JaxBackend(Backend):
    """Compiles single steps, always with XLA."""

    name = "jax"
    packages = ("jax", "jaxlib")
    saved_model_writer = "scena.prediction.formats.saved_model:write_jax_saved_model"

    def select_devices(self, params: ComputeParams) -> None:
        select_jax_devices(params)

    def compute_deterministically(self) -> None:
        import jax

        if jax.default_backend() != "cpu" and DETERMINISTIC not in os.environ.get("XLA_FLAGS", ""):
            raise BackendError(
                f"--trainer.deterministic: JAX decides this when it starts. Set XLA_FLAGS={DETERMINISTIC} for the command."
            )

    def create_engine(
        self,
        model: keras.Model,
        input_specs: dict[str, ArraySpec],
        target_specs: dict[str, ArraySpec],
        *,
        eager: bool = False,
        xla: bool = False,
    ) -> Engine:
        del xla
        return JaxEngine(model, input_specs, target_specs, eager=eager)

    def create_prediction_engine(
        self, model: keras.Model, input_specs: dict[str, ArraySpec], *, eager: bool = False
    ) -> PredictionEngine:
        return JaxPredictor(model, input_specs, eager=eager)

    def run_unchanged(self, graph: keras.Model) -> Callable[[Arrays], Arrays]:
        return JaxPredictor(graph, {}).predict
