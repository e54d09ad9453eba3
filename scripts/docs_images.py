"""Makes the plots of the topic guides: `python -m scripts.docs_images`.

Writes `augmentation.png`, `zoo.png`, `verification.png`, `schedules.png` and `search.png` to `docs/images`. `scripts/screenshots.py` makes
the screenshots, `scripts/record_terminal.py` the terminals; the diagrams `sample-flow.svg`, `pipeline-stages.svg`, `model.svg` and
`graphs.svg` are written by hand.
"""

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from examples.tutorial.min.scenario import TutorialScenario
from scena import (
    CosineDecay,
    CosineRestarts,
    ExponentialDecay,
    OneCycle,
    PolynomialDecay,
    Sample,
    StepDecay,
    Trigger,
    VerificationEvaluator,
    VerificationParams,
)
from scena.model.zoo.catalogue import MODELS
from scena.model.zoo.request import count_network
from scena.plots import new_figure
from scena.training.prepare import create_schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
LARGEST = 100_000
"""Bytes of an image."""
SHOWN = [
    "AlexNet", "VGG16", "SqueezeNet", "ResNet18", "ResNet50", "ResNet152", "MobileNetV2", "MobileNetV3Small",
    "MobileNetV3Large", "EfficientNetB0", "EfficientNetB4", "EfficientNetB7", "NASNetMobile", "NASNetLarge",
]  # fmt: skip
"""Networks in the plot of the zoo."""
LABEL_OFFSETS = {"EfficientNetB4": (-5, 4), "MobileNetV2": (-5, -10)}
"""Where labels would cover others at (5, 4)."""


def main() -> None:
    """Makes all plots."""
    save("augmentation", augmentation())
    save("zoo", drawn([zoo()]))
    save("verification", drawn(verification()))
    save("schedules", drawn([schedules()]))
    save("search", search())


def augmentation() -> Image.Image:
    """Flowers, each followed by augmented versions."""
    operations = "RandomRotate RandomHorizontalFlip ColorJitter Translate Cutout"
    preview = (
        f"classification --data ImageFiles --data.images flowers --train.augment {operations} --samples 4 --size 96"
    )
    with tempfile.TemporaryDirectory() as name:
        for arguments in (
            "-m examples.imageclassification.draw flowers --count 4",
            f"-m scena records preview {preview} --model.input_size 96 96 3",
        ):
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
            subprocess.run([sys.executable, *arguments.split()], cwd=name, env=environment, check=True)
        return Image.open(Path(name, "preview.png")).convert("RGB")


def zoo() -> "Figure":
    """Operations over parameters of the networks for 1000 classes."""
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    for name in SHOWN:
        totals = count_network(name, MODELS[name].input_size)
        axes.plot(totals.parameters / 1e6, totals.flops / 1e9, "o", color="#2a6f97")
        offset = LABEL_OFFSETS.get(name, (5, 4))
        axes.annotate(
            name,
            (totals.parameters / 1e6, totals.flops / 1e9),
            offset,
            textcoords="offset points",
            ha="right" if offset[0] < 0 else "left",
            fontsize=8,
        )
    axes.set(
        xscale="log", yscale="log", xlabel="parameters (million)", ylabel="FLOPs per image (billion)", xlim=(1, 300)
    )
    axes.grid(alpha=0.3)
    return figure


def verification() -> list["Figure"]:
    """The plots of the evaluator for made-up embeddings of 20 people."""
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(20), 6)
    vectors = rng.normal(size=(20, 32))[people] + rng.normal(size=(120, 32))
    with VerificationEvaluator(VerificationParams()) as evaluator:
        for vector, person in zip(vectors, people, strict=True):
            evaluator.update_state(Sample(outputs={"embedding": vector}, targets={"label": person}))
        evaluator.result()
    plots = evaluator.plots()
    return [plots["DET curve"], plots["Scores"]]


def schedules() -> "Figure":
    """The learning rate over 30 epochs of 100 steps, for several schedules with a warm-up of two epochs."""
    figure = new_figure(8, 4)
    axes = figure.add_subplot()
    steps, epochs = 100, 30
    at = np.arange(steps * epochs)
    for kind in (CosineDecay, CosineRestarts, OneCycle, PolynomialDecay, StepDecay, ExponentialDecay):
        params = TutorialScenario.default_trainer_params()
        params.epochs, params.learning_rate = epochs, kind(lr=1e-3, warmup=Trigger.from_param(2))
        axes.plot(at / steps, np.asarray(create_schedule(params, steps)(at)), label=kind.__name__)
    axes.set(xlabel="epoch", ylabel="learning rate")
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def search() -> Image.Image:
    """The grid plot of a small search over learning rate and batch size."""
    space = "learning_rate.lr=0.0003,0.001,0.003 train.batch_size=16,64 --sampler grid"
    flags = "--trainer.epochs 2 --train.limit 1000 --val.limit 500 --trainer.random_seed 1 --output tune"
    with tempfile.TemporaryDirectory() as name:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = f"-m scena tune examples.tutorial.min --search {space} {flags}"
        subprocess.run([sys.executable, *command.split()], cwd=name, env=environment, check=True)
        return Image.open(Path(name, "tune/plots/grid.png")).convert("RGB")


def drawn(figures: Sequence["Figure"]) -> Image.Image:
    """The figures side by side."""
    images = []
    for figure in figures:
        figure.savefig(buffer := io.BytesIO(), format="png", dpi=100)
        images.append(Image.open(buffer).convert("RGB"))
    sheet = Image.new("RGB", (sum(image.width for image in images), max(image.height for image in images)), "white")
    left = 0
    for image in images:
        sheet.paste(image, (left, (sheet.height - image.height) // 2))
        left += image.width
    return sheet


def save(name: str, image: Image.Image) -> None:
    """Saves an image with few enough colors to be small."""
    path = IMAGES / f"{name}.png"
    image.quantize(128).save(path, optimize=True)
    size = path.stat().st_size
    assert size <= LARGEST, f"{path} has {size} bytes"
    print(f"{path}: {size} bytes")


if __name__ == "__main__":
    main()
