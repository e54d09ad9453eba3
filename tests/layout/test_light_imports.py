"""Parameters and data workers start without Keras and TensorFlow: an instant command line, small worker processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.layout.sources import ROOT, module_name, python_files

PROBE = """
import importlib, sys
heavy = sys.argv[1].split(",")
for name in sys.argv[2:]:
    importlib.import_module(name)
    loaded = [package for package in heavy if package in sys.modules]
    if loaded:
        sys.exit(f"importing {name} loads {', '.join(loaded)}")
"""


def is_params(path: Path) -> bool:
    return path.name == "params.py" or path.relative_to(ROOT).parts[:2] == ("scena", "params")


def assert_light(paths: list[Path], heavy: list[str]) -> None:
    names = [module_name(path) for path in paths]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, ",".join(heavy), *names], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("folder", ["scena", "examples"])
def test_parameters_import_nothing_heavy(folder: str) -> None:
    assert_light(
        [path for path in python_files(folder) if is_params(path)], ["keras", "tensorflow", "numpy", "pandas", "PIL"]
    )


def test_what_a_data_worker_needs_imports_no_tensorflow() -> None:
    """What needs TensorFlow has a folder of its own, `scena/data/tensorflow`."""
    data = [path for path in python_files("scena") if path.relative_to(ROOT).parts[1] == "data"]
    assert_light([path for path in data if path.parent.name != "tensorflow"], ["keras", "tensorflow"])


def test_what_prints_and_votes_needs_no_keras() -> None:
    """A prediction without Keras (an ONNX model) reads data, prints samples and lets models vote."""
    tutorial = [
        ROOT / "examples" / "tutorial" / "full" / f"{name}.py" for name in ("params", "data", "processors", "voter")
    ]
    scena = [ROOT / "scena" / name for name in ("data/database.py", "prediction/predictor.py", "prediction/voting.py")]
    assert_light([*tutorial, *scena, ROOT / "examples/tutorial/full/evaluator.py"], ["keras", "tensorflow"])
