"""A service gets each value once and in order: with failures, lost answers and kills at every point."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scena.model.tensorboard import HistogramData, ImageData, PRCurveData, TextData
from scena.training.trackers.journal import Data
from scena.training.trackers.media import kind_of_data, pieces, precision_recall, store_data
from scena.training.trackers.recorder import Recorder
from scena.training.trackers.sender import Sender, reason, send_until
from scena.training.trackers.service import ServiceError
from tests.training.trackers.ledger import LedgerParams, points, read

STEPS = 6
EXPECTED = [(f"{kind}/loss", step, step / 3) for step in range(1, STEPS + 1) for kind in ("val", "train")]


def record(folder: Path) -> Recorder:
    recorder = Recorder(folder / "journal", "run", "scenario", "dir", lambda: {"lr": 0.1})
    recorder.begin()
    recorder.tags({"host": "here"})
    for step in range(1, STEPS + 1):
        for kind in ("val", "train"):
            recorder.points({f"{kind}/loss": step / 3}, step)
    recorder.end()
    return recorder


def sender(folder: Path, **settings: object) -> Sender:
    service = LedgerParams(file=folder / "ledger", **settings).create(folder / "service")
    return Sender(folder / "journal", service, folder, folder / "media")


def read_image(file: Path) -> np.ndarray:
    with Image.open(file) as image:
        return np.asarray(image)


def test_a_service_gets_everything_once(tmp_path: Path) -> None:
    record(tmp_path)
    for _ in range(3):  # a second and third process find nothing to do
        assert sender(tmp_path).catch_up()
    assert points(tmp_path / "ledger") == {"run": EXPECTED}
    assert [line[1] for line in read(tmp_path / "ledger")[:2]] == ["run", "tags"]


def test_kills_in_every_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after half of a request, and with its answer lost: the next process finds what arrived, and sends the rest."""
    monkeypatch.setattr("scena.training.trackers.sender.MOST_POINTS", 3)
    record(tmp_path)
    for request in (1, 2, 1, 1, 2, 1, 1):
        pid = os.fork()
        if pid == 0:
            sender(tmp_path, kill_at=request).catch_up()
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status in (0, -signal.SIGKILL)
    assert sender(tmp_path).catch_up()
    assert points(tmp_path / "ledger") == {"run": EXPECTED}


def test_a_service_that_is_down_is_caught_up_with(tmp_path: Path) -> None:
    recorder, down = record(tmp_path), tmp_path / "down"
    down.touch()
    made = sender(tmp_path, down=down)
    rounds = iter(range(4))

    def go_on(seconds: float) -> bool:
        turn = next(rounds)
        if turn == 1:
            recorder.points({"val/loss": 9.0}, STEPS + 1)
            down.unlink()
        elif turn == 2:
            down.touch()
            recorder.points({"train/loss": 9.0}, STEPS + 1)
        elif turn == 3:
            down.unlink()
            return False
        return True

    problems: list[str] = []
    assert send_until(made, go_on, lambda status: problems.append(status.problem), longest=0.0)
    assert points(tmp_path / "ledger") == {"run": [*EXPECTED, ("val/loss", 7, 9.0), ("train/loss", 7, 9.0)]}
    assert [bool(problem) for problem in problems] == [True, True, False, True, False] and "refused" in problems[0]
    assert "secret" not in problems[0]


def test_linked_runs_are_runs_of_their_own(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    recorder.points({"val/loss": 0.5}, 4)
    assert sender(tmp_path).catch_up() and sender(tmp_path).catch_up()
    assert points(tmp_path / "ledger") == {"run": EXPECTED, "run-1": [("val/loss", 4, 0.5)]}
    links = [line[2] for line in read(tmp_path / "ledger") if line[1] == "run"]
    assert [(link["continues"], link["from"]) for link in links] == [(None, 0), ("run", 4)]


def test_other_values_at_the_service_are_never_mixed_with_ours(tmp_path: Path) -> None:
    record(tmp_path)
    assert sender(tmp_path).catch_up()
    copy = tmp_path / "copy"
    copy.mkdir()
    other = Recorder(copy / "journal", "run", "scenario", "dir", dict)
    other.points({"val/loss": 0.25}, 1)
    (copy / "ledger").symlink_to(tmp_path / "ledger")
    with pytest.raises(
        ServiceError, match=r"val/loss = 0\.333.* at step 1, and this training has 0\.25\. Has .* been copied"
    ):
        sender(copy).catch_up()


def test_artifacts_outside_the_run_are_not_sent(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "best").mkdir(parents=True)
    (tmp_path / "secret").write_text("…")
    recorder = record(run)
    for name, path in (("best", "best"), ("up", "../secret"), ("absolute", str(tmp_path / "secret")), ("gone", "gone")):
        recorder.artifact(name, path)
    assert sender(run).catch_up()
    assert [line[2] for line in read(run / "ledger") if line[1] == "artifact"] == ["best"]


def test_images_and_plots_are_drawn_by_the_sender(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    data = {
        "two": ImageData(rng.uniform(size=(2, 5, 4, 3))),
        "grey": ImageData(np.full((5, 4), 200, np.uint8)),
        "curve": PRCurveData([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.3]),
        "spread": HistogramData(rng.normal(size=100)),
        "note": TextData("three **errors**"),
    }
    recorder = record(tmp_path)
    for key, value in data.items():
        kind = kind_of_data(value)
        assert kind is not None
        recorder.data(
            key, kind, STEPS, lambda branch, k=key, v=value: store_data(v, tmp_path / "media", k, STEPS, branch)
        )
    assert sender(tmp_path).catch_up()
    lines = read(tmp_path / "ledger")
    pictures = {line[2]: read_image(Path(line[4])) for line in lines if line[1] == "picture"}
    assert list(pictures) == ["two/0", "two/1", "grey", "curve", "spread"]
    assert pictures["grey"].tolist() == [[200] * 4] * 5
    expected = np.round(data["two"].images[1] * 255)  # type: ignore[attr-defined]
    assert np.array_equal(pictures["two/1"], expected)
    assert [line[2:] for line in lines if line[1] == "text"] == [["note", STEPS, "three **errors**"]]


def test_precision_and_recall_of_equal_scores() -> None:
    recall, precision = precision_recall(np.array([1, 0, 1, 1], bool), np.array([0.9, 0.5, 0.5, 0.1]))
    assert recall.tolist() == [1 / 3, 2 / 3, 1.0]
    assert precision.tolist() == [1.0, 2 / 3, 0.75]


def test_a_sender_leaves_the_processors_to_the_training() -> None:
    code = (
        "import os, pathlib; from scena.training.trackers import process; process._yield_to_training(); "
        "group = pathlib.Path('/proc/self/autogroup'); print(os.nice(0), group.read_text() if group.exists() else 'nice 19')"
    )
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True).stdout.split()
    assert out[0] == "19" and out[-1] == "19", (
        "each session has its own share on Linux, whatever the niceness of its processes"
    )


@pytest.mark.parametrize(
    "content", [b"PK\x05\x06" + bytes(18), b"PK\x03\x04 is no archive", b""], ids=["empty archive", "damaged", "empty"]
)
def test_damaged_arrays_are_reported_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    assert list(pieces(Data(0, 1, 0, "words", "text", "a.npz"), tmp_path)) == []
    assert "words of step 1 cannot be shown" in caplog.text


def test_a_long_reason_keeps_its_cause() -> None:
    text = f"request to http://me:secret@there/{'x' * 300} failed (Caused by ResponseError('too many 500 error responses'))"
    found = reason(RuntimeError(text))
    assert len(found) == 200 and "secret" not in found and found.endswith("('too many 500 error responses'))")
