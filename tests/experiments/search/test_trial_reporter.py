"""What a trial reports to its search."""

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from scena.experiments.search.trial import Channel
from scena.experiments.search.trial_reporter import TrialReporter
from scena.training.trigger import Trigger
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import toy_params, train_toy


def search_side() -> tuple[Channel, list[dict[str, Any]]]:
    """The trial's end of a channel, and what arrives at the other one, which never ends the trial."""
    own, trial = socket.socketpair()
    reports: list[dict[str, Any]] = []

    def answer() -> None:
        with own, own.makefile("r") as lines:
            for line in lines:
                reports.append(json.loads(line))
                own.sendall(b'{"stop": false}\n')

    threading.Thread(target=answer, daemon=True).start()
    return Channel(str(trial.detach())), reports


@pytest.mark.parametrize("metric", [None, "val_loss"])
def test_validations_inside_an_epoch_count(tmp_path: Path, metric: str | None) -> None:
    """An epoch has four steps, so most end without a validation; the second one is resumed after its own."""
    settings = {
        "val_every_n": Trigger(3, "steps"),
        "checkpoint_every": Trigger(1, "steps"),
        "epochs": 4,
        "keep_checkpoints": 20,
    }
    channel, reports = search_side()
    train_toy(tmp_path / "whole", [TrialReporter(channel, metric, {})], **settings)
    assert [report["epoch"] for report in reports] == [1, 2, 3, 4]  # of steps 3, 6, 9 and 12, 15
    assert metric is None or len({report["value"] for report in reports}) == 4
    channel, again = search_side()
    trainer = ToyScenario.create_trainer(toy_params(tmp_path / "whole", **settings))
    trainer.train([TrialReporter(channel, metric, {})], resume=True, start=7)
    assert again == reports[1:]
