"""`scena params --plot` and `scena lr-find --plot`: real plots, and a suggestion that trains."""

import math
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from scena import TrainValParams
from scena.commands.main import main
from scena.training.schedules.params import RateFinderParams
from scena.training.schedules.rate_finder import find_rate, prepare_trials
from scena.training.schedules.rate_trials import Trials
from scena.training.trigger import Trigger
from tests.toy.params import HalvesParams
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import toy_params


def test_a_picture_of_the_schedule(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "pictures" / "lr.png"
    flags = ["--learning_rate", "OneCycle", "--learning_rate.lr", "0.1", "--trainer.epochs", "5"]
    assert main(["params", "tests.toy", "--plot", str(file), *flags]) == 0
    assert "OneCycle over 5 epochs of 4 steps" in capsys.readouterr().out
    with Image.open(file) as opened:
        picture = opened.convert("RGB")
    assert picture.size == (800, 450)
    assert len(picture.getcolors(maxcolors=100_000) or []) > 50  # there are curves


def test_a_plot_that_cannot_be_written_is_an_error(tmp_path: Path, capsys: Any) -> None:
    assert main(["params", "tests.toy", "--plot", str(tmp_path / "lr.nothing")]) == 1
    assert "The suffix of a plot's file decides its format, for example .png." in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    assert main(["params", "tests.toy", "--plot", str(tmp_path / "file" / "lr.png")]) == 1
    assert f"Cannot write the plot {tmp_path}/file/lr.png" in capsys.readouterr().err


def test_the_finder_compares_trainings_and_draws_the_range_test(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "find.png"
    flags = ["--plot", str(file), "--steps", "100", "--highest", "100", "--train.batch_size", "32"]
    outputs = []
    for _ in range(2):
        assert main(["lr-find", "tests.toy", *flags, "--budget", "1000steps"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]  # the same weights and batches for each rate
    first, comment, head, *rows = outputs[0].splitlines()
    flag, value = first.split()
    assert flag == "--learning_rate.lr"
    assert "trainings with" in comment and head.split() == ["#", "rate", *"18 steps 54 steps 163 steps".split()]
    losses = {row.split()[1]: [float(loss) for loss in row.split()[2:]] for row in rows[:-2]}
    assert len(losses) >= 7 and losses[value][-1] <= 1.1 * min(map(min, losses.values()))
    assert rows[-2].startswith("# before training: 0.")
    with Image.open(file) as picture:
        assert picture.size == (800, 450)
    assert not (tmp_path / "checkpoint").exists()


class TrainingOnly(TrainValParams[HalvesParams]):
    def val_gen(self) -> None:
        return None


def test_without_validation_data_the_range_test_decides(tmp_path: Path) -> None:
    params = toy_params(tmp_path, gen=TrainingOnly(), gen__train__batch_size=32)
    found = find_rate(RateFinderParams(highest=100, steps=100), params, ToyScenario(params.scenario))
    assert found.suggestion is not None and not found.trials
    assert found.note == "there is no validation data, so no trainings were compared"


def test_trials_start_from_the_same_state(tmp_path: Path) -> None:
    """Dropout, batch order and the optimizer's state included."""
    params = toy_params(tmp_path)
    trials = Trials(prepare_trials(params, ToyScenario(params.scenario), None))
    once = trials.loss_reached(0.01, 20)
    assert trials.loss_reached(0.1, 20) != once
    assert trials.loss_reached(0.01, 20) == once
    assert trials.loss_reached(1e38, 20) == math.inf


def test_the_finder_refuses_and_still_draws(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "find.png"
    flags = ["--plot", str(file), "--steps", "60", "--highest", "1e-5", "--train.batch_size", "32"]
    assert main(["lr-find", "tests.toy", *flags]) == 1
    output = capsys.readouterr()
    assert "scena lr-find: error: No learning rate can be suggested:" in output.err
    assert f"The losses of the range test are in {file}." in output.err and "--learning_rate.lr" not in output.out
    assert file.exists()


def test_the_finder_grows_the_rate_evenly_and_stops_when_the_loss_explodes(tmp_path: Path) -> None:
    params = toy_params(tmp_path)
    finder = RateFinderParams(lowest=1e-4, highest=1e4, steps=60, budget=Trigger(0))
    found = find_rate(finder, params, ToyScenario(params.scenario))
    ratios = [b / a for a, b in zip(found.rates, found.rates[1:], strict=False)]
    assert all(math.isclose(ratio, (1e8) ** (1 / 59), rel_tol=1e-3) for ratio in ratios)
    assert len(found.rates) < 60


def test_wrong_ranges() -> None:
    with pytest.raises(ValueError, match="lowest 1 must be below highest 0.1"):
        RateFinderParams(lowest=1.0, highest=0.1)
    with pytest.raises(
        ValueError, match="budget is a time or a number of steps, for example 4min or 5000steps; received 3"
    ):
        RateFinderParams(budget=Trigger(3))
