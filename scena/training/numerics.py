"""Naming the first tensor that is not finite."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import tensorflow as tf

from scena.data.batch import Batch
from scena.training.errors import TrainingError

HINT = "--trainer.check_numerics names the first tensor that is not finite."


LIBRARIES = re.compile(r"packages/|tensorflow/|/tensorflow|keras/src|scena/(model|training)/|lib/python")


@contextmanager
def checked_numerics(on: bool) -> Iterator[None]:
    """While the block runs, TensorFlow checks the result of each operation that is compiled in it."""
    if not on:
        yield
        return
    tf.debugging.enable_check_numerics()
    try:
        yield
    finally:
        tf.debugging.disable_check_numerics()


@contextmanager
def naming_bad_tensors(block: list[Batch]) -> Iterator[None]:
    """Turns TensorFlow's message about a tensor that is not finite into an error that names it."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        if "Detected Infinity or NaN" not in str(error.message):
            raise
        data = next((found for batch in block if (found := bad_arrays(batch))), "")
        found = f"The data is not finite: {data}." if data else describe(str(error.message))
        raise TrainingError(found) from error


def describe(message: str) -> str:
    """TensorFlow's page-long message in one sentence: operation, layer, shape, and the line of code that made it."""
    operation = re.search(r'output \d+ of (?:graph|eagerly-executing) op "?([^\s"]+)', message)
    shape = re.search(r"^\s*shape:\s*(\(.*?\))", message, re.MULTILINE)
    source = re.search(r"Input tensors?:\s*.*?Tensor\(\"([^\"]+)\"", message, re.DOTALL)
    # frames run from the outermost call to the operation
    frames = re.findall(r"^\s*\+ (\S+) \(L(\d+)\) ?(\S*)", message, re.MULTILINE)
    own = [f"{Path(file).name}:{line}" for file, line, _ in frames if not LIBRARIES.search(file)]
    place = f" at {own[-1]}" if own else ""
    of = f" of {source[1]}" if source else ""
    name = operation[1] if operation else "an operation"
    return f"The first tensor that is not finite is the result of {name}{of}{place} (shape {shape[1] if shape else 'unknown'})."


def bad_arrays(batch: Batch) -> str:
    """Says which inputs and targets of a batch are not finite."""
    found = []
    for part, arrays in (("input", batch.inputs), ("target", batch.targets)):
        for name, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                rows = np.nonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))[0]
                found.append(f"the {part} {name!r} is not finite in sample {rows[0]} of the batch")
    return "; ".join(found)
