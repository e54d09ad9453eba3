"""`scena params --plot` and `scena lr-find --plot`: real plots, and a suggestion that trains."""

import math
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from scena.commands.main import main
from scena.training.schedules.params import RateFinderParams
from scena.training.schedules.rate_finder import find_rate
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
    assert "Cannot write the plot" in capsys.readouterr().err
    assert main(["params", "tests.toy", "--plot", str(tmp_path / "lr")]) == 1
    assert "The suffix of a plot's file decides its format, for example .png." in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_finder_suggests_a_rate_and_draws_it(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "find.png"
    flags = ["--picture", str(file), "--steps", "100", "--highest", "100", "--train.batch_size", "32"]
    assert main(["lr-find", "tests.toy", *flags]) == 0
    flag, value = capsys.readouterr().out.splitlines()[0].split()
    assert flag == "--learning_rate.lr"
    assert 1e-3 < float(value) < 1
    with Image.open(file) as picture:
        assert picture.size == (800, 450)
    assert not (tmp_path / "checkpoint").exists()


def test_the_finder_refuses_and_still_draws(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "find.png"
    flags = ["--plot", str(file), "--steps", "60", "--highest", "1e-5", "--train.batch_size", "32"]
    assert main(["lr-find", "tests.toy", *flags]) == 1
    output = capsys.readouterr()
    assert "scena lr-find: error: No learning rate can be suggested:" in output.err
    assert f"The losses are in {file}." in output.err and "--learning_rate.lr" not in output.out
    assert file.exists()


def test_the_finder_grows_the_rate_evenly_and_stops_when_the_loss_explodes(tmp_path: Path) -> None:
    params = toy_params(tmp_path)
    finder = RateFinderParams(lowest=1e-4, highest=1e4, steps=60)
    found = find_rate(finder, params, ToyScenario(params.scenario))
    ratios = [b / a for a, b in zip(found.rates, found.rates[1:], strict=False)]
    assert all(math.isclose(ratio, (1e8) ** (1 / 59), rel_tol=1e-3) for ratio in ratios)
    assert len(found.rates) < 60


def test_wrong_ranges() -> None:
    with pytest.raises(ValueError, match="lowest 1 must be below highest 0.1"):
        RateFinderParams(lowest=1.0, highest=0.1)
