"""The tutorials' data sets: embedded digits, and Keras' cache for the larger ones."""

import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest

from scena.data.sources.digits import load_digits
from scena.errors import DataError


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory without anything in it, and no memory of earlier calls."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_HOME", raising=False)
    load_digits.cache_clear()
    return tmp_path


def test_embedded_digits_are_real_balanced_and_split() -> None:
    train, train_labels = load_digits("digits", "train")
    test, test_labels = load_digits("digits", "test")
    assert train.shape == (4000, 28, 28) and test.shape == (1000, 28, 28) and train.dtype == np.uint8
    assert np.bincount(train_labels).tolist() == [400] * 10 and np.bincount(test_labels).tolist() == [100] * 10
    assert not {image.tobytes() for image in train} & {image.tobytes() for image in test}
    assert len(set(test_labels[:20].tolist())) > 5, "a few samples show several classes"


def test_embedded_digits_never_change() -> None:
    """Reference figures all over the documentation and the tests rest on them."""
    digest = hashlib.sha256()
    for split in ("train", "test"):
        for array in load_digits("digits", split):
            digest.update(array.tobytes())
    assert digest.hexdigest() == "a6ad4d4c44c1ed0779913f488202743994d5aa69eb439c24497ae83cff142daf"


def test_mnist_is_read_from_keras_cache(own_home: Path) -> None:
    folder = own_home / ".keras" / "datasets"
    folder.mkdir(parents=True)
    images = np.arange(3 * 784, dtype=np.uint8).reshape(3, 28, 28)
    np.savez(folder / "mnist.npz", x_train=images, y_train=[1, 2, 3], x_test=images[:1], y_test=[7])
    assert np.array_equal(load_digits("mnist", "train")[0], images)
    assert load_digits("mnist", "test")[1].tolist() == [7]


def test_fashion_mnist_is_read_from_keras_cache(own_home: Path) -> None:
    folder = own_home / ".keras" / "datasets" / "fashion-mnist"
    folder.mkdir(parents=True)
    images = np.arange(2 * 784, dtype=np.uint8).reshape(2, 28, 28)
    for part in ("train", "t10k"):
        with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">2i", 2049, 2) + bytes([4, 9]))
        with gzip.open(folder / f"{part}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">4i", 2051, 2, 28, 28) + images.tobytes())
    loaded, labels = load_digits("fashion_mnist", "test")
    assert np.array_equal(loaded, images) and labels.tolist() == [4, 9]


def test_without_a_network_the_message_names_the_embedded_set(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nothing listens there: refused at once
    monkeypatch.setenv("KERAS_HOME", str(own_home / "keras"))
    with pytest.raises(DataError, match="'mnist' is not on this machine and cannot be fetched .*--data.dataset digits"):
        load_digits("mnist", "train")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(DataError, match="'cats'; choose from digits, mnist, fashion_mnist"):
        load_digits("cats", "train")
