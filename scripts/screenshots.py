"""Makes the screenshots of the documentation from a real run: `python -m scripts.screenshots`.

Draws flowers, trains on them for a minute, and writes `report.png`, `serve.png` and `tensorboard.png` to `docs/images`.
It needs Chromium and its driver.
"""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from tests.pages.browser import Browser, browser

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
LARGEST = 150_000
"""Bytes of a screenshot."""


def main() -> None:
    """Makes all screenshots."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(folder, "-m examples.imageclassification.draw flowers")
        flags = "--trainer.epochs 12 --trainer.random_seed 1 --trainer.output_dir flower_model"
        run(folder, f"-m scena train examples.imageclassification {flags}")
        run(folder, "-m scena lav flower_model/best --lav.print_limit 0 --report report")
        with served(folder) as address, browser(folder / "profile") as page:
            page.prefer("light")
            shoot(page, (folder / "report/index.html").as_uri(), "report", 1280, 1130)
            page.open(address)
            page.choose_file("#file", next((folder / "flowers/validation/tulip").iterdir()))
            page.text("#answer", "ms")
            shoot(page, "", "serve", 1280, 900)
            with tensorboard(folder) as curves:
                page.open(curves)
                page.text("scalar-card", "acc")
                time.sleep(5)  # TensorBoard draws its curves without saying when it is done
                shoot(page, "", "tensorboard", 1280, 800)


def run(folder: Path, arguments: str) -> None:
    """Runs Python in a folder."""
    subprocess.run([sys.executable, *arguments.split()], cwd=folder, env=environment(), check=True)


def environment() -> dict[str, str]:
    """That of a process that finds the examples of this clone."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a service with the model."""
    command = [sys.executable, *"-m scena serve flower_model/best --port 8501".split()]
    with subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            while "http://" not in (line := process.stderr.readline()):
                assert line, "the service has ended"
            yield "http://127.0.0.1:8501/"
        finally:
            process.terminate()


@contextlib.contextmanager
def tensorboard(folder: Path) -> Iterator[str]:
    """The address of a TensorBoard with the curves of the training."""
    command = [sys.executable, *"-m tensorboard.main --logdir flower_model --port 8502 --load_fast=false".split()]
    with subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            while "http://" not in (line := process.stderr.readline()):
                assert line, "TensorBoard has ended"
            yield "http://127.0.0.1:8502/#timeseries"
        finally:
            process.terminate()


def shoot(page: Browser, address: str, name: str, width: int, height: int) -> None:
    """Saves what a window of this size shows, with few enough colors to be small."""
    page.resize(width, height)
    if address:
        page.open(address)
    page.run("document.documentElement.style.scrollbarWidth = 'none'")
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    path = IMAGES / f"{name}.png"
    image.save(path, optimize=True)
    size = path.stat().st_size
    assert size <= LARGEST, f"{path} has {size} bytes"
    print(f"{path}: {size} bytes")


if __name__ == "__main__":
    main()
