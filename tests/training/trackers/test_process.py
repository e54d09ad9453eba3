"""The process that sends while a training runs: what happens if it is killed, or if an older one is still at work."""

import logging
import os
import time
from pathlib import Path

import pytest

from scena import TrainerCallback
from scena.storage.run_layout import TRACKING
from scena.training.trackers.callback import JournalTracker
from scena.training.trackers.process import only_sender
from tests.training.toy_runs import train_toy
from tests.training.trackers.ledger import LedgerParams, points


class WaitForDeath(TrainerCallback):
    """Holds the first epoch until the sender has been killed, as it is in each first request."""

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        if epoch:
            return
        (sender,) = self.run.callback(JournalTracker)._senders
        until = time.monotonic() + 300
        while not sender.died():
            assert time.monotonic() < until
            time.sleep(0.05)


def test_a_killed_sender_is_replaced_and_never_said_to_have_finished(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scena.training.trackers.callback.noted_imports", lambda: ["tests.training.trackers.ledger"])
    ledger = tmp_path / "ledger"
    with caplog.at_level(logging.INFO):
        train_toy(tmp_path / "run", [WaitForDeath()], tracker=[LedgerParams(file=ledger, kill_at=1)])
    assert "The process that sends to the tracker ledger was killed; another one continues." in caplog.text
    assert "has all values" not in caplog.text and "`scena track" in caplog.text
    (numbers,) = points(ledger).values()
    assert numbers and len({each[:2] for each in numbers}) == len(numbers)


def test_a_sender_waits_for_an_older_one_as_long_as_its_training_runs(tmp_path: Path) -> None:
    (tmp_path / TRACKING).mkdir()
    older = only_sender(tmp_path, "x", lambda seconds: False)
    assert older.__enter__()
    rounds: list[float] = []

    def wait(seconds: float) -> bool:
        rounds.append(seconds)
        if len(rounds) == 400:  # 80 seconds later
            older.__exit__(None, None, None)
        return True

    with only_sender(tmp_path, "x", wait) as alone:
        assert alone and len(rounds) == 400
        with only_sender(tmp_path, "x", lambda seconds: False) as another:
            assert not another
    assert os.listdir(tmp_path / TRACKING) == [".x.lock"]
