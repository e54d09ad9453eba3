"""Finds the cause of a failed or worthless step: the sample with a bad number, label or index, the tensor, or the user's line."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from scena.data.sample import Batch
from scena.errors import DataError, ModelError, ScenaError, TrainingError
from scena.user_code import user_line

_LABEL = re.compile(r"label value of (-?\d+) which is outside the valid range of \[0, (\d+)\)")
_INDEX = re.compile(r"indices\[[\d,\s]*\] = (-?\d+) is not in \[0, (\d+)\)")
NOT_FINITE = (
    "The %s data is not finite: %s. That is fine only if the model handles missing values; if it does, declare "
    "allow_nan = True in the data class."
)
# TensorFlow abbreviates paths in its message about a tensor that is not finite
_LIBRARIES = re.compile(r"packages/|tensorflow/|/tensorflow|keras/src|scena/(model|training)/|lib/python")


def not_finite(*batches: Batch, allow_nan: bool = False) -> str:
    """Names the inputs and targets that are not finite in the first such batch, and the sample; empty if all are finite.

    `allow_nan`: NaN in an input is as good as a number.
    """
    for batch in batches:
        found = []
        for part, name, array in _arrays(batch):
            if array.dtype.kind != "f" or _is_sum_finite(array):
                continue
            bad = np.isinf(array) if allow_nan and part == "input" else ~np.isfinite(array)
            if bad.any():
                row, *place = (int(number) for number in np.argwhere(bad)[0])
                where = f" at {place}" if place else ""
                found.append(f"the {part} {name!r} is {array[(row, *place)]}{where} in {_named(batch, row)}")
        if found:
            return "; ".join(found)
    return ""


def _is_sum_finite(array: Any) -> bool:
    """Much faster than to look at each number; False proves nothing, as a sum may overflow."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(array.sum()))


def out_of_range(batch: Batch, value: int, count: int, labels: bool) -> str:
    """Names the sample whose label (or index) is out of range; empty if none of the batch's own arrays has it."""
    parts = sorted(_arrays(batch), key=lambda item: (item[0] == "target") != labels)
    for part, name, array in parts:
        if array.dtype.kind in "iuf" and (places := np.argwhere(array == value)).size:
            row, *place = (int(number) for number in places[0])
            where = f" at {place}" if place else ""
            return f"the {part} {name!r} is {value}{where} in {_named(batch, row)}, and there are {count} (0 to {count - 1})"
    return ""


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
        raise DataError(
            f"A label is out of range: {out_of_range(batch, value, count, labels=True)}. Its one-hot vector is 0, so the sample would "
            "have no loss. If that is intended, mark it with -1, or set --trainer.sanity_check False (for lav: --lav.check_labels False)."
        )


def _named(batch: Batch, row: int) -> str:
    meta = batch.meta[row] if row < len(batch.meta) else None
    if meta is None:
        return f"sample {row} of the batch (samples without meta have no name)"
    text = repr(meta)
    return f"the sample with meta {text if len(text) <= 200 else text[:197] + '...'}"


@contextmanager
def explaining_step(batches: Iterable[Batch], what: str) -> Iterator[None]:
    """Converts an error of the backend in a step (`what`) into one line: the sample if its data is the cause, else the user's line."""
    try:
        yield
    except ScenaError as error:
        if "in user code:" not in str(error):
            raise
        raise type(error)(str(error).rstrip().rpartition(f"{type(error).__name__}: ")[2]) from error
    except Exception as error:
        if not _is_of_backend(error):
            raise
        raise _explained(error, list(batches), what) from error


@contextmanager
def checked_numerics() -> Iterator[None]:
    """Lets TensorFlow check the result of each operation that is compiled in the block."""
    import tensorflow as tf

    tf.debugging.enable_check_numerics()
    try:
        yield
    finally:
        tf.debugging.disable_check_numerics()


def _is_of_backend(error: Exception) -> bool:
    """Whether an error was raised by TensorFlow or JAX, or while they traced a user's code."""
    return type(error).__module__.split(".")[0] in ("tensorflow", "jax", "jaxlib") or "in user code:" in str(error)


def _explained(error: Exception, batches: list[Batch], what: str) -> ScenaError:
    text = str(getattr(error, "message", "") or error)
    if "Detected Infinity or NaN" in text:  # from checked_numerics
        found = not_finite(*batches)
        return TrainingError(f"The data is not finite: {found}." if found else _bad_tensor(text))
    line = user_line(error)
    place = f" at {line}" if line is not None else ""
    for pattern, labels in ((_LABEL, True), (_INDEX, False)):
        if match := pattern.search(text):
            value, count = int(match[1]), int(match[2])
            kind = "label" if labels else "index"
            if found := next((found for batch in batches if (found := out_of_range(batch, value, count, labels))), ""):
                return DataError(f"A {kind} is out of range in {what}: {found}.")
            return DataError(
                f"A {kind} is out of range in {what}{place}: {value}, and there are {count} (0 to {count - 1})."
            )
    reason = _reason(error, text)
    if reason.startswith("ModelError: "):  # ours, on its way through TensorFlow
        return ModelError(reason.removeprefix("ModelError: "))
    return ModelError(f"{what[0].upper()}{what[1:]} fails{place}: {reason}")


def _bad_tensor(message: str) -> str:
    """TensorFlow's message about a tensor that is not finite in one sentence: operation, layer, shape, and the line of code."""
    operation = re.search(r'output \d+ of (?:graph|eagerly-executing) op "?([^\s"]+)', message)
    shape = re.search(r"^\s*shape:\s*(\(.*?\))", message, re.MULTILINE)
    source = re.search(r"Input tensors?:\s*.*?Tensor\(\"([^\"]+)\"", message, re.DOTALL)
    # frames run from the outermost call to the operation
    frames = re.findall(r"^\s*\+ (\S+) \(L(\d+)\)", message, re.MULTILINE)
    own = [f"{Path(file).name}:{line}" for file, line in frames if not _LIBRARIES.search(file)]
    place = f" at {own[-1]}" if own else ""
    of = f" of {source[1]}" if source else ""
    name = operation[1] if operation else "an operation"
    return f"The first tensor that is not finite is the result of {name}{of}{place} (shape {shape[1] if shape else 'unknown'})."


def _reason(error: Exception, text: str) -> str:
    """The line of a page-long message that has the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    skipped = ("File ", "Graph execution error", "Detected at node", "[[{{node", "in user code", "Stack trace", "Node:")
    useful = [line for line in lines if not line.startswith(skipped) and "[Op:__inference" not in line]
    if "in user code:" in text and useful:
        return useful[-1]
    named = [line for line in useful if "\t [[{{" not in line]
    return (named or useful or [type(error).__name__])[0]


def _arrays(batch: Batch) -> list[tuple[str, str, Any]]:
    inputs = [("input", name, array) for name, array in batch.inputs.items()]
    return inputs + [("target", name, array) for name, array in batch.targets.items()]
