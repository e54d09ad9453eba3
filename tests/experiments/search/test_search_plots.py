"""Plots of a study, and the ready space of depth and factor."""

from pathlib import Path

import matplotlib
import numpy as np
import optuna
import pytest
from PIL import Image

from scena.experiments.search.plots import grid_axes, grid_values, overview, write_plots
from scena.experiments.search.space import SearchSpace, ready_space
from scena.model.zoo.params import NetworkParams
from scena.params import Params, param, parse


class Model(Params):
    """A model with a network of the zoo."""

    network: NetworkParams = param(help="the network")


class Tree(Params):
    """A root."""

    model: Model = param(help="the model")


def test_the_ready_space_is_depth_by_factor_of_a_network_of_the_zoo() -> None:
    axes = ready_space("depth_factor", Tree(), ["--model.network.name", "MobileNetV2"])
    space = SearchSpace(axes, Tree(), ["--model.network.name", "MobileNetV2"])
    space.check()
    combinations = list(space.combinations())
    assert len(combinations) == 16
    last = parse(Tree(), [*space.flags, *space.words(combinations[-1])]).params.model.network
    assert (last.name, last.depth, last.factor) == ("MobileNetV2", [2.0], 8)


@pytest.fixture
def study() -> optuna.Study:
    """Trials over depth, factor and a learning rate; one of them failed."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = optuna.create_study(direction="maximize")
    for number in range(12):
        trial = made.ask()
        depth, factor = (
            trial.suggest_categorical("net.depth", [0.5, 1, 2]),
            trial.suggest_categorical("net.factor", [1, 2]),
        )
        rate = trial.suggest_float("learning_rate.lr", 1e-4, 1e-1, log=True)
        if number == 5:
            made.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            made.tell(trial, depth / factor + rate)
    return made


def test_every_plot_is_written_as_png_and_html(study: optuna.Study, tmp_path: Path) -> None:
    written = write_plots(study, tmp_path)
    names = ("history", "importance", "parallel_coordinates", "grid")
    assert written == [tmp_path / f"{name}.{kind}" for name in names for kind in ("png", "html")]
    for path in written:
        if path.suffix == ".png":
            with Image.open(path) as picture:
                assert len(picture.convert("RGB").resize((64, 64)).getcolors(5000) or []) > 20
        else:
            text = path.read_text()
            assert "plotly.min.js" in text and "https://cdn" not in text
    assert (tmp_path / "plotly.min.js").stat().st_size > 1_000_000
    assert write_plots(optuna.create_study(), tmp_path / "none") == []


def test_one_plot_shows_the_values_and_the_importance_of_the_parameters(study: optuna.Study) -> None:
    history, bars = overview(study).axes
    values = [trial.value for trial in study.trials if trial.value is not None]
    trials, best = history.lines
    assert list(np.asarray(trials.get_ydata())) == values
    assert list(np.asarray(best.get_ydata())) == list(np.maximum.accumulate(values))
    assert {label.get_text() for label in bars.get_yticklabels()} == {"net.depth", "net.factor", "learning_rate.lr"}
    single = optuna.create_study()
    single.tell(single.ask(), 1.0)
    assert len(overview(single).axes) == 1  # nothing to compare


def test_later_plots_of_the_process_keep_their_style(study: optuna.Study, tmp_path: Path) -> None:
    matplotlib.use("Agg")
    with matplotlib.rc_context():
        matplotlib.rcParams.update({"text.color": "blue", "axes.grid": False})
        before = dict(matplotlib.rcParams)
        write_plots(study, tmp_path)
        assert dict(matplotlib.rcParams) == before


def test_the_grid_shows_the_best_value_of_each_pair(study: optuna.Study) -> None:
    complete = [trial for trial in study.trials if trial.value is not None]
    assert grid_axes(complete) == ("net.depth", "net.factor")
    down, across, cells = grid_values(complete, ("net.depth", "net.factor"), max)
    assert down == sorted(down) and across == sorted(across)
    for row, depth in zip(cells, down, strict=True):
        for value, factor in zip(row, across, strict=True):
            own = [t.value for t in complete if (t.params["net.depth"], t.params["net.factor"]) == (depth, factor)]
            assert value == max(own) if own else value != value
