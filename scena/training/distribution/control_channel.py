"""What the chief of a training says to the other processes: short messages between the blocks of steps."""

import json
from contextlib import suppress
from enum import IntEnum
from typing import Any

import msgspec
import numpy as np
import tensorflow as tf

from scena.backends.selection import WorkerLostError
from scena.backends.tensorflow.distribution import Distribution
from scena.backends.tensorflow.replica import all_sums
from scena.data.pipeline import DataPipeline
from scena.model.state.layer_state import Layers, LayerState

FRAME = 512
"""Numbers in one message; a longer one takes several."""
_HEAD = 3


class Order(IntEnum):
    """What the chief wants all processes to do."""

    SET_UP = 1
    OPEN = 2
    CLOSE = 3
    SPREAD = 4
    TRAIN = 5
    VALIDATE = 6
    END = 7
    LAYERS = 8


class ControlChannel:
    """Carries orders from the chief to all processes. With one process there is nobody to tell.

    Args:
        distribution: the processes.
    """

    def __init__(self, distribution: Distribution) -> None:
        self.distribution = distribution
        self._exchange = tf.function(self._sum, input_signature=[tf.TensorSpec((FRAME,), tf.int64)])
        if distribution.cluster is not None:
            self._exchange.get_concrete_function()

    def set_up(self, content: dict[str, Any]) -> None:
        """In the chief: says what all processes have to know before they build the model."""
        if self.distribution.chief:
            self.tell(Order.SET_UP, content=content)

    def agree(self, layers: Layers) -> list[LayerState]:
        """Makes all processes quantize the layers that the chief has quantized; returns their states."""
        if self.distribution.chief:
            quantized = layers.quantized()
            self.tell(Order.LAYERS, content=msgspec.to_builtins(quantized))
            return quantized
        quantized = msgspec.convert(self.hear()[2], list[LayerState])
        layers.quantize(quantized)
        return quantized

    def divide(self, *pipelines: DataPipeline | None) -> None:
        """Lets each process make its own part of the batches."""
        cluster = self.distribution.cluster
        for pipeline in pipelines:
            if cluster is not None and pipeline is not None:
                pipeline.shard(cluster.index, len(cluster))

    def tell(self, order: Order, number: int = 0, content: Any = None) -> None:
        """In the chief: gives an order.

        Args:
            order: what to do.
            number: how often, or with what status.
            content: plain data that goes with it.
        """
        if self.distribution.cluster is None:
            return
        data = np.frombuffer(b"" if content is None else json.dumps(content).encode(), np.uint8).astype(np.int64)
        words = np.concatenate([np.array([order, number, len(data)], np.int64), data])
        for start in range(0, len(words), FRAME):
            frame = np.zeros(FRAME, np.int64)
            part = words[start : start + FRAME]
            frame[: len(part)] = part
            self._send(frame)

    def hear(self) -> tuple[Order, int, Any]:
        """In the other processes: waits for the next order."""
        words = self._send(np.zeros(FRAME, np.int64))
        order, number, size = (int(word) for word in words[:_HEAD])
        while len(words) < _HEAD + size:
            words = np.concatenate([words, self._send(np.zeros(FRAME, np.int64))])
        data = words[_HEAD : _HEAD + size].astype(np.uint8).tobytes()
        return Order(order), number, json.loads(data) if data else None

    def part(self) -> None:
        """After the last order, in all processes: the chief waits until the others have it; else it could be gone before they do."""
        if self.distribution.cluster is not None:
            with suppress(WorkerLostError):  # whoever is gone has the order, or never gets it
                self._send(np.zeros(FRAME, np.int64))

    def _send(self, frame: Any) -> Any:
        with self.distribution.naming_lost_workers():
            return self._exchange(tf.constant(frame)).numpy()

    def _sum(self, frame: Any) -> Any:
        strategy, first = self.distribution.strategy, self.distribution.first

        def replica(frame: Any) -> Any:
            context = tf.distribute.get_replica_context()
            number = int(tf.get_static_value(tf.convert_to_tensor(context.replica_id_in_sync_group)))
            return all_sums([frame if number == first else tf.zeros_like(frame)])[0]

        return strategy.experimental_local_results(strategy.run(replica, args=(frame,)))[0]
