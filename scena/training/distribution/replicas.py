"""The replicas of a training: one more model, with an optimizer of its own, for each further device of this process."""

from typing import Any

import keras
import tensorflow as tf

from scena.backends.tensorflow.distributed_engine import DistributedEngine
from scena.model.isolation import randomness_kept
from scena.model.precision import precision_policy
from scena.model.state.layer_state import Layers, LayerState
from scena.training.distribution.control_channel import ControlChannel
from scena.training.distribution.replica_group import ReplicaGroup
from scena.training.params import TrainerParams
from scena.training.prepare import compile_model, create_training_model
from scena.training.run import TrainedScenario


def create_replica_group(
    params: TrainerParams[Any, Any],
    scenario: TrainedScenario,
    channel: ControlChannel,
    model: keras.Model,
    specs: tuple[Any, Any],
    steps: int | None,
    quantized: list[LayerState],
) -> tuple[DistributedEngine, ReplicaGroup]:
    """The engine of all replicas, and the chief's view of them.

    Args:
        params: all parameters.
        scenario: what is trained.
        channel: to the other processes.
        model: the first replica of this process, which callbacks, checkpoints and exports see.
        specs: of inputs and targets.
        steps: steps of an epoch, if that is known.
        quantized: the layers that are quantized.
    """
    models: list[Any] = [model]
    for device in channel.distribution.devices[1:]:
        with tf.device(device), randomness_kept(), precision_policy(params.precision):
            built = scenario.build()
            models.append(create_training_model(params, built))
            Layers(built.root, models[-1]).quantize(quantized)
            compile_model(params, built, models[-1], steps, distributed=True)
    engine = DistributedEngine(channel.distribution, models, *specs)
    return engine, ReplicaGroup(channel, engine)
