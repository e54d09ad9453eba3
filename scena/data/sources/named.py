"""Data sets by name: those of TensorFlow Datasets (read by index, without TensorFlow), of Keras, and embedded ones."""

import logging
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scena.data.records.record_set import RecordSet
from scena.data.records.schema import Schema
from scena.data.sample import Sample
from scena.data.sources.digits import load_digits
from scena.data.sources.params import NamedDataSetParams
from scena.data.sources.splits import SplitSource
from scena.errors import DataError

logger = logging.getLogger("scena.data")

KERAS_SETS = ("mnist", "fashion_mnist", "cifar10", "cifar100")
EMBEDDED = ("digits",)
DOWNLOAD_HOST = "https://storage.googleapis.com"
TIMEOUT = 4.0


class NamedDataSet(SplitSource[NamedDataSetParams]):
    """Samples of a named data set: for images with a class, inputs["image"] and targets["label"]."""

    def title(self) -> str:
        return f"The data set {self.params.dataset!r}"

    def open(self) -> dict[str, int]:
        kind, _, name = self.params.dataset.rpartition(":")
        if kind not in ("", "tfds", "keras"):
            raise DataError(f"A data set is NAME, tfds:NAME or keras:NAME. Received: {self.params.dataset!r}.")
        self._backend: ArraySets | PreparedSet
        if kind == "" and name in EMBEDDED:
            self._backend = ArraySets({split: load_digits(name, split) for split in ("train", "test")})
        elif kind == "keras" or (kind == "" and name in KERAS_SETS and not _prepared(name, self.params.data_dir)):
            self._backend = _keras_set(name, also_tfds=kind == "")
            self.main_process = True  # else each worker would load Keras
        else:
            self._backend = PreparedSet(name, self.params.data_dir)
        self.classes = self._backend.classes
        return self._backend.counts

    def labels(self, split: str) -> Sequence[Any] | None:
        return self._backend.labels(split)

    def read(self, split: str, index: int) -> Sample:
        return self._backend.read(split, index)


class ArraySets:
    """Images and labels in memory."""

    def __init__(self, splits: dict[str, tuple[Any, Any]]) -> None:
        flat = {name: (images, labels.reshape(-1)) for name, (images, labels) in splits.items()}
        self.splits = {name: (i[..., None] if i.ndim == 3 else i, labels) for name, (i, labels) in flat.items()}
        self.counts = {name: len(labels) for name, (_, labels) in self.splits.items()}
        highest = max(int(labels.max()) for _, labels in self.splits.values())
        self.classes: list[str] | None = [str(number) for number in range(highest + 1)]

    def labels(self, split: str) -> Sequence[Any] | None:
        return [int(label) for label in self.splits[split][1]]

    def read(self, split: str, index: int) -> Sample:
        """One sample of a split."""
        images, labels = self.splits[split]
        return Sample(inputs={"image": images[index]}, targets={"label": int(labels[index])})


class PreparedSet:
    """A data set that TensorFlow Datasets has prepared on disk (it is prepared first if that is possible)."""

    def __init__(self, name: str, data_dir: Path | None) -> None:
        builder = _builder(name, data_dir)
        if not builder.data_path.exists():
            _prepare(builder, name)
        info = builder.info
        self._features = info.features
        paths = {split: [os.fspath(path) for path in info.splits[split].filepaths] for split in info.splits}
        self._sets = {split: RecordSet(files, schema=Schema({})) for split, files in paths.items() if files}
        self.counts = {split: len(self._sets[split]) if files else 0 for split, files in paths.items()}
        keys = info.supervised_keys
        self._keys = keys[:2] if keys is not None and all(isinstance(key, str) for key in keys) else None
        names = getattr(self._features[self._keys[1]], "names", None) if self._keys else None
        self.classes: list[str] | None = list(names) if names else None

    def labels(self, split: str) -> Sequence[Any] | None:
        return None

    def read(self, split: str, index: int) -> Sample:
        """One sample: inputs and targets as the data set's `supervised_keys` say, else all features as inputs."""
        value = self._features.deserialize_example_np(self._sets[split].data(index))
        if self._keys is None:
            return Sample(inputs=value)
        source, target = self._keys
        return Sample(inputs={source: value[source]}, targets={target: value[target]})


def _tfds() -> Any:
    try:
        import tensorflow_datasets
    except ImportError:
        raise DataError("TensorFlow Datasets is not installed: pip install 'scena[datasets]'.") from None
    logging.getLogger("absl").setLevel(logging.ERROR)  # it recommends OpenCV at each start
    return tensorflow_datasets


def _builder(name: str, data_dir: Path | None) -> Any:
    tfds = _tfds()
    try:
        return tfds.builder(name, data_dir=None if data_dir is None else os.fspath(data_dir), try_gcs=False)
    except tfds.core.registered.DatasetNotFoundError:
        folder = data_dir or "~/tensorflow_datasets"
        raise DataError(
            f"There is no data set {name!r}: TensorFlow Datasets does not know it, and {str(folder)!r} holds none of that name. "
            f"Keras has {', '.join(KERAS_SETS)}; {', '.join(EMBEDDED)} needs no network."
        ) from None
    except (ValueError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise DataError(f"The data set {name!r} cannot be opened: {reason}") from None


def _prepared(name: str, data_dir: Path | None) -> bool:
    try:
        return bool(_builder(name, data_dir).data_path.exists())
    except DataError:
        return False


def _prepare(builder: Any, name: str) -> None:
    if not online():
        raise DataError(
            f"The data set {name!r} is not prepared in {str(builder.data_path)!r}, and {DOWNLOAD_HOST} cannot be reached to "
            "download it. Prepare it where there is a network (tfds build) and copy that folder, or choose another data_dir."
        )
    logger.info("Downloading and preparing %s into %s …", name, builder.data_path)
    builder.download_and_prepare()


def online() -> bool:
    """Whether a download can succeed: answers within seconds, where downloaders would retry for minutes."""
    try:
        with urllib.request.urlopen(DOWNLOAD_HOST, timeout=TIMEOUT):
            return True
    except urllib.error.HTTPError:
        return True  # the host answered
    except OSError:
        return False


def _keras_set(name: str, also_tfds: bool) -> ArraySets:
    if name not in KERAS_SETS:
        raise DataError(f"Keras has no data set {name!r} here; it has {', '.join(KERAS_SETS)}.")
    if not _keras_cached(name) and not online():
        also = ", nor has TensorFlow Datasets prepared it" if also_tfds else ""
        raise DataError(
            f"The data set {name!r} is not in Keras' cache (~/.keras/datasets){also}, and {DOWNLOAD_HOST} cannot be reached to "
            "download it. The data set 'digits' needs no network."
        )
    if name in ("mnist", "fashion_mnist"):
        return ArraySets({split: load_digits(name, split) for split in ("train", "test")})
    import keras

    train, test = getattr(keras.datasets, name).load_data()
    return ArraySets({"train": train, "test": test})


def _keras_cached(name: str) -> bool:
    folder = Path(os.environ.get("KERAS_HOME", Path.home() / ".keras")) / "datasets"
    files = {"mnist": "mnist.npz", "fashion_mnist": "fashion-mnist", "cifar10": "cifar-10-batches-py*",
             "cifar100": "cifar-100-python*"}  # fmt: skip
    return any(folder.glob(files[name]))
