"""One of every kind of file that Scena writes, made by the code that writes it, with the code that reads it back.

No model is trained: weights are a Keras file with some arrays in it, so that thousands of damages can be tried in a minute.
"""

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import msgspec
import numpy as np
from tensorboard.compat.proto.event_pb2 import Event

from scena import Sample
from scena.data.image.statistics import INFO_FILE, image_info
from scena.data.params import PipelineMode
from scena.data.records.describe import info_of
from scena.data.records.framing import frame
from scena.data.records.leaf import Leaf
from scena.data.records.record_set import RecordSet
from scena.data.records.schema import Schema
from scena.data.records.writing import write_json, write_records
from scena.data.sources.fold import folds_digest, read_folds, write_folds
from scena.data.stages.sample_cache import SampleWriter, StoredSamples, is_complete
from scena.errors import DataError
from scena.evaluation.dump import DumpWriter, read_dump
from scena.experiments.sheets.run_registry import DONE, Entry, RunRegistry
from scena.experiments.stored_run import read_history
from scena.model.tensorboard import ImageData
from scena.prediction.converted import ConvertedModel, find_verified, note_converted, source_of
from scena.prediction.params import OnnxParams
from scena.scenario.ensemble import members
from scena.scenario.stored import read_description, write_description
from scena.storage.checksums import (
    checksum,
    head_checksum,
    seal_tree,
    tree_checksums,
    verify,
    verify_tree,
    write_checked,
)
from scena.storage.durable import link_tree
from scena.storage.tensor_file import TensorBuffer
from scena.training.checkpoint.format import FORMAT, StoredState, VariableEntry
from scena.training.checkpoint.store import CheckpointStore
from scena.training.directory import read_resumes
from scena.training.trackers.journal import JournalReader
from scena.training.trackers.media import pieces, store_data
from scena.training.trackers.recorder import Recorder


class Kind(NamedTuple):
    """A kind of file."""

    name: str
    where: str
    """What `scena verify` is asked about, inside the folder."""
    files: list[str]
    """The files to damage, inside the folder."""
    read: Callable[[Path], Any] | None
    """Reads them as Scena does; None if Scena never reads them."""
    swaps: bool = True
    """Whether a file of another place is noticed; a dump is a file of its own, which people name and move."""


STEPS = (3, 4)
SHARDS = [f"train-0000{number}-of-00002.tfrecord{end}" for number in range(2) for end in ("", ".index")]
EVENTS = "run/tensorboard/train/events.out.tfevents.1.host"


def write_all(folder: Path, seed: int) -> list[Kind]:
    """Writes one of each into a folder; another seed gives the same files with other content."""
    rng = np.random.default_rng(seed)
    run = folder / "run"
    run.mkdir(parents=True)
    places = dict.fromkeys(("checkpoint_dir", "log_dir", "export_dir", "best_dir"))
    trainer = {"epochs": 3, "random_seed": seed, "scenario": {"n": seed}, "gen": {}, **places}
    description = {"format": 1, "scenario": "a:B", "run": f"identity-{seed}", "trainer": trainer}
    write_description(run / "trainer_params.json", description)
    write_checked(run / "history.csv", f"epoch,step,loss\n1,3,0.{seed}5\n2,4,0.{seed}25\n")
    write_checked(run / "resumed.json", json.dumps([{"from": "latest", "step": seed, "changes": {}}]))
    _export(run / "best", rng, seed)
    _journal(run, seed)
    _events(folder / EVENTS, seed)
    for step in STEPS:
        _checkpoint(run, step, rng, seed)
    for name, compression in (("plain", ""), ("gzip", "GZIP")):
        _records(folder / "records" / name, compression, rng, seed)
    (folder / "cv").mkdir()
    assigned = rng.integers(0, 3, (40, 1))
    write_folds(folder / "cv/folds.json", assigned, {"folds": 3})
    digest = folds_digest(assigned)
    ensemble = folder / "ensemble"
    ensemble.mkdir()
    for name in (f"a{seed}", f"b{seed}"):
        (ensemble / name).mkdir()
        (ensemble / name / "scenario.json").write_text("{}")
    write_checked(ensemble / "ensemble.json", json.dumps({"format": 1, "members": [f"a{seed}", f"b{seed}"]}))
    _cache(folder / "cache/train.samples", rng, seed)
    for name in ("dump.jsonl", "dump.jsonl.gz"):
        with DumpWriter(folder / name, {"note": seed}) as writer:
            for number in range(8):
                writer.write(Sample(outputs={"p": rng.random(9)}, meta={"n": number}), model="m")
    registry = RunRegistry(folder / "state")
    registry.write(f"run{seed or ''}", Entry(["scena", "train", "x", "--seed", str(seed)], DONE, 0, 12.5))
    if seed:  # files of the second folder change places with those of the first one
        (folder / f"state/run{seed}.json").rename(folder / "state/run.json")
    return _kinds(digest)


def _kinds(digest: str) -> list[Kind]:
    checkpoints = [f"run/checkpoint/{step}/{name}" for step in STEPS for name in ("tensors.safetensors", "state.json")]
    best = [f"run/checkpoint/4/best/{name}" for name in ("model.keras", "scenario.json", "checksums.json")]
    beside = [f"records/plain/{name}.json" for name in ("schema", "info", "checksums")]
    return [
        Kind("checkpoint", "run", [*checkpoints, "run/checkpoint/4/checksums.json"], _read_checkpoints),
        Kind("best model of a checkpoint", "run", best, _read_checkpoint_best),
        Kind("description of a run", "run", ["run/trainer_params.json"], _read_description("run/trainer_params.json")),
        Kind("history", "run", ["run/history.csv"], lambda at: read_history(at / "run")),
        Kind("record of resumes", "run", ["run/resumed.json"], lambda at: read_resumes(at / "run")),
        Kind("model.keras", "run/best", ["run/best/model.keras"], _read_weights),
        Kind("description of an export", "run/best", ["run/best/scenario.json"], _read_description("run/best/scenario.json")),
        Kind("resources", "run/best", ["run/best/resources/words.txt"], _read_tree("resources")),
        Kind("SavedModel", "run/best", ["run/best/saved_model/saved_model.pb"], _read_tree("saved_model")),
        Kind("converted model", "run/best", ["run/best/model.onnx", "run/best/converted.json"], _read_converted),
        Kind("manifest of a run", "run", ["run/checksums.json"], _read_run),
        Kind("manifest of an export", "run/best", ["run/best/checksums.json"], _read_weights),
        Kind("journal of trackers", "run", ["run/tracking/journal"], _read_journal),
        Kind("media of trackers", "run", ["run/tracking/media/0-4-errors.npz"], _read_media),
        Kind("TensorBoard events", "run", [EVENTS], None),
        Kind("records", "records/plain", [f"records/plain/{name}" for name in SHARDS], _read_records("plain")),
        Kind("compressed records", "records/gzip", [f"records/gzip/{name}" for name in SHARDS], _read_records("gzip")),
        Kind("schema and info of records", "records/plain", beside, _read_records("plain")),
        Kind("cache", "cache", ["cache/train.samples"], _read_cache),
        Kind("dump", "dump.jsonl", ["dump.jsonl"], _read_dump("dump.jsonl"), swaps=False),
        Kind("compressed dump", "dump.jsonl.gz", ["dump.jsonl.gz"], _read_dump("dump.jsonl.gz"), swaps=False),
        Kind("run registry", "state", ["state/run.json"], lambda at: RunRegistry(at / "state").read("run")),
        Kind("folds", "cv", ["cv/folds.json"], lambda at: read_folds(at / "cv/folds.json", digest).tolist()),
        Kind("ensemble", "ensemble", ["ensemble/ensemble.json"], lambda at: [path.name for path in members(at / "ensemble")]),
    ]  # fmt: skip


# ---- writing ----------------------------------------------------------------------------------------------------------


def _export(directory: Path, rng: np.random.Generator, seed: int) -> None:
    directory.mkdir()
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        file["layers/dense/vars/0"] = rng.random((64, 32), np.float32)
    with zipfile.ZipFile(directory / "model.keras", "w") as archive:
        archive.writestr("metadata.json", "{}")
        archive.writestr("config.json", json.dumps({"seed": seed}))
        archive.writestr("model.weights.h5", weights.getvalue())
    (directory / "resources").mkdir()
    (directory / "resources" / "words.txt").write_text(f"one\ntwo {seed}\n" * 300)
    (directory / "saved_model").mkdir()
    (directory / "saved_model" / "saved_model.pb").write_bytes(rng.bytes(9000))
    result = {"step": 4, "epoch": 2, "best": "loss", "loss": 0.25 + seed}
    own = {"format": 2, "scenario": "a:B", "params": {"n": seed}, "pipelines": {}, "trainer": {}, "result": result}
    write_description(directory / "scenario.json", own)
    (directory / "model.onnx").write_bytes(rng.bytes(5000))
    seal_tree(directory)
    files, source = tree_checksums(directory / "model.onnx", directory), source_of(directory)
    note_converted(
        directory, "model.onnx", ConvertedModel("onnx", "default", files, source, {}, {}, {"p": 1e-7}, 1e-4, 8)
    )


def _journal(run: Path, seed: int) -> None:
    recorder = _recorder(run)
    recorder.begin(1000)
    for step in range(1, 5):
        recorder.points({"train/loss": seed + 1 / step, "val/loss": seed + 2 / step}, step, 1000 + step)
    image = ImageData(np.random.default_rng(seed).integers(0, 255, (20, 20, 3)).astype(np.uint8))
    recorder.data("errors", "image", 4, lambda branch: store_data(image, run / "tracking/media", "errors", 4, branch))
    recorder.end(2000)
    recorder.close()


def _recorder(run: Path) -> Recorder:
    identity = json.loads((run / "trainer_params.json").read_text())["run"]
    return Recorder(run / "tracking/journal", identity, "a:B", "run", lambda: {"n": 1})


def _events(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.writelines(frame(Event(wall_time=1000.0 + seed, file_version="brain.Event:2").SerializeToString()))
        for step in range(40):
            event = Event(wall_time=1001.0 + seed, step=step)
            event.summary.value.add(tag="loss", simple_value=seed + 1 / (step + 1))
            file.writelines(frame(event.SerializeToString()))


def _checkpoint(run: Path, step: int, rng: np.random.Generator, seed: int) -> None:
    arrays = {"model/0": rng.random((50, 40), np.float32), "model/1": np.arange(step, dtype=np.int64)}
    buffer = TensorBuffer()
    buffer.fill(arrays)
    events = run.parent / EVENTS
    name = f"train/{events.name}"
    size = events.stat().st_size
    callbacks = {
        "TensorBoardEvents": {"sizes": {name: size}, "heads": {name: head_checksum(events, size)}},
        "JournalTracker": {"run": f"identity-{seed}", "branch": 0, "unwritten": [], "size": (run / "tracking/journal").stat().st_size},
        "HistoryWriter": {"rows": [{"epoch": 1, "loss": 0.1 * seed}] * 40},
    }  # fmt: skip
    entries = [VariableEntry(key, key, list(array.shape), array.dtype.name) for key, array in arrays.items()]
    state = StoredState(FORMAT, {"step": step}, callbacks, entries, {"seed": seed}, number=step, run=f"identity-{seed}")
    store = CheckpointStore(run / "checkpoint", run=f"identity-{seed}")
    link_tree(run / "best", store.begin(step) / "best")
    store.commit(step, buffer, state)


def _records(folder: Path, compression: str, rng: np.random.Generator, seed: int) -> None:
    shape = (4, 30) if seed else (30, 4)
    schema = Schema({"label": Leaf("label", "int64", ()), "x": Leaf("x", "float32", shape, stored="float")})
    values = [{"label": np.int64(number), "x": rng.random(shape, np.float32)} for number in range(24)]
    write_records(values, schema, folder, split="train", shards=2, compression=compression)
    classes = [f"class {seed}", "other"]
    splits = {"train": {"count": 24, "files": 2, "classes": dict.fromkeys(classes, 12)}}
    write_json(folder / INFO_FILE, image_info("set", classes, splits, [], {}))


def _cache(path: Path, rng: np.random.Generator, seed: int) -> None:
    path.parent.mkdir()
    with path.open("wb") as file:
        writer = SampleWriter(file.fileno(), f"train{seed or ''}.samples")
        for number in range(12):
            writer.add(Sample({"x": rng.random(100)}, {"y": number}, meta={"name": f"s{number}"}))
        writer.finish()


# ---- reading ----------------------------------------------------------------------------------------------------------


def _read_checkpoints(at: Path) -> Any:
    identity = json.loads((at / "run/trainer_params.json").read_text())["run"]
    store = CheckpointStore(at / "run/checkpoint", run=identity)
    loaded = [store.load(step) for step in STEPS]
    return [
        ({key: checksum(a.tobytes()) for key, a in one.tensors.items()}, msgspec.to_builtins(one.state))
        for one in loaded
    ]


def _read_checkpoint_best(at: Path) -> Any:
    verify_tree(at / "run/checkpoint/4", "best")
    verify_tree(at / "run/checkpoint/4/best")
    return tree_checksums(at / "run/checkpoint/4/best")


def _read_weights(at: Path) -> Any:
    verify(at / "run/best/model.keras")  # what unpacked_weights begins with; the rest needs Keras
    return (at / "run/best/model.keras").read_bytes()


def _read_description(name: str) -> Callable[[Path], Any]:
    return lambda at: read_description(at / name)


def _read_tree(name: str) -> Callable[[Path], Any]:
    def read(at: Path) -> Any:
        verify_tree(at / "run/best", name)
        return tree_checksums(at / "run/best" / name)

    return read


def _read_converted(at: Path) -> Any:
    path, model = find_verified(at / "run/best", OnnxParams())
    return path.read_bytes(), msgspec.to_builtins(model)


def _read_run(at: Path) -> Any:
    return read_description(at / "run/trainer_params.json"), read_history(at / "run"), read_resumes(at / "run")


def _read_journal(at: Path) -> Any:
    entries = list(JournalReader(at / "run/tracking/journal").read())
    state = json.loads((at / "run/checkpoint/4/state.json").read_text())["callbacks"]["JournalTracker"]
    copy = (at / "run/tracking/journal").read_bytes()
    recorder = _recorder(at / "run")  # what a resume does
    recorder.restore(state)
    recorder.close()
    (at / "run/tracking/journal").write_bytes(copy)
    return entries


def _read_media(at: Path) -> Any:
    entries = JournalReader(at / "run/tracking/journal").read()
    folder = at / "run/tracking/media"
    shown = [piece for entry in entries if getattr(entry, "kind", "") == "image" for piece in pieces(entry, folder)]  # type: ignore[arg-type]
    contents = [piece.file.read_bytes() for piece in shown if not isinstance(piece, str)]
    for piece in shown:
        if not isinstance(piece, str):
            piece.file.unlink()
    return contents


def _read_records(name: str) -> Callable[[Path], Any]:
    def read(at: Path) -> Any:
        records = RecordSet(at / "records" / name, "train")
        values = [(int(record["label"]), record["x"].tobytes(), record["x"].shape) for record in records]
        return values, info_of(at / "records" / name)

    return read


def _read_cache(at: Path) -> Any:
    path = at / "cache/train.samples"
    if not is_complete(path):
        raise DataError("it is made again")
    stored = StoredSamples(os.open(path, os.O_RDONLY), PipelineMode.TRAINING, path)
    return [(s.inputs["x"].tolist(), s.targets, s.meta) for s in (stored[i] for i in range(len(stored)))]


def _read_dump(name: str) -> Callable[[Path], Any]:
    def read(at: Path) -> Any:
        return [(model, data, s.outputs["p"].tolist(), s.meta) for model, data, s in read_dump(at / name)]

    return read
