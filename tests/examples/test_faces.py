"""Faces: people of training and validation differ, the contract holds, training resumes exactly, and embeddings verify new people."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from examples.faces.data import DrawnFaces
from examples.faces.params import (
    DrawnParams,
    FaceFilesParams,
    FolderParams,
    IResNet,
    SmallCNN,
)
from examples.faces.people import draw_face, make_person
from examples.faces.scenario import FaceScenario
from scena import PipelineMode, Sample
from scena.commands.main import main
from scena.errors import DataError
from scena.evaluation.report.page import read_history
from scena.model.metric_learning.params import ArcFaceParams, HeadParams, SoftmaxCenterParams
from scena.testing import run_scenario_test
from tests.docs.blocks import ROOT, Block, read_blocks, read_commands

README = ROOT / "examples/faces/README.md"
SHORT = shlex.split(
    "--trainer.epochs 5 --trainer.random_seed 1 --learning_rate.lr 0.005 --train.batch_size 16 --data.people 48 --data.pictures 8 "
    "--data.new_people 20 --data.new_pictures 4 --data.drawn_size 32 --data.size 32 --model.network.filters 12 24 32 "
    "--model.embedding 32 --model.dropout 0 --model.head.m 0.1 --trainer.lav_every_n 5 --trainer.export_final False "
    "--train.num_processes 0 --val.num_processes 0"
)
"""A training of some ten seconds."""


def console_blocks() -> list[Block]:
    """The commands of the README."""
    return [block for block in read_blocks(README) if block.language == "console"]


def run_command(text: str, more: Sequence[str] = ()) -> None:
    """Runs a command in this process, where TensorFlow is loaded already; those of Python in one of their own."""
    words = [*shlex.split(text), *more]
    if words[0] == "scena":
        assert main(words[1:]) == 0, text
    else:
        subprocess.run([sys.executable, *words[1:]], check=True)


def small_params(directory: Path, head: HeadParams | None = None) -> Any:
    """A training of a few seconds."""
    params = FaceScenario.default_trainer_params()
    params.output_dir, params.random_seed, params.epochs = directory, 1, 2
    params.export_best = False
    params.gen.train_val = DrawnParams(people=16, pictures=8, new_people=8, new_pictures=4, drawn_size=24)
    params.gen.train.num_processes = params.gen.val.num_processes = 0
    params.gen.train.batch_size = 32
    params.scenario.data.size = 24
    params.scenario.model.network, params.scenario.model.embedding = SmallCNN(filters=[8, 16]), 16
    params.scenario.model.head = head or ArcFaceParams()
    return params


@pytest.fixture(scope="module")
def face_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two pictures of one person and one of another."""
    folder = tmp_path_factory.mktemp("faces")
    paths = []
    for number, person in enumerate((900, 900, 901)):
        paths.append(folder / f"{number}.png")
        face = draw_face(make_person(person), 60, np.random.default_rng(number))
        Image.fromarray(face).save(paths[-1])
    return paths


def test_nobody_is_trained_and_validated_on() -> None:
    params = DrawnParams(people=5, pictures=6, new_people=3, new_pictures=5)
    train, val = (DrawnFaces(params, mode) for mode in (PipelineMode.TRAINING, PipelineMode.EVALUATION))
    labels = [[int(source[index].targets["label"]) for index in range(len(source))] for source in (train, val)]
    assert {label: labels[0].count(label) for label in labels[0]} == dict.fromkeys(range(5), 6)
    assert {label: labels[1].count(label) for label in labels[1]} == dict.fromkeys(range(5, 8), 5)
    pictures = {train[index].inputs.tobytes() for index in range(len(train))}
    assert len(pictures) == 30, "two pictures are the same"
    np.testing.assert_array_equal(train[7].inputs, train[7].inputs)


def test_a_folder_is_divided_by_people(tmp_path: Path, face_files: list[Path]) -> None:
    for person in "abcde":
        (tmp_path / person).mkdir()
        (tmp_path / person / "1.png").write_bytes(face_files[0].read_bytes())
    train, val = (
        FolderParams(folder=tmp_path, held_out=0.4).create(mode)
        for mode in (PipelineMode.TRAINING, PipelineMode.EVALUATION)
    )
    assert (train.people, len(train), len(val)) == (3, 3, 2)
    assert {path.parent.name for path, _ in val.files} == {"d", "e"}
    assert {label for _, label in val.files} == {3, 4}
    with pytest.raises(DataError, match="At least four are needed"):
        FolderParams(folder=tmp_path, held_out=0.9).create(PipelineMode.TRAINING)
    with pytest.raises(DataError, match="The folder of images .* does not exist"):
        FolderParams(folder=tmp_path / "none").create(PipelineMode.TRAINING)
    for split in ("train", "test"):
        shutil.copytree(tmp_path / "a", tmp_path / "divided" / split / "a")
    with pytest.raises(DataError, match=r"has folders for splits \(train, test\): name one of them"):
        FolderParams(folder=tmp_path / "divided").create(PipelineMode.TRAINING)


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(ArcFaceParams(), id="arc_face"),
        pytest.param(SoftmaxCenterParams(), id="center", marks=pytest.mark.long),
    ],
)
def test_contract(tmp_path: Path, head: HeadParams, face_files: list[Path]) -> None:
    source = FaceFilesParams(image_files=face_files)
    run_scenario_test(FaceScenario, small_params(tmp_path, head), directory=tmp_path / "run", predict_source=source)
    predictor = FaceScenario.create_predictor(next((tmp_path / "run").rglob("scenario.json")).parent)
    served = predictor.predict_sample(predictor.sample_from_file(face_files[0].read_bytes(), "face.png"))
    alone = predictor.predict_sample(Sample(inputs=face_files[0]))
    assert np.array_equal(served.outputs["embedding"], alone.outputs["embedding"])


@pytest.mark.long
def test_contract_with_iresnet(tmp_path: Path, face_files: list[Path]) -> None:
    params = small_params(tmp_path)
    params.scenario.model.network = IResNet(factor=16)
    source = FaceFilesParams(image_files=face_files)
    run_scenario_test(FaceScenario, params, directory=tmp_path / "run", predict_source=source, tolerance=1e-4)


def test_a_short_training_its_report_and_a_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The first block of the README as it is written, but with a smaller training."""
    monkeypatch.chdir(tmp_path)
    block = console_blocks()[0]
    for command in read_commands(block):
        run_command(command.text, SHORT if command.text.startswith("scena train") else [])
    history = read_history(tmp_path / "faces_model/history.csv")
    assert all("val_emb_acc" in row and "val_loss" not in row for row in history)
    best = min(row["lav_eer"] for row in history if "lav_eer" in row)
    assert best < 0.4  # guessing gives 0.5, and the pictures themselves 0.42
    report = tmp_path / "faces_report"
    page = (report / "index.html").read_text()
    assert "DET curve" in page and "Most alike, but different people" in page
    names = " ".join(file.name for file in report.iterdir())
    assert "det_curve.png" in names and "error_rates.png" in names and "scores.png" in names
    assert "new_faces/900/0.png: 1.000 like new_faces/900/0.png" in capsys.readouterr().out


@pytest.mark.long
def test_centers_are_part_of_a_resumed_training(tmp_path: Path) -> None:
    whole = small_params(tmp_path / "whole", SoftmaxCenterParams())
    expected = FaceScenario.create_trainer(whole).train()
    first = small_params(tmp_path / "cut", SoftmaxCenterParams())
    first.learning_rate = whole.learning_rate.replace(decay_epochs=2.0)
    first.epochs = 1
    FaceScenario.create_trainer(first).train()
    second = small_params(tmp_path / "cut", SoftmaxCenterParams())
    again = FaceScenario.create_trainer(second).train(resume=True)
    for name in ("loss", "center", "lav_eer"):
        assert [row[name] for row in again] == [row[name] for row in expected]


@pytest.mark.long
@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(tmp_path: Path, precision: str) -> None:
    params = small_params(tmp_path / "run", SoftmaxCenterParams())
    params.precision, params.epochs = precision, 1
    full = small_params(tmp_path / "full", SoftmaxCenterParams())
    full.epochs = 1
    (half,), (single,) = (FaceScenario.create_trainer(p).train() for p in (params, full))
    assert half["loss"] == pytest.approx(single["loss"], rel=0.05)
    assert half["loss"] != single["loss"]
