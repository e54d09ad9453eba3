"""Connects the processes of a distributed training: the chief sends commands to the workers, between step blocks."""

import json
from contextlib import suppress
from enum import IntEnum
from typing import Any

import msgspec
import numpy as np
import tensorflow as tf

from scena.backends.selection import WorkerLostError
from scena.backends.tensorflow.distribution import Distribution, start_distribution
from scena.backends.tensorflow.replica import all_sums
from scena.data.pipeline import DataPipeline
from scena.errors import TrainingError
from scena.model.state.layer_state import Layers, LayerState
from scena.params.tree import changed_flags
from scena.training.params import TrainerParams

FRAME = 512
"""Numbers in one frame; a longer message takes several."""
_HEAD = 3


class Command(IntEnum):
    """The next action of all processes."""

    SET_UP = 1
    OPEN = 2
    CLOSE = 3
    BROADCAST = 4
    TRAIN = 5
    VALIDATE = 6
    END = 7
    LAYERS = 8


def connect(params: TrainerParams[Any, Any]) -> "ControlChannel":
    """Connects the devices and processes of `--device.dist_strategy`.

    Raises:
        TrainingError: a flag works on one device only.
        DeviceError: the devices or processes are not available.
    """
    for flag, field in changed_flags(params, "trainer"):
        if field.one_device:
            raise TrainingError(
                f"{flag} works on one device only, and --device.dist_strategy is {params.device.dist_strategy}. "
                "Remove one of them."
            )
    channel = ControlChannel(start_distribution(params.device))
    params.device.workers, params.device.worker_index = [], None  # addresses belong to this process, not to the run
    return channel


class ControlChannel:
    """Sends commands from the chief to the workers. With one process there is nothing to send."""

    def __init__(self, distribution: Distribution) -> None:
        self.distribution = distribution
        self._exchange = tf.function(self._sum, input_signature=[tf.TensorSpec((FRAME,), tf.int64)])
        if distribution.cluster is not None:
            self._exchange.get_concrete_function()

    def set_up(self, content: dict[str, Any]) -> None:
        """In the chief: sends the settings that workers need before they build the model."""
        if self.distribution.chief:
            self.send(Command.SET_UP, content=content)

    def agree(self, layers: Layers) -> list[LayerState]:
        """Quantizes the same layers in all processes as in the chief; returns their states."""
        if self.distribution.chief:
            quantized = layers.quantized()
            self.send(Command.LAYERS, content=msgspec.to_builtins(quantized))
            return quantized
        quantized = msgspec.convert(self.receive()[2], list[LayerState])
        layers.quantize(quantized)
        return quantized

    def divide(self, *pipelines: DataPipeline | None) -> None:
        """Gives each process its shard of the batches."""
        cluster = self.distribution.cluster
        for pipeline in pipelines:
            if cluster is not None and pipeline is not None:
                pipeline.shard(cluster.index, len(cluster))

    def send(self, command: Command, number: int = 0, content: Any = None) -> None:
        """In the chief: sends a command, with a count or status and plain data."""
        if self.distribution.cluster is None:
            return
        data = np.frombuffer(b"" if content is None else json.dumps(content).encode(), np.uint8).astype(np.int64)
        words = np.concatenate([np.array([command, number, len(data)], np.int64), data])
        for start in range(0, len(words), FRAME):
            frame = np.zeros(FRAME, np.int64)
            part = words[start : start + FRAME]
            frame[: len(part)] = part
            self._exchange_frame(frame)

    def receive(self) -> tuple[Command, int, Any]:
        """In a worker: waits for the next command."""
        words = self._exchange_frame(np.zeros(FRAME, np.int64))
        command, number, size = (int(word) for word in words[:_HEAD])
        while len(words) < _HEAD + size:
            words = np.concatenate([words, self._exchange_frame(np.zeros(FRAME, np.int64))])
        data = words[_HEAD : _HEAD + size].astype(np.uint8).tobytes()
        return Command(command), number, json.loads(data) if data else None

    def close(self) -> None:
        """After the last command, in all processes: the chief waits until the workers have it, so that it does not exit before."""
        if self.distribution.cluster is not None:
            with suppress(WorkerLostError):  # a lost worker needs no command
                self._exchange_frame(np.zeros(FRAME, np.int64))

    def _exchange_frame(self, frame: Any) -> Any:
        with self.distribution.naming_lost_workers():
            return self._exchange(tf.constant(frame)).numpy()

    def _sum(self, frame: Any) -> Any:
        strategy, first = self.distribution.strategy, self.distribution.first

        def replica(frame: Any) -> Any:
            context = tf.distribute.get_replica_context()
            number = int(tf.get_static_value(tf.convert_to_tensor(context.replica_id_in_sync_group)))
            return all_sums([frame if number == first else tf.zeros_like(frame)])[0]

        return strategy.experimental_local_results(strategy.run(replica, args=(frame,)))[0]
