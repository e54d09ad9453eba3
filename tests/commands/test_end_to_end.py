"""The commands one after the other, as a user types them, on the real program."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scena.data.sources.digits import load_digits
from tests.zygote import ROOT, Zygote

QUICK = "--trainer.epochs 1 --train.limit 64 --val.limit 40 --trainer.random_seed 5"
THIRD_GRAPH = '''
from keras import layers
from examples.tutorial.full.params import BackboneParams
from scena import param
class Linear(BackboneParams, builds=":LinearLayer"):
    """No hidden layer."""
    scale: float = param(1.0, help="factor")
class LinearLayer(layers.Layer):
    def __init__(self, params, **kwargs):
        super().__init__(**kwargs)
        self.flatten = layers.Flatten()
        self.scale = params.scale
    def call(self, image, training=None):
        return self.flatten(image) * self.scale
'''


@dataclass
class Folder:
    """Where a user works, outside the clone."""

    path: Path
    zygote: Zygote

    def scena(self, command: str, status: int = 0, **environment: str) -> tuple[str, str]:
        """Runs the program here; returns what it wrote to standard output and to standard error."""
        out, err = (self.path.with_name(f"{self.path.name}.{name}") for name in ("out", "err"))
        out.unlink(missing_ok=True)
        err.unlink(missing_ok=True)
        done = self.zygote.run(*command.split(), log=out, errors=err, folder=self.path, environment=environment)
        assert done == status, err.read_text()
        return out.read_text(), err.read_text()


@pytest.fixture
def empty(zygote: Zygote, tmp_path: Path) -> Folder:
    (tmp_path / "user").mkdir()
    return Folder(tmp_path / "user", zygote)


@pytest.fixture(scope="module")
def folder(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """With a trained full tutorial in `run`, and some pictures."""
    folder = tmp_path_factory.mktemp("user") / "user"
    folder.mkdir()
    (folder / "my_graphs.py").write_text(THIRD_GRAPH)
    (folder / "params.yaml").write_text("model:\n  graph: {class: Linear, scale: 2}\nlearning_rate: 1e-2\n")
    images, _ = load_digits("digits", "test")
    for number in range(3):
        Image.fromarray(images[number]).save(folder / f"digit{number}.png")
    words = (
        f"train examples.tutorial.full --import my_graphs --config params.yaml {QUICK} --trainer.output_dir run "
        "--trainer.lav_every_n 1 --learning_rate.lr 0.003"
    ).split()
    # not forked: TensorFlow is noisy when it is imported
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "scena", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "" and "Epoch 1/1: loss" in done.stderr and "lav_eval_acc" in done.stderr
    for noise in ("cuda", "oneDNN", "absl", "WARNING"):
        assert noise not in done.stderr, "TensorFlow's start-up messages are kept away"
    return Folder(folder, zygote)


def test_file_and_flags_arrive_with_the_right_precedence(folder: Folder) -> None:
    stored = json.loads((folder.path / "run" / "trainer_params.json").read_text())["trainer"]
    assert stored["scenario"]["model"]["graph"] == {"class": "Linear", "scale": 2.0}
    assert stored["learning_rate"]["lr"] == 0.003


def test_lav_gives_the_values_of_the_training(folder: Folder) -> None:
    printed, _ = folder.scena("lav run/best --import my_graphs --lav.limit 40 --json lav.json")
    results = next(iter(json.loads((folder.path / "lav.json").read_text()).values()))
    stored = json.loads((folder.path / "run" / "best" / "scenario.json").read_text())["result"]
    for name in ("acc", "loss"):
        assert results[name] == pytest.approx(stored[f"val_{name}"], abs=1e-6)
    assert "eval_acc" in printed and "worst_class_acc" in printed


def test_predict_reads_picture_files_and_prints_or_writes(folder: Folder) -> None:
    files = " ".join(f"digit{number}.png" for number in range(3))
    printed, _ = folder.scena(f"predict --import my_graphs --export_dir run/best --data.image_files {files}")
    assert [line.split(":")[0] for line in printed.splitlines()] == files.split()
    folder.scena(f"predict run/best run/export --import my_graphs --data.image_files {files} --out out.jsonl")
    lines = [json.loads(line) for line in (folder.path / "out.jsonl").read_text().splitlines()]
    assert [line["meta"]["file"] for line in lines] == files.split()
    assert all(np.isclose(sum(line["outputs"]["pred"]), 1, atol=1e-5) for line in lines)
    _, error = folder.scena("predict --import my_graphs --export_dir run/best", status=2)
    assert "--data.image_files is required: the images to predict" in error


def test_a_picture_that_cannot_be_read_is_named(folder: Folder) -> None:
    (folder.path / "broken.png").write_text("not a picture")
    _, error = folder.scena("predict run --import my_graphs --data.image_files broken.png", status=1)
    assert "broken.png" in error and "Traceback (most recent" not in error.partition("error:")[0]


def test_a_fresh_run_from_stored_parameters_reproduces_the_first_and_resume_goes_on(folder: Folder) -> None:
    folder.scena(
        "train examples.tutorial.full --import my_graphs --params run/trainer_params.json --trainer.output_dir again"
    )
    rows = [(folder.path / run / "history.csv").read_text().splitlines() for run in ("run", "again")]
    seconds = rows[0][0].split(",").index("seconds")
    first, second = ([value for place, value in enumerate(row[1].split(",")) if place != seconds] for row in rows)
    assert first == second
    _, told = folder.scena("resume again --import my_graphs --trainer.epochs 2")
    assert "Epoch 2/2" in told
    assert [line.split(",")[0] for line in (folder.path / "again" / "history.csv").read_text().splitlines()] == [
        "epoch",
        "1",
        "2",
    ]


def test_images_from_layers_reach_tensorboard(empty: Folder) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    empty.scena(f"train examples.tutorial.full {QUICK} --trainer.output_dir run")
    events = EventAccumulator(str(empty.path / "run" / "tensorboard" / "val"), size_guidance={"tensors": 0}).Reload()
    _, _, picture, *_ = events.Tensors("first_convolution")[0].tensor_proto.string_val
    assert picture.startswith(b"\x89PNG")


def test_the_log_level_governs_console_and_file(empty: Folder) -> None:
    _, told = empty.scena(f"train examples.tutorial.min {QUICK} --trainer.output_dir run", SCENA_LOG_LEVEL="warning")
    assert told == ""
    log = empty.path / "run" / "train.log"
    assert not log.exists() or log.read_text() == ""
    _, error = empty.scena("train examples.tutorial.min --trainer.output_dir b", status=1, SCENA_LOG_LEVEL="loud")
    assert "SCENA_LOG_LEVEL must be one of debug, info, warning, error. Received: 'loud'" in error
