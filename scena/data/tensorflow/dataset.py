"""tf.data on both ends: a tf.data.Dataset as a source of samples, and a pipeline as a tf.data.Dataset."""

import logging
import time
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, TypeVar

import numpy as np

from scena.data.generator import DataGenerator
from scena.data.params import DataGeneratorParams, PipelineMode
from scena.data.pipeline import DataPipeline
from scena.data.sample import Sample
from scena.data.spec import ArraySpec
from scena.errors import DataError

logger = logging.getLogger("scena.data")
P = TypeVar("P", bound=DataGeneratorParams)
CHECKED = 8


class TFDataGenerator(DataGenerator[P]):
    """Samples from a `tf.data.Dataset`. Implement `dataset()`; it runs in the training process.

    An element is (inputs, targets), (inputs, targets, meta) or just the inputs, each a dict of tensors by name. Set `whole_batches =
    True` if the dataset is batched. Shuffling, mapping and so on are its own business; resuming replays it up to the position.
    """

    main_process = True
    deterministic: ClassVar[bool | None] = None
    """Whether it gives the same elements in the same order each time; None: found out when a run is resumed."""

    @abstractmethod
    def dataset(self) -> Any:
        """The dataset of one epoch."""

    def generate(self) -> Iterator[Sample]:
        return dataset_samples(self.dataset())

    def __len__(self) -> int:
        size = int(self.dataset().cardinality())
        if size < 0:
            raise TypeError(f"{type(self).__name__} does not know its length.")
        return size

    def check_restart(self, epoch: int, samples: int) -> None:
        """Raises if the dataset is not the same each time, so that resuming within an epoch is impossible."""
        if not samples:
            return
        deterministic = self.deterministic
        if deterministic is None:
            deterministic = is_deterministic(self.dataset())
        if not deterministic:
            raise DataError(
                f"{type(self).__name__} cannot be restarted at sample {samples} of epoch {epoch}: its tf.data.Dataset gives "
                "other elements each time it is read, so samples would be lost or repeated. Give each shuffle() a seed and "
                "reshuffle_each_iteration=False, keep `deterministic` on in its options, or start at an epoch's beginning."
            )
        start = time.perf_counter()
        each = max(1, sum(1 for _ in self.dataset().take(CHECKED)))
        seconds = samples * (time.perf_counter() - start) / each
        text = "Resuming a tf.data.Dataset replays the %d samples that were used in epoch %d: about %.1f s."
        logger.info(text, samples, epoch, seconds)


class DatasetSource(TFDataGenerator[Any]):
    """A dataset that exists already."""

    def __init__(self, dataset: Any, mode: PipelineMode) -> None:
        super().__init__(None, mode)
        self._dataset = dataset

    def dataset(self) -> Any:
        return self._dataset


def is_deterministic(dataset: Any) -> bool:
    """Whether reading the first elements twice gives the same. A difference that shows later is not found."""
    if dataset.options().deterministic is False:
        return False
    first, second = (list(dataset.take(CHECKED).as_numpy_iterator()) for _ in range(2))
    return same_elements(first, second)


def same_elements(one: list[Any], other: list[Any]) -> bool:
    """Whether two lists of elements hold the same arrays."""
    import tensorflow as tf

    flat = [[np.asarray(part) for part in tf.nest.flatten(elements)] for elements in (one, other)]
    return len(flat[0]) == len(flat[1]) and all(np.array_equal(a, b) for a, b in zip(*flat, strict=True))


def dataset_samples(dataset: Any) -> Iterator[Sample]:
    """The elements of a dataset as samples."""
    for element in dataset.as_numpy_iterator():
        if not isinstance(element, tuple):
            yield Sample(inputs=element)
        elif len(element) in (2, 3):
            yield Sample(inputs=element[0], targets=element[1], meta=element[2] if len(element) == 3 else None)
        else:
            kinds = "inputs, (inputs, targets) or (inputs, targets, meta)"
            raise DataError(f"An element of a tf.data.Dataset must be {kinds}. Received: a tuple of {len(element)}.")


def tensor_specs(specs: dict[str, ArraySpec]) -> dict[str, Any]:
    """The specs of batches for TensorFlow."""
    import tensorflow as tf

    kinds = {name: tf.string if spec.dtype.kind in "US" else tf.as_dtype(spec.dtype) for name, spec in specs.items()}
    return {name: tf.TensorSpec((None, *spec.shape), kinds[name]) for name, spec in specs.items()}


def to_dataset(pipeline: DataPipeline, *, repeat: bool | None = None) -> Any:
    """The batches of a pipeline as a dataset of (inputs, targets), for transformations in TensorFlow.

    It has no cursor. Each batch passes through Python: take blocks from `pipeline.stream()` where speed matters.
    """
    import tensorflow as tf

    inputs = tensor_specs(pipeline.collator.inputs) if pipeline.mode.has_inputs else {}
    targets = tensor_specs(pipeline.collator.targets) if pipeline.mode.has_targets else {}

    def batches() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        with pipeline.stream(repeat=repeat) as stream:
            for batch in stream:
                yield batch.inputs, batch.targets

    return tf.data.Dataset.from_generator(batches, output_signature=(inputs, targets))
