"""Progress lines, and what a signal that comes after the last step is told."""

import io
import logging
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import train_toy


def test_the_time_left_does_not_include_the_compilation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "scena")
    train_toy(tmp_path / "run", progress_every=1e-9, steps_per_execution=1)
    lines = [line for line in caplog.messages if line.startswith("Epoch ") and "step " in line]
    assert len(lines) > 3 and lines[0].startswith("Epoch 1/2: step 1/")
    assert "left" not in lines[0] and "samples/s" not in lines[0]
    assert all(line.endswith(" left") and "samples/s, 0:0" in line for line in lines[1:])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "scena")
    monkeypatch.setattr("scena.training.callbacks.progress.shows_progress", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    train_toy(tmp_path / "run", steps_per_execution=1)
    drawn = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", terminal.getvalue())
    assert "Epoch 1/2" in drawn and "loss 0." in drawn and "samples/s" in drawn
    assert [line for line in caplog.messages if line.startswith("Epoch 2/2: loss")]


class SignalledScenario(ToyScenario):
    def export(self, *args: Any, **kwargs: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return super().export(*args, **kwargs)


def test_a_signal_after_the_last_step(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    train_toy(tmp_path / "run", scenario=SignalledScenario, export_final=True)
    told = [line for line in caplog.messages if line.startswith("SIGTERM")]
    assert told == [
        "SIGTERM: the training is finished, and its exports are being written. A second signal ends it at once."
    ]
    assert (tmp_path / "run" / "export" / "scenario.json").exists()
