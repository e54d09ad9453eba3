"""Real runs of the toy scenario, trained once."""

import json
import shutil
from pathlib import Path

import pytest

from tests.zygote import Zygote


@pytest.fixture(scope="session")
def trained(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the finished runs `a` (one epoch, 4 units) and `b` (two epochs, 9 units, SGD)."""
    folder, log = tmp_path_factory.mktemp("trained"), tmp_path_factory.mktemp("trained") / "log"
    assert zygote.run(folder, function="tests.experiments.trainings:train", log=log) == 0, log.read_text()
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
