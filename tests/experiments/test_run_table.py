"""`scena runs` on real runs: status, results, differing parameters; sorting, filtering, comparing, CSV."""

import contextlib
import csv
import fcntl
import io
import json
import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from scena.commands.main import main
from scena.experiments.stored_run import find_runs, is_running, read_run


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def listed(capsys: pytest.CaptureFixture[str], *words: str | Path) -> list[dict[str, str]]:
    assert main(["runs", *map(str, words), "--csv", "-"]) == 0
    return table(capsys.readouterr().out)


def test_runs_are_found_at_any_depth_with_status_and_results(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = listed(capsys, runs)
    assert [(row["run"], row["status"], row["epoch"]) for row in rows] == [
        ("a", "finished", "1"),
        ("b", "finished", "2"),
        ("deep/c", "unfinished", "1"),
    ]
    run = read_run(runs / "b")
    assert run.best_key == "val_acc" and run.best == max(row["val_acc"] for row in run.history)
    assert float(rows[1]["val_loss"]) == pytest.approx(run.history[-1]["val_loss"], rel=1e-5)
    assert list(rows[0])[6:] == ["acc", "loss", "val_acc", "val_loss", "trainer.epochs", "model.units", "optimizer", *[
        name for name in rows[0] if name.startswith("optimizer.")
    ]]  # fmt: skip
    assert [row["optimizer"] for row in rows] == ["Adam", "SGD", "Adam"]


def test_the_plain_table_names_the_best_value(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(runs), "--params", "model.units"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "tests.toy.scenario:ToyScenario (3 runs)"
    assert lines[1].split()[:5] == ["run", "status", "epoch", "best", "val_acc"] and "units" in lines[1]
    assert lines[4].split()[:3] == ["deep/c", "unfinished", "1/5"]
    assert "optimizer" not in lines[1]


@pytest.mark.parametrize("width", [30, 60, 80, 120, 200])
def test_the_table_fits_the_terminal(runs: Path, width: int) -> None:
    """In a real terminal; what does not fit is counted, and the columns that matter come first."""
    (runs / "deep" / "c").rename(runs / "deep" / ("a-long-name-of-a-run-" * 4))
    path = runs / "b" / "trainer_params.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps(stored | {"scenario": "other.package:Other"}))
    lines = in_terminal(width, "runs", str(runs))
    assert max(map(len, lines)) <= width
    headings = [line for line in lines if line.endswith((" (2 runs)", " (1 run)"))]
    assert len(headings) == 2 and lines[0] == headings[0] and headings[1].startswith("other.package")
    assert lines[1].split()[0] == "run" and ("best val_acc" in lines[1]) == (width > 30)
    assert lines[2].split()[0] == "a" and "…" in lines[3].split()[0]
    shown = len(re.split(r" {2,}", lines[1]))
    hidden = [int(line.split()[1]) for line in lines if re.fullmatch(r"… \d+ more: .*", line)]
    assert shown + (hidden[0] if lines[4].startswith("…") else 0) == 10  # six fixed columns and four results
    wide = in_terminal(width, "runs", str(runs), "--wide")
    assert len(wide[1]) > 80 and not any(line.startswith("…") for line in wide)


def in_terminal(width: int, *words: str) -> list[str]:
    """The lines that a command writes to a terminal with so many columns, without colours."""
    main_end, end = pty.openpty()
    termios.tcsetwinsize(end, (50, width))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "scena", *words]
    process = subprocess.Popen(
        command, stdout=end, stderr=subprocess.DEVNULL, env=environment | {"TERM": "xterm-256color"}
    )
    os.close(end)
    text = b""
    with contextlib.suppress(OSError):  # how Linux reports that the other end was closed
        while part := os.read(main_end, 65536):
            text += part
    os.close(main_end)
    assert process.wait() == 0
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).splitlines()]


def test_sorting_and_filtering_by_anything(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def names(*words: str) -> list[str]:
        return [row["run"] for row in listed(capsys, runs, *words)]

    assert names("--sort", "model.units", "--reverse")[0] == "b"
    assert names("--sort", "epochs") == names("--sort", "trainer.epochs") == ["a", "b", "deep/c"]
    assert names("--filter", "status=finished", "model.units<5") == ["a"]
    assert names("--filter", "optimizer!=SGD") == ["a", "deep/c"]
    assert names("--filter", "run~deep") == ["deep/c"]
    assert names("--filter", "val_loss>1e9") == []
    # a run without a value stands at the end, whichever way the table is sorted
    (runs / "a" / "history.csv").unlink()
    assert names("--sort", "val_loss")[-1] == names("--sort", "val_loss", "--reverse")[-1] == "a"


def test_two_runs_are_compared(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(runs / "a"), str(runs / "b"), "--diff"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[:4] == [
        ["parameter", "a", "b"],
        ["trainer.epochs", "1", "2"],
        ["model.units", "4", "9"],
        ["optimizer", "Adam", "SGD"],
    ]
    assert main(["runs", str(runs / "a"), str(runs / "a")]) == 0
    assert main(["runs", str(runs), "--diff"]) == 2
    assert "--diff takes two runs, received 3" in capsys.readouterr().err


def test_a_run_is_running_while_its_lock_is_held(runs: Path) -> None:
    assert not is_running(runs / "a")
    with (runs / "a" / ".lock").open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert is_running(runs / "a") and read_run(runs / "a").status == "running"
    assert not is_running(runs / "a")


def test_a_run_without_its_export_is_not_finished(runs: Path) -> None:
    (runs / "a" / "export" / "scenario.json").unlink()
    assert read_run(runs / "a").status == "unfinished"


def test_what_is_wrong_is_said(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def message(*words: str) -> str:
        assert main(["runs", *words]) != 0
        return capsys.readouterr().err.strip().splitlines()[-1]  # runs that a test edited are warned of before

    assert message("nowhere") == "scena runs: error: There is no directory 'nowhere'."
    assert (
        message(str(runs), "--sort", "val_los")
        == "scena runs: error: --sort: no run has 'val_los' (did you mean val_loss?)."
    )
    assert message(str(runs), "--params", "limit").endswith(
        "--params: no run has 'limit' (did you mean train.limit or val.limit?)."
    )
    assert "--params: no run has 'trainer.epoch' (did you mean trainer.epochs" in message(
        str(runs), "--params", "trainer.epochs", "trainer.epoch"
    )
    assert "--filter 'finished' is not a condition" in message(str(runs), "--filter", "finished")
    (runs / "a" / "trainer_params.json").write_text("{")
    assert "is not the directory of a run: trainer_params.json is missing or damaged" in message(str(runs))
    (runs / "b" / "history.csv").write_text("epoch,loss\n1,x\n")
    with pytest.raises(RuntimeError, match=r"Cannot read .*history\.csv"):
        read_run(runs / "b")
    (tmp_path / "empty").mkdir()
    assert main(["runs", str(tmp_path / "empty")]) == 0 and find_runs([tmp_path / "empty"]) == []
    assert "There are no runs in" in capsys.readouterr().err


def test_parameters_without_a_class_are_listed_too(tmp_path: Path) -> None:
    """A run that another program wrote, or one whose file names no class at its root."""
    (tmp_path / "trainer_params.json").write_text('{"scenario": "some:Thing", "trainer": {"epochs": 3}}')
    assert read_run(tmp_path).params == {"trainer.epochs": 3}


def test_results_are_plotted_over_the_epochs(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg = tmp_path / "curves.svg"
    assert main(["runs", str(runs), "--filter", "optimizer=Adam", "--plot", str(svg)]) == 0
    assert capsys.readouterr().err.endswith(f"{svg}: val_acc of 2 runs\n")
    assert svg.read_text().count("<!-- val_acc -->") == 2 and "<!-- deep/c -->" in svg.read_text()  # title and axis
    assert main(["runs", str(runs), "--plot", str(svg), "--result", "loss"]) == 0
    assert capsys.readouterr().err.endswith(f"{svg}: loss of 3 runs\n")
    for words, message in {
        f"--plot {svg} --result lost": "no run has the result 'lost'; there are: step, ",
        f"--plot {tmp_path}/curves": "The suffix of a plot's file decides its format, for example .png. Received:",
        f"--plot {tmp_path}/no/x.png": f"Cannot write to --plot {tmp_path}/no/x.png: there is no folder",
        "--result loss": "--result is what to plot, so it needs --plot FILE",
        f"--diff --plot {svg}": "--diff shows parameters, --plot results: choose one of them",
    }.items():
        assert main(["runs", str(runs), *words.split()]) in (1, 2)
        assert message in capsys.readouterr().err


def test_a_missing_matplotlib_is_named(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["runs", str(runs), "--plot", "curves.png"]) == 1
    assert capsys.readouterr().err.endswith("scena runs: error: Plots need matplotlib: pip install 'scena[plot]'.\n")
