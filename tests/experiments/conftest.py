"""Real runs of the toy scenario, trained once."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRAIN = """
import sys
from pathlib import Path
from scena.training.optimizers.params import SGD
from tests.toy.scenario import ToyScenario
for name, epochs, units in (("a", 1, 4), ("b", 2, 9)):
    params = ToyScenario.default_trainer_params()
    params.epochs, params.output_dir, params.random_seed = epochs, Path(sys.argv[1]) / name, 3
    params.scenario.model.units = units
    if name == "b":
        params.optimizer = SGD()
    ToyScenario.create_trainer(params).train()
"""


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the finished runs `a` (one epoch, 4 units) and `b` (two epochs, 9 units, SGD)."""
    folder = tmp_path_factory.mktemp("trained")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", TRAIN, str(folder)], env=environment, check=True, capture_output=True)
    return folder


@pytest.fixture
def runs(trained: Path, tmp_path: Path) -> Path:
    """A copy of them, with `deep/c`, a run that has had one of five epochs."""
    folder = tmp_path / "runs"
    shutil.copytree(trained, folder)
    shutil.copytree(trained / "a", folder / "deep" / "c")
    path = folder / "deep" / "c" / "trainer_params.json"
    stored = json.loads(path.read_text())
    stored["trainer"]["epochs"] = 5
    path.write_text(json.dumps(stored))
    return folder
