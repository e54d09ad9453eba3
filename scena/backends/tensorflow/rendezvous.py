"""Waits for all processes of a training, with a timeout: TensorFlow itself waits forever and cannot be interrupted."""

import contextlib
import selectors
import socket
import time

from scena.backends.cluster import Cluster
from scena.backends.selection import DeviceError, WorkerLostError

_HELLO = b"scena %d\n"
_GO = b"go\n"
_PAUSE = 0.1


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
                if connection.recv(len(_GO)) == _GO:
                    return
                raise WorkerLostError(f"The training cannot start: {cluster.name(0)} has given up; see its output.")
        except OSError:
            time.sleep(_PAUSE)
    raise _absent(cluster, [0], timeout)


def _index(connection: socket.socket) -> int:
    """The index that a worker sends; -1 for any other client."""
    connection.settimeout(2)
    try:
        word, _, number = connection.recv(32).decode(errors="replace").strip().partition(" ")
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
