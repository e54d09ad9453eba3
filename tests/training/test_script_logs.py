"""A training in a script that has set up no logging shows its log; logging that was set up is respected."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scena.logs import shows_progress
from scena.training.directory import log_file

logger = logging.getLogger("scena.training.checks.sanity")


@pytest.fixture
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Takes all handlers away; called by the test, because pytest adds its own after fixtures."""
    log, root = logging.getLogger("scena"), logging.getLogger()
    before = log.level, root.level

    def clear() -> None:
        monkeypatch.setattr(log, "handlers", [])
        monkeypatch.setattr(log, "propagate", True)
        monkeypatch.setattr(root, "handlers", [])
        log.setLevel(logging.NOTSET)
        root.setLevel(logging.WARNING)

    yield clear
    log.setLevel(before[0])
    root.setLevel(before[1])


def test_lines_are_shown_once(
    unconfigured: Callable[[], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unconfigured()
    log, root = logging.getLogger("scena"), logging.getLogger()
    with log_file(tmp_path):
        logger.info("padding counts")
        root.handlers.append(logging.StreamHandler())  # as TensorFlow's logging adds one to the root
        logger.warning("nothing is learned")
        assert shows_progress()
    assert capsys.readouterr().err.splitlines() == ["padding counts", "nothing is learned"]
    assert "padding counts" in (tmp_path / "train.log").read_text()
    assert log.handlers == [] and log.propagate and log.level == logging.NOTSET


@pytest.mark.parametrize("name", ["scena", ""])
def test_a_program_can_be_quiet(
    name: str, unconfigured: Callable[[], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unconfigured()
    logging.basicConfig(format="%(message)s")
    logging.getLogger(name).setLevel(logging.WARNING)
    with log_file(tmp_path):
        logger.info("padding counts")
        logger.warning("nothing is learned")
        assert not shows_progress()
    assert capsys.readouterr().err.splitlines() == ["nothing is learned"]
    assert ("padding counts" in (tmp_path / "train.log").read_text()) == (name == "")


def test_a_program_that_logs_sees_each_line_once(
    unconfigured: Callable[[], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unconfigured()
    logging.basicConfig(format="%(message)s", level="INFO")
    with log_file(tmp_path):
        logger.info("padding counts")
        assert shows_progress()
    assert capsys.readouterr().err.splitlines() == ["padding counts"]
