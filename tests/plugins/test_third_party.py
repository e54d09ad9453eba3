"""A real package with one plugin of each kind: built into a wheel, installed into an environment of its own, used, and removed again."""

import csv
import json
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import fingerprint
from tests.zygote import ROOT, Zygote

PACKAGE = Path(__file__).with_name("third_party")
TRAIN = (
    "train scena.scenario.classification --model.name ResNet20CIFAR --model.factor 8 --model.depth 0.3 --model.input_size 16 16 3 "
    "--data Stripes --train.augment Invert Normalize --train.engine counted --train.batch_size 8 --val.limit 16 --val.num_processes 0 "
    "--optimizer SignSGD --optimizer.share 0.5 --trainer.epochs 2 --trainer.random_seed 3 --trainer.sanity_check False "
    "--trainer.callbacks Lines CheckpointAt --trainer.callbacks.Lines.file lines.txt --trainer.callbacks.CheckpointAt.steps 5 13"
).split()


class Environment:
    """A virtual environment that sees the packages of this one, and Scena."""

    def __init__(self, folder: Path) -> None:
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        self.python = folder / "bin/python"
        self.packages = next(folder.glob("lib/python*/site-packages"))
        (self.packages / "outer.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n")

    def pip(self, *words: str | Path) -> None:
        run(sys.executable, "-m", "pip", "--python", self.python, *words, "--quiet")

    def scena(self, *words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
        command = [str(word) for word in (self.python, "-m", "scena", *words)]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def run(*words: str | Path) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable, *"-m pip wheel --quiet --no-deps --no-build-isolation --no-index".split(), "-w", folder, PACKAGE
    )
    (made,) = folder.glob("scena_stripes-*.whl")
    return made


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("environment"))
    made.pip("install", "--no-deps", "--no-index", wheel)
    return made


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment from which the package has been removed again is one without it."""
    return Environment(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def straight(environment: Environment, zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was trained in one go; its export is converted and predicts in the plugin's runtime."""
    folder = tmp_path_factory.mktemp("straight")
    data = ["--data", "Stripes", "--data.split", "test", "--pipeline.num_processes", "0"]
    words = [
        *TRAIN, "--trainer.output_dir", "run", "then",
        *("export", "run/best", "--format", "zipped", "--format.zipped.level", "9", "then"),
        *("predict", "run/best", "--predict.runtime", "zipped", *data, "--out", "zipped.jsonl", "then"),
        *("predict", "run/best", *data, "--out", "keras.jsonl"),
    ]  # fmt: skip
    assert forked(zygote, environment, folder, *words) == 0, (folder / "log").read_text()
    return folder


def forked(zygote: Zygote, environment: Environment, folder: Path, *words: str) -> int:
    function = "tests.plugins.in_environment:run"
    return zygote.run(environment.packages, *words, log=folder / "log", folder=folder, function=function)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_its_tracker_gets_each_value_once(environment: Environment, straight: Path, tmp_path: Path) -> None:
    words = ["track", straight / "run", "--to", "table", "--to.table.file", "all.csv"]
    for _ in range(2):
        done = environment.scena(*words, folder=tmp_path)
        assert done.returncode == 0 and "up to date" in done.stdout, done.stderr
    with (
        (tmp_path / "all.csv").open(newline="") as file,
        (straight / "run" / "history.csv").open(newline="") as history,
    ):
        found = [(key, int(step), float(value)) for _, key, step, value in csv.reader(file)]
        expected = [("train/loss", int(row["step"]), float(row["loss"])) for row in csv.DictReader(history)]
    assert [each for each in found if each[0] == "train/loss"] == expected
    assert len({each[:2] for each in found}) == len(found)


def test_the_wheel_declares_what_it_adds(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).read("scena_stripes-1.0.dist-info/entry_points.txt").decode()
    assert "[scena.plugins]" in names and "Runtime.zipped = scena_stripes.params" in names


def test_help_shows_the_added_names(environment: Environment, tmp_path: Path) -> None:
    text = environment.scena("train", "scena.scenario.classification", "--help", folder=tmp_path).stdout
    text = " ".join(text.split())
    for flag, name in {
        "--optimizer CLASS": "SignSGD",
        "--data CLASS": "Stripes",
        "--train.augment": "Invert",
        "--train.engine": "counted",
        "--trainer.callbacks": "CheckpointAt, Lines",
    }.items():
        described = text.partition(f" {flag} ")[2] or text.partition(f" {flag}")[2]
        assert name in described.partition(" --")[0], (flag, described[:200])
    chosen = environment.scena(*TRAIN, "--help", folder=tmp_path).stdout
    assert "--optimizer.share FLOAT" in chosen and "--trainer.callbacks.Lines.file PATH" in chosen


def test_a_run_that_was_killed_resumes_exactly(
    environment: Environment, zygote: Zygote, straight: Path, tmp_path: Path
) -> None:
    words = [environment.packages, *TRAIN, "--trainer.output_dir", "run"]
    function = "tests.plugins.in_environment:run"
    child = zygote.start(*words, log=tmp_path / "log", folder=tmp_path, function=function)
    while not (tmp_path / "run/checkpoint/5").is_dir():  # asked for by the plugin, in the middle of an epoch
        assert child.is_alive(), child.text
    child.kill()
    child.wait()
    assert forked(zygote, environment, tmp_path, "resume", "run") == 0, child.text
    expected, found = fingerprint(straight / "run"), fingerprint(tmp_path / "run")
    assert found == expected
    assert (tmp_path / "lines.txt").read_text() == (straight / "lines.txt").read_text()
    assert "Resumed at epoch" in child.text


def test_its_format_and_its_runtime_agree_with_keras(straight: Path) -> None:
    assert "zipped: run/best/model.zip" in (straight / "log").read_text()
    ours, theirs = rows(straight / "keras.jsonl"), rows(straight / "zipped.jsonl")
    assert len(ours) == len(theirs) == 16
    for one, other in zip(ours, theirs, strict=True):
        assert other["outputs"]["pred"] == pytest.approx(one["outputs"]["pred"], abs=1e-4)


def test_its_scheduler_carries_out_a_sheet(environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "say.py").write_text("import sys; print(*sys.argv[1:])\n")
    (tmp_path / "sheet.yaml").write_text("script: say.py\nruns: [{id: a}, {id: b, params: {word: two}}]\n")
    words = "experiment sheet.yaml --scheduler one_by_one --scheduler.pause 0.01".split()
    done = environment.scena(*words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Run b started on the only one" in done.stderr
    assert "two" in (tmp_path / "sheet.runs/logs/b.log").read_text()


def test_its_scheduler_carries_out_a_search(environment: Environment, tmp_path: Path) -> None:
    """It does not listen to its runs, so values come from their histories."""
    words = "tune tests.toy --search model.units=3,5 --trials 1 --metric val_loss --direction min --scheduler one_by_one".split()
    pruned = environment.scena(*words, "--pruner", "median", folder=tmp_path)
    assert "--pruner median: runs of this --scheduler cannot report before they end" in pruned.stderr
    assert not (tmp_path / "tune").exists()
    done = environment.scena(*words, "--trainer.epochs", "2", folder=tmp_path)
    assert done.returncode == 0, done.stderr + (tmp_path / "tune/toy/logs/0000.log").read_text()
    assert "Trial 0 started on the only one" in done.stderr
    with (tmp_path / "tune/toy/trials/0000/history.csv").open() as file:
        best = min(float(row["val_loss"]) for row in csv.DictReader(file))
    assert f"best: trial 0, {best:.6g}: --model.units=" in done.stdout


def test_its_command_runs(environment: Environment, tmp_path: Path) -> None:
    assert "stripes" in environment.scena("--help", folder=tmp_path).stdout
    assert environment.scena("stripes", "--count", "5", folder=tmp_path).stdout == "=====\n"


def test_without_the_package_errors_name_what_is_missing(bare: Environment, straight: Path, tmp_path: Path) -> None:
    (tmp_path / "sheet.yaml").write_text("script: say.py\nruns: [{id: a}]\n")
    for words, message in {
        f"resume {straight}/run": "unknown OptimizerParams 'SignSGD'",
        f"predict {straight}/run/best": "unknown SplitSourceParams 'Stripes'",
        f"export {straight}/run/best --format zipped": "unknown ExportFormatParams 'zipped'",
        "experiment sheet.yaml --scheduler one_by_one": "unknown SchedulerParams 'one_by_one'",
        "tune tests.toy --search model.units=3,5 --scheduler one_by_one": "unknown SchedulerParams 'one_by_one'",
        "stripes": "there is no command 'stripes'",
    }.items():
        done = bare.scena(*words.split(), folder=tmp_path)
        assert done.returncode != 0
        assert message in done.stderr and "Traceback" not in done.stderr, (words, done.stderr)


def test_an_export_predicts_without_what_only_its_training_needed(
    environment: Environment, bare: Environment, zygote: Zygote, tmp_path: Path
) -> None:
    train = "train tests.toy --trainer.epochs 1 --optimizer SignSGD --trainer.callbacks Lines CheckpointAt"
    words = f"{train} --trainer.callbacks.Lines.file lines.txt --trainer.output_dir run".split()
    assert forked(zygote, environment, tmp_path, *words) == 0, (tmp_path / "log").read_text()
    predict = "predict run/best --out keras.jsonl".split()
    assert forked(zygote, bare, tmp_path, *predict) == 0, (tmp_path / "log").read_text()
    assert len(rows(tmp_path / "keras.jsonl")) > 0


@pytest.mark.long
def test_it_trains_in_its_own_environment(environment: Environment, straight: Path, tmp_path: Path) -> None:
    """The same results in processes that start from nothing, and after the package was removed: errors."""
    done = environment.scena(*TRAIN, "--trainer.output_dir", "run", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "lines.txt").read_text() == (straight / "lines.txt").read_text()
    environment.pip("uninstall", "--yes", "scena-stripes")
    assert "unknown OptimizerParams 'SignSGD'" in environment.scena("resume", "run", folder=tmp_path).stderr
