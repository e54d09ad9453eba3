"""`scena tune` on the real program with the toy scenario."""

import json
import os
import sqlite3
from pathlib import Path

import pytest
import yaml
from PIL import Image

from scena.commands.main import main
from tests.experiments.program import scena, start, stop, wait_for


def test_trials_are_ordinary_runs_with_plots_and_the_best_parameters(tmp_path: Path) -> None:
    command = (
        "tune tests.toy --search model.units=2,6 learning_rate.lr=0.03 --sampler grid --direction max --output out "
        "--cpus 0 1 --trainer.epochs 2 --trainer.random_seed 1 --plot search.svg"
    )
    done = scena(command, tmp_path)
    assert "2 complete" in done.stderr and "\nbest: trial " in done.stdout
    assert done.stdout.startswith("Plot: search.svg\n") and "best so far" in (tmp_path / "search.svg").read_text()
    out = tmp_path / "out"
    runs = [
        json.loads((out / f"trials/{name}/trainer_params.json").read_text())["trainer"] for name in ("0000", "0001")
    ]
    assert [run["scenario"]["model"]["units"] for run in runs] == [2, 6]
    assert {run["learning_rate"]["lr"] for run in runs} == {0.03}
    plots = ["history", "importance", "parallel_coordinates", "grid"]
    found = {path.name for path in (out / "plots").iterdir()}
    assert {f"{name}.html" for name in plots if name != "importance"} <= found and "plotly.min.js" in found
    for name in found:
        if name.endswith(".png"):
            with Image.open(out / "plots" / name) as picture:
                assert picture.width >= 250 and len(picture.convert("L").getcolors() or []) > 2
    best = yaml.safe_load((out / "best.yaml").read_text())
    assert best["trainer"] == {"epochs": 2, "random_seed": 1} and best["learning_rate"] == {"lr": 0.03}
    assert best["model"]["units"] in (2, 6)
    check_hparams(out / "trials" / "0001" / "tensorboard", {"model.units": 6, "learning_rate.lr": 0.03})
    again = scena(command, tmp_path)
    assert "Trial" not in again.stderr and again.stdout == done.stdout, "nothing is left to do"


def test_a_refused_search_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("scena.experiments.search.objective.ask", lambda *_: ("max", "acc"))
    words = ["tune", "tests.toy", "--search", "model.units=2,3", "--sampler", "grid", "--metric", "other"]
    assert main(words) == 2 and "--metric other needs --direction" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine").mkdir()
    assert main([*words, "--output", "mine"]) == 2
    assert (tmp_path / "mine").is_dir(), "a folder that was there stays"


def check_hparams(folder: Path, values: dict[str, float]) -> None:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.plugins.hparams import plugin_data_pb2

    (path,) = folder.glob("events.*")
    found = {}
    for event in EventFileLoader(str(path)).Load():
        for value in event.summary.value:
            data = plugin_data_pb2.HParamsPluginData.FromString(value.metadata.plugin_data.content)
            found |= {name: item.number_value for name, item in data.session_start_info.hparams.items()}
    assert found == values


@pytest.mark.long
def test_a_killed_search_goes_on_exactly_and_asks_the_model_what_is_best(tmp_path: Path) -> None:
    command = (
        "tune tests.toy --search model.units=2,3 --sampler grid --output {} --trainer.epochs 60 --trainer.random_seed 1"
    )
    process = start(command.format("killed"), tmp_path)
    history = tmp_path / "killed/trials/0000/history.csv"
    wait_for(lambda: history.exists() and len(history.read_text().splitlines()) > 4, 120)
    stop(process, 9)
    wait_for(lambda: "SIGTERM" in (tmp_path / "killed/logs/0000.log").read_text(), 60)
    done = scena(command.format("killed"), tmp_path)
    assert "Trial 0 resumed" in done.stderr and "2 complete" in done.stderr
    scena(command.format("whole"), tmp_path)

    def values(name: str) -> list[tuple[int, float, float]]:
        with sqlite3.connect(tmp_path / name / "study.db") as database:
            query = "select trial_id, step, intermediate_value from trial_intermediate_values order by trial_id, step"
            return database.execute(query).fetchall()

    assert len(values("whole")) == 120 and values("killed") == values("whole")
    with sqlite3.connect(tmp_path / "whole/study.db") as database:
        assert database.execute("select direction from study_directions").fetchall() == [("MAXIMIZE",)]


def test_dry_run_prints_a_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = "tune tests.toy --search optimizer=Adam,SGD optimizer.momentum=0:0.9 --trainer.epochs 2 --dry_run"
    assert main(words.split()) == 0
    assert capsys.readouterr().out == (
        "scena train tests.toy --trainer.epochs 2 --optimizer=Adam --trainer.output_dir=tune/toy/trials/0000\n"
    )
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("tests.toy", "choose what to vary: --search"),
        ("tests.toy --search model.unit=1,2", "--search: model.unit does not exist; did you mean model.units?"),
        ("tests.toy --search model.units=0:4", "--search: --model.units must be >= 1, received 0"),
        (
            "tests.toy --search model.units=1:4 --trainer.epoch 3",
            "--trainer.epoch does not exist; did you mean --trainer.epochs?",
        ),
        ("tests.toy --search model.units=1:4 --trainer.output_dir x", "--trainer.output_dir cannot be given"),
        (
            "tests.toy --search model.units=1:4 --sampler tpf",
            "--sampler: expected one of tpe, random, grid, received 'tpf'",
        ),
        (
            "tests.toy --search learning_rate.lr=1e-4:1e-2 --sampler grid",
            "--sampler grid needs a list or steps: learning_rate.lr=1e-4:1e-2 has no end of values.",
        ),
        (
            "tests.toy --search trainer.output_dir=a,b",
            "--search trainer.output_dir: each trial has a directory of its own",
        ),
        ("tests.toy --space depth_factor", "this scenario has no network with a depth and a factor"),
        ("tests.toy --space width", "--space width: the only predefined space is depth_factor."),
    ],
)
def test_wrong_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["tune", *words.split()]) != 0
    assert message in capsys.readouterr().err and os.listdir(tmp_path) == []
