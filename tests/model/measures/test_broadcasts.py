"""Losses that pair each sample with every other one by accident are found; those that mean all pairs are not."""

from typing import Any

import keras
import pytest
from keras import ops

from scena.model.measures.traced_checks import BATCH, Shapes, accidental_pair, trace

SHAPES: Shapes = {
    "inputs": {"x": ((BATCH, 8), "float32")},
    "targets": {"y": ((BATCH,), "float32"), "label": ((BATCH,), "int32"), "column": ((BATCH, 1), "float32")},
    "outputs": {
        "one": ((BATCH, 1), "float32"),
        "many": ((BATCH, 16), "float32"),
        "series": ((BATCH, 5, 1), "float32"),
        "scalar": ((BATCH,), "float32"),
    },
}

ACCIDENTS: dict[str, Any] = {
    "difference": lambda t, o: ops.mean(ops.square(t["y"] - o["one"])),
    "the other way round": lambda t, o: ops.abs(o["one"] - t["y"]),
    "cross entropy": lambda t, o: (
        t["y"] * ops.log(ops.sigmoid(o["one"])) + (1 - t["y"]) * ops.log(1 - ops.sigmoid(o["one"]))
    ),
    "column": lambda t, o: ops.mean(t["column"] - o["scalar"]),
    "squeezed on one side": lambda t, o: ops.mean(t["column"] - ops.squeeze(o["one"], -1)),
    "slice": lambda t, o: ops.mean(t["y"] - o["many"][:, 3:4]),
    "mean over time": lambda t, o: ops.mean(t["y"] - ops.mean(o["series"], axis=1)),
    "where": lambda t, o: ops.where(t["y"] > 0, o["one"], 0.0),
    "equal": lambda t, o: ops.equal(t["label"], ops.cast(ops.round(o["one"]), "int32")),
    "power": lambda t, o: (t["y"] - o["one"]) ** 2,
}
INTENDED: dict[str, Any] = {
    "mean_squared_error": lambda t, o: keras.losses.mean_squared_error(t["y"], o["one"]),
    "BinaryCrossentropy": lambda t, o: keras.losses.BinaryCrossentropy()(t["y"], o["one"]),
    "class": lambda t, o: keras.losses.sparse_categorical_crossentropy(t["label"], o["many"]),
    "same label": lambda t, o: ops.equal(t["label"][:, None], t["label"]),
    "contrast": lambda t, o: (
        ops.cast(ops.equal(t["label"][:, None], t["label"][None, :]), "float32")
        * ops.matmul(o["many"], ops.transpose(o["many"]))
    ),
    "differences": lambda t, o: ops.abs(ops.expand_dims(o["many"], 0) - ops.expand_dims(o["many"], 1)),
    "ranking": lambda t, o: o["one"] - ops.transpose(o["one"]),
    "distances": lambda t, o: ops.sum(o["many"] ** 2, 1, keepdims=True) + ops.sum(o["many"] ** 2, 1),
    "risk set": lambda t, o: t["column"] >= ops.squeeze(t["column"], -1),
    "columns": lambda t, o: t["column"] - o["one"],
    "squeezed": lambda t, o: t["y"] - ops.squeeze(o["one"], -1),
    "reshaped": lambda t, o: ops.reshape(t["y"], (-1, 1)) - o["one"],
    "normalised": lambda t, o: o["many"] / ops.norm(o["many"], axis=-1, keepdims=True),
    "weighted": lambda t, o: ops.mean(ops.square(t["column"] - o["one"]), -1) * t["y"],
}


def found(function: Any) -> list[Any]:
    tensors = trace(lambda inputs, targets, outputs: [function(targets, outputs)], SHAPES)
    return [pair for tensor in tensors if (pair := accidental_pair(tensor)) is not None]


@pytest.mark.parametrize("name", ACCIDENTS)
def test_accidents_are_found(name: str) -> None:
    low, high = found(ACCIDENTS[name])[0]
    assert len(low.shape) < len(high.shape)


@pytest.mark.parametrize("name", INTENDED)
def test_all_pairs_may_be_meant(name: str) -> None:
    assert not found(INTENDED[name])
