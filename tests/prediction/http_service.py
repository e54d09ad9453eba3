"""A service in this process or in its own, and the means to talk to it."""

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from scena.prediction.params import ServeParams
from scena.prediction.serving.server import create_server
from scena.prediction.serving.signature import ServedModel
from tests.zygote import Child, Zygote


def ask(port: int, path: str, body: Any = None, kind: str = "application/json", timeout: float = 30) -> tuple[int, Any]:
    """The status and the answer; JSON if it is JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        if body is None:
            connection.request("GET", path)
        else:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request("POST", path, content, {"Content-Type": kind})
        response = connection.getresponse()
        text = response.read()
        is_json = "json" in (response.getheader("content-type") or "")
        return response.status, json.loads(text) if is_json else text.decode()
    finally:
        connection.close()


@contextlib.contextmanager
def running(predictor: Any, params: ServeParams, name: str = "toy", class_names: Sequence[str] = ()) -> Iterator[int]:
    """The port of a service that runs in a thread of this process."""
    with in_thread(create_server(predictor, params.replace(port=0), ServedModel(name, class_names))) as port:
        yield port


@contextlib.contextmanager
def in_thread(server: Any) -> Iterator[int]:
    """Runs a server in a thread of this process."""
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@contextlib.contextmanager
def started(zygote: Zygote, *arguments: str, log: Path) -> Iterator[tuple[Child, int]]:
    """`scena serve` in a process of its own, once it answers, and its port."""
    process = zygote.start("serve", *arguments, "--port", "0", log=log)
    try:
        assert process.wait_for("http://127.0.0.1:", timeout=120), process.text
        port = int(process.text.split("http://127.0.0.1:")[1].split()[0])
        while True:
            with contextlib.suppress(OSError):
                if ask(port, "/health")[0] == 200:
                    break
            time.sleep(0.05)
        yield process, port
    finally:
        if process.is_alive():
            process.kill()
