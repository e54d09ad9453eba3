"""The tf.data service: batches are made by worker processes, on this machine or on others, and arrive in their exact order.

Batch n is made by worker n mod w. All workers are read in turn, and each batch carries its number, so that the order does not
depend on which one is faster, nor on how many there are. Needs TensorFlow; `scena data-service` starts one.
"""

import queue
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from scena.errors import DataError

WAIT_SECONDS = 60.0
"""After so long without a batch a service counts as gone: TensorFlow itself would wait for hours."""
_AHEAD = 4


def served(chunks: Any, context: Callable[[Any], Any], address: str, wait: float = WAIT_SECONDS) -> Iterator[Any]:
    """What `work` makes of an endless dataset of chunks, one element for each, in order.

    Args:
        chunks: dicts of tensors with one leading axis; every worker reads all of them, and works on its own.
        work: from a dataset of chunks to one of batches, with all that a chunk holds beside what it replaces.
        address: host:port of the dispatcher.
        wait: seconds after which a service that sends nothing is given up.
    """
    check_reachable(address)
    service = tf.data.experimental.service
    hint = tf.data.experimental.SHARD_HINT
    numbered = chunks.enumerate().map(
        lambda number, chunk: {**chunk, "number": tf.repeat(number, tf.shape(chunk["real"])[0])}
    )
    made = context(numbered.shard(hint, hint))
    made = made.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    made = made.apply(
        service.distribute(
            processing_mode=service.ShardingPolicy.HINT,
            service=f"grpc://{address}",
            job_name=f"scena-{uuid.uuid4().hex}",  # a job of its own: nothing of another run's position is shared
            consumer_index=0,
            num_consumers=1,
        )
    )
    return _in_order(_arriving(made, address, wait))


def check_reachable(address: str, timeout: float = 5.0) -> None:
    """Raises DataError if nothing listens at an address."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise DataError(
            f"The address of a data service is host:port, for example localhost:5050. Received: {address!r}."
        )
    try:
        socket.create_connection((host, int(port)), timeout).close()
    except OSError as error:
        raise DataError(
            f"There is no data service at {address} ({error.strerror or error}). Start one: scena data-service --port {port}."
        ) from None


def _arriving(dataset: Any, address: str, wait: float) -> Iterator[Any]:
    """The elements as they come, taken by a thread so that waiting for them can end."""
    arrived: queue.Queue[Any] = queue.Queue(_AHEAD)
    ended = threading.Event()

    def put(item: Any) -> None:
        while not ended.is_set():
            try:
                return arrived.put(item, timeout=0.2)
            except queue.Full:
                continue

    def read() -> None:
        try:
            for element in dataset:
                put(element)
                if ended.is_set():
                    return
        except Exception as error:
            put(error)

    threading.Thread(target=read, name="scena-data-service", daemon=True).start()
    try:
        while True:
            try:
                item = arrived.get(timeout=wait)
            except queue.Empty:
                raise DataError(
                    f"The data service at {address} has sent no batch for {wait:.0f} s. Do all of its workers run? "
                    "Start it again, and resume."
                ) from None
            if isinstance(item, Exception):
                text = str(getattr(item, "message", item)).strip() or type(item).__name__
                raise DataError(f"The data service at {address} failed: {text.splitlines()[0]}") from item
            yield item
    finally:
        ended.set()


def _in_order(elements: Iterator[Any]) -> Iterator[Any]:
    """Elements by their number; a round of all workers is all that ever waits."""
    waiting: dict[int, Any] = {}
    following = 0
    try:
        for element in elements:
            waiting[int(element.pop("number")[0])] = element
            while following in waiting:
                yield waiting.pop(following)
                following += 1
    finally:
        elements.close()  # type: ignore[attr-defined]
