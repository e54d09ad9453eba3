"""Errors of a step that name bad data or the first tensor that is not finite."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from scena.data.sample import Batch
from scena.errors import TrainingError
from scena.model.measures.bad_data import naming_bad_data, not_finite

HINT = "--trainer.check_numerics names the first tensor that is not finite."


LIBRARIES = re.compile(r"packages/|tensorflow/|/tensorflow|keras/src|scena/(model|training)/|lib/python")


@contextmanager
def checked_numerics(on: bool) -> Iterator[None]:
    """Lets TensorFlow check the result of each operation that is compiled in the block."""
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
    """Converts TensorFlow's error about a tensor that is not finite into one that names it."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        if "Detected Infinity or NaN" not in str(error.message):
            raise
        data = next((found for batch in block if (found := not_finite(batch))), "")
        found = f"The data is not finite: {data}." if data else describe(str(error.message))
        raise TrainingError(found) from error


@contextmanager
def explaining_step(block: list[Batch], what: str) -> Iterator[None]:
    """Converts an error of a step into one line.

    Args:
        block: its batches.
        what: the step, for the message.
    """
    with naming_bad_data(block, what), naming_bad_tensors(block):
        yield


def describe(message: str) -> str:
    """Shortens TensorFlow's message to one sentence: operation, layer, shape, and the line of code."""
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
