"""`DataBase.default_params` sets up processors: in `--help`, in training and in all that follows."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.zygote import ROOT, Zygote

DATA = """
from scena import MappingDataProcessor, SequentialProcessorPipelineParams
from tests.toy.data import Halves, ToyData

from .params import HalvesDataParams, ScaleParams


class Scale(MappingDataProcessor[ScaleParams]):
    def apply(self, sample):
        return sample.new_inputs({"x": sample.inputs["x"] * self.params.factor})


class HalvesData(ToyData):
    @classmethod
    def default_params(cls):
        return HalvesDataParams(pre_proc=SequentialProcessorPipelineParams(processors=[ScaleParams(factor=0.0)]))
"""
PARAMS = '''
from scena import DataProcessorParams, ScenarioBaseParams, param
from tests.toy.params import ToyDataParams, ToyModelParams


class ScaleParams(DataProcessorParams, builds=".data:Scale"):
    """Multiplies."""

    factor: float = param(1.0, help="factor")


class HalvesDataParams(ToyDataParams, builds=".data:HalvesData"):
    """Eight numbers."""


class MoreParams(HalvesDataParams):
    """The same, chosen by name."""

    more: int = param(1, help="one more")


class HalvesScenarioParams(ScenarioBaseParams[HalvesDataParams, ToyModelParams]):
    """Parameters."""
'''
SCENARIO = '''
from scena import ScenarioBase, TrainValParams
from tests.toy.params import HalvesParams

from .params import HalvesScenarioParams


class HalvesScenario(ScenarioBase[HalvesScenarioParams, TrainValParams[HalvesParams]]):
    """Halves."""
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder with a scenario whose data class has default parameters of its own."""
    folder = tmp_path_factory.mktemp("defaults")
    (folder / "halves").mkdir()
    for name, text in {"__init__": "", "data": DATA, "params": PARAMS, "scenario": SCENARIO}.items():
        (folder / "halves" / f"{name}.py").write_text(text)
    return folder


def scena(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "scena", *words]
    done = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_help_and_params_show_them(folder: Path) -> None:
    shown = scena(folder, "train", "halves", "--help")
    assert "--data.pre_proc.processors.Scale.factor" in shown
    assert "default: 0.0" in shown.partition("--data.pre_proc.processors.Scale.factor")[2][:200]
    assert "factor: 0.0" in scena(folder, "params", "halves", "--all")


def test_a_class_that_is_chosen_by_name_has_them_too(folder: Path) -> None:
    shown = scena(folder, "params", "halves", "--all", "--data", "More", "--data.more", "3")
    assert "factor: 0.0" in shown and "more: 3" in shown


def test_training_lav_and_prediction_use_them(zygote: Zygote, folder: Path) -> None:
    flags = "--trainer.epochs 1 --trainer.random_seed 1 --trainer.output_dir run --trainer.export_final False"
    log = folder / "log"
    assert zygote.run("train", "halves", *flags.split(), log=log, folder=folder) == 0, log.read_text()
    stored = json.loads((folder / "run/trainer_params.json").read_text())["trainer"]["scenario"]["data"]
    assert stored["pre_proc"]["processors"] == [{"class": "Scale", "modes": stored_modes(stored), "factor": 0.0}]
    assert zygote.run("predict", "run/best", "--out", "out.jsonl", log=log, folder=folder) == 0, log.read_text()
    outputs = {
        json.dumps(json.loads(line)["outputs"]["pred"]) for line in (folder / "out.jsonl").read_text().splitlines()
    }
    assert len(outputs) == 1  # every input is zero


def stored_modes(stored: dict[str, dict[str, list[dict[str, object]]]]) -> object:
    return stored["pre_proc"]["processors"][0]["modes"]


def test_a_data_class_is_imported_for_help_only_if_it_may_have_them(folder: Path, tmp_path: Path) -> None:
    probe = (
        "import sys\nfrom scena.scenario.finding import find_scenario\n"
        "find_scenario(sys.argv[1]).default_trainer_params()\n"
        "print([name for name in ('numpy', sys.argv[2]) if name in sys.modules])"
    )

    def loaded(where: Path, scenario: str, module: str) -> str:
        command = [sys.executable, "-c", probe, scenario, module]
        done = subprocess.run(
            command, cwd=where, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert loaded(folder, "halves", "halves.data") == "['numpy', 'halves.data']"
    assert loaded(tmp_path, "tests.toy.scenario", "tests.toy.data") == "[]"


def test_parameters_of_another_class_are_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "halves", tmp_path / "halves")
    data = tmp_path / "halves/data.py"
    data.write_text(data.read_text().replace("return HalvesDataParams(", "return ScaleParams() or HalvesDataParams("))
    command = [sys.executable, "-m", "scena", "train", "halves", "--help"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        "scena train: error: HalvesData.default_params() must return HalvesDataParams, whose `builds` names it. "
        "Received: ScaleParams.\n"
    )
