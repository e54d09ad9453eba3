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
from tests.reliability.disk import write
from tests.storage.lazy_disk import LazyDisk

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


def test_large_tensors_come_back_whole(tmp_path: Path) -> None:
    """They are copied in chunks, by two threads."""
    arrays = {
        "large": np.arange(5 << 20, dtype="float32"),
        "small": np.arange(3),
        "wide": np.ones((3, 1 << 20), "float16"),
    }
    buffer = TensorBuffer()
    buffer.fill(arrays)
    buffer.write(tmp_path / "file")
    found = read_tensors(tmp_path / "file")
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


def test_a_buffer_can_be_filled_with_other_tensors(tmp_path: Path) -> None:
    layouts = [
        {str(name): np.full(size, name, "uint8") for name in range(count)}
        for count in (1, 2, 3)
        for size in range(8, 40, 8)
    ]
    for before in layouts:
        for after in layouts:
            buffer = TensorBuffer()
            buffer.fill(before)
            buffer.fill(after)
            buffer.write(tmp_path / "file")
            found = read_tensors(tmp_path / "file")
            assert {name: array.tolist() for name, array in found.items()} == {
                name: array.tolist() for name, array in after.items()
            }


@pytest.mark.parametrize("name", ["x" * length for length in range(1, 9)])
def test_tensors_start_where_they_can_be_mapped_into_memory(tmp_path: Path, name: str) -> None:
    buffer = TensorBuffer()
    buffer.fill({name: np.arange(3)})
    buffer.write(tmp_path / "file")
    mapped = np.memmap(tmp_path / "file", np.uint8)
    start = 8 + int(mapped[:8].view("<u8")[0])
    assert start % 8 == 0 and mapped[start:].view("int64").tolist() == [0, 1, 2]


def test_a_directory_that_is_not_there_yet_holds_no_checkpoints(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "none")
    store.clean()
    assert store.steps() == [] and store.load_latest() is None and store.last_good() == "There is no checkpoint yet."


def test_a_power_cut_leaves_whole_checkpoints(tmp_path: Path) -> None:
    """At whatever moment: those that can be seen can be read, and the last one that was promised to be there is."""
    folder = tmp_path / "run"
    folder.mkdir()
    store = CheckpointStore(folder / "checkpoint")
    promised: list[tuple[int, int]] = []
    with LazyDisk(folder) as disk:
        for number in range(1, 5):
            put(store, number, number)
            promised.append((len(disk.moments), number))
        for time, moment in enumerate(disk.moments):
            write(moment, tmp_path / str(time))
            left = CheckpointStore(tmp_path / str(time) / "checkpoint")
            left.clean()
            assert [left.load(step).step for step in left.steps()] == left.steps()
            assert max(left.steps(), default=0) >= max((step for end, step in promised if end <= time + 1), default=0)


def test_checkpoints_after_the_one_that_is_resumed_stay_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also after a power cut; the log says what becomes of them."""
    folder = tmp_path / "run"
    folder.mkdir()
    store = CheckpointStore(folder, keep=3)
    for number in (1, 2, 3):
        put(store, number, number)
    with LazyDisk(folder) as disk:
        store.discard_after(1)
        assert CheckpointStore(disk.cut_power(tmp_path / "left")).steps() == store.steps() == [1]
    assert [record.getMessage() for record in caplog.records] == [
        f"The checkpoint of step {step} is set aside; it is removed with the next checkpoint." for step in (2, 3)
    ]
    put(store, 4, 2)
    assert sorted(path.name for path in folder.iterdir()) == ["1", "4"]


def test_a_checkpoint_that_cannot_be_written_is_reported_and_the_next_one_is_tried(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    (tmp_path / "20").mkdir()
    (tmp_path / "20" / "notes.txt").write_text("mine")
    writer = CheckpointWriter(store := CheckpointStore(tmp_path))

    def accompany(aside: Path) -> None:
        (aside / "best").mkdir()
        (aside / "best" / "model.keras").write_text("the best so far")

    for step in (10, 20, 30, 40):
        writer.save(step, lambda: {"model/0": np.ones(3)}, StoredState(FORMAT, {}, {}, [], {}), accompany)
        writer.wait()
        assert (writer.failure is not None) == (step == 20)
    writer.close()
    assert store.steps() == [30, 40]
    assert (store.path(40) / "best" / "model.keras").read_text() == "the best so far"
    failed, again = (record.getMessage() for record in caplog.records)
    assert failed.startswith(f"Cannot write the checkpoint {tmp_path / '20'}: it exists already")
    assert failed.endswith("The training continues; the next checkpoint is written when it is due.")
    assert again == f"Checkpoints can be written again: {tmp_path / '30'}"


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
