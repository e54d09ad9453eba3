"""A run that resumes with another number of samples is told so."""

from pathlib import Path

import pytest

from scena.commands.main import main
from scena.data.params import PipelineMode
from tests.toy.data import Halves
from tests.training.toy_runs import train_toy


def test_a_resume_names_data_that_has_changed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    count = len(train_toy(tmp_path / "run", epochs=1).params.gen.train_gen().create(PipelineMode.TRAINING))
    resume = ["resume", str(tmp_path / "run"), "--trainer.epochs"]
    assert main([*resume, "2"]) == 0
    assert "The data has changed" not in capfd.readouterr().err
    monkeypatch.setattr(Halves, "__len__", lambda self: count - 8)
    assert main([*resume, "3", "--strict"]) == 1
    assert "remove --strict" in capfd.readouterr().err
    assert main([*resume, "3"]) == 0
    words = " ".join(capfd.readouterr().err.split())
    assert f"{count} samples for the training then, {count - 8} now" in words
    assert "so the run is not exact" in words
