"""The processes of a training: found in the flags, TF_CONFIG or SLURM, and awaited before it starts.

TensorFlow itself would wait for them forever and could not be interrupted.
"""

import contextlib
import json
import os
import selectors
import socket
import time
from dataclasses import dataclass

from scena.backends.params import TrainerDeviceParams
from scena.backends.selection import DeviceError, WorkerLostError

SLURM_PORT = 8888
"""The port of the first task on each node of a SLURM job, unless SCENA_PORT is set."""

MOST_TASKS = 10_000
"""More than a node ever has."""

_HELLO = b"scena %d\n"
_GO = b"go\n"
_PAUSE = 0.1


@dataclass(frozen=True)
class Cluster:
    """The processes of a training.

    Attributes:
        addresses: HOST:PORT of each.
        index: the index of this process.
    """

    addresses: tuple[str, ...]
    index: int

    @property
    def chief(self) -> bool:
        """Whether this process is the chief, which decides and writes."""
        return self.index == 0

    def name(self, index: int) -> str:
        """The name of a worker in messages."""
        return f"{'the chief' if index == 0 else f'worker {index}'} ({self.addresses[index]})"

    def __len__(self) -> int:
        return len(self.addresses)


def find_cluster(params: TrainerDeviceParams) -> Cluster:
    """The cluster of `--device.dist_strategy multi_worker`.

    Raises:
        DeviceError: the processes are not set, or cannot be read.
    """
    if params.workers:
        return Cluster(tuple(params.workers), params.worker_index or 0)
    if os.environ.get("TF_CONFIG"):
        return _from_tf_config(os.environ["TF_CONFIG"])
    if "SLURM_PROCID" in os.environ:
        return _from_slurm()
    raise DeviceError(
        "--device.dist_strategy multi_worker needs the addresses of all processes. Start them with "
        "`scena launch --workers 2 train …`, in a SLURM job with srun, with TF_CONFIG, or give each process "
        "--device.workers HOST:PORT HOST:PORT … and its --device.worker_index."
    )


def _from_tf_config(text: str) -> Cluster:
    try:
        config = json.loads(text)
        jobs, task = config["cluster"], config["task"]
        others = sorted(set(jobs) - {"chief", "worker"})
        kind, index = task["type"], int(task["index"])
        chiefs, workers = list(jobs.get("chief", [])), list(jobs.get("worker", []))
        addresses = tuple(str(address) for address in [*chiefs, *workers])
        position = index + (len(chiefs) if kind == "worker" else 0)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DeviceError(
            f"TF_CONFIG cannot be read ({type(error).__name__}: {error}). It should look like "
            '{"cluster": {"worker": ["node1:2222", "node2:2222"]}, "task": {"type": "worker", "index": 0}}. '
            f"Received: {text[:200]}"
        ) from None
    if others or kind not in ("chief", "worker"):
        named = ", ".join(others) or kind
        raise DeviceError(f"TF_CONFIG has a job that Scena does not use: {named}. Use worker only.")
    if not 0 <= position < len(addresses):
        raise DeviceError(
            f"TF_CONFIG names this process {kind} {index}, but has {len(addresses)} addresses: {', '.join(addresses)}."
        )
    return Cluster(addresses, position)


def _from_slurm() -> Cluster:
    import tensorflow as tf

    try:
        port = int(os.environ.get("SCENA_PORT", SLURM_PORT))
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=port,
            auto_set_gpu=False,
            # not used, but the resolver would call nvidia-smi and require one for each task
            gpus_per_node=MOST_TASKS,
            gpus_per_task=1,
        )
        addresses = tuple(resolver.cluster_spec().as_dict()["worker"])
        _, index = resolver.get_task_info()
    except (KeyError, ValueError, RuntimeError, OSError) as error:
        raise DeviceError(
            f"The SLURM variables of this job cannot be read ({type(error).__name__}: {error}). Start it with srun, or give "
            "--device.workers and --device.worker_index."
        ) from error
    return Cluster(addresses, int(index))


def meet(cluster: Cluster, timeout: float) -> None:
    """Returns when all processes have connected; each calls it once, before TensorFlow uses the addresses.

    Raises:
        WorkerLostError: names those that did not connect in time.
        DeviceError: the address of this process cannot be used.
    """
    if cluster.chief:
        _gather(cluster, time.monotonic() + timeout, timeout)
    else:
        with _listening(cluster):
            pass  # only checks that the address can be used
        _report(cluster, time.monotonic() + timeout, timeout)


def _gather(cluster: Cluster, end: float, timeout: float) -> None:
    """The chief: waits for each worker, then lets all start."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(_listening(cluster))
        listener.listen(len(cluster))
        selector = stack.enter_context(selectors.DefaultSelector())
        selector.register(listener, selectors.EVENT_READ)
        came: dict[int, socket.socket] = {}
        while len(came) < len(cluster) - 1:
            if time.monotonic() > end:
                raise _absent(cluster, [i for i in range(1, len(cluster)) if i not in came], timeout)
            for key, _ in selector.select(_PAUSE):
                if key.fileobj is listener:
                    connection = stack.enter_context(listener.accept()[0])
                    selector.register(connection, selectors.EVENT_READ)
                    continue
                connection = key.fileobj  # type: ignore[assignment]
                selector.unregister(connection)
                index = _index(connection)
                if index in range(1, len(cluster)):
                    came[index] = connection
        for connection in came.values():
            with contextlib.suppress(OSError):
                connection.sendall(_GO)


def _report(cluster: Cluster, end: float, timeout: float) -> None:
    """A worker: connects to the chief, retrying, and waits for the start."""
    host, _, port = cluster.addresses[0].rpartition(":")
    while time.monotonic() < end:
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=2) as connection:
                connection.sendall(_HELLO % cluster.index)
                connection.settimeout(max(end - time.monotonic(), _PAUSE) + _PAUSE)
                if receive_line(connection, len(_GO)) == _GO:
                    return
                raise WorkerLostError(f"The training cannot start: {cluster.name(0)} has given up; see its output.")
        except OSError:
            time.sleep(_PAUSE)
    raise _absent(cluster, [0], timeout)


def receive_line(connection: socket.socket, most: int) -> bytes:
    """A line of at most this many bytes, which may arrive in pieces; less if the other side ends. What follows it is not read."""
    line = b""
    while len(line) < most and not line.endswith(b"\n") and (byte := connection.recv(1)):
        line += byte
    return line


def _index(connection: socket.socket) -> int:
    """The index that a worker sends; -1 for any other client."""
    connection.settimeout(2)
    try:
        word, _, number = receive_line(connection, 32).decode(errors="replace").strip().partition(" ")
    except OSError:
        return -1
    return int(number) if word == "scena" and number.isdecimal() else -1


def _listening(cluster: Cluster) -> socket.socket:
    host, _, port = cluster.addresses[cluster.index].rpartition(":")
    own = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        own.bind(("", int(port)))
    except OSError as error:
        own.close()
        raise DeviceError(
            f"Port {port} of {cluster.name(cluster.index)}, which is this process, cannot be used: {error.strerror}. "
            "Choose another one, or end the process that uses it."
        ) from error
    return own


def _absent(cluster: Cluster, missing: list[int], timeout: float) -> WorkerLostError:
    names = ", ".join(cluster.name(index) for index in missing)
    return WorkerLostError(
        f"The training cannot start: {names} did not connect within {timeout:g} s (--device.worker_timeout)."
    )
