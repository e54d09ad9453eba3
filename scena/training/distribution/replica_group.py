"""The chief's side of a training on several devices: what the loop asks of the engine, with the other processes kept in step."""

import base64
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from scena.backends.tensorflow.distributed_engine import DistributedEngine
from scena.data.batch import Batch, Cursor
from scena.data.pipeline import DataPipeline
from scena.model.building import precision_policy
from scena.model.isolation import randomness_kept
from scena.model.state.layer_state import Layers, LayerState
from scena.training.distribution.control_channel import ControlChannel, Order
from scena.training.loop import LONGEST_BLOCK, stacked
from scena.training.params import TrainerParams
from scena.training.prepare import compile_model, create_training_model

if TYPE_CHECKING:
    from scena.scenario.scenario import ScenarioBase


class ReplicaGroup:
    """All replicas, seen from the process that decides.

    Args:
        channel: tells the other processes what to do.
        engine: runs the steps, in this process and together with the others.
    """

    def __init__(self, channel: ControlChannel, engine: DistributedEngine) -> None:
        self._channel = channel
        self._engine = engine
        self._stale = True
        self._in_step = True
        self.asked_to_stop = False
        """Whether another process was asked to end the training."""

    def changed(self) -> None:
        """Says that weights or metrics were changed here: before they are used next, all replicas get them."""
        self._stale = True

    def begin(self) -> None:
        """Gives all replicas what layers of the first keep beside their variables, and compiles their steps."""
        content = self._engine.pack_layers()
        with self._together():
            self._channel.tell(Order.LAYERS, content=base64.b64encode(zlib.compress(content)).decode())
            self._engine.begin(content)

    def open(self, cursor: Cursor, repeat: bool) -> None:
        """Makes the other processes go on with their parts of the training data from here."""
        with self._together():
            self._channel.tell(Order.OPEN, int(repeat), cursor.to_json())

    def close(self) -> None:
        """Makes them end their streams of training data."""
        with self._together():
            self._channel.tell(Order.CLOSE)

    def train(self, block: list[Batch]) -> list[dict[str, float]]:
        """One training step for each batch; returns each step's logs."""
        with self._together():
            if self._stale:
                self._channel.tell(Order.SPREAD)
                self._engine.spread()
                self._stale = False
            self._channel.tell(Order.TRAIN, len(block))
            logs, flags = train_block(self._engine, block)
        self.asked_to_stop = self.asked_to_stop or flags > 0
        return logs

    def validate(self, pipeline: DataPipeline) -> dict[str, float]:
        """Validates with the present weights of the first replica; metrics must have been reset."""
        with self._together():
            self._channel.tell(Order.VALIDATE)
            return validate(self._engine, pipeline)

    def end(self, status: int) -> None:
        """Lets the other processes leave; after an error in the middle of a common step they notice by themselves."""
        if self._in_step:
            self._channel.tell(Order.END, status)
            self._channel.part()

    @contextmanager
    def _together(self) -> Iterator[None]:
        """What all processes do at once: if it fails here, the others wait for something that does not come."""
        self._in_step = False
        yield
        self._in_step = True


def train_block(
    engine: DistributedEngine, block: list[Batch], flag: float = 0.0
) -> tuple[list[dict[str, float]], float]:
    """One training step for each batch of a block."""
    return engine.train(**_arguments(block), flag=flag)


def validate(engine: DistributedEngine, pipeline: DataPipeline) -> dict[str, float]:
    """This process's part of a validation; the results are those of all."""
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
