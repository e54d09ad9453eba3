"""List-file scenarios: lists of names, mixed in training, validated one by one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    DataProcessorParams,
    ListFileScenario,
    MappingDataProcessor,
    Sample,
    ScenarioBaseParams,
    SequentialProcessorPipelineParams,
    param,
)
from scena.commands.main import main
from scena.data.params import DataProcessorPipelineParams
from scena.training.trigger import Trigger
from tests.toy.params import ToyModelParams


class LoadParams(DataProcessorParams, builds=":Load"):
    """Reads eight numbers and a class from a text file."""


class LinesDataParams(DataBaseParams, builds=":LinesData"):
    """Numbers in files."""

    pre_proc: DataProcessorPipelineParams = param(SequentialProcessorPipelineParams(processors=[LoadParams()]))


class LinesParams(ScenarioBaseParams[LinesDataParams, ToyModelParams]):
    """Numbers in files."""


class Load(MappingDataProcessor[LoadParams]):
    def apply(self, sample: Sample) -> Sample:
        *numbers, label = Path(sample.inputs).read_text().split()
        values = np.array(numbers, "float32")
        return sample.new_inputs({"x": values}).new_targets({"y": np.int32(label)}).new_meta({"index": sample.inputs})


class LinesData(DataBase[LinesDataParams]):
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"x": ArraySpec((8,), "float32")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"y": ArraySpec((), "int32")}


class LinesScenario(ListFileScenario[LinesParams]):
    """Which half is larger, from files?"""

    def model_kwargs(self, data: Any) -> dict[str, Any]:
        return {"names": ["left", "right"]}


@pytest.fixture
def lists(tmp_path: Path) -> dict[str, Path]:
    """Three list files of different length."""
    rng = np.random.default_rng(0)
    made = {}
    for name, count in (("train", 24), ("easy", 6), ("hard", 10)):
        paths = []
        for number in range(count):
            values = rng.normal(size=8)
            paths.append(tmp_path / f"{name}{number}.txt")
            label = int(values[:4].sum() > values[4:].sum())
            paths[-1].write_text(" ".join(map(str, values)) + f" {label}")
        made[name] = tmp_path / f"{name}.lst"
        made[name].write_text("# a comment\n" + "\n".join(map(str, paths)) + "\n")
    return made


def test_a_list_file_scenario_trains_and_validates_each_list(
    lists: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = LinesScenario.default_trainer_params()
    params.gen.train_source.lists = [str(lists["train"])]
    params.gen.val_source.lists = [str(lists["easy"]), str(lists["hard"])]
    params.epochs, params.output_dir = 1, tmp_path / "run"
    params.lav_every_n = Trigger(1)
    row = LinesScenario.create_trainer(params).train()[0]
    assert {"val_loss", "lav_easy_loss", "lav_hard_loss", "lav_easy_acc"} <= set(row)
    assert row["val_loss"] == pytest.approx((6 * row["lav_easy_loss"] + 10 * row["lav_hard_loss"]) / 16, rel=1e-5)
    command = ["lav", str(tmp_path / "run" / "best"), "--scenario", f"{__name__}:LinesScenario"]
    assert main([*command, "--data.lists", str(lists["hard"])]) == 0
    shown = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert float(shown["acc"]) == pytest.approx(row["lav_hard_acc"], abs=1e-5)


def test_lav_may_have_lists_of_its_own(lists: dict[str, Path]) -> None:
    params = LinesScenario.default_trainer_params()
    params.gen.val_source.lists = [str(lists["easy"])]
    assert list(params.gen.lav_gen()) == [""]
    params.gen.lav.lists = [str(lists["hard"]), str(lists["train"])]
    assert list(params.gen.lav_gen()) == ["hard", "train"]


def test_without_validation_lists_nothing_is_validated(lists: dict[str, Path], tmp_path: Path) -> None:
    params = LinesScenario.default_trainer_params()
    params.gen.train_source.lists = [str(lists["train"])]
    params.epochs, params.output_dir = 1, tmp_path / "run"
    assert "val_loss" not in LinesScenario.create_trainer(params).train()[0]
    assert (tmp_path / "run" / "best" / "model.keras").is_file()
