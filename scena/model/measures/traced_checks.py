"""Checks on the traced operations of losses and metrics: accidental pairs of samples, and the number of classes of a target.

A target of shape (batch,) minus an output of shape (batch, 1) has the shape (batch, batch): its mean is a number, and training by it
works badly without an error. Such a step is found in the trace of a loss: the batch axis of one tensor meets an axis of size 1 that
another one brought along. Code that asks for all pairs (a new axis, keepdims, a matrix product) is left alone.
"""

import logging
from typing import Any

import keras

from scena.data.sample import Arrays, Batch
from scena.errors import DataError, ModelError
from scena.model.building import full_precision
from scena.model.graph import RootGraph
from scena.model.measures.bad_data import out_of_range
from scena.model.measures.op_graph import Shapes, Tensor, trace
from scena.model.training_model import Measures
from scena.overriding import spelled

logger = logging.getLogger(__name__)

BATCH = 10007
"""A batch size that no other axis has."""


def check_broadcasts(measures: Measures, root: RootGraph, inputs: Arrays, targets: Arrays) -> None:
    """Traces losses and metrics, and looks for accidental pairs.

    Args:
        measures: the losses and metrics of a model.
        root: its graph.
        inputs: those of a real batch; only their shapes matter.
        targets: the same for the targets.

    Raises:
        ModelError: names both tensors with their shapes, the line, and the fix.
    """
    try:
        shapes = shapes_for(root, inputs, targets)
    except Exception as error:  # a graph that is made for one batch size
        logger.debug("Losses and metrics are not checked for accidental pairs: %s", error)
        return
    for method in ("loss", "metrics"):
        try:
            tensors = trace(lambda inputs, targets, outputs: measures.traced(method, inputs, targets, outputs), shapes)  # noqa: B023
        except Exception as error:  # what cannot be traced for this batch size is no finding; the real step will tell
            logger.debug("%s is not checked for accidental pairs: %s", method, error)
            continue
        for tensor in tensors:
            pair = accidental_pair(tensor)
            if pair is not None:
                raise ModelError(_explanation(spelled(type(measures.model), method), tensor, *pair))


def shapes_for(root: RootGraph, inputs: Arrays, targets: Arrays) -> Shapes:
    """Shapes and types of all tensors, for a batch of `BATCH` samples like these."""
    shapes: Shapes = {
        part: {name: ((BATCH, *array.shape[1:]), _dtype(array)) for name, array in arrays.items()}
        for part, arrays in (("inputs", inputs), ("targets", targets))
    }
    symbolic = {
        part: {name: keras.KerasTensor(shape, dtype, name=name) for name, (shape, dtype) in tensors.items()}
        for part, tensors in shapes.items()
    }
    outputs = full_precision(root(symbolic["inputs"], targets=symbolic["targets"], training=True))
    shapes["outputs"] = {name: (tuple(value.shape), value.dtype) for name, value in outputs.items()}
    return shapes


def _dtype(array: Any) -> str:
    return "string" if array.dtype.kind in "USO" else str(array.dtype)


def accidental_pair(tensor: Tensor) -> tuple[Tensor, Tensor] | None:
    """The tensors whose samples an operation pairs: that without the axis of size 1, and that with it. None for other operations."""
    if tensor.kind != "elementwise":
        return None
    operands = [_before_promotion(source) for source in tensor.sources]
    for low in operands:
        for high in operands:
            if len(low.shape) >= len(high.shape) or BATCH not in low.shape:
                continue
            axis = len(high.shape) - len(low.shape) + low.shape.index(BATCH)
            if high.shape[axis] != 1 or high.shape[0] != BATCH or axis == 0:
                continue
            brought = _origin(high)
            others = _given(low)
            if brought is not None and others and others != {brought}:
                return low, high
    return None


def _before_promotion(tensor: Tensor) -> Tensor:
    """JAX writes out that an operand gets more axes, or larger ones; the operand itself is what counts."""
    while tensor.kind == "promote" and tensor.sources:
        tensor = tensor.sources[0]
    return tensor


def _origin(tensor: Tensor, seen: set[Tensor] | None = None) -> Tensor | None:
    """The given tensor that the axes of size 1 come from; None if code has made them on purpose."""
    seen = set() if seen is None else seen
    if tensor.kind == "given":
        return tensor
    if tensor in seen:
        return None
    seen.add(tensor)
    if tensor.kind in ("squeeze", "slice", "reduce") and tensor.sources:
        source = tensor.sources[0]
        if source.shape[-1:] == (1,):
            return _origin(source, seen)
        return next(iter(_given(source)), None) if tensor.kind == "slice" else None
    if tensor.kind in ("new axis", "reshape", "promote"):
        return None
    same = [_origin(source, seen) for source in tensor.sources if source.shape == tensor.shape]
    return next((origin for origin in same if origin is not None), None)


def _given(tensor: Tensor) -> set[Tensor]:
    """The given tensors that one was computed from."""
    found: set[Tensor] = set()
    seen: set[int] = set()
    waiting = [tensor]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if one.kind == "given":
            found.add(one)
        waiting += one.sources
    return found


def _explanation(method: str, tensor: Tensor, low: Tensor, high: Tensor) -> str:
    place = f" at {tensor.line}" if tensor.line is not None else ""
    origin = _origin(high)
    assert origin is not None
    by_rank = sorted(_given(low) - {origin}, key=lambda given: given.shape != low.shape)
    first, second = _named(by_rank[0], low), _named(origin, high)
    return (
        f"{method} pairs each sample with every other one{place}: {first} meets {second}, and the result is that of "
        f"batch × batch values. Give both the same shape, for example with ops.squeeze(…, -1) or ops.expand_dims(…, -1). "
        f"If you mean all pairs, say so with ops.expand_dims on both; --trainer.sanity_check False skips this check."
    )


def _named(given: Tensor, used: Tensor) -> str:
    part, name = given.name or ("", "")
    derived = "" if given.shape == used.shape else "what is made of "
    return f"{derived}{part.removesuffix('s')} {name!r} of shape {_text(used.shape)}"


def _text(shape: tuple[int | None, ...]) -> str:
    axes = ["batch" if axis == BATCH else "?" if axis is None else str(axis) for axis in shape]
    return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"


def label_counts(measures: Measures, root: RootGraph, inputs: Arrays, targets: Arrays) -> dict[str, int]:
    """The number of classes of each target that a loss turns into one-hot vectors (JAX only).

    TensorFlow refuses a label that is out of range. JAX compares it with each class, finds none, and the sample has no loss.

    Args:
        measures: the losses of a model.
        root: its graph.
        inputs: those of a batch; only their shapes matter.
        targets: the same for the targets.
    """
    try:
        shapes = shapes_for(root, inputs, targets)
        tensors = trace(lambda inputs, targets, outputs: measures.traced("loss", inputs, targets, outputs), shapes)
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
