"""What the READMEs of the examples say: commands run as they are written, pictures are there, results are as good as promised."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from scena.commands.main import main
from scena.evaluation.report.page import read_history
from tests.docs.blocks import ROOT, Command, read_blocks, read_commands

READMES = [
    readme
    for readme in sorted((ROOT / "examples").rglob("README.md"))
    if "template" not in readme.parts  # `scena new` copies these; tests/commands/test_new.py runs them
]
PROMISED = {
    "min_model": ("val_acc", max, 0.94, 1.0),
    "full_model": ("val_acc", max, 0.96, 1.0),
    "flower_model": ("val_acc", max, 0.90, 1.0),
    "atr_model": ("lav_cer", min, 0.0, 0.05),
    "tabular_model": ("val_auc", max, 0.88, 1.0),
    "tagging_model": ("lav_field_f1", max, 0.85, 1.0),
    "dates_model": ("lav_exact", max, 0.95, 1.0),
    "pairs_model": ("lav_acc", max, 0.85, 1.0),
    "frozen_model": ("lav_acc", max, 0.4, 0.75),
    "faces_model": ("lav_eer", min, 0.0, 0.05),
    "center_model": ("lav_eer", min, 0.0, 0.05),
    "iresnet_model": ("lav_eer", min, 0.0, 0.10),
    "workers_model": ("lav_eer", min, 0.0, 0.05),
}
"""The runs that the READMEs train, and between which values the best result of each lies."""


@dataclass
class Part:
    """Commands of a README that need nothing of its other commands."""

    readme: Path
    line: int
    models: set[str]
    commands: list[Command]

    def __str__(self) -> str:
        return f"{self.readme.parent.relative_to(ROOT / 'examples')}-line{self.line}"


def parts(readme: Path) -> list[Part]:
    """Blocks that name the same model are one part."""
    found: list[Part] = []
    for block in read_blocks(readme):
        if block.language == "console":
            models = set(re.findall(r"\w+_model\b", block.code))
            part = next((part for part in found if part.models & models), None)
            if part is None:
                part = Part(readme, block.line, set(), [])
                found.append(part)
            part.models |= models
            part.commands += read_commands(block)
    return found


PARTS = [part for readme in READMES for part in parts(readme)]
TRAININGS = [command for part in PARTS for command in part.commands if re.search(r"\btrain examples\.", command.text)]


@pytest.mark.parametrize("readme", READMES, ids=lambda readme: readme.parent.name)
def test_a_readme_shows_a_training_its_curve_and_what_to_change_first(readme: Path) -> None:
    text = readme.read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert "pictures/training.png" in pictures
    assert [picture for picture in pictures if not (readme.parent / picture).is_file()] == []
    assert "## What to change first" in text
    assert any(command in TRAININGS for part in parts(readme) for command in part.commands)


@pytest.mark.parametrize("command", TRAININGS, ids=lambda command: command.text.partition("examples.")[2])
def test_trainings_have_these_flags(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    """The rest of the commands needs what the trainings make, and runs in the long test."""
    words = shlex.split(command.text)
    assert main([*words[words.index("train") :], "--help"]) == 0, capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("part", PARTS, ids=str)
def test_commands_run_as_written_and_models_are_as_good_as_promised(part: Part, tmp_path: Path) -> None:
    for command in part.commands:
        printed = run(command.text, tmp_path)
        missing = [line for line in command.shown if line not in printed]
        assert not missing, f"{command.text}\n{printed}"
    for directory in tmp_path.glob("*_model"):
        if directory.name in PROMISED:
            name, best_of, least, most = PROMISED[directory.name]
            values = [row[name] for row in read_history(directory / "history.csv") if name in row]
            best = best_of(values)
            print(f"{directory.name}: best {name} {best:.4f}")
            assert least <= best <= most


def test_promises_are_made_about_runs_that_there_are() -> None:
    named = set().union(*(part.models for part in PARTS))
    assert set(PROMISED) <= named


def run(command: str, folder: Path) -> str:
    """Runs a command in a shell, in a folder outside the clone; returns what it printed."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout
