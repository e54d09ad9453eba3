"""Environments of their own, for packages that need other versions than the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def own_environment(folder: Path, group: str) -> Path:
    """The interpreter of a new environment with what `requirements/GROUP.txt` pins; skips the test if it cannot be installed."""
    uv, python = Path(sys.executable).with_name("uv"), folder / "bin" / "python"
    lock = ROOT / "requirements" / f"{group}.txt"
    for command in (["venv", folder], ["pip", "install", "--no-deps", "--python", python, "-r", lock]):
        done = subprocess.run([uv, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{group} cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    return python
