"""A tracker holds each value once and in order, however often the training and its sender are killed; the training never notices it."""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import FLAGS, SCENARIO, fingerprint, kill_until_finished
from tests.faults.tracked import check, in_history, results, unlike
from tests.training.trackers.ledger import points, read
from tests.training.trackers.mlflow_rest import MlflowRest
from tests.training.trackers.test_wandb import history
from tests.zygote import Zygote

IMPORT = ["--import", "tests.training.trackers.ledger"]


def tracked(folder: Path, *more: str | Path) -> list[str]:
    words = [*FLAGS, *IMPORT, "--tracker", "ledger", "--tracker.ledger.file", folder / "ledger", *more]
    return [str(word) for word in words]


def wait_for_sender(folder: Path, runs: int = 1) -> None:
    """Waits until the sender, which outlives a killed training for a while, has nothing left to send."""
    until = time.monotonic() + 300
    while sum(line[1] == "end" for line in read(folder / "ledger")) < runs:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_kills_of_a_tracked_training(zygote: Zygote, expected: dict[str, Any], tmp_path: Path) -> None:
    done = kill_until_finished(
        zygote, tmp_path / "run", tracked(tmp_path), random.Random(5), kills=3, resume_flags=lambda: IMPORT
    )
    assert done.total() >= 1
    wait_for_sender(tmp_path)
    (numbers,) = points(tmp_path / "ledger").values()
    check(numbers, tmp_path / "run")
    found = fingerprint(tmp_path / "run")
    found["state"]["callbacks"].pop("JournalTracker")
    found["state"]["code"].pop("tests.training.trackers.ledger")
    for part, value in expected.items():
        assert found[part] == value, part


@pytest.mark.parametrize("server", [pytest.param("up", marks=pytest.mark.long), "down"])
def test_services_leave_weights_and_history_as_they_are(
    zygote: Zygote, expected: dict[str, Any], tmp_path: Path, server: str
) -> None:
    """Several trackers at once; nothing of a training depends on them, or on whether they can be reached."""
    run, log, rest = tmp_path / "run", tmp_path / "log", MlflowRest().start()
    if server == "down":
        rest.stop()
    words = [*FLAGS, "--tracker", "mlflow", "wandb", "--tracker.mlflow.uri", rest.uri]
    assert zygote.run("train", SCENARIO, "--trainer.output_dir", run, *words, log=log) == 0, log.read_text()
    assert not unlike(expected, run)
    if server == "down":
        assert rest.runs == {} and "The tracker mlflow " in log.read_text()
        return
    identity = json.loads((run / "trainer_params.json").read_text())["run"]
    until = time.monotonic() + 300
    while not all(_ended(run / "tracking" / f"{name}.json") for name in ("mlflow", "wandb")):
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.2)
    rest.stop()
    check(rest.numbers(identity), run)
    (file,) = history(run / "tracking").values()
    check([each for each in file if isinstance(each[2], int | float)], run)


def _ended(status: Path) -> bool:
    return status.exists() and json.loads(status.read_text())["waiting"] == 0


def test_a_resume_from_an_older_checkpoint_with_other_flags_is_a_linked_run(zygote: Zygote, tmp_path: Path) -> None:
    run, log = tmp_path / "run", tmp_path / "log"
    words = tracked(tmp_path, "--trainer.keep_checkpoints", "50")
    assert zygote.run("train", SCENARIO, "--trainer.output_dir", run, *words, log=log) == 0
    wait_for_sender(tmp_path)
    first = points(tmp_path / "ledger")
    (identity,) = first
    resume = ["resume", run, *IMPORT, "--from", "8"]
    assert zygote.run(*resume, log=log) == 0  # the same flags: everything is replayed, nothing is new
    assert {name: results(numbers) for name, numbers in points(tmp_path / "ledger").items()} == {
        identity: results(first[identity])
    }
    changed = ["--learning_rate.lr", "0.5", "--trainer.keep_checkpoints", "50"]
    assert zygote.run(*resume, *changed, log=log) == 0
    wait_for_sender(tmp_path, runs=2)
    after = points(tmp_path / "ledger")
    assert list(after) == [identity, f"{identity}-1"] and results(after[identity]) == results(first[identity])
    assert all(step > 8 for _, step, _ in results(after[f"{identity}-1"]))
    link = next(line[2] for line in read(tmp_path / "ledger") if line[:2] == [f"{identity}-1", "run"])
    assert link["continues"] == identity and link["params"]["learning_rate.lr"] == 0.5
    assert "they get a linked run (1)" in log.read_text()
    check_from = [row for row in in_history(run) if row[1] > 8]
    assert set(check_from) <= set(after[f"{identity}-1"])


def test_a_tracker_that_is_down_does_not_stop_a_training(
    zygote: Zygote, expected: dict[str, Any], tmp_path: Path
) -> None:
    down = tmp_path / "down"
    down.touch()
    words = tracked(tmp_path, "--tracker.ledger.down", down)
    log = tmp_path / "log"
    assert zygote.run("train", SCENARIO, "--trainer.output_dir", tmp_path / "run", *words, log=log) == 0
    assert "does not have all values yet (http://ledger refused the connection)" in log.read_text()
    assert read(tmp_path / "ledger") == []
    found = fingerprint(tmp_path / "run")
    assert found["tensors"] == expected["tensors"] and found["history"] == expected["history"]
    down.unlink()
    assert zygote.run("resume", tmp_path / "run", *IMPORT, log=log) == 0  # nothing left to train
    wait_for_sender(tmp_path)
    (numbers,) = points(tmp_path / "ledger").values()
    check(numbers, tmp_path / "run")
    assert "The tracker ledger has all values" in log.read_text()
