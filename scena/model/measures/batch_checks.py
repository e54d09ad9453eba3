"""Checks on a real batch: what depends on which samples meet in it, logits where probabilities belong, weights of samples.

Samples of different size share a batch and are padded to its largest. A loss that counts the padding depends on the batch size and on
which samples meet in a batch. So do sums over the batch, ratios such as F1 that are averaged over batches, and a network that
normalizes over the wrong axis. A cross-entropy that takes logits for probabilities trains, and badly.
"""

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import keras
import numpy as np
from keras.src import ops as used_by_losses  # the losses of Keras look functions up here, not in keras.ops

from scena.data.spec import ArraySpec

FUNCTIONS = ("binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy")
SAMPLES = 4
FURTHER = 8
"""How much is added to each axis of variable size."""
TINY = 1e-6
"""Twice a number below it is hardly another one."""

Batch = dict[str, dict[str, np.ndarray]]
"""Inputs and targets."""


def padding_effects(
    model: Any, data: Any, inputs: dict[str, np.ndarray], targets: dict[str, np.ndarray]
) -> dict[str, tuple[float, float]]:
    """Losses and metrics that change with padding, by name: their value without and with more of it.

    Resets the metrics of the model. Skips values that differ from call to call anyway, such as those of a model that draws random
    numbers in validation.

    Args:
        model: the training model.
        data: the scenario's data, for specs and padding values.
        inputs, targets: those of a real batch.
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


def _results(model: Any, batch: Batch) -> dict[str, float]:
    tensors = _tensors(batch)
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


def mistakes(model: Any, inputs: dict[str, np.ndarray], targets: dict[str, np.ndarray]) -> list[str]:
    """What is wrong with outputs, losses and metrics on a few samples, a line for each.

    Args:
        model: the training model; it runs op by op.
        inputs: inputs of a real batch.
        targets: its targets.
    """
    batch = {"inputs": _first(inputs), "targets": _first(targets)}
    found: dict[str, None] = {}
    # what fails here fails in the first step too, and is explained there
    with suppress(Exception):
        with _watched(found):
            outputs = model(_tensors(batch), training=False)
            once = _numbers(model, batch, outputs)
        if once:
            twice = _numbers(model, *_twice(model, batch, outputs))
            found |= {
                f"{name!r} is a sum over the batch: it doubles with the number of samples, so it depends on the batch size. Return a value "
                "for each sample, or a mean.": None
                for name, value in once.items()
                if abs(value) > TINY and math.isclose(twice[name], 2 * value, rel_tol=1e-4)
            }
        if not found:
            for part in (2, 1):
                with suppress(Exception):  # a measure may need more than one sample
                    found |= found or dict.fromkeys(_ratios(model, batch, outputs, part))
    with suppress(Exception):
        found |= dict.fromkeys(_mixed_outputs(model, batch["inputs"]))
    with suppress(Exception):
        found |= dict.fromkeys(_odd_weights(model, {"inputs": inputs, "targets": targets}))
    return list(found)


def _ratios(model: Any, batch: Batch, outputs: dict[str, Any], part: int) -> Iterator[str]:
    """Metrics of a batch that are not the mean of those of its parts, of `part` samples each.

    Those of two samples show a quotient of sums, those of one sample what compares samples with each other: an `argmax` over the batch.
    """
    size = len(next(iter(batch["inputs"].values())))
    if size % part or size == part or any(tuple(value.shape[:1]) != (size,) for value in outputs.values()):
        return
    whole = _numbers(model, batch, outputs, losses=False, means=True)
    parts = [
        _numbers(
            model,
            {kind: {name: array[rows] for name, array in arrays.items()} for kind, arrays in batch.items()},
            {name: value[rows] for name, value in outputs.items()},
            losses=False,
            means=True,
        )
        for rows in (slice(start, start + part) for start in range(0, size, part))
    ]
    for name, value in whole.items():
        values = [numbers[name] for numbers in parts]
        mean = sum(values) / len(values)
        if math.isfinite(mean) and not math.isclose(mean, value, rel_tol=1e-3, abs_tol=1e-6):
            of_parts = (
                " and ".join(f"{one:.4g}" for one in values) + " for its halves"
                if len(values) == 2
                else (f"{mean:.4g} on average for each of them alone")
            )
            yield (
                f"{name!r} of a batch is not the mean over its samples ({value:.4g} for {size} samples, {of_parts}), so its average "
                "over batches depends on the batch size. Return a value for each sample or a Keras metric with its arguments, or "
                "compute it in an evaluator."
            )


def _mixed_outputs(model: Any, inputs: dict[str, np.ndarray]) -> Iterator[str]:
    """Outputs of the first sample that change when the others do."""
    alone = {name: np.repeat(array[:1], len(array), axis=0) for name, array in inputs.items()}
    size = (len(next(iter(inputs.values()))),)

    def predict(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = model.root({name: keras.ops.convert_to_tensor(array) for name, array in arrays.items()})
        return {
            name: keras.ops.convert_to_numpy(value)[:1]
            for name, value in outputs.items()
            if tuple(value.shape[:1]) == size
        }

    mixed, single = predict(inputs), predict(alone)
    names = [name for name, value in mixed.items() if not _near(value, single[name])]
    again = predict(inputs) if names else {}  # a random output differs anyway
    for name in names:
        if _near(mixed[name], again[name]):
            yield (
                f"The output {name!r} of a sample depends on the other samples of its batch, so a prediction depends on the batch size. "
                "Check the axes in the graph: axis 0 is the batch."
            )


def _near(one: np.ndarray, other: np.ndarray) -> bool:
    return not np.issubdtype(one.dtype, np.floating) or np.allclose(one, other, rtol=1e-3, atol=1e-5, equal_nan=True)


def _odd_weights(model: Any, batch: Batch) -> Iterator[str]:
    tensors = _tensors(batch)
    for name, weights in model.measures.sample_weights(tensors["inputs"], tensors["targets"]).items():
        values = keras.ops.convert_to_numpy(weights)
        if values.size and values.min() < 0:
            yield f"A sample weight of {name!r} is negative ({values.min():.4g}): the training makes the loss of that sample larger."
        elif values.size and not values.any():
            yield f"All {len(values)} sample weights of {name!r} in the first batch are 0, so nothing is learned from it."


def _numbers(
    model: Any, batch: Batch, outputs: dict[str, Any], *, losses: bool = True, means: bool = False
) -> dict[str, float]:
    """Losses and metrics that are one number for the whole batch; those of Keras that are no means may well be sums.

    `means`: the means of those that have more values, too.
    """
    tensors = _tensors(batch)
    of_losses, metrics, updates = model.measures.compute(tensors["inputs"], tensors["targets"], outputs)
    of_keras = {name: value for name, (metric, value, *_) in updates.items() if isinstance(metric, keras.metrics.Mean)}
    return {
        name: float(np.mean(keras.ops.convert_to_numpy(value)))
        for name, value in {**(of_losses if losses else {}), **metrics, **of_keras}.items()
        if means or len(np.shape(value)) == 0
    }


def _twice(model: Any, batch: Batch, outputs: dict[str, Any]) -> tuple[Batch, dict[str, Any]]:
    """The batch and the outputs with each sample twice; outputs without a sample axis are computed anew."""
    repeated = {part: {name: _repeat(array) for name, array in arrays.items()} for part, arrays in batch.items()}
    size = len(next(iter(batch["inputs"].values())))
    if any(tuple(value.shape[:1]) != (size,) for value in outputs.values()):
        return repeated, model(_tensors(repeated), training=False)
    arrays = {name: keras.ops.convert_to_numpy(value) for name, value in outputs.items()}
    return repeated, {name: keras.ops.convert_to_tensor(_repeat(array)) for name, array in arrays.items()}


def _repeat(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, array])


def _tensors(batch: Batch) -> dict[str, dict[str, Any]]:
    return {
        part: {name: keras.ops.convert_to_tensor(value) for name, value in arrays.items()}
        for part, arrays in batch.items()
    }


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
        return f"{name} with from_logits=True gets probabilities, the output of a softmax. Give it the logits, or remove from_logits."
    return ""
