"""A command of another installed package: listed without an import, run, explained and completed like Scena's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ENTRY_POINTS = """[scena.plugins]
Command.count = counting.commands
Command.lost = counting.empty
Command.broken = counting.broken
Command.train = counting.commands
"""
COMMANDS = '''"""A command."""

print("IMPORTED")

from pathlib import Path
from typing import Literal

from scena.commands import Command, ScenarioCommand, ScenarioOptions
from scena.params import Params, param


class CountOptions(Params):
    """What to count."""

    files: list[Path] = param(required=True, positional="FILE", help="text files")
    unit: Literal["lines", "words"] = param("lines", help="what to count")


class Count(Command):
    """Counts what is in text files."""

    name = "count"
    options: CountOptions

    def run(self) -> int:
        texts = [file.read_text() for file in self.options.files]
        counts = [len(text.split() if self.options.unit == "words" else text.splitlines()) for text in texts]
        print("COUNTED", *counts)
        return 3 if 0 in counts else 0
'''
SUGGEST = "from scena.commands.inspect.completion import suggest; print(suggest(['count', 'a', '--unit'], ''), suggest([], ''))"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on the path in which a package with commands is installed."""
    site = tmp_path_factory.mktemp("site")
    (site / "counting").mkdir()
    (site / "counting" / "__init__.py").touch()
    (site / "counting" / "empty.py").touch()
    (site / "counting" / "broken.py").write_text("import not_there\n")
    (site / "counting" / "commands.py").write_text(COMMANDS)
    (site / "counting-0.3.dist-info").mkdir()
    (site / "counting-0.3.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    (site / "text").write_text("one two\nthree\n")
    (site / "nothing").touch()
    return site


def python(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, *words], env=environment, cwd=site, capture_output=True, text=True, check=False
    )


def scena(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return python(site, "-m", "scena", *words)


def test_it_is_listed_without_being_imported(site: Path) -> None:
    done = scena(site, "--help")
    assert "IMPORTED" not in done.stdout
    listed = done.stdout.partition("From other packages:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split() for line in listed] == [
        [name, "from", "counting", "0.3"] for name in ("broken", "count", "lost")
    ]  # Scena's own train stays what it is


def test_it_runs_with_its_arguments_and_exit_status(site: Path) -> None:
    assert scena(site, "count", "text", "text").stdout.split() == ["IMPORTED", "COUNTED", "2", "2"]
    done = scena(site, "count", "text", "nothing", "--unit", "words")
    assert done.stdout.split() == ["IMPORTED", "COUNTED", "3", "0"] and done.returncode == 3
    done = scena(site, "count")
    assert done.returncode == 2
    assert (
        done.stderr
        == "scena count: error: name the file first: scena count FILE… [--flag value …]. FILE is text files.\n"
    )


def test_help_and_completion_come_from_its_declaration(site: Path) -> None:
    shown = scena(site, "count", "--help").stdout
    assert "usage: scena count FILE… [--flag value …]\n\nCounts what is in text files.\n" in shown
    assert "--unit {lines,words}" in shown
    done = python(site, "-c", SUGGEST)
    assert "['lines', 'words']" in done.stdout and "'count'" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "Command 'broken' of the package counting 0.3 cannot be imported: ModuleNotFoundError"),
        ("lost", "An installed plugin declares the command 'lost', but its module defines none."),
    ],
)
def test_one_that_does_not_work_is_named(site: Path, name: str, message: str) -> None:
    done = scena(site, name)
    assert done.returncode == 1
    assert message in done.stderr and "Traceback" not in done.stderr
