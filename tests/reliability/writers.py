"""What a power cut may interrupt: each function writes something, says when it is promised to be there, and has a check for the rest.

They run in a process of their own, `python -m tests.reliability.writers NAME FOLDER`, whose calls are recorded.
"""

import csv
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scena import Sample
from scena.data.params import PipelineMode
from scena.data.records.leaf import Leaf
from scena.data.records.record_set import RecordSet
from scena.data.records.schema import Schema
from scena.data.records.writing import write_records
from scena.data.stages.sample_cache import SampleWriter, StoredSamples, is_complete
from scena.errors import DataError
from scena.experiments.sheets.run_registry import DONE, Entry, RunRegistry
from scena.experiments.stored_run import read_history
from scena.scenario.stored import read_description, write_description
from scena.storage.checksums import seal_tree, verify_tree, write_checked
from scena.storage.durable import link_tree, recover_directory, replace_directory
from scena.storage.run_layout import PARAMS_FILE
from scena.storage.tensor_file import TensorBuffer
from scena.training.checkpoint.format import FORMAT, StoredState, VariableEntry
from scena.training.checkpoint.store import CheckpointStore
from scena.training.directory import create_directory
from scena.training.trackers.journal import JournalReader, Points
from scena.training.trackers.recorder import Recorder
from tests.reliability.disk import MARK

RUN = "identity"


class Writer(NamedTuple):
    """Something that is written."""

    prepare: Callable[[Path], None]
    """Writes what is there before, safely."""
    write: Callable[[Path], None]
    check: Callable[[Path, list[str]], None]
    """Asserts that what is there after a power cut is right; gets what was acknowledged before it."""


def acknowledge(text: str) -> None:
    """Says in the recording that something is promised to be on the disk from now on."""
    try:
        os.mkdir(MARK + text)
    except OSError:
        return
    raise AssertionError(MARK)


# ---- checkpoints ------------------------------------------------------------------------------------------------------


def arrays(step: int, branch: int = 0) -> dict[str, Any]:
    """The tensors of a checkpoint; larger than a block."""
    return {"model/0": np.full((40, 60), step + branch / 8, "float32"), "model/1": np.arange(step, dtype="int64")}


def save(run: Path, step: int, branch: int = 0) -> None:
    """Saves a checkpoint as a training does, with the best model so far."""
    store = CheckpointStore(run / "checkpoint", keep=2, run=RUN)
    buffer = TensorBuffer()
    aside = store.begin(step)
    if (run / "best").is_dir():
        link_tree(run / "best", aside / "best")
    buffer.fill(arrays(step, branch))
    entries = [VariableEntry(key, key, list(a.shape), a.dtype.name) for key, a in arrays(step, branch).items()]
    state = StoredState(FORMAT, {"step": step, "branch": branch}, {}, entries, {}, run=RUN, number=step)
    store.commit(step, buffer, state)


def best(run: Path, step: int) -> None:
    """Writes a best model as a training does."""

    def fill(aside: Path) -> None:
        (aside / "model.keras").write_bytes(bytes([step]) * 5000)
        (aside / "resources").mkdir()
        (aside / "resources" / "words").write_bytes(bytes([step]) * 100)
        write_description(aside / "scenario.json", {"scenario": "a:B", "trainer": {}, "result": {"step": step}})
        seal_tree(aside)

    replace_directory(run / "best", fill)


def start(run: Path) -> None:
    """Starts a run."""
    create_directory(run)
    write_description(run / PARAMS_FILE, {"format": 1, "scenario": "a:B", "run": RUN, "trainer": {}})


def check_best(directory: Path) -> int:
    """A best model is complete; returns its step."""
    verify_tree(directory)
    step = int(read_description(directory / "scenario.json")["result"]["step"])
    assert (directory / "model.keras").read_bytes() == bytes([step]) * 5000
    assert (directory / "resources" / "words").read_bytes() == bytes([step]) * 100
    return step


def loaded(run: Path) -> tuple[int, int]:
    """Step and branch of the checkpoint that a resume would take; all that can be seen are complete."""
    store = CheckpointStore(run / "checkpoint", run=RUN)
    store.clean()
    for step in store.steps():
        _, tensors, state = store.load(step)
        branch = state.progress["branch"]
        for key, array in arrays(step, branch).items():
            np.testing.assert_array_equal(tensors[key], array)
        if (run / "best").exists():
            verify_tree(store.path(step), "best")
            check_best(store.path(step) / "best")
    found = store.load_latest()
    return (0, 0) if found is None else (found.step, found.state.progress["branch"])


def numbers(acknowledged: list[str], kind: str) -> list[int]:
    """The numbers of what was acknowledged."""
    return [int(text.rpartition(" ")[2]) for text in acknowledged if text.startswith(f"{kind} ")]


def write_first(folder: Path) -> None:
    run = folder / "runs" / "new"
    start(run)
    acknowledge("run 1")
    save(run, 1)
    acknowledge("checkpoint 1")


def check_first(folder: Path, acknowledged: list[str]) -> None:
    run = folder / "runs" / "new"
    if numbers(acknowledged, "run"):
        assert read_description(run / PARAMS_FILE)["run"] == RUN
    step, _ = loaded(run)
    assert step >= max(numbers(acknowledged, "checkpoint"), default=0)


def prepare_saves(folder: Path) -> None:
    start(folder / "run")
    best(folder / "run", 1)
    save(folder / "run", 1)
    save(folder / "run", 2)


def write_saves(folder: Path) -> None:
    for step in (3, 4, 5):
        save(folder / "run", step)
        acknowledge(f"checkpoint {step}")


def write_saves_and_bests(folder: Path) -> None:
    for step in (3, 4):
        best(folder / "run", step)
        acknowledge(f"best {step}")
        save(folder / "run", step)
        acknowledge(f"checkpoint {step}")


def check_saves(folder: Path, acknowledged: list[str]) -> None:
    step, _ = loaded(folder / "run")
    assert step >= max(numbers(acknowledged, "checkpoint"), default=2)
    recover_directory(folder / "run" / "best")
    assert check_best(folder / "run" / "best") >= max(numbers(acknowledged, "best"), default=1)


def prepare_branch(folder: Path) -> None:
    start(folder / "run")
    for step in (2, 4, 6):
        store = CheckpointStore(folder / "run" / "checkpoint", keep=3, run=RUN)
        buffer = TensorBuffer()
        store.begin(step)
        buffer.fill(arrays(step))
        entries = [VariableEntry(key, key, list(a.shape), a.dtype.name) for key, a in arrays(step).items()]
        store.commit(step, buffer, StoredState(FORMAT, {"step": step, "branch": 0}, {}, entries, {}, run=RUN))


def write_branch(folder: Path) -> None:
    CheckpointStore(folder / "run" / "checkpoint", run=RUN).discard_after(2)  # resume --from 2
    acknowledge("branch 1")
    for step in (3, 4, 5):
        save(folder / "run", step, branch=1)
        acknowledge(f"checkpoint {step}")


def check_branch(folder: Path, acknowledged: list[str]) -> None:
    step, branch = loaded(folder / "run")
    if numbers(acknowledged, "branch"):
        assert step >= max(numbers(acknowledged, "checkpoint"), default=2)
        assert (step, branch) == (2, 0) or branch == 1, "the abandoned branch is continued"
    else:
        assert (step, branch) in ((2, 0), (4, 0), (6, 0))


# ---- histories, journals, registries ----------------------------------------------------------------------------------


def history(run: Path, epochs: int) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([["epoch", "loss"], *([epoch, 1 / epoch] for epoch in range(1, epochs + 1))])
    write_checked(run / "history.csv", text.getvalue())


def prepare_history(folder: Path) -> None:
    start(folder / "run")
    history(folder / "run", 1)


def write_history(folder: Path) -> None:
    for epoch in (2, 3, 4):
        history(folder / "run", epoch)
        acknowledge(f"epoch {epoch}")


def check_history(folder: Path, acknowledged: list[str]) -> None:
    run = folder / "run"
    verify_tree(run)
    rows = read_history(run)
    assert rows == [{"epoch": epoch, "loss": 1 / epoch} for epoch in range(1, len(rows) + 1)]
    assert len(rows) >= max(numbers(acknowledged, "epoch"), default=1)


def prepare_run(folder: Path) -> None:
    start(folder / "run")


def recorder(folder: Path) -> Recorder:
    return Recorder(folder / "run" / "tracking" / "journal", RUN, "a:B", "run", dict)


def write_journal(folder: Path) -> None:
    journal = recorder(folder)
    journal.begin(1)
    for step in range(1, 8):
        journal.points({"loss": 1 / step, "long": float(step)}, step, step)
        if step % 2 == 0:
            journal.state()  # what a checkpoint does
            acknowledge(f"step {step}")
    journal.close()


def check_journal(folder: Path, acknowledged: list[str]) -> None:
    entries = list(JournalReader(folder / "run" / "tracking" / "journal").read())
    points = [entry for entry in entries if isinstance(entry, Points)]
    assert all(entry.values == {"loss": 1 / entry.step, "long": entry.step} for entry in points)
    steps = [entry.step for entry in points]
    assert steps == sorted(set(steps))
    assert set(steps) >= set(range(1, max(numbers(acknowledged, "step"), default=0) + 1))
    journal = recorder(folder)  # and it can be continued
    for step in range(1, 9):
        journal.points({"loss": 1 / step, "long": float(step)}, step, step)
    journal.close()


def nothing(folder: Path) -> None:
    """There is nothing before."""


def write_registry(folder: Path) -> None:
    registry = RunRegistry(folder / "sheet" / "state")
    for number in (1, 2):
        registry.write("one", Entry(["train"], attempts=number))
        registry.write("one", Entry(["train"], DONE, attempts=number))
        acknowledge(f"done {number}")


def check_registry(folder: Path, acknowledged: list[str]) -> None:
    entry = RunRegistry(folder / "sheet" / "state").read("one")
    if done := numbers(acknowledged, "done"):
        assert entry is not None and entry.attempts >= max(done)
        assert entry.status == DONE or entry.attempts > max(done)


# ---- data -------------------------------------------------------------------------------------------------------------

SCHEMA = Schema({"x": Leaf("x", "int64", (700,))})


def records(folder: Path, version: int) -> None:
    values = ({"x": np.full(700, 10 * number + version)} for number in range(6))
    write_records(values, SCHEMA, folder / "data" / "set", split="train", shards=2, overwrite=True)


def write_new_records(folder: Path) -> None:
    records(folder, 1)
    acknowledge("version 1")


def prepare_records(folder: Path) -> None:
    records(folder, 1)


def write_records_again(folder: Path) -> None:
    records(folder, 2)
    acknowledge("version 2")


def check_records(folder: Path, acknowledged: list[str]) -> None:
    promised = max(numbers(acknowledged, "version"), default=0)
    try:
        found = RecordSet(folder / "data" / "set", "train")
        values = [int(record["x"][0]) for record in found]
    except DataError:
        assert not promised
        return
    version = values[0] % 10 if values else 0
    assert version >= promised
    assert values == [10 * number + version for number in range(6)], "a mixture of two sets"


def cache(path: Path, version: int) -> None:
    partial = path.with_suffix(".1.partial")
    partial.parent.mkdir(parents=True, exist_ok=True)
    with partial.open("wb") as file:
        writer = SampleWriter(file.fileno(), path.name)
        for number in range(4):
            writer.add(Sample({"x": np.full(900, number + version)}, meta={}))
        writer.finish()
    partial.replace(path)  # as _build of scena/data/engines/cached_prefix.py


def write_cache(folder: Path) -> None:
    cache(folder / "caches" / "a-1.samples", 1)


def check_cache(folder: Path, acknowledged: list[str]) -> None:
    path = folder / "caches" / "a-1.samples"
    if path.exists() and is_complete(path):
        stored = StoredSamples(os.open(path, os.O_RDONLY), PipelineMode.TRAINING, path)
        assert [int(sample.inputs["x"][0]) for sample in (stored[i] for i in range(len(stored)))] == [1, 2, 3, 4]


WRITERS = {
    "a new run": Writer(nothing, write_first, check_first),
    "checkpoints": Writer(prepare_saves, write_saves, check_saves),
    "best models": Writer(prepare_saves, write_saves_and_bests, check_saves),
    "resume --from": Writer(prepare_branch, write_branch, check_branch),
    "history": Writer(prepare_history, write_history, check_history),
    "journal": Writer(prepare_run, write_journal, check_journal),
    "registry": Writer(nothing, write_registry, check_registry),
    "records": Writer(nothing, write_new_records, check_records),
    "records again": Writer(prepare_records, write_records_again, check_records),
    "cache": Writer(nothing, write_cache, check_cache),
}

if __name__ == "__main__":
    WRITERS[sys.argv[1]].write(Path(sys.argv[2]))
