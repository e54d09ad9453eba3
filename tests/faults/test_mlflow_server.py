"""A real MLflow server that is stopped and started while trainings are killed: its database holds each value once and in order."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.environments import own_environment
from tests.faults.tracked import OLDER, catch_up, check, in_history, live_through_everything
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
                "where t.key = 'scena.run' order by m.rowid"
            ).fetchall()
        found: dict[str, list[tuple[str, int, float]]] = {}
        for run, key, step, value in rows:
            found.setdefault(run, []).append((key, int(step), float(value)))
        return found

    def tags(self, identity: str) -> dict[str, str]:
        """The tags of a run, with its id, experiment and status."""
        with sqlite3.connect(self.folder / "mlflow.db") as database:
            ((run, experiment, status),) = database.execute(
                "select r.run_uuid, r.experiment_id, r.status from runs r join tags t on t.run_uuid = r.run_uuid "
                "where t.key = 'scena.run' and t.value = ? and r.lifecycle_stage = 'active'",
                [identity],
            ).fetchall()
            tags = dict(database.execute("select key, value from tags where run_uuid = ?", [run]).fetchall())
        return tags | {"run": run, "experiment": str(experiment), "status": status}

    def params(self, identity: str) -> dict[str, str]:
        """The parameters of a run."""
        with sqlite3.connect(self.folder / "mlflow.db") as database:
            run = self.tags(identity)["run"]
            return dict(database.execute("select key, value from params where run_uuid = ?", [run]).fetchall())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server in an environment of its own; it needs older packages than Scena's tests."""
    folder = tmp_path_factory.mktemp("mlflow")
    server = Server(own_environment(folder / "env", "mlflow-server"), folder)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder / "env")


def test_kills_with_a_server_that_is_stopped_and_started(
    zygote: Zygote, server: Server, expected: dict[str, Any], tmp_path: Path
) -> None:
    again = ["--tracker.mlflow.uri", server.uri]
    rounds = iter(range(1000))

    def stop_or_start() -> list[str]:
        if next(rounds) % 2:
            server.start()
        else:
            server.stop()
        return again

    def up() -> list[str]:
        if server.process.poll() is not None:
            server.start()
            next(rounds)
        return ["--to", "mlflow", "--to.mlflow.uri", server.uri]

    identity = live_through_everything(
        zygote,
        tmp_path / "run",
        ["--tracker", "mlflow", *again],
        server.numbers,
        expected,
        resume_flags=stop_or_start,
        send=up,
    )
    first, linked = (server.tags(identity), server.tags(f"{identity}-1"))
    assert linked["scena.continues"] == identity and int(linked["scena.from_step"]) > int(OLDER)
    assert linked["mlflow.parentRunId"] == first["run"] and linked["status"] == first["status"] == "FINISHED"


def test_back_fill_of_runs_that_were_trained_without_a_tracker(
    zygote: Zygote, server: Server, reference: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(reference, run)
    identity = json.loads((run / "trainer_params.json").read_text())["run"]
    for _ in range(2):  # the second one finds nothing to do
        words = ["--to", "mlflow", "--to.mlflow.uri", server.uri, "--to.mlflow.tags", "paper=v2"]
        catch_up(zygote, run, words)
        numbers = server.numbers()[identity]
        check(numbers, run)
        assert set(numbers) == set(in_history(run))
    tags = server.tags(identity)
    assert (tags["status"], tags["paper"], tags["mlflow.runName"]) == ("FINISHED", "v2", "run")
    stored = server.folder / "artifacts" / tags["experiment"] / tags["run"] / "artifacts"
    assert (stored / "best" / "model.keras").read_bytes() == (run / "best" / "model.keras").read_bytes()
    assert (stored / "history.csv").read_bytes() == (run / "history.csv").read_bytes()
    assert server.params(identity)["train.batch_size"] == "8"
