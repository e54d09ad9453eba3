"""Parameters and data workers start without Keras and TensorFlow: an instant command line, small worker processes.

And what has to load Keras takes little more than Keras.
"""

import json
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


TRAINING = """
import gc, json, sys

collected = [0, 0, 0]
gc.callbacks.append(lambda phase, info: phase == "stop" and collected.__setitem__(info["generation"], collected[info["generation"]] + 1))

def packages():
    return {name.partition(".")[0] for name in sys.modules if not name.startswith("_")} - sys.stdlib_module_names

import scena
from scena.commands.main import main
before = list(collected)
KERAS
seen = {"while Keras loads": [now - then for now, then in zip(collected, before)], "on": gc.isenabled()}
seen["young"] = len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1))
from scena.backends.quiet import load_tensorflow
load_tensorflow()
seen |= {"objects": len(gc.get_objects()), "still on": gc.isenabled()}
there = packages()
import scena.training.loop, scena.training.prepare, scena.training.trainer
import examples.tutorial.min.scenario, examples.tutorial.min.model
print(json.dumps(seen | {"packages": sorted(packages() - there), "modules": sorted(sys.modules)}))
"""


@pytest.mark.parametrize("keras", ["load_tensorflow()", "import keras"])
def test_a_training_loads_little_beside_keras(keras: str) -> None:
    """Whether the command loads Keras or, before it, a module of the user's own."""
    own = f"from scena.backends.quiet import load_tensorflow; {keras}" if "load" in keras else keras
    done = subprocess.run(
        [sys.executable, "-c", TRAINING.replace("KERAS", own)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert set(seen["packages"]) <= {"examples", "google_crc32c", "msgspec", "safetensors"}
    late = [
        "tensorboard.plugins.hparams",
        "fsspec",
        "scena.model.zoo",
        "scena.evaluation.report",
        "scena.prediction.serving",
    ]
    assert not [name for name in seen["modules"] if name.startswith(tuple(late))]
    young, *older = seen["while Keras loads"]  # one may run before the import begins
    assert young <= 1 and older == [0, 0], "the garbage collector ran while modules were loaded"
    assert seen["on"] and seen["still on"]
    assert seen["young"] < 50_000, "the next collection would look at everything that Keras has loaded"
    assert seen["objects"] < 50_000, (
        "each full collection of the training would look at everything that Keras has loaded"
    )
