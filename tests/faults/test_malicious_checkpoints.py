"""Checkpoints that are damaged, too new, or made to do harm: recognised, reported, skipped, and never executed."""

import json
import os
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scena.errors import CheckpointError
from scena.storage.run_layout import MANIFEST
from scena.training.callbacks.event_files import cut_back
from scena.training.checkpoint.store import CheckpointStore
from tests.faults import saver


class Payload:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.trace),)


def tensors(content: bytes) -> Callable[[Path], None]:
    return lambda checkpoint: (checkpoint / "tensors.safetensors").write_bytes(content) and None


def state(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def apply(checkpoint: Path) -> None:
        path = checkpoint / "state.json"
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return apply


def text(content: str) -> Callable[[Path], None]:
    return lambda checkpoint: (checkpoint / "state.json").write_text(content) and None


def header(content: dict[str, Any], data: bytes = b"") -> bytes:
    words = json.dumps(content).encode()
    return struct.pack("<Q", len(words)) + words + data


def link_tensors(checkpoint: Path) -> None:
    target = checkpoint / "tensors.safetensors"
    shutil.move(target, checkpoint.parent.parent / "elsewhere")
    target.symlink_to(checkpoint.parent.parent / "elsewhere")


def pipe_state(checkpoint: Path) -> None:
    (checkpoint / "state.json").unlink()
    os.mkfifo(checkpoint / "state.json")


def huge_state(checkpoint: Path) -> None:
    with (checkpoint / "state.json").open("r+b") as file:
        file.truncate(1 << 30)


def cut_tensors(checkpoint: Path) -> None:
    path = checkpoint / "tensors.safetensors"
    os.truncate(path, path.stat().st_size - 1)


CORPUS: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut off": (cut_tensors, "not a safetensors file or is damaged"),
    "empty tensors": (tensors(b""), "not a safetensors file or is damaged"),
    "header of 2**60 bytes": (tensors(struct.pack("<Q", 1 << 60) + b"{}"), "not a safetensors file or is damaged"),
    "header of 200 MB": (tensors(struct.pack("<Q", 200 << 20) + b" " * 100), "not a safetensors file or is damaged"),
    "offsets beyond the end": (
        tensors(header({"model/0": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}})),
        "not a safetensors file or is damaged",
    ),
    "overlapping tensors": (
        tensors(
            header({n: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for n in ("model/0", "model/1")}, b"1234")
        ),
        "not a safetensors file or is damaged",
    ),
    "a strange type": (
        tensors(header({"model/0": {"dtype": "PICKLE", "shape": [1], "data_offsets": [0, 4]}}, b"1234")),
        "not a safetensors file or is damaged",
    ),
    "other variables": (tensors(header({})), "name different variables"),
    "a link for tensors": (link_tensors, "is not a plain file"),
    "a pipe for the state": (pipe_state, "is not a plain file"),
    "a state of a gigabyte": (huge_state, "more than any state can have"),
    "no state": (lambda checkpoint: (checkpoint / "state.json").unlink(), "No such file"),
    "half a state": (text('{"format": 1, "pro'), "cannot be read"),
    "nesting without end": (text("[" * 200_000), "cannot be read"),
    "no object": (text("[1]"), "has no format number"),
    "no format": (state(lambda content: content.pop("format")), "has no format number"),
    "a newer format": (
        state(lambda content: content.update(format=99)),
        "it has format 99; this version of Scena reads up to 1. Update Scena",
    ),
    "a class instead of progress": (
        state(lambda content: content.update(progress="os.system")),
        "is not the state of a training: Expected `object`, got `str` - at `$.progress`",
    ),
    "a wrong shape": (
        state(lambda content: content["variables"][0].update(shape=[1, 2])),
        "differs from that in state.json",
    ),
    "a variable twice": (
        state(lambda content: content["variables"].append(content["variables"][0])),
        "name different variables",
    ),
}


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    saver.save(tmp_path / "store", 1)
    saver.save(tmp_path / "store", 2)
    (tmp_path / "store" / "2" / MANIFEST).unlink()  # who means harm writes checksums that fit
    return CheckpointStore(tmp_path / "store")


@pytest.mark.parametrize("name", CORPUS)
def test_a_bad_checkpoint_is_named_and_passed_over(
    store: CheckpointStore, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    spoil, message = CORPUS[name]
    spoil(store.path(2))
    with pytest.raises(CheckpointError) as error:
        store.load(2)
    assert str(error.value).startswith(f"The checkpoint {store.path(2)} cannot be read")
    assert message in str(error.value)
    latest = store.load_latest()
    assert latest is not None and latest[0] == 1
    assert "It is skipped." in caplog.text


def test_a_pickle_is_never_loaded(store: CheckpointStore, tmp_path: Path) -> None:
    for name in ("tensors.safetensors", "state.json"):
        (store.path(2) / name).write_bytes(pickle.dumps(Payload(tmp_path / "executed")))
        with pytest.raises(CheckpointError, match="cannot be read"):
            store.load(2)
    assert not (tmp_path / "executed").exists()


def test_a_link_is_no_checkpoint(store: CheckpointStore, tmp_path: Path) -> None:
    (store.directory / "7").symlink_to(store.path(1))
    (store.directory / "²").mkdir()  # a digit for str.isdigit, not a number
    assert store.steps() == [1, 2]


def test_a_checkpoint_cannot_name_files_to_cut(tmp_path: Path) -> None:
    precious = tmp_path / "precious.tfevents"
    precious.write_text("content")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "link.tfevents").symlink_to(precious)
    (logs / "events.tfevents").write_text("0123456789")
    cut_back(logs, {"../precious.tfevents": 0, "link.tfevents": 0, str(precious): 0, "events.tfevents": 4})
    assert precious.read_text() == "content"
    assert (logs / "events.tfevents").read_text() == "0123"


def test_none_readable_is_an_error_not_a_new_start(store: CheckpointStore) -> None:
    for step in store.steps():
        (store.path(step) / "state.json").write_text("")
    assert store.load_latest() is None
    assert store.steps() == [1, 2]  # the caller sees that there were some
