"""Starts TensorFlow's distribution: several devices of this machine, or several processes.

A replica is an ordinary model on its own device. TensorFlow's strategies are used for communication between replicas, not for
variables: those stay ordinary ones, so that checkpoints, exports and callbacks need no changes.
"""

import faulthandler
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from scena.backends.cluster import Cluster, find_cluster, meet
from scena.backends.params import TrainerDeviceParams
from scena.backends.selection import DeviceError, WorkerLostError
from scena.errors import first_line

logger = logging.getLogger(__name__)

LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError, tf.errors.DeadlineExceededError)
"""Errors that TensorFlow raises when another process does not respond."""


@dataclass(frozen=True)
class Distribution:
    """The replicas of a training.

    Attributes:
        strategy: TensorFlow's.
        devices: the devices of the replicas in this process.
        first: the index of the first of them among all.
        count: the number of replicas in all processes.
        cluster: the processes, if there are several.
    """

    strategy: Any
    devices: tuple[str, ...]
    first: int
    count: int
    cluster: Cluster | None = None

    @property
    def chief(self) -> bool:
        """Whether this process is the chief, which decides and writes."""
        return self.cluster is None or self.cluster.chief

    @contextmanager
    def naming_lost_workers(self) -> Iterator[None]:
        """Converts TensorFlow's error about a lost process into one that names it."""
        try:
            yield
        except tf.errors.OpError as error:
            if self.cluster is None or not (isinstance(error, LOST) or "ollective" in str(error.message)):
                raise
            raise WorkerLostError(_lost(self.cluster, str(error.message))) from error


def start_distribution(params: TrainerDeviceParams) -> Distribution:
    """Starts the strategy of `--device.dist_strategy`.

    Raises:
        DeviceError: it is not available; the message lists the alternatives.
    """
    if params.dist_strategy == "central_storage":
        raise DeviceError(
            "--device.dist_strategy central_storage is not offered: under Keras 3, TensorFlow's strategy logs a wrong loss, because "
            "each replica counts into the same metric. Use mirror: it gives the same weights, and is faster."
        )
    log = tf.get_logger()
    level = log.level
    log.setLevel(logging.ERROR)  # it logs its choices at length
    try:
        return _mirror() if params.dist_strategy == "mirror" else _multi_worker(params)
    finally:
        log.setLevel(level)


def _mirror() -> Distribution:
    gpus = tf.config.list_logical_devices("GPU")
    devices = tuple(device.name for device in gpus or tf.config.list_logical_devices("CPU"))
    if len(devices) < 2:
        raise DeviceError(
            f"--device.dist_strategy mirror needs several devices. There is one: {devices[0]}. Choose more with "
            "--device.gpus 0 1 …, or divide this one with --device.virtual_devices 2. `scena devices` lists all devices."
        )
    return Distribution(tf.distribute.MirroredStrategy(devices), devices, 0, len(devices))


def _multi_worker(params: TrainerDeviceParams) -> Distribution:
    cluster = find_cluster(params)
    if len(cluster) == 1:
        raise DeviceError(
            f"--device.dist_strategy multi_worker needs several processes. There is one: {cluster.addresses[0]}."
        )
    logger.info("Waiting for %d workers; this is worker %d.", len(cluster), cluster.index)
    meet(cluster, params.worker_timeout)
    # all were there a moment ago: if TensorFlow does not find them, this ends the process instead of waiting forever
    faulthandler.dump_traceback_later(2 * params.worker_timeout + 30, exit=True, file=2)
    try:
        strategy = _create(cluster, params.worker_timeout)
    except (tf.errors.OpError, RuntimeError) as error:
        raise WorkerLostError(
            f"The training cannot start with {', '.join(cluster.addresses)}: {first_line(error)}"
        ) from error
    finally:
        faulthandler.cancel_dump_traceback_later()
    devices = strategy.extended.worker_devices
    return Distribution(strategy, tuple(devices), cluster.index * len(devices), strategy.num_replicas_in_sync, cluster)


def _create(cluster: Cluster, timeout: float) -> Any:
    """The strategy, with a coordination service whose heartbeats detect lost processes."""
    # the strategy configures this service itself, but with a fixed timeout
    from tensorflow.compiler.xla.tsl.protobuf import coordination_config_pb2
    from tensorflow.python.eager import context

    tf.get_logger().setLevel(logging.ERROR)
    milliseconds = int(timeout * 1000)
    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader="/job:worker/replica:0/task:0",
        cluster_register_timeout_in_ms=milliseconds,
        heartbeat_timeout_in_ms=milliseconds,
        shutdown_barrier_timeout_in_ms=min(milliseconds, 10_000),
        coordinated_jobs=[coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=len(cluster))],
    )
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": list(cluster.addresses)}),
        task_type="worker",
        task_id=cluster.index,
        num_accelerators={"GPU": len(_visible_gpus())},
        rpc_layer="grpc",
    )
    return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)


def _visible_gpus() -> list[Any]:
    """The GPUs as TensorFlow will see them; listing logical devices would start it."""
    gpus = tf.config.get_visible_devices("GPU")
    return [part for gpu in gpus for part in tf.config.get_logical_device_configuration(gpu) or [gpu]]


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=2):
            return True
    except OSError:
        return False


def _lost(cluster: Cluster, message: str) -> str:
    gone = [i for i in range(len(cluster)) if i != cluster.index and f"task:{i}" in message]
    gone = gone or [
        i for i in range(len(cluster)) if i != cluster.index and not _answers(cluster.addresses[i])
    ]  # fmt: skip
    names = ", ".join(cluster.name(i) for i in gone) or "Another worker"
    return (
        f"{names[0].upper()}{names[1:]} is lost: it ended, or no longer responds. See its output. "
        "The training cannot continue without it."
    )
