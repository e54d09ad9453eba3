"""MLflow's client sends each value once: with lost answers, a server that stops, and numbers that its database cannot hold."""

import math
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.commands.main import main
from scena.errors import TrainingError
from scena.model.tensorboard import ImageData
from scena.params import ParamsError
from scena.scenario.stored import describe, write_description
from scena.training.directory import paths_outside
from scena.training.trackers.media import store_data
from scena.training.trackers.params import MlflowParams
from scena.training.trackers.recorder import Recorder
from scena.training.trackers.sender import Sender
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import toy_params
from tests.training.trackers.mlflow_rest import MlflowRest

VALUES = [(f"{kind}/loss", step, step / 3) for step in range(1, 5) for kind in ("val", "train")]


@pytest.fixture
def rest(monkeypatch: pytest.MonkeyPatch) -> Iterator[MlflowRest]:
    for name, value in MlflowParams().environment().items():
        monkeypatch.setenv(name, value)
    server = MlflowRest().start()
    yield server
    server.stop()


def sender(folder: Path, rest: MlflowRest) -> Sender:
    params = MlflowParams(uri=rest.uri, tags=["paper=v2"])
    return Sender(folder / "journal", params.create(folder / "mlflow"), folder, folder / "media")


def record(folder: Path, values: list[tuple[str, int, float]] = VALUES) -> Recorder:
    recorder = Recorder(folder / "journal", "abc", "module:Scenario", "first", lambda: {"lr": 0.1, "name": "x" * 9000})
    recorder.begin()
    for key, step, value in values:
        recorder.points({key: value}, step)
    return recorder


class Failing(BaseHTTPRequestHandler):
    """Answers everything with 500."""

    def do_GET(self) -> None:
        self.send_error(500)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def broken(how: str) -> Iterator[int]:
    """The port of a server that accepts and never answers, or that answers 500."""
    if how == "hangs":
        with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:  # the kernel accepts for it
            yield listener.getsockname()[1]
        return
    with ThreadingHTTPServer(("127.0.0.1", 0), Failing) as server:
        threading.Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.filterwarnings("ignore")  # of MLflow's imports
@pytest.mark.parametrize(("how", "message"), [("hangs", "read timeout=1"), ("fails", "too many 500 error responses")])
def test_a_server_that_does_not_work_is_named_and_caught_up_later(
    tmp_path: Path, rest: MlflowRest, monkeypatch: pytest.MonkeyPatch, how: str, message: str
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    record(tmp_path).end()
    with broken(how) as port:
        params = MlflowParams(uri=f"http://127.0.0.1:{port}")
        made = Sender(tmp_path / "journal", params.create(tmp_path / "mlflow"), tmp_path, tmp_path / "media")
        began = time.monotonic()
        assert not made.catch_up() and time.monotonic() - began < 30
    assert message in made.status.problem and not made.status.final and made.status.waiting
    assert sender(tmp_path, rest).catch_up()
    assert rest.numbers("abc") == VALUES


@pytest.mark.filterwarnings("ignore")  # of MLflow's imports
def test_mlflow_holds_each_value_once(tmp_path: Path, rest: MlflowRest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scena.training.trackers.sender.MOST_POINTS", 3)
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "very-secret")
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "weights").write_bytes(b"12")
    recorder = record(tmp_path)
    image = ImageData(np.zeros((2, 2), np.uint8))
    recorder.data("val/errors", "image", 4, lambda branch: store_data(image, tmp_path / "media", "e", 4, branch))
    recorder.artifact("best", "best")
    recorder.end()
    rest.faults = ["lose", "half", "refuse", "half", "lose", "refuse"]
    made, attempts = sender(tmp_path, rest), 0
    while not made.catch_up():
        attempts += 1
        assert "secret" not in made.status.problem
        if attempts == 3:
            made = sender(tmp_path, rest)  # its process was killed
    assert rest.numbers("abc") == VALUES
    (run,) = rest.runs.values()
    assert run["params"] == {"lr": "0.1", "name": "x" * 6000} and run["name"] == "first"
    assert run["tags"]["paper"] == "v2" and run["tags"]["scena.scenario"] == "module:Scenario"
    assert run["status"] == "FINISHED" and rest.experiments == {"module:Scenario": "1"}
    assert {path.partition("/")[2].partition("/")[2] for path in rest.artifacts} == {
        "best/weights",
        "images/val/errors/4.png",
    }
    assert "Bearer very-secret" in rest.headers
    assert b"secret" not in (tmp_path / "journal").read_bytes()
    sent = len(rest.artifacts)
    rest.artifacts.clear()
    assert sender(tmp_path, rest).catch_up() and rest.numbers("abc") == VALUES and sent == 2
    assert not any("weights" in path for path in rest.artifacts), "the best model was sent again"


@pytest.mark.filterwarnings("ignore")
def test_a_server_that_stops_and_comes_back(tmp_path: Path, rest: MlflowRest) -> None:
    recorder = record(tmp_path)
    made = sender(tmp_path, rest)
    rest.stop()
    assert not made.catch_up() and "refused" in made.status.problem
    rest.start()
    assert made.catch_up()
    rest.stop()
    recorder.points({"val/loss": 7.0}, 5)
    recorder.points({"val/loss": 0.5}, 3)
    assert not made.catch_up()
    rest.start()
    assert made.catch_up()
    assert rest.numbers("abc") == [*VALUES, ("val/loss", 5, 7.0)] and rest.numbers("abc-1") == [("val/loss", 3, 0.5)]
    ids = {run["tags"]["scena.run"]: run_id for run_id, run in rest.runs.items()}
    assert rest.runs[ids["abc-1"]]["tags"]["mlflow.parentRunId"] == ids["abc"]
    assert made.status.urls[-1] == f"{rest.uri}/#/experiments/1/runs/{ids['abc-1']}"


@pytest.mark.filterwarnings("ignore")
def test_a_run_that_was_created_twice_and_numbers_that_are_not_finite(tmp_path: Path, rest: MlflowRest) -> None:
    values = [("loss", 1, math.inf), ("loss", 2, -math.inf), ("loss", 3, 1.0)]
    record(tmp_path, values)
    assert sender(tmp_path, rest).catch_up()
    (first,) = rest.runs
    rest._runs_create({"experiment_id": "1", "tags": [{"key": "scena.run", "value": "abc"}]})  # its answer was lost
    assert sender(tmp_path, rest).catch_up()
    assert [run["deleted"] for run_id, run in rest.runs.items() if run_id != first] == [True]
    assert [value for _, _, value in rest.numbers("abc")] == [1.7976931348623157e308, -1.7976931348623157e308, 1.0]


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises((ValueError, ParamsError), match="must have no credentials in it"):
        MlflowParams(uri="http://me:secret@host:5000")
    with pytest.raises(TrainingError, match=r"needs the address of a server: --tracker\.mlflow\.uri .* Received: None"):
        MlflowParams().check_ready()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://localhost:5000")
    MlflowParams().check_ready()
    assert os.environ["MLFLOW_TRACKING_URI"] == MlflowParams().address()


def test_a_stored_address_is_used_only_if_it_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tokens of the environment would go to a server that somebody else chose."""
    run = tmp_path / "run"
    run.mkdir()
    params = toy_params(run, tracker=[MlflowParams(uri="http://elsewhere:5000")])
    write_description(run / "trainer_params.json", describe(ToyScenario, params, run="1"))
    (run / "history.csv").write_text("epoch,step\n")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert main(["resume", str(run)]) == 1
    error = capsys.readouterr().err
    assert "sends to places outside its directory; repeat them if you trust it" in error
    assert f"scena resume {run} --tracker.mlflow.uri http://elsewhere:5000" in error
    assert main(["track", str(run)]) == 1
    assert "--to mlflow --to.mlflow.uri http://elsewhere:5000" in capsys.readouterr().out
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://elsewhere:5000")
    assert paths_outside(run, params) == {}
