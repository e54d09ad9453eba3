"""Which checkpoints stay, and how they are written."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scena.storage.tensor_file import TensorBuffer, read_tensors
from scena.training.checkpoint.format import FORMAT, StoredState
from scena.training.checkpoint.store import CheckpointStore, CheckpointWriter

FIXTURES = Path(__file__).with_name("formats")


def put(store: CheckpointStore, step: int, number: int, pinned: int | None = None) -> None:
    buffer = TensorBuffer()
    buffer.fill({"model/0": np.float32(step)[None]})
    state = StoredState(FORMAT, {"step": step}, {}, [], {}, number=number, run=store.run)
    store.begin(step)
    store.commit(step, buffer, state, pinned)


def test_the_last_every_third_and_the_best_stay(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=2, keep_every=3)
    for number in range(1, 9):
        put(store, 10 * number, number, pinned=20)
    assert store.steps() == [20, 30, 60, 70, 80]


def test_one_is_enough(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=1)
    for number in range(1, 4):
        put(store, number, number)
    assert store.steps() == [3]


def test_a_step_can_be_saved_again(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    put(store, 5, 1)
    put(store, 5, 2)
    assert store.load(5).state.number == 2
    assert [path.name for path in tmp_path.iterdir()] == ["5"]


def test_checkpoints_can_have_a_name(tmp_path: Path) -> None:
    """They are found whatever their name is, and those with another name are too old at their time."""
    for number in (1, 2):
        put(CheckpointStore(tmp_path), 10 * number, number)
    store = CheckpointStore(tmp_path, name="model.ckpt")
    assert store.load(20).state.number == 2
    put(store, 30, 3)
    assert store.steps() == [20, 30]
    put(store, 40, 4)
    assert store.steps() == [30, 40] and store.path(40).name == "model.ckpt-40"
    (half := tmp_path / ".model.ckpt-50.new").mkdir()
    (half / "state.json").write_text("{}")
    (mine := tmp_path / "notes-60").mkdir()
    (mine / "text").write_text("not a checkpoint")
    store.clean()
    assert not half.exists() and mine.exists() and store.steps() == [30, 40]
    assert store.load(40).state.number == 4 and str(store.path(40)) in store.last_good()


@pytest.mark.parametrize("step", [1])
def test_checkpoints_of_every_format_can_be_read(step: int) -> None:
    """A stored checkpoint of each format there ever was; never regenerate one, add one for a new format."""
    for folder in sorted(FIXTURES.iterdir()):
        _, tensors, state = CheckpointStore(folder).load(step)
        assert state.progress["step"] == step
        np.testing.assert_array_equal(tensors["model/0"], np.full((50, 20), step, "float32"))
    assert len(list(FIXTURES.iterdir())) == FORMAT


def test_every_type_comes_back(tmp_path: Path) -> None:
    types: list[Any] = ["float64", "float32", "float16", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, "int64", "int32"]
    types += ["int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"]
    arrays: dict[str, np.ndarray] = {str(np.dtype(kind)): np.array([[0, 1], [1, 1]]).astype(kind) for kind in types}
    arrays |= {
        "scalar": np.asarray(np.float32(3.5)),
        "empty": np.zeros((0, 3), "float32"),
        "strided": np.arange(9)[::2],
    }
    buffer = TensorBuffer()
    buffer.fill(arrays)
    buffer.write(tmp_path / "file")
    found = read_tensors(tmp_path / "file")
    assert list(found) and set(found) == set(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape, found[name].tobytes()) == (
            array.dtype, array.shape, np.ascontiguousarray(array).tobytes(),
        )  # fmt: skip


def test_the_training_goes_on_while_a_checkpoint_is_written(tmp_path: Path) -> None:
    """The state that is written is that of the moment of `save`, whatever happens to the variables afterwards."""
    writing, go_on = threading.Event(), threading.Event()

    class SlowStore(CheckpointStore):
        def commit(self, *args: Any, **kwargs: Any) -> Path:
            writing.set()
            assert go_on.wait(10)
            return super().commit(*args, **kwargs)

    store = SlowStore(tmp_path)
    writer = CheckpointWriter(store)
    value = np.ones(100, "float32")
    arrays: Mapping[str, np.ndarray] = {"model/0": value}
    writer.save(1, lambda: arrays, StoredState(FORMAT, {}, {}, [], {}), lambda directory: None)
    assert writing.wait(10)
    value += 1
    go_on.set()
    writer.close()
    np.testing.assert_array_equal(store.load(1).tensors["model/0"], np.ones(100))
