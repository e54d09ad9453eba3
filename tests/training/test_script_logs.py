"""Warnings of a training reach the console of a script that has set up no logging."""

import logging
from pathlib import Path

import pytest

from scena.training.directory import log_file


def test_warnings_are_shown_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, root = logging.getLogger("scena"), logging.getLogger()
    monkeypatch.setattr(log, "handlers", [])
    monkeypatch.setattr(log, "propagate", True)
    monkeypatch.setattr(root, "handlers", [])
    with log_file(tmp_path):
        logging.getLogger("scena.training.checks.sanity").warning("padding counts")
        root.handlers.append(logging.StreamHandler())  # as TensorFlow's logging adds one to the root
        logging.getLogger("scena.training.checks.sanity").warning("nothing is learned")
    assert capsys.readouterr().err.splitlines() == ["padding counts", "nothing is learned"]
    assert "padding counts" in (tmp_path / "train.log").read_text()
    assert log.handlers == []
