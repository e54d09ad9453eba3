"""`--seeds` of train, experiment and tune: which seeds, which runs, and what a kill leaves to do."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from scena.commands.main import main
from scena.errors import ExperimentError
from scena.experiments.schedulers.local import LocalScheduler
from scena.experiments.schedulers.params import LocalParams
from scena.experiments.search.study import close_storage, find_study, open_storage, storage_url
from scena.experiments.seeds import default_folder, derived_seeds, seed_runs, with_seeds, without_flags
from scena.experiments.sheets.experiment import Experiment
from scena.experiments.sheets.sheet import Flag, SheetRun
from scena.experiments.stored_run import read_history
from tests.experiments.program import ROOT, scena, start, wait_for
from tests.experiments.search.drive_search import EPOCHS, search
from tests.faults.harness import fingerprint


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_seeds_follow_from_the_first_and_never_repeat() -> None:
    assert derived_seeds(7, 1) == [7] and derived_seeds(7, 3) == derived_seeds(7, 9)[:3]
    many = [seed for first in range(20) for seed in derived_seeds(first, 20)]
    assert len(set(many)) == len(many) and all(0 <= seed < 2**32 for seed in many)


def test_the_given_seed_and_directory_are_replaced() -> None:
    words = ["--model.units", "3", "--trainer.random-seed", "5", "--trainer.output_dir=x", "--train.lists", "a", "b"]
    assert without_flags(words, ("trainer.random_seed", "trainer.output_dir")) == [
        "--model.units", "3", "--train.lists", "a", "b",
    ]  # fmt: skip
    first, second = seed_runs("seed-", ["scena", "train", "toy"], words, 5, 2)
    assert first.id == "seed-5" and first.words()[-2:] == ["--trainer.random_seed", "5"]
    assert second.id == f"seed-{derived_seeds(5, 2)[1]}" and "x" not in " ".join(second.words())
    assert default_folder("a.b.scenario:C", words) == default_folder("a.b.scenario:C", words)
    assert default_folder("a.b.scenario:C", words) != default_folder("a.b.scenario:C", words[2:])


def test_each_training_of_a_sheet_gets_its_seeds() -> None:
    flags = [Flag("trainer.random_seed", ["4"]), Flag("trainer.output_dir", ["out/x"])]
    runs = with_seeds([SheetRun("x", ["scena", "train", "toy"], flags), SheetRun("y", ["z.py"], [], skip=True)], 2)
    other = derived_seeds(4, 2)[1]
    assert [run.id for run in runs] == ["x-seed-4", f"x-seed-{other}", "y"]
    assert runs[1].words()[3:] == ["--trainer.output_dir", f"out/x/seed-{other}", "--trainer.random_seed", str(other)]
    with pytest.raises(ExperimentError, match=r"row 5: --seeds is for runs of `scena train`, and y runs `z.py`"):
        with_seeds([SheetRun("y", ["z.py"], [], where="row 5")], 2)


def test_more_seeds_add_runs_and_changed_flags_are_refused(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tests.experiments.stand_in_trainer "$@"\n')
    python.chmod(0o755)

    def carried_out(count: int, *flags: str) -> list[str]:
        runs = seed_runs("seed-", ["scena", "train", "toy"], ["--trainer.epochs", "2", *flags], 0, count)
        experiment = Experiment(runs, tmp_path, str(python), remedy="choose another --trainer.output_dir")
        LocalScheduler(LocalParams(cpus=[2])).run(experiment)
        return [f"{planned.state}: {planned.note}" for planned in experiment.runs]

    assert [state.partition(":")[0] for state in carried_out(2)] == ["done"] * 2
    assert [state.partition(":")[0] for state in carried_out(3)] == ["done"] * 3
    started = (tmp_path / "starts").read_text().splitlines()
    assert Counter(line.split()[1] for line in started) == {f"seed-{seed}": 1 for seed in derived_seeds(0, 3)}
    assert set(carried_out(1, "--model.units", "9")) == {
        "changed: its parameters have changed since it was started; choose another --trainer.output_dir"
    }


def test_the_value_of_a_trial_is_the_mean_over_its_seeds(tmp_path: Path) -> None:
    seeds = [0, 100, 260]
    study = search(tmp_path, ["model.units=5,7"], 0, sampler="grid", seeds=seeds)
    for trial in study.trials:
        base = 1 - (trial.params["model.units"] - 5) ** 2 / 100 + EPOCHS / 1000
        assert trial.value == pytest.approx(base + sum(seeds) / 3 / 10000)
        assert trial.user_attrs["seeds"] == {str(seed): pytest.approx(base + seed / 10000) for seed in seeds}
        assert not trial.intermediate_values
        assert sorted(path.name for path in Path(trial.user_attrs["directory"]).iterdir()) == [
            "seed-0", "seed-100", "seed-260",
        ]  # fmt: skip


def test_a_failed_seed_fails_its_trial_and_starts_no_others(tmp_path: Path) -> None:
    study = search(tmp_path, ["optimizer=SGD", "optimizer.momentum=0.9"], 0, sampler="grid", seeds=[1, 2, 3], slots=1)
    assert [trial.state.name for trial in study.trials] == ["FAIL"]
    assert len((tmp_path / "starts").read_text().splitlines()) == 1


def test_a_search_over_seeds_that_is_killed_repeats_no_finished_run(tmp_path: Path) -> None:
    options = {"output": str(tmp_path), "axes": ["model.units=4,5,6"], "trials": 0, "sampler": "grid", "seeds": [1, 2]}
    command = [sys.executable, "-m", "tests.experiments.search.drive_search", json.dumps(options)]
    chance = random.Random(3)
    for _ in range(3):
        process = subprocess.Popen(command, env={**os.environ, "STAND_IN_SECONDS": "0.02"}, cwd=ROOT)
        time.sleep(1.5 + chance.random())
        process.send_signal(signal.SIGKILL)
        process.wait()
    study = search(tmp_path, options["axes"], 0, sampler="grid", seeds=[1, 2])
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 3
    started = [line.split()[:2] for line in (tmp_path / "starts").read_text().splitlines()]
    first = Counter(name for how, name in started if how == "train")
    assert len(first) == 6 and set(first.values()) == {1}
    for path in tmp_path.glob("trials/*/*/history.csv"):
        assert [row.split(",")[0] for row in path.read_text().splitlines()[1:]] == list(map(str, range(1, EPOCHS + 1)))


def test_a_pruner_cannot_judge_several_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--search", "model.units=3,4", "--seeds", "2", "--pruner", "median"]
    assert main(["tune", "tests.toy", *words]) == 2
    assert "--pruner judges a trial by its only run" in capsys.readouterr().err
    assert main(["train", "tests.toy", "--seeds", "2", "--trainer.export_dir", "x"]) == 2
    assert "--trainer.export_dir cannot be given with --seeds" in capsys.readouterr().err


@pytest.mark.long
def test_a_sheet_over_seeds_is_trained_and_grouped(tmp_path: Path) -> None:
    (tmp_path / "runs.yaml").write_text(
        "runs:\n"
        + "".join(
            f"- {{id: u{n}, script: scena train tests.toy --trainer.epochs 1 --model.units {n}}}\n" for n in (2, 3)
        )
    )
    command = "experiment runs.yaml --seeds 2 --cpus 2"
    done = scena(command, tmp_path)
    second = derived_seeds(0, 2)[1]
    names = [f"u{units}-seed-{seed}" for units in (2, 3) for seed in (0, second)]
    found = {path.name: read_history(path) for path in (tmp_path / "runs.runs/runs").iterdir()}
    assert sorted(found) == sorted(names) and "4 runs: 4 done." in done.stderr
    assert found[names[0]][-1]["loss"] != found[names[1]][-1]["loss"]
    assert "(2 groups of 4 runs)" in done.stdout
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs.runs/runs/*/history.csv")}
    scena(command, tmp_path)  # nothing is left to do
    assert {path: path.stat().st_mtime_ns for path in before} == before


def _kill_often(command: str, folder: Path, finished: Path, seconds: float, kills: int = 3) -> int:
    """Runs a command that takes so long, and kills it, with its trainings, at several moments; returns how often."""
    chance, killed = random.Random(7), 0
    for _ in range(2 * kills):
        process = start(command, folder)
        until = time.monotonic() + chance.uniform(0.2, 0.7) * seconds
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        if process.poll() is None:
            process.kill()
            killed += 1
        process.communicate()
        if killed == kills or finished.exists():
            break
    return killed


def _fingerprints(folder: Path, depth: str) -> dict[str, Any]:
    """Every tensor and value of the runs below a folder."""
    return {str(path.parent.relative_to(folder)): fingerprint(path.parent) for path in folder.glob(depth)}


@pytest.mark.long
def test_kills_of_a_training_over_seeds_change_nothing(tmp_path: Path) -> None:
    """SIGKILL at several moments; the table is that of scipy."""
    command = "train tests.toy --seeds 3 --trainer.epochs 4 --trainer.random_seed 5 --scheduler.cpus 2"
    begun = time.monotonic()
    done = scena(f"{command} --trainer.output_dir one", tmp_path)
    killed = _kill_often(f"{command} --trainer.output_dir two", tmp_path, tmp_path / "none", time.monotonic() - begun)
    ended = scena(f"{command} --trainer.output_dir two", tmp_path)
    print(f"{killed} kills")
    one, two = (_fingerprints(tmp_path / name, "runs/*/history.csv") for name in ("one", "two"))
    assert killed >= 2 and one == two and len(one) == 3
    assert ended.stdout.replace("two/runs", "one/runs") == done.stdout and "(1 group of 3 runs)" in done.stdout
    scena("runs two --group --csv groups.csv", tmp_path)
    with (tmp_path / "groups.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    for name in ("loss", "val_loss", "best"):
        column = [[float(row["val_acc" if name == "best" else name]) for row in run["history"]] for run in one.values()]
        values = [max(rows) if name == "best" else rows[-1] for rows in column]
        low, high = scipy.stats.t.interval(0.95, 2, np.mean(values), scipy.stats.sem(values))
        expected = [3, np.mean(values), np.std(values, ddof=1), low, high]
        parts = ("n", "mean", "deviation", "low", "high")
        assert [float(row[f"{name} {part}"]) for part in parts] == pytest.approx(expected, rel=1e-12)


@pytest.mark.long
def test_kills_of_a_search_over_seeds_change_nothing(tmp_path: Path) -> None:
    """Real trainings: the value of a trial is the mean of the best values of its runs, whatever was killed."""
    command = (
        "tune tests.toy --search model.units=2,3 --sampler grid --direction max --trainer.epochs 3 --seeds 3 --cpus 2"
    )
    begun = time.monotonic()
    done = scena(f"{command} --output one", tmp_path)
    killed = _kill_often(f"{command} --output two", tmp_path, tmp_path / "two" / "plots", time.monotonic() - begun)
    ended = scena(f"{command} --output two", tmp_path)
    print(f"{killed} kills")
    assert killed >= 2 and "2 complete" in ended.stderr
    assert ended.stdout.replace("two/", "one/") == done.stdout
    one, two = (_fingerprints(tmp_path / name / "trials", "*/*/history.csv") for name in ("one", "two"))
    assert one == two and len(one) == 6
    for name in ("one", "two"):
        storage = open_storage(storage_url(None, tmp_path / name))
        study = find_study(storage, name)
        for trial in study.trials:
            runs = {path: run["history"] for path, run in one.items() if path.startswith(f"{trial.number:04}/")}
            best = {
                path.partition("seed-")[2]: max(float(row["val_acc"]) for row in rows) for path, rows in runs.items()
            }
            assert trial.user_attrs["seeds"] == best and trial.value == pytest.approx(np.mean(list(best.values())))
        close_storage(storage)


@pytest.mark.long
def test_a_training_over_seeds_that_is_killed_goes_on(tmp_path: Path) -> None:
    command = "train tests.toy --seeds 2 --trainer.epochs 3 --trainer.random_seed 5 --trainer.output_dir out"
    second = derived_seeds(5, 2)[1]
    process = start(command, tmp_path)
    wait_for(lambda: (tmp_path / "out" / "runs" / f"seed-{second}" / "history.csv").exists(), 300)
    process.kill()
    process.communicate()
    before = (tmp_path / "out" / "runs" / "seed-5" / "trainer_params.json").read_bytes()
    done = scena(command, tmp_path)
    assert "2 runs: 2 done." in done.stderr and "(1 group of 2 runs)" in done.stdout
    assert (tmp_path / "out" / "runs" / "seed-5" / "trainer_params.json").read_bytes() == before
    assert (tmp_path / "out" / "logs" / "seed-5.log").read_text().count("$ ") == 1
    plain = "train tests.toy --trainer.epochs 3 --trainer.random_seed 5 --trainer.output_dir plain"
    scena(plain, tmp_path)
    first, second_time = (read_history(tmp_path / run) for run in ("plain", "out/runs/seed-5"))
    for row in (*first, *second_time):
        del row["seconds"]
    assert first == second_time
