"""Finding the sample behind a failed or worthless step: numbers that are not finite, labels and indices out of range."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from scena.data.sample import Batch
from scena.errors import DataError, ModelError, ScenaError
from scena.user_code import Line, is_users, user_line

_LABEL = re.compile(r"label value of (-?\d+) which is outside the valid range of \[0, (\d+)\)")
_INDEX = re.compile(r"indices\[[\d,\s]*\] = (-?\d+) is not in \[0, (\d+)\)")
_FILES = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


def not_finite(batch: Batch) -> str:
    """Says which inputs and targets of a batch are not finite, and in which sample; empty if all are."""
    found = []
    for part, name, array in _arrays(batch):
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            row, *place = (int(number) for number in np.argwhere(~np.isfinite(array))[0])
            value = array[(row, *place)]
            where = f" at {place}" if place else ""
            found.append(f"the {part} {name!r} is {value}{where} in {named(batch, row)}")
    return "; ".join(found)


def out_of_range(batch: Batch, value: int, count: int, labels: bool) -> str:
    """Names the sample whose label (or index) is not in the range; empty if it is none of the batch's own arrays."""
    parts = sorted(_arrays(batch), key=lambda item: (item[0] == "target") != labels)
    for part, name, array in parts:
        if array.dtype.kind in "iuf" and (places := np.argwhere(array == value)).size:
            row, *place = (int(number) for number in places[0])
            where = f" at {place}" if place else ""
            return f"the {part} {name!r} is {value}{where} in {named(batch, row)}, and there are {count} (0 to {count - 1})"
    return ""


def named(batch: Batch, row: int) -> str:
    """How messages name a sample of a batch: by its meta."""
    meta = batch.meta[row] if row < len(batch.meta) else None
    if meta is None:
        return f"sample {row} of the batch (samples without meta have no name)"
    text = repr(meta)
    return f"the sample with meta {text if len(text) <= 200 else text[:197] + '...'}"


@contextmanager
def naming_bad_data(batches: Iterable[Batch], what: str) -> Iterator[None]:
    """Turns an error of the backend in a step into one line: the sample if its data is the cause, else the user's line.

    Args:
        batches: what the step computes.
        what: the step, for the message.
    """
    try:
        yield
    except ScenaError as error:
        if "in user code:" not in str(error):
            raise
        raise type(error)(str(error).rstrip().rpartition(f"{type(error).__name__}: ")[2]) from error
    except Exception as error:
        if not is_of_backend(error):
            raise
        raise explained(error, list(batches), what) from error


def is_of_backend(error: Exception) -> bool:
    """Whether an error was raised by TensorFlow or JAX, or while they traced a user's code."""
    return type(error).__module__.split(".")[0] in ("tensorflow", "jax", "jaxlib") or "in user code:" in str(error)


def explained(error: Exception, batches: list[Batch], what: str) -> ScenaError:
    """The error to raise instead."""
    text = str(getattr(error, "message", "") or error)
    for pattern, labels in ((_LABEL, True), (_INDEX, False)):
        if match := pattern.search(text):
            value, count = int(match[1]), int(match[2])
            kind = "label" if labels else "index"
            found = next((said for batch in batches if (said := out_of_range(batch, value, count, labels))), "")
            return DataError(
                f"A {kind} is out of range in {what}: {found}."
                if found
                else f"A {kind} is out of range in {what}{_at(error, text)}: {value}, and there are {count} (0 to {count - 1})."
            )
    said = _reason(error, text)
    if said.startswith("ModelError: "):  # ours, on its way through TensorFlow
        return ModelError(said.removeprefix("ModelError: "))
    return ModelError(f"{what[0].upper()}{what[1:]} fails{_at(error, text)}: {said}")


def _at(error: Exception, text: str) -> str:
    lines = [Line(file, int(number), name) for file, number, name in _FILES.findall(text) if is_users(file)]
    line = lines[-1] if lines else user_line(error)
    return f" at {line}" if line is not None else ""


def _reason(error: Exception, text: str) -> str:
    """The line of a page-long message that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    skipped = ("File ", "Graph execution error", "Detected at node", "[[{{node", "in user code", "Stack trace", "Node:")
    told = [line for line in lines if not line.startswith(skipped) and "[Op:__inference" not in line]
    if "in user code:" in text and told:
        return told[-1]
    named = [line for line in told if "\t [[{{" not in line]
    return (named or told or [type(error).__name__])[0]


def _arrays(batch: Batch) -> list[tuple[str, str, Any]]:
    inputs = [("input", name, array) for name, array in batch.inputs.items()]
    return inputs + [("target", name, array) for name, array in batch.targets.items()]
