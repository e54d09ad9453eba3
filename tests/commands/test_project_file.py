"""`project.yaml` of the current folder."""

from pathlib import Path

import pytest

from scena.commands.main import main

PROJECT = """
default: &DEFAULT
  trainer: {epochs: 7, samples_per_epoch: 32}
laptop:
  <<: *DEFAULT
  trainer: {epochs: 2}
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("project.yaml").write_text(PROJECT)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("", "trainer:\n  epochs: 7\n  samples_per_epoch: 32\n"),
        ("--config_set laptop", "trainer:\n  epochs: 2\n  samples_per_epoch: 32\n"),
        ("--config_set laptop --trainer.epochs 3", "trainer:\n  epochs: 3\n  samples_per_epoch: 32\n"),
        ("--config None", ""),
        ("--config None --trainer.epochs 3", "trainer:\n  epochs: 3\n"),
    ],
)
def test_it_is_found(words: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["params", "classification", *words.split()]) == 0
    out, err = capsys.readouterr()
    assert "".join(line for line in out.splitlines(keepends=True) if line[0] not in "#{") == shown
    used = "" if "None" in words else "Using project.yaml of this folder; --config None skips it.\n"
    assert err == used


def test_another_file_is_used_instead(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.yaml").write_text("trainer: {epochs: 5}")
    assert main(["params", "classification", "--config", "other.yaml"]) == 0
    assert capsys.readouterr() == ("trainer:\n  epochs: 5\n", "")


def test_all_commands_of_a_training_use_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = "tune classification --search learning_rate.lr=0.1,0.2 --dry_run"
    assert main(words.split()) == 0
    assert "--config project.yaml" in capsys.readouterr().out
    assert main("train classification --trainer.epoch 3".split()) != 0
    assert capsys.readouterr().err.startswith("Using project.yaml")
    assert main("train classification --help".split()) == 0
    out, err = capsys.readouterr()
    assert "set: 7, in project.yaml:3" in out and not err


def test_a_set_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("params classification --config_set desktop".split()) != 0
    assert "project.yaml: there is no set 'desktop'; there are: default, laptop" in capsys.readouterr().err
    Path("project.yaml").unlink()
    assert main("params classification --config_set laptop".split()) != 0
    assert "--config_set laptop needs a file" in capsys.readouterr().err
