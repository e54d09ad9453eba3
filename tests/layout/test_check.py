"""What `make check` looks at holds in CI too: format, lint and types."""

import subprocess
import sys

import pytest

from tests.layout.sources import ROOT

COMMANDS = {
    "format": "ruff format --check --quiet --output-format concise",
    "lint": "ruff check --quiet --output-format concise",
    "types": "mypy --no-error-summary",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_tools_find_nothing(name: str) -> None:
    command = [sys.executable, "-m", *COMMANDS[name].split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n`make format` repairs format, and much of lint."
