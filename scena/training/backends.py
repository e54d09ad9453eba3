"""What a training asks of the backend, beside the compiled steps: flags that only TensorFlow has, and determinism."""

import os
from typing import Any

from scena.backends.selection import on_tensorflow, tensorflow_only
from scena.training.errors import TrainingError
from scena.training.params import TrainerParams

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"


def check_backend(params: TrainerParams[Any, Any]) -> None:
    """Refuses what the present backend cannot do.

    Raises:
        BackendError: names the flag.
    """
    if on_tensorflow():
        return
    flags = {
        "--trainer.input_gradient_penalty": params.input_gradient_penalty,
        "--trainer.check_numerics": params.check_numerics,
        "--trainer.profile": params.profile,
        "--tensorboard.graph": params.tensorboard.graph,
        "--tensorboard.gradients": params.tensorboard.gradients,
    }
    for flag, value in flags.items():
        if value:
            raise tensorflow_only(flag)


def compute_deterministically() -> None:
    """Only operations that give the same bits each time."""
    if on_tensorflow():
        import tensorflow as tf

        tf.config.experimental.enable_op_determinism()
        return
    import jax

    if jax.default_backend() != "cpu" and DETERMINISTIC not in os.environ.get("XLA_FLAGS", ""):
        raise TrainingError(
            f"--trainer.deterministic: JAX decides this when it starts. Set XLA_FLAGS={DETERMINISTIC} for the command."
        )
