"""`scena new` writes scenarios whose tests pass at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scena.commands.main import main

ROOT = Path(__file__).parents[2]


def test_the_tests_of_new_scenarios_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my_rings"]) == 0
    assert main(["new", "my_lists", "--template", "listfile"]) == 0
    assert "class MyRingsScenario(" in (tmp_path / "my_rings" / "scenario.py").read_text()
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "my_rings", "my_lists"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "5 passed" in done.stdout, done.stdout


def test_existing_folders_and_bad_names_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    assert main(["new", "taken"]) == 1
    assert main(["new", "My-Scenario"]) == 2
    assert main(["new"]) == 2
    errors = capsys.readouterr().err
    assert "taken exists already" in errors and "'My-Scenario' cannot be the name of a Python package" in errors
    assert list((tmp_path / "taken").iterdir()) == []
