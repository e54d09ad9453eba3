"""Searches with stand-in trials: samplers, pruners, failures, and a search that is killed again and again."""

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from scena.errors import ExperimentError
from scena.experiments.search.study import explaining_storage, open_storage, open_study, storage_url
from tests.experiments.program import ROOT
from tests.experiments.search.drive_search import EPOCHS, search

UNITS = "model.units=1:9"


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def starts(output: Path) -> list[tuple[str, str, dict[str, Any]]]:
    lines = (output / "starts").read_text().splitlines()
    return [(how, name, json.loads(values)) for how, name, values in (line.split(" ", 2) for line in lines)]


def test_trials_report_each_epoch_and_the_best_is_found(tmp_path: Path) -> None:
    study = search(tmp_path, [UNITS, "learning_rate.lr=log:1e-4:1e-1"], 8)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 8
    assert all(list(trial.intermediate_values) == list(range(1, EPOCHS + 1)) for trial in study.trials)
    best = study.best_trial
    assert best.value == max(best.intermediate_values.values())
    assert best.params["model.units"] == min(
        (trial.params["model.units"] for trial in study.trials), key=lambda n: abs(n - 5)
    )
    assert Path(best.user_attrs["directory"]).is_dir()


def test_a_failed_trial_does_not_end_the_search_and_conditions_hold(tmp_path: Path) -> None:
    study = search(tmp_path, ["optimizer=Adam,SGD", "optimizer.momentum=0,0.9"], 0, sampler="grid")
    states = {tuple(trial.params.values()): trial.state.name for trial in study.trials}
    assert states == {("Adam",): "COMPLETE", ("SGD", 0): "COMPLETE", ("SGD", 0.9): "FAIL"}
    failed = next(trial for trial in study.trials if trial.state.name == "FAIL")
    assert failed.user_attrs["error"] == "failed with status 1: out of memory"


def test_a_grid_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    axes = [UNITS]
    search(tmp_path, axes, 0, sampler="grid")
    assert len(starts(tmp_path)) == 9
    study = search(tmp_path, axes, 0, sampler="grid")
    assert len(starts(tmp_path)) == 9 and sorted(trial.params["model.units"] for trial in study.trials) == list(
        range(1, 10)
    )


@pytest.mark.parametrize("pruner", ["median", "hyperband"])
def test_trials_that_are_not_worth_it_end_early(tmp_path: Path, pruner: str) -> None:
    study = search(tmp_path, [UNITS], 14, sampler="random", pruner=pruner, slots=1)
    states = Counter(trial.state.name for trial in study.trials)
    assert states["PRUNED"] >= 2 and states["COMPLETE"] + states["PRUNED"] == 14
    for trial in study.trials:
        epochs = int((tmp_path / "trials" / f"{trial.number:04}" / "epoch").read_text())
        assert epochs == max(trial.intermediate_values) and (trial.state.name != "PRUNED" or epochs < EPOCHS)


def test_a_seed_does_not_draw_the_same_values_again_when_the_search_goes_on(tmp_path: Path) -> None:
    axes = ["learning_rate.lr=log:1e-6:1"]
    search(tmp_path / "a", axes, 3, sampler="random", slots=1)
    study = search(tmp_path / "a", axes, 6, sampler="random", slots=1)
    drawn = [trial.params["learning_rate.lr"] for trial in study.trials]
    assert len(set(drawn)) == 6
    again = search(tmp_path / "b", axes, 3, sampler="random", slots=1)
    assert [trial.params["learning_rate.lr"] for trial in again.trials] == drawn[:3]


def test_another_search_does_not_go_into_the_same_study(tmp_path: Path) -> None:
    search(tmp_path, [UNITS], 1)
    with pytest.raises(ExperimentError, match=r"The study 'test' is another search \(search: .* before, .* now\)"):
        search(tmp_path, ["model.units=1:4"], 1)
    with pytest.raises(ExperimentError, match="--storage nonsense: cannot be opened"):
        search(tmp_path, [UNITS], 1, storage="nonsense")


def test_a_search_killed_again_and_again_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_SECONDS", "0.25")  # so slow that even a quick machine is killed several times
    options = {
        "output": str(tmp_path),
        "axes": ["optimizer=Adam,SGD", UNITS],
        "trials": 10,
        "sampler": "random",
        "seed": 3,
    }
    rng = random.Random(5)
    kills = 0
    while True:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.experiments.search.drive_search", json.dumps(options)], cwd=ROOT
        )
        try:
            assert process.wait(rng.uniform(2.5, 4.5) if kills < 4 else 120) == 0
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            time.sleep(0.3)
    study = search(tmp_path, options["axes"], 10)  # type: ignore[arg-type]  # nothing is left to do
    assert kills >= 2
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 10
    assert all(list(trial.intermediate_values) == list(range(1, EPOCHS + 1)) for trial in study.trials)
    begun = starts(tmp_path)
    assert Counter(name for how, name, _ in begun if how == "train") == {f"{number:04}": 1 for number in range(10)}
    for trial in study.trials:  # each process of a trial had the trial's own values
        assert all(values == trial.params for _, name, values in begun if name == f"{trial.number:04}")


def test_damage_of_an_open_study_is_one_line(tmp_path: Path) -> None:
    storage = open_storage(storage_url(None, tmp_path))
    study = open_study(storage, "test", "min", {})
    (tmp_path / "study.db").write_bytes(b"not a database any more" * 1000)
    with (
        pytest.raises(
            ExperimentError, match=r"The study cannot be read or written any more: .*[^)]\. The runs of its trials"
        ),
        explaining_storage(),
    ):
        study.ask()
    with pytest.raises(KeyError), explaining_storage():
        raise KeyError("not the storage's")
