"""The tutorials with KERAS_BACKEND=jax, in processes of their own: training, kill and resume, LAV, prediction, export."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from examples.tutorial.min.params import DigitsParams
from examples.tutorial.min.scenario import TutorialScenario as Minimal
from scena.commands.main import main
from scena.data.sources.digits import load_digits
from scena.evaluation.params import LAVParams
from tests.faults.harness import fingerprint
from tests.zygote import ROOT, Zygote

# sizes are multiples of the batch: JAX compiles once for each shape
QUICK = "--train.limit 64 --val.limit 32 --trainer.random_seed 5".split()
# state of every kind: accumulated gradients, averaged weights, a schedule; dropout is in the network
RICH = (
    "--trainer.epochs 3 --trainer.checkpoint_every 3steps --trainer.ema_decay 0.9 "
    "--optimizer.gradient_accumulation_steps 2 --learning_rate CosineDecay"
).split()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """JAX computes, compiles quickly, and compiles nothing that another process has compiled."""
    return {
        "KERAS_BACKEND": "jax",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


@pytest.fixture(scope="module")
def jax(environment: dict[str, str]) -> Iterator[Zygote]:
    """Starts processes that compute with JAX."""
    zygote = Zygote.started(**environment)
    yield zygote
    zygote.close()


def answers(jax: Zygote, function: str, *arguments: str, folder: Path) -> list[Any]:
    """Calls one of the functions beside this file and returns what it prints."""
    out, err = folder / "answers.json", folder / "answers.log"
    out.unlink(missing_ok=True)
    status = jax.run(*arguments, function=f"tests.backends.jax.{function}", log=out, errors=err, folder=folder)
    assert status == 0, err.read_text()
    answer: list[Any] = json.loads(out.read_text().splitlines()[-1])
    return answer


@pytest.fixture(scope="module")
def folder(jax: Zygote, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds `straight`, a minimal tutorial that ran to its end, and `killed`, the same run killed with -9 after a checkpoint."""
    folder = tmp_path_factory.mktemp("jax")
    command = ["train", "examples.tutorial.min", *QUICK, *RICH, "--trainer.output_dir"]
    killed = jax.start(*command, "killed", log=folder / "killed.log", folder=folder)
    while not (folder / "killed/checkpoint/3").is_dir():
        assert killed.is_alive(), killed.text
        time.sleep(0.001)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    # not forked, to see the program import JAX by itself
    words = [sys.executable, "-m", "scena", *command, "straight"]
    straight = subprocess.run(
        words,
        cwd=folder,
        env=os.environ | environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert straight.returncode == 0, straight.stderr
    return folder


def test_resume_is_exact(jax: Zygote, folder: Path) -> None:
    assert not (folder / "killed/export").exists()
    resumed = jax.start("resume", "killed", log=folder / "killed.log", folder=folder)
    assert resumed.wait() == 0, resumed.text
    assert "Resumed at epoch" in resumed.text
    assert fingerprint(folder / "killed") == fingerprint(folder / "straight")


def test_minimal_tutorial_after_its_training(jax: Zygote, folder: Path) -> None:
    commands = [
        "lav straight/best --lav.limit 32 --json lav.json",
        "predict straight/best --pipeline.limit 20 --out predicted.jsonl",
        "export straight/best --format saved_model --samples 7",
        "export straight/best --format onnx",
        "train examples.tutorial.min --trainer.output_dir refused --trainer.input_gradient_penalty 1",
        "train examples.tutorial.min --trainer.output_dir refused --device.threads 2",
        "train examples.tutorial.min --trainer.output_dir refused --device.gpus 0 1",
    ]
    done = answers(jax, "in_turn:run", *commands, folder=folder)
    assert [status for status, _ in done] == [0, 0, 0, 1, 1, 1, 1], done
    only = "works with TensorFlow only, and the backend is jax."
    for (_, text), what in zip(
        done[3:],
        [
            "--format onnx",
            "--trainer.input_gradient_penalty",
            "--device.threads",
            "--device.gpus 0 1 (several devices)",
        ],
        strict=True,
    ):
        assert f"{what} {only}" in str(text) and "KERAS_BACKEND=tensorflow." in str(text)
    assert not (folder / "refused").exists()
    _compare_with_tensorflow(folder)


def _compare_with_tensorflow(folder: Path) -> None:
    """This process computes with TensorFlow: the weights, and the SavedModel that jax2tf wrote, give the same answers here."""
    import tensorflow as tf

    best = folder / "straight/best"
    measured = next(iter(json.loads((folder / "lav.json").read_text()).values()))
    result = json.loads((best / "scenario.json").read_text())["result"]
    params = LAVParams()
    params.pipeline.limit = 32
    here = Minimal.create_lav(best, params).run(DigitsParams())
    for name in ("loss", "acc"):
        assert measured[name] == pytest.approx(result[f"val_{name}"], abs=1e-5)
        assert measured[name] == pytest.approx(here[name], abs=1e-5)
    predicted = [json.loads(line)["outputs"]["pred"] for line in (folder / "predicted.jsonl").read_text().splitlines()]
    images, _ = load_digits("digits", "test")
    served = tf.saved_model.load(str(best / "saved_model")).signatures["serving_default"](img=tf.constant(images[:20]))
    np.testing.assert_allclose(served["pred"], predicted, atol=1e-5)


def test_a_checkpoint_belongs_to_its_backend(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", str(folder / "straight"), "--trainer.epochs", "4"]) == 1
    assert (
        "was written with the jax backend, and this is tensorflow. Resume with KERAS_BACKEND=jax"
        in capsys.readouterr().err
    )


def test_full_tutorial(jax: Zygote, tmp_path: Path) -> None:
    images, _ = load_digits("digits", "test")
    Image.fromarray(images[0]).save(tmp_path / "digit.png")
    train = f"train examples.tutorial.full --trainer.epochs 1 --trainer.lav_every_n 1 --tensorboard.histograms 1 {' '.join(QUICK)}"
    commands = [
        f"{train} --trainer.precision mixed_bfloat16 --model.graph MLP --trainer.output_dir a",
        f"{train} --trainer.output_dir b --train.num_processes 1",
        "lav b/best --lav.limit 32",
        "predict a/best b/best --data.image_files digit.png",
        "resume b --trainer.epochs 2",
    ]
    done = answers(jax, "in_turn:run", *commands, folder=tmp_path)
    assert [status for status, _ in done] == [0] * 5, done
    assert "lav_worst_class_acc" in str(done[1][1])
    assert "worst_class_acc" in str(done[2][1])
    assert "digit.png: " in str(done[3][1])
    assert "Epoch 2/2: loss" in str(done[4][1])
    assert (tmp_path / "b/export/saved_model/saved_model.pb").is_file()
    assert len((tmp_path / "b/history.csv").read_text().splitlines()) == 3


def test_what_jax_cannot_do_is_named(jax: Zygote, tmp_path: Path) -> None:
    own_step, text, saved_model = answers(jax, "refusals:ask", folder=tmp_path)
    assert own_step == (
        "ModelError: OwnStep.train_step is written for TensorFlow: it takes (data). With JAX, Keras calls "
        "train_step(state, data), which returns (logs, state). Write it that way, or train with KERAS_BACKEND=tensorflow."
    )
    assert text == (
        "BackendError: 'name' has the type string; text as a tensor works with TensorFlow only, and the backend is jax. "
        "Encode it in a processor. Or run it with KERAS_BACKEND=tensorflow."
    )
    assert saved_model.startswith("ConversionError: jax2tf cannot write this graph as a SavedModel: ")
    assert saved_model.endswith("write it with: KERAS_BACKEND=tensorflow scena export MODEL --format saved_model")


def test_other_backends_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    assert main(["train", "examples.tutorial.min"]) == 1
    assert capsys.readouterr().err.endswith(
        "KERAS_BACKEND=torch: Scena runs on tensorflow and jax. Choose one of them.\n"
    )


def test_mistakes_are_found_before_they_cost_anything(jax: Zygote, tmp_path: Path) -> None:
    """JAX itself takes any label."""
    log = tmp_path / "log"
    assert jax.run(tmp_path, log=log, errors=tmp_path / "errors", function="tests.backends.jax.mistakes:make") == 0
    label, val_label, nan, pairs, random = json.loads(log.read_text().splitlines()[-1])
    for text in (label, val_label):
        assert "the target 'y' is 7 in the sample with meta {'index': 3}, and there are 2 (0 to 1)" in text
    assert "the input 'x' is nan at [0] in the sample with meta {'index': 3}" in nan
    assert "target 'y' of shape (batch,) meets output 'score' of shape (batch, 1)" in pairs
    assert random == "nothing was said"
