"""Specs: what they accept, what they convert, and what they say about the rest."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scena.data import ArraySpec, DataError, PipelineMode, Sample
from scena.data.records.leaf import Leaf
from scena.data.stages.collate import Collator, split


def collated(spec: ArraySpec, *values: Any, padding: Any = 0) -> np.ndarray[Any, Any]:
    collator = Collator({"x": spec}, {}, {"x": padding}, PipelineMode.PREDICTION)
    samples = [Sample(inputs={"x": value}) for value in values]
    for index, sample in enumerate(samples):
        sample.index = index
    inputs, targets = split(collator.keys(), collator.collate(samples))
    assert targets == {}
    return inputs["x"]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("uint8", 255),
        ("int32", np.int64(7)),
        ("float32", 0.1),
        ("float32", np.float64(0.1)),
        ("float16", 3),
        ("int64", True),
        ("float32", np.uint8(4)),
        ("complex64", 1.5),
        ("bool", True),
        ("string", "word"),
    ],
)
def test_values_of_a_kind_are_converted(dtype: str, value: Any) -> None:
    made = collated(ArraySpec((), dtype), value)
    assert made.shape == (1,)
    assert made.dtype.kind == ArraySpec((), dtype).dtype.kind


@pytest.mark.parametrize(
    ("dtype", "value", "reason"),
    [
        ("uint8", 256, "values from 256 to 256 do not fit uint8"),
        ("uint8", -1, "values from -1 to -1 do not fit uint8"),
        ("int32", 1.5, "the dtype does not match"),
        ("bool", 1, "the dtype does not match"),
        ("float32", 1j, "the dtype does not match"),
        ("float32", "1.5", "the dtype does not match"),
        ("string", 5, "the dtype does not match"),
        ("float32", [1.0], "the shape does not match"),
    ],
)
def test_others_are_an_error(dtype: str, value: Any, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        collated(ArraySpec((), dtype), value)
    assert str(caught.value).startswith(
        f"inputs['x'] of sample 0 does not match its spec: {reason}. Expected: shape=(), "
    )


def test_ragged_values() -> None:
    with pytest.raises(DataError, match="it is ragged"):
        collated(ArraySpec((None, None), "float32"), [[1.0], [1.0, 2.0]])


def test_padding_of_variable_axes() -> None:
    made = collated(ArraySpec((None, 2), "int32"), [[1, 2]], [[3, 4], [5, 6]], np.zeros((0, 2), np.int32), padding=-1)
    assert made.tolist() == [[[1, 2], [-1, -1]], [[3, 4], [5, 6]], [[-1, -1], [-1, -1]]]


def test_fixed_axes_are_not_padded() -> None:
    with pytest.raises(DataError, match=r"Expected: shape=\(None, 2\), dtype=int32. Received: list of shape=\(1, 3\)"):
        collated(ArraySpec((None, 2), "int32"), [[1, 2, 3]])


def test_missing_and_wrong_inputs() -> None:
    collator = Collator({"x": ArraySpec((), "int32")}, {}, {}, PipelineMode.PREDICTION)
    with pytest.raises(DataError, match=r"have no 'x', which the specs ask for. Received keys: \['y'\]"):
        collator.collate([Sample(inputs={"y": 1})])
    with pytest.raises(
        DataError, match=r"must be a dict of arrays .* Received: str. .*sample.new_inputs\(\{'x': …\}\)"
    ):
        collator.collate([Sample(inputs="a.png")])


def test_specs_of_other_libraries() -> None:
    tensor_spec = SimpleNamespace(shape=[None, 3], dtype=SimpleNamespace(name="float32"), name="img")
    assert ArraySpec.of(tensor_spec) == ArraySpec((None, 3), "float32")
    assert ArraySpec.of(((2, 3), "uint8")) == ArraySpec([2, 3], np.uint8)
    with pytest.raises(DataError, match="A spec is an ArraySpec"):
        ArraySpec.of("float32")
    with pytest.raises(DataError, match="Unknown dtype in a spec. Received: 'flot32'"):
        ArraySpec((), "flot32")


def test_specs_of_tensorflow_and_keras() -> None:
    tf = pytest.importorskip("tensorflow")
    keras = pytest.importorskip("keras")
    assert ArraySpec.of(tf.TensorSpec([28, None], tf.uint8)) == ArraySpec((28, None), "uint8")
    assert ArraySpec.of(tf.TensorSpec([], tf.string)) == ArraySpec((), "string")
    assert ArraySpec.of(keras.Input((28, 28), dtype="bfloat16")) == ArraySpec((28, 28), "bfloat16")


@pytest.mark.parametrize("dtype", [None, "nonsense", ",yoat32", "f4,f4", "(2,)f4", "__doc__"])
def test_an_unknown_dtype_is_refused(dtype: Any) -> None:
    with pytest.raises(DataError, match="Unknown dtype in a spec"):
        ArraySpec((2,), dtype)
    with pytest.raises(DataError, match="The schema names an unknown dtype"):
        Leaf("x", dtype, (2,))
