"""TensorFlow as a backend."""

from contextlib import AbstractContextManager

import keras
import tensorflow as tf

from scena.backends.base import Backend, Engine, PredictionEngine
from scena.backends.params import ComputeParams
from scena.backends.tensorflow.devices import select_devices
from scena.backends.tensorflow.engine import TensorFlowEngine, TensorFlowPredictor
from scena.backends.tensorflow.op_by_op import fast_loops
from scena.data.spec import ArraySpec


class TensorFlowBackend(Backend):
    """Compiles blocks of steps with `tf.function`."""

    name = "tensorflow"
    checks_labels = True
    any_batch_size = True
    saved_model_writer = "scena.prediction.formats.saved_model:write_tensorflow_saved_model"

    def select_devices(self, params: ComputeParams) -> None:
        select_devices(params)

    def compute_deterministically(self) -> None:
        tf.config.experimental.enable_op_determinism()

    def create_engine(
        self,
        model: keras.Model,
        input_specs: dict[str, ArraySpec],
        target_specs: dict[str, ArraySpec],
        *,
        eager: bool = False,
        xla: bool = False,
    ) -> Engine:
        return TensorFlowEngine(model, input_specs, target_specs, eager=eager, xla=xla)

    def create_prediction_engine(
        self, model: keras.Model, input_specs: dict[str, ArraySpec], *, eager: bool = False
    ) -> PredictionEngine:
        return TensorFlowPredictor(model, input_specs, eager=eager)

    def fast_loops(self) -> AbstractContextManager[None]:
        return fast_loops()
