"""`scena runs --group`: runs that differ only in their seed become one row, others never do."""

import csv
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scipy.stats

from scena.commands.main import main
from scena.experiments.run_groups import affects_results, group_runs
from scena.experiments.stored_run import read_run

VALUES = [0.90, 0.94, 0.91]
Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def seeds(trained: Path, tmp_path: Path) -> Path:
    """Three copies of a finished run with other seeds and results."""
    for number, value in enumerate(VALUES):
        copy_run(trained / "a", tmp_path / "seeds" / f"s{number}", seed=number, value=value)
    return tmp_path / "seeds"


def copy_run(source: Path, target: Path, *, seed: int, value: float) -> Path:
    shutil.copytree(source, target)
    edit(target / "trainer_params.json", lambda stored: stored["trainer"].update(random_seed=seed))
    edit(target / "best" / "scenario.json", lambda stored: stored["result"].update(val_acc=value))
    return target


def edit(path: Path, change: Change) -> None:
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))


def grouped(capsys: pytest.CaptureFixture[str], *words: str | Path) -> list[dict[str, str]]:
    assert main(["runs", *map(str, words), "--group", "--csv", "-"]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_seeds_become_mean_deviation_and_interval(seeds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = grouped(capsys, seeds)
    low, high = scipy.stats.t.interval(0.95, 2, sum(VALUES) / 3, scipy.stats.sem(VALUES))
    assert row["best n"] == "3" and float(row["best mean"]) == pytest.approx(sum(VALUES) / 3)
    assert float(row["best deviation"]) == pytest.approx(scipy.stats.tstd(VALUES))
    assert (float(row["best low"]), float(row["best high"])) == (pytest.approx(low), pytest.approx(high))
    assert float(row["val_loss deviation"]) == 0  # the same history in each


@pytest.mark.parametrize("width", [40, 80, 140])
def test_the_table_fits_and_says_how_it_was_made(
    seeds: Path, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["runs", str(seeds), "--group"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "tests.toy.scenario:ToyScenario (1 group of 3 runs)"
    assert re.match(r"(runs +)?n +best val_acc +deviation", lines[1])
    assert "0.916667" in lines[2] and max(map(len, lines[:3])) <= max(width, 53)
    assert ("0.865 – 0.9684" in lines[2]) == (width >= 80)
    text = " ".join(lines)
    assert "n finished runs with a seed each; deviation: sample standard deviation; interval of the mean" in text


CHANGES: dict[str, tuple[str, Change]] = {
    "a parameter": ("trainer_params.json", lambda stored: stored["trainer"]["optimizer"].update(beta1=0.5)),
    "the scenario": ("trainer_params.json", lambda stored: stored.update(scenario="tests.toy.scenario:Other")),
    "the version of Keras": ("trainer_params.json", lambda stored: stored["versions"].update(keras="3.0")),
    "code": ("export/scenario.json", lambda stored: stored["code"].update({".": {"f": "another hash"}})),
}


@pytest.mark.parametrize("what", CHANGES)
def test_runs_that_differ_in_anything_else_are_not_mixed(
    what: str, seeds: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, change = CHANGES[what]
    edit(seeds / "s1" / file, change)
    assert sorted(row["best n"] for row in grouped(capsys, seeds)) == ["1", "2"]


def test_a_run_that_was_resumed_with_another_flag_is_another_group(
    seeds: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resumed = [{"step": 3, "changes": {"keep_checkpoints": [2, 5]}}]
    for number in (0, 1):
        (seeds / f"s{number}" / "resumed.json").write_text(json.dumps(resumed))
    assert [row["best n"] for row in grouped(capsys, seeds)] == ["3"]
    resumed.append({"step": 5, "changes": {"optimizer.beta1": [0.8, 0.9], "gen.train.num_processes": [1, 2]}})
    (seeds / "s1" / "resumed.json").write_text(json.dumps(resumed))
    rows = grouped(capsys, seeds)
    assert [row["best n"] for row in rows] == ["2", "1"]
    assert rows[1]["changed on resume"] == "at step 5: optimizer.beta1 0.8 → 0.9"


def test_other_data_shows_in_the_steps_of_an_epoch(seeds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = seeds / "s1" / "history.csv"
    step = str(int(read_run(seeds / "s1").history[0]["step"]))
    path.write_text(path.read_text().replace(f",{step},", f",{step}0,"))
    edit(seeds / "s1" / "export" / "scenario.json", lambda stored: stored["result"].update(step=int(f"{step}0")))
    rows = grouped(capsys, seeds)
    assert [row["steps of an epoch"] for row in rows] == [step, f"{step}0"]


def test_what_results_do_not_depend_on_does_not_part_runs(seeds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def change(stored: dict[str, Any]) -> None:
        stored["trainer"].update(keep_checkpoints=7, log_dir="elsewhere", progress_every=1.0)
        stored["trainer"]["gen"]["train"].update(num_processes=3)

    edit(seeds / "s1" / "trainer_params.json", change)
    assert [row["best n"] for row in grouped(capsys, seeds)] == ["3"]
    assert affects_results("train.lists") and affects_results("trainer.epochs") and affects_results("optimizer.lr")
    assert not affects_results("tensorboard.images") and not affects_results("val.prefetch")


def test_a_seed_counts_once_and_an_unfinished_run_not_at_all(
    seeds: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_run(trained / "a", seeds / "again", seed=2, value=0.1)
    copy_run(trained / "a", seeds / "open", seed=9, value=0.1)
    shutil.rmtree(seeds / "open" / "export")
    (group, *_) = group_runs([read_run(path) for path in sorted(seeds.iterdir())])
    assert [run.directory.name for run in group.runs] == ["again", "s0", "s1"]
    assert main(["runs", str(seeds), "--group"]) == 0
    errors = capsys.readouterr().err
    assert f"{seeds / 's2'} has the seed 2 of another run of its group, so it does not count." in errors
    assert f"1 run is not finished and does not count: {seeds / 'open'}." in errors


def test_groups_are_sorted_and_drawn(
    seeds: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_run(trained / "b", seeds / "other", seed=0, value=0.2)
    plot = tmp_path / "groups.svg"
    assert main(["runs", str(seeds), "--group", "--sort", "best", "--wide", "--plot", str(plot)]) == 0
    rows = capsys.readouterr().out.splitlines()[2:4]
    assert "0.2" in rows[0].split() and "0.916667" in rows[1].split()
    assert b"<svg" in plot.read_bytes()
    assert main(["runs", str(seeds), "--group", "--diff"]) == 2
    assert "--group shows the parameters in which groups differ" in capsys.readouterr().err


def test_groups_are_compared_over_samples_and_seeds(
    seeds: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = tmp_path / "others"
    for number in range(2):
        copy_run(trained / "b", others / f"s{number}", seed=number, value=0.5)
    file = tmp_path / "compare.json"
    words = ["compare", str(seeds), str(others), "--resamples", "200", "--json", str(file)]
    assert main(words) == 0
    found = json.loads(file.read_text())
    assert found["runs"] == [3, 2] and found["mcnemar"] is None
    result = found["results"]["loss"]
    low, high = result["seeds_interval"]
    assert low == pytest.approx(high) == pytest.approx(result["difference"])  # copies: the same weights in each
    assert "These samples also chose the best epoch" in " ".join(found["claims"])
    assert "(3 runs)" in capsys.readouterr().out
    copy_run(trained / "b", seeds / "other", seed=7, value=0.5)
    assert main(words) == 1
    assert f"{seeds} holds runs that differ in more than their seed (" in capsys.readouterr().err
