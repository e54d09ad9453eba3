"""Whether padding counts: losses and metrics of a batch must not change when it is padded further.

Samples of different size share a batch and are padded to its largest. A loss that counts the padding depends on the batch size and on
which samples meet in a batch.
"""

import math
from typing import Any

import keras
import numpy as np

from scena.data.spec import ArraySpec

SAMPLES = 4
FURTHER = 8
"""So much is added to each axis of variable size."""


def padding_effects(
    model: Any, data: Any, inputs: dict[str, np.ndarray], targets: dict[str, np.ndarray]
) -> dict[str, tuple[float, float]]:
    """Losses and metrics that change with padding, by name: their value without and with more of it.

    Metrics of the model are reset on the way. What differs from call to call anyway, such as a model that draws random numbers in
    validation, is not judged.

    Args:
        model: the training model.
        data: the scenario's data, for specs and padding values.
        inputs: inputs of a real batch.
        targets: its targets.
    """
    specs, padding = {**data.input_layer_specs(), **data.target_layer_specs()}, data.padding_values()
    if all(None not in spec.shape for spec in specs.values()):
        return {}
    batch = {"inputs": _first(inputs), "targets": _first(targets)}
    further = {
        "inputs": _padded(batch["inputs"], data.input_layer_specs(), padding),
        "targets": _padded(batch["targets"], data.target_layer_specs(), padding),
    }
    try:
        once, again, padded = _results(model, batch), _results(model, batch), _results(model, further)
    except (
        Exception
    ):  # a network may be limited to a size, or be trained on smaller inputs; this check is not about that
        return {}
    return {
        name: (value, padded[name])
        for name, value in once.items()
        if _close(value, again[name]) and not _close(value, padded[name])
    }


def _results(model: Any, batch: dict[str, dict[str, np.ndarray]]) -> dict[str, float]:
    tensors = {
        kind: {name: keras.ops.convert_to_tensor(value) for name, value in arrays.items()}
        for kind, arrays in batch.items()
    }
    model.reset_metrics()
    model.compute_loss(x=tensors, y_pred=model(tensors, training=False), training=False)
    return {name: float(value) for name, value in model.results().items() if np.ndim(value) == 0}


def _first(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.asarray(array)[:SAMPLES] for name, array in arrays.items()}


def _padded(
    arrays: dict[str, np.ndarray], specs: dict[str, ArraySpec], padding: dict[str, Any]
) -> dict[str, np.ndarray]:
    padded = {}
    for name, array in arrays.items():
        widths = [(0, 0), *((0, FURTHER if size is None else 0) for size in specs[name].shape)]
        value = padding.get(name, "" if array.dtype.kind in "OSU" else 0)
        padded[name] = np.pad(array, widths, constant_values=value) if any(right for _, right in widths) else array
    return padded


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=2e-5, abs_tol=1e-6) or (math.isnan(one) and math.isnan(other))
