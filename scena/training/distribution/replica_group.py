"""The replica group: the chief's side of a training on several devices, which keeps the workers in step."""

import base64
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from scena.backends.tensorflow.distributed_engine import DistributedEngine
from scena.data.pipeline import DataPipeline
from scena.data.sample import Batch, Cursor
from scena.model.building import precision_policy
from scena.model.isolation import randomness_kept
from scena.model.state.layer_state import Layers, LayerState
from scena.training.distribution.control_channel import Command, ControlChannel
from scena.training.loop import LONGEST_BLOCK, stacked
from scena.training.params import TrainerParams
from scena.training.prepare import compile_model, create_training_model

if TYPE_CHECKING:
    from scena.scenario.scenario import ScenarioBase


class ReplicaGroup:
    """All replicas, as the chief sees them.

    Args:
        channel: to the workers.
        engine: runs the steps together with the workers.
    """

    def __init__(self, channel: ControlChannel, engine: DistributedEngine) -> None:
        self._channel = channel
        self._engine = engine
        self._stale = True
        self._in_step = True
        self.asked_to_stop = False
        """Whether a worker received a signal to stop."""

    def changed(self) -> None:
        """Marks weights or metrics as changed here, so that the next step broadcasts them first."""
        self._stale = True

    def begin(self) -> None:
        """Copies the layer state of the first replica to all others and compiles their steps."""
        content = self._engine.pack_layers()
        with self._together():
            self._channel.send(Command.LAYERS, content=base64.b64encode(zlib.compress(content)).decode())
            self._engine.begin(content)

    def open(self, cursor: Cursor, repeat: bool) -> None:
        """Makes the workers open their shards of the training data at the cursor."""
        with self._together():
            self._channel.send(Command.OPEN, int(repeat), cursor.to_json())

    def close(self) -> None:
        """Makes the workers close their streams of training data."""
        with self._together():
            self._channel.send(Command.CLOSE)

    def train(self, block: list[Batch]) -> list[dict[str, float]]:
        """One training step for each batch; returns each step's logs."""
        with self._together():
            if self._stale:
                self._channel.send(Command.BROADCAST)
                self._engine.spread()
                self._stale = False
            self._channel.send(Command.TRAIN, len(block))
            logs, flags = train_block(self._engine, block)
        self.asked_to_stop = self.asked_to_stop or flags > 0
        return logs

    def validate(self, pipeline: DataPipeline) -> dict[str, float]:
        """Validates with the current weights of the first replica; metrics must have been reset."""
        with self._together():
            self._channel.send(Command.VALIDATE)
            return validate(self._engine, pipeline)

    def end(self, status: int) -> None:
        """Lets the workers exit; after an error in the middle of a collective operation they notice it themselves."""
        if self._in_step:
            self._channel.send(Command.END, status)
            self._channel.close()

    @contextmanager
    def _together(self) -> Iterator[None]:
        """A collective operation: if it fails here, the workers wait in vain, so no further command is sent."""
        self._in_step = False
        yield
        self._in_step = True


def train_block(
    engine: DistributedEngine, block: list[Batch], flag: float = 0.0
) -> tuple[list[dict[str, float]], float]:
    """One training step for each batch of a block."""
    return engine.train(**_arguments(block), flag=flag)


def validate(engine: DistributedEngine, pipeline: DataPipeline) -> dict[str, float]:
    """Validates this process's shard; the results are those of all replicas."""
    engine.spread()
    with pipeline.stream(repeat=False) as stream:
        while block := stream.take_block(LONGEST_BLOCK):
            engine.test(**_arguments(block))
    return engine.collect()


def _arguments(block: list[Batch]) -> dict[str, Any]:
    return {
        "inputs": stacked(block, "inputs"),
        "targets": stacked(block, "targets"),
        "counted": [batch.counted for batch in block],
        "total": [batch.total for batch in block],
    }


def create_replica_group(
    params: TrainerParams[Any, Any],
    scenario: "ScenarioBase[Any, Any]",
    channel: ControlChannel,
    model: keras.Model,
    specs: tuple[Any, Any],
    steps: int | None,
    quantized: list[LayerState],
) -> tuple[DistributedEngine, ReplicaGroup]:
    """Creates a model for each further device of this process, and the engine of all replicas.

    Args:
        params: all parameters.
        scenario: what is trained.
        channel: to the workers.
        model: the first replica of this process, which callbacks, checkpoints and exports use.
        specs: of inputs and targets.
        steps: steps of an epoch, if known.
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
