"""Plugins of installed packages: found by name, imported when chosen, and explained when they do not work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ENTRY_POINTS = """[console_scripts]
other = other:main

[scena.plugins]
Optimizer.Slow = slow_package.optimizers
Optimizer.Broken = slow_package.broken
Optimizer.Lost = slow_package.empty
"""
OPTIMIZERS = '''"""An optimizer of another package."""

print("IMPORTED")

from scena import param
from scena.training.optimizers.params import GradientOptimizerParams


class SlowParams(GradientOptimizerParams, builds="keras.optimizers:SGD"):
    """Takes its time."""

    patience: int = param(3, ge=1, help="how slow")
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on the path in which a package with plugins is installed."""
    site = tmp_path_factory.mktemp("site")
    (site / "slow_package").mkdir()
    (site / "slow_package" / "__init__.py").touch()
    (site / "slow_package" / "optimizers.py").write_text(OPTIMIZERS)
    (site / "slow_package" / "broken.py").write_text("import not_there\n")
    (site / "slow_package" / "empty.py").touch()
    (site / "slow_package-1.2.dist-info").mkdir()
    (site / "slow_package-1.2.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    return site


def scena(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "scena", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_help_lists_plugins_without_importing_them(site: Path) -> None:
    done = scena(site, "train", "examples.tutorial.min", "--help")
    assert "Slow" in done.stdout and "IMPORTED" not in done.stdout


def test_a_plugin_that_is_chosen_brings_its_flags(site: Path) -> None:
    done = scena(site, "train", "examples.tutorial.min", "--optimizer", "Slow", "--help")
    assert "--optimizer.patience INT" in done.stdout
    assert "how slow (≥ 1; default: 3)" in " ".join(done.stdout.split())


def test_an_unknown_name_lists_plugins_too(site: Path) -> None:
    done = scena(site, "train", "examples.tutorial.min", "--optimizer", "Slo")
    assert done.returncode == 2
    assert "did you mean Slow?" in done.stderr and "IMPORTED" not in done.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Broken", "Optimizer 'Broken' of the package slow_package 1.2 cannot be imported: ModuleNotFoundError"),
        ("Lost", "An installed plugin declares 'Lost', but its module defines no such class."),
    ],
)
def test_a_plugin_that_does_not_work_is_named(site: Path, name: str, message: str) -> None:
    done = scena(site, "train", "examples.tutorial.min", "--optimizer", name, "--help")
    assert done.returncode == 1
    assert message in done.stderr and "Traceback" not in done.stderr
