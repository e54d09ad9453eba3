"""How many classes a target counts, where a backend would take any label without a word.

TensorFlow refuses a label that is out of range. JAX compares it with each class, finds none, and the sample has no loss.
"""

import logging

from scena.data.batch import Arrays, Batch
from scena.data.errors import DataError
from scena.model.graph import RootGraph
from scena.model.measures.bad_data import out_of_range
from scena.model.measures.broadcasts import shapes_for
from scena.model.measures.op_graph import Tensor, trace
from scena.model.training_model import Measures

logger = logging.getLogger(__name__)


def label_counts(measures: Measures, root: RootGraph, inputs: Arrays, targets: Arrays) -> dict[str, int]:
    """The number of classes of each target that a loss turns into one-hot vectors (JAX only).

    Args:
        measures: the losses of a model.
        root: its graph.
        inputs: those of a batch; only their shapes matter.
        targets: the same for the targets.
    """
    try:
        shapes = shapes_for(root, inputs, targets)
        tensors = trace(lambda inputs, targets, outputs: measures.traced("_loss", inputs, targets, outputs), shapes)
    except Exception as error:  # a loss that is made for one batch size
        logger.debug("The numbers of classes are not known: %s", error)
        return {}
    found: dict[str, int] = {}
    for tensor in tensors:
        classes = next((source for source in tensor.sources if source.kind == "iota"), None)
        labels = next((source for source in tensor.sources if source.kind != "iota"), None)
        if tensor.operation != "eq" or classes is None or labels is None:
            continue
        given = _unchanged(labels)
        if given is not None and given.name is not None and given.name[0] == "targets":
            found[given.name[1]] = max(size or 0 for size in classes.shape)
    return found


def check_labels(batch: Batch, counts: dict[str, int]) -> None:
    """Refuses labels that are out of range; -1 stands for no class, as in one-hot vectors.

    Raises:
        DataError: names the sample, the target and the label.
    """
    for name, count in counts.items():
        array = batch.targets.get(name)
        if array is None or not array.size or (array.max() < count and array.min() >= -1):
            continue
        value = int(array.max() if array.max() >= count else array.min())
        raise DataError(f"A label is out of range: {out_of_range(batch, value, count, labels=True)}.")


def _unchanged(tensor: Tensor) -> Tensor | None:
    """The given tensor that this one has the values of, in another shape or type."""
    while tensor.kind in ("new axis", "promote", "same", "squeeze", "reshape") and len(tensor.sources) == 1:
        tensor = tensor.sources[0]
    return tensor if tensor.kind == "given" else None
