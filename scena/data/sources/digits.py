"""Small images with ten classes: `digits` (5,000 real MNIST digits, no network needed), `mnist` and `fashion_mnist`."""

import functools
import gzip
import os
import struct
from pathlib import Path
from typing import Literal

import numpy as np

from scena.errors import DataError

Split = Literal["train", "test"]
Arrays = tuple[np.ndarray, np.ndarray]
"""Images (n, 28, 28) and labels (n,), both uint8."""

DIGIT_SETS = ("digits", "mnist", "fashion_mnist")
EMBEDDED = Path(__file__).with_name("digits.npz")
TEST_EVERY = 5
"""Of the embedded digits, every fifth is kept for testing: 4,000 to train on, 1,000 to test."""


@functools.lru_cache(maxsize=2)
def load_digits(name: str, split: Split) -> Arrays:
    """The images and labels of "digits" (embedded), "mnist" or "fashion_mnist" (fetched by Keras once, then read from its cache)."""
    if name == "digits":
        with np.load(EMBEDDED, allow_pickle=False) as arrays:
            images, labels = arrays["images"], arrays["labels"]
        indices = np.arange(len(labels))
        chosen = indices[(indices % TEST_EVERY == 0) == (split == "test")]
        chosen = np.random.default_rng(0).permutation(chosen)  # the file is sorted by class
        return images[chosen], labels[chosen]
    if name not in DIGIT_SETS:
        raise DataError(f"There is no data set {name!r}; choose from {', '.join(DIGIT_SETS)}.")
    files = _cached_files(name)
    if not all(path.is_file() for path in files):
        _fetch(name)
    if name == "fashion_mnist":
        return _read_idx(files, split)
    with np.load(files[0], allow_pickle=False) as arrays:
        return arrays[f"x_{split}"], arrays[f"y_{split}"]


def _cached_files(name: str) -> list[Path]:
    folder = Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras") / "datasets"
    if name == "mnist":
        return [folder / "mnist.npz"]
    parts = ("train-labels-idx1", "train-images-idx3", "t10k-labels-idx1", "t10k-images-idx3")
    return [folder / "fashion-mnist" / f"{part}-ubyte.gz" for part in parts]


def _fetch(name: str) -> None:
    import keras

    try:
        getattr(keras.datasets, name).load_data()
    except Exception as error:  # Keras raises a bare Exception when it cannot download
        problem = f"The data set {name!r} is not on this machine and cannot be fetched ({error})"
        raise DataError(f"{problem}. Use --data.dataset digits, which needs no network.") from error


def _read_idx(files: list[Path], split: Split) -> Arrays:
    labels, images = files[:2] if split == "train" else files[2:]
    with gzip.open(labels) as file:
        label_array = np.frombuffer(file.read(), np.uint8, offset=8)
    with gzip.open(images) as file:
        data = file.read()
    count, height, width = struct.unpack(">3i", data[4:16])
    return np.frombuffer(data, np.uint8, offset=16).reshape(count, height, width), label_array
