"""Every part of a scenario can be built by its parameters, and their fields are flags."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena import Sample, ScenarioBase, TrainValParams
from scena.commands.main import main
from tests.prediction.built_parts import CountingParams, PartsScenario, PatientParams
from tests.prediction.shouting import Counting, Patient, Shouting
from tests.toy.params import HalvesParams, ToyScenarioParams
from tests.toy.scenario import ToyScenario

FLAGS = ["--scenario", "tests.prediction.built_parts", "--data.count", "3"]


def test_flags_of_a_predictor(exports: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(PartsScenario.create_predictor(exports[0]), Shouting)
    assert main(["predict", *FLAGS, "--export_dir", str(exports[0]), "--predict.marks", "2"]) == 0
    assert all(line.endswith("!!") for line in capsys.readouterr().out.splitlines())


def test_flags_of_lav(exports: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(PartsScenario.create_lav(exports[0], CountingParams(print_limit=0)), Counting)
    assert main(["lav", *FLAGS, "--export_dir", str(exports[0]), "--lav.start", "4", "--lav.print_limit", "0"]) == 0
    assert "runs  5" in capsys.readouterr().out.replace("   ", "  ")


def test_a_voter(exports: list[Path]) -> None:
    sample = Sample(inputs={"x": np.ones(8, "float32")})
    alone = [ToyScenario.create_predictor(path).predict_sample(sample).outputs["pred"] for path in exports]
    voted = PartsScenario.create_predictor(exports).predict_sample(sample)
    np.testing.assert_array_equal(voted.outputs["pred"], np.max(alone, axis=0))


def test_a_trainer(tmp_path: Path) -> None:
    class PatientScenario(ScenarioBase[ToyScenarioParams, TrainValParams[HalvesParams]]):
        """A scenario with a trainer of its own."""

        trainer_params = PatientParams

    params: Any = PatientScenario.default_trainer_params()
    params.patience, params.output_dir = 5, tmp_path / "run"
    assert isinstance(params, PatientParams) and isinstance(PatientScenario.create_trainer(params), Patient)
    assert isinstance(params.scenario, ToyScenarioParams)
