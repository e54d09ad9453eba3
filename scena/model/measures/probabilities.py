"""Logits where a cross-entropy expects probabilities, and the other way round: both train, and badly."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import keras
import numpy as np
from keras.src import ops as used_by_losses  # the losses of Keras look functions up here, not in keras.ops

FUNCTIONS = ("binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy")
SAMPLES = 4


def mistaken_logits(model: Any, inputs: dict[str, np.ndarray], targets: dict[str, np.ndarray]) -> list[str]:
    """What is wrong with the values that losses and metrics give to cross-entropies, a line for each.

    Args:
        model: the training model; it runs op by op.
        inputs: inputs of a real batch.
        targets: its targets.
    """
    batch = {
        part: {name: keras.ops.convert_to_tensor(np.asarray(array)[:SAMPLES]) for name, array in arrays.items()}
        for part, arrays in (("inputs", inputs), ("targets", targets))
    }
    found: dict[str, None] = {}
    # what fails here fails in the first step too, and is explained there
    with suppress(Exception), _watched(found):
        model.measures.compute(batch["inputs"], batch["targets"], model(batch, training=False))
    return list(found)


@contextmanager
def _watched(found: dict[str, None]) -> Iterator[None]:
    originals = {name: getattr(used_by_losses, name) for name in FUNCTIONS}
    modules = (used_by_losses, keras.ops)
    try:
        for name, original in originals.items():
            for module in modules:
                setattr(module, name, _watching(name, original, found))
        yield
    finally:
        for name, original in originals.items():
            for module in modules:
                setattr(module, name, original)


def _watching(name: str, original: Callable[..., Any], found: dict[str, None]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    def watching(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        values = keras.ops.convert_to_numpy(given.arguments["output"])
        axis = given.arguments.get("axis") if name != FUNCTIONS[0] else None
        line = _mistake(name, values, given.arguments["from_logits"], axis)
        if line:
            found[line] = None
        return original(*args, **kwargs)

    return watching


def _mistake(name: str, values: np.ndarray, from_logits: bool, axis: int | None) -> str:
    if not np.isfinite(values).all() or not values.size:
        return ""
    least, most = float(values.min()), float(values.max())
    within = least >= -1e-3 and most <= 1.001
    sums_to_one = axis is not None and bool(np.allclose(values.sum(axis=axis), 1, atol=1e-3))
    activation = "sigmoid" if axis is None else "softmax"
    if not from_logits and not within:
        return (
            f"{name} takes values from {least:.3g} to {most:.3g} for probabilities. If they are logits, pass from_logits=True; "
            f"else give it the output of a {activation}."
        )
    if from_logits and within and sums_to_one and values.shape[axis or -1] > 1:
        return f"{name} with from_logits=True gets probabilities, the output of a softmax. Give it the logits, or leave out from_logits."
    return ""
