"""A training that is killed, with an MLflow server that is stopped and started: its database holds each value once and in order."""

import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environments import own_environment
from tests.faults.harness import FLAGS, kill_until_finished
from tests.faults.test_trackers import reference
from tests.zygote import Zygote

pytestmark = pytest.mark.long


class Server:
    """MLflow's own server with an SQLite store."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python, self.folder = python, folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        store = ["--backend-store-uri", f"sqlite:///{self.folder / 'mlflow.db'}"]
        artifacts = ["--artifacts-destination", str(self.folder / "artifacts")]
        command = [
            self.python,
            "-m",
            "mlflow",
            "server",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--workers",
            "1",
        ]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*map(str, command), *store, *artifacts],
                env=environment | {"MLFLOW_DISABLE_TELEMETRY": "true"},
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + 300
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"{self.uri}/health", timeout=5).close()
            except OSError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.5)
            else:
                return
        raise AssertionError("the server did not start")

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def numbers(self) -> dict[str, list[tuple[str, int, float]]]:
        """What its database holds, by the identity of the run, in the order in which it came."""
        with sqlite3.connect(self.folder / "mlflow.db") as database:
            rows = database.execute(
                "select t.value, m.key, m.step, m.value from metrics m join tags t on t.run_uuid = m.run_uuid "
                "where t.key = 'scena.run' order by m.timestamp, m.rowid"
            ).fetchall()
        found: dict[str, list[tuple[str, int, float]]] = {}
        for run, key, step, value in rows:
            found.setdefault(run, []).append((key, int(step), float(value)))
        return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server in an environment of its own; it needs older packages than Scena's tests."""
    folder = tmp_path_factory.mktemp("mlflow")
    server = Server(own_environment(folder / "env", "mlflow-server"), folder)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder / "env")


def test_kills_with_a_server_that_is_stopped_and_started(zygote: Zygote, server: Server, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = [*FLAGS, "--tracker", "mlflow", "--tracker.mlflow.uri", server.uri]
    rounds = iter(range(1000))

    def stop_or_start() -> list[str]:
        if next(rounds) % 2:
            server.start()
        else:
            server.stop()
        return words[-2:]

    done = kill_until_finished(zygote, run, words, random.Random(3), kills=4, resume_flags=stop_or_start)
    assert done.total() >= 1
    print(f"kills: {dict(done)}")
    if server.process.poll() is not None:
        server.start()
    until = time.monotonic() + 300
    while zygote.run("track", run, "--to", "mlflow", "--to.mlflow.uri", server.uri, log=tmp_path / "track.log") != 0:
        assert time.monotonic() < until, (tmp_path / "track.log").read_text()
        time.sleep(1)
    (numbers,) = server.numbers().values()
    results = [each for each in numbers if not each[0].startswith("system/")]
    keys = [(key, step) for key, step, _ in results]
    assert len(set(keys)) == len(keys), "a value is there twice"
    assert [step for _, step in keys] == sorted(step for _, step in keys), "values are out of order"
    assert set(reference(run)) <= set(results), "values are missing or differ"
