"""`scena new` writes scenarios whose tests pass at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scena.commands.main import main
from tests.docs.blocks import read_blocks, read_commands

ROOT = Path(__file__).parents[2]


def test_the_tests_of_new_scenarios_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With pytest as it comes, in a folder without any settings."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my_rings"]) == 0
    assert main(["new", "my_lists", "--template", "listfile"]) == 0
    assert main(["new", "my_table", "--template", "table"]) == 0
    assert "class MyRingsScenario(" in (tmp_path / "my_rings" / "scenario.py").read_text()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "my_rings", "my_lists", "my_table"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "8 passed" in done.stdout, done.stdout


@pytest.mark.parametrize("template", ["general", "listfile", "table"])
def test_the_readme_names_the_new_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], template: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "work/my_rings", "--template", template]) == 0
    assert "scena train work.my_rings" in capsys.readouterr().out
    readme = (tmp_path / "work" / "my_rings" / "README.md").read_text()
    assert readme.startswith("# MyRings") and "emplate" not in readme
    assert "$ python -m pytest work/my_rings -k test_data" in readme
    assert "scena train work.my_rings" in readme and "--trainer.output_dir my_rings_run" in readme


@pytest.mark.long
def test_the_commands_of_the_readme_run_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for template in ("general", "listfile", "table"):
        assert main(["new", f"my_{template}", "--template", template]) == 0
        for block in read_blocks(tmp_path / f"my_{template}" / "README.md"):
            for command in read_commands(block) if block.language == "console" else []:
                line = command.text.replace("python ", f"{sys.executable} ", 1)
                line = line.replace("scena ", f"{sys.executable} -m scena ", 1) if line.startswith("scena ") else line
                done = subprocess.run(
                    ["bash", "-c", line],
                    env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                )
                assert done.returncode == 0, f"{command.text}\n{done.stdout}"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--data.texts place kind", "'kind' is the target: a model that also reads it would only copy it"),
        ("--data.numbers height place", "'place' stands in numbers and in texts; name it once"),
    ],
)
def test_a_column_of_a_table_has_one_role(capsys: pytest.CaptureFixture[str], flags: str, message: str) -> None:
    assert main(["train", "examples.template.table", "--data.file", "plants.csv", *flags.split()]) == 2
    assert message in capsys.readouterr().err


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


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("import", "'import' cannot be the name of a Python package"),
        ("_3d", "'_3d' cannot be the name of a Python package"),
        ("3d", "'3d' cannot be the name of a Python package"),
        ("numpy", "There is a Python module 'numpy' already"),
        ("json", "There is a Python module 'json' already"),
    ],
)
def test_names_that_cannot_be_imported_or_hide_a_module_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", name]) == 2
    assert reason in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_a_module_is_fine_within_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "work/json"]) == 0  # work.json hides nothing


def test_a_scenario_is_not_called_scenario_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["new", "../my_scenario"]) == 0
    assert "scena train ../my_scenario" in capsys.readouterr().out
    code = (tmp_path / "my_scenario" / "scenario.py").read_text()
    assert "class MyScenario(ScenarioBase[MyScenarioParams" in code
    assert (tmp_path / "my_scenario" / "README.md").read_text().startswith("# MyScenario\n")
