"""Files that are damaged: each is reported, or gives exactly what it would have given. None gives something else."""

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena import Sample
from scena.data.image.statistics import parse_info
from scena.data.params import PipelineMode
from scena.data.records.files import RecordFile, index_path
from scena.data.records.writing import ShardWriter, write_json
from scena.data.stages.sample_cache import SampleWriter, StoredSamples, is_complete
from scena.errors import CheckpointError, DataError, ScenarioError
from scena.evaluation.dump import DumpError, DumpWriter, read_dump
from scena.experiments.stored_run import read_history
from scena.experiments.verification import verify_path
from scena.scenario.stored import read_description
from scena.storage.checksums import (
    DamagedFileError,
    add_checksums,
    forget,
    seal_tree,
    tree_checksums,
    verify,
    verify_tree,
    write_checked,
)
from scena.storage.run_layout import MANIFEST
from scena.training.checkpoint.store import CheckpointStore
from tests.faults import saver
from tests.faults.damage import spoil
from tests.faults.harness import fingerprint
from tests.zygote import Zygote

ROUNDS = 150


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.node.name)


def content(step: int) -> dict[str, bytes]:
    return {key: array.tobytes() for key, array in saver.arrays(step).items()}


def test_no_damage_of_a_checkpoint_goes_unnoticed(tmp_path: Path, rng: random.Random) -> None:
    saver.save(tmp_path / "store", 3)
    original = tmp_path / "original"
    shutil.copytree(tmp_path / "store" / "3", original)
    store = CheckpointStore(tmp_path / "store")
    found = 0
    for _ in range(ROUNDS):
        name = rng.choice(["tensors.safetensors", "state.json", MANIFEST])
        shutil.copyfile(original / name, store.path(3) / name)
        spoil(store.path(3) / name, rng)
        try:
            _, tensors, state = store.load(3)
        except CheckpointError as error:
            assert str(store.path(3)) in str(error)
            found += 1
        else:  # a manifest that names other files checks none
            assert name == MANIFEST
            assert {key: tensor.tobytes() for key, tensor in tensors.items()} == content(3)
            assert state.progress["step"] == 3
        shutil.copyfile(original / name, store.path(3) / name)
    assert found > ROUNDS * 0.8


def test_the_checkpoint_before_a_damaged_one_is_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    saver.save(tmp_path, 1)
    saver.save(tmp_path, 2)
    path = tmp_path / "2" / "tensors.safetensors"
    data = bytearray(path.read_bytes())
    data[-600:-88] = bytes(512)
    path.write_bytes(data)
    loaded = CheckpointStore(tmp_path).load_latest()
    assert loaded is not None and loaded[0] == 1
    assert f"{path} is damaged, or belongs to something else" in caplog.text
    assert "It is skipped." in caplog.text


def test_files_and_checkpoints_that_changed_places_are_noticed(tmp_path: Path) -> None:
    for step in (7, 8):
        saver.save(tmp_path, step)
    store = CheckpointStore(tmp_path)
    store.path(7).rename(tmp_path / "moved")
    store.path(8).rename(store.path(7))
    with pytest.raises(CheckpointError, match="it is that of step 8, renamed"):
        store.load(7)
    shutil.copyfile(store.path(7) / "state.json", tmp_path / "moved" / "state.json")
    (tmp_path / "moved").rename(store.path(8))
    with pytest.raises(CheckpointError, match="belongs to something else"):
        store.load(8)


def test_checkpoints_without_checksums_are_read(tmp_path: Path) -> None:
    saver.save(tmp_path, 1)
    (tmp_path / "1" / MANIFEST).unlink()
    CheckpointStore(tmp_path).load(1)


def test_a_directory_with_everything_in_it(tmp_path: Path) -> None:
    (tmp_path / "resources").mkdir()
    for name in ("resources/a", "resources/b", "model.keras"):
        (tmp_path / name).write_text(name)
    seal_tree(tmp_path)
    verify(tmp_path / "model.keras")
    verify_tree(tmp_path, "resources")
    (tmp_path / "resources" / "new").write_text("not ours")
    verify_tree(tmp_path, "resources")
    (tmp_path / "new.onnx").write_text("onnx")
    add_checksums(tmp_path, tree_checksums(tmp_path / "new.onnx", tmp_path), instead_of=["new.onnx"])
    (tmp_path / "new.onnx").write_text("omnx")
    with pytest.raises(DamagedFileError, match=r"new\.onnx is damaged"):
        verify(tmp_path / "new.onnx")
    (tmp_path / "resources" / "b").unlink()
    with pytest.raises(DamagedFileError, match=r"resources/b is missing, although checksums\.json names it"):
        verify_tree(tmp_path, "resources")


def test_a_crash_between_a_file_and_its_checksum_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "history.csv"
    write_checked(path, "one")
    for text in ("two", "three"):
        monkeypatch.setattr("scena.storage.checksums.write_file", _crash_at(path))
        with pytest.raises(KeyboardInterrupt):
            write_checked(path, text)
        monkeypatch.undo()
        verify(path)
    for text in ("four", "five"):
        write_checked(path, text)
        verify(path)
    path.write_text("one")
    with pytest.raises(DamagedFileError):
        verify(path)


def test_a_file_that_is_forgotten_is_missed_by_nobody(tmp_path: Path) -> None:
    for name in ("history.csv", "trainer_params.json"):
        write_checked(tmp_path / name, name)
    forget(tmp_path / "history.csv")
    verify_tree(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [MANIFEST, "trainer_params.json"]
    forget(tmp_path / "trainer_params.json")
    forget(tmp_path / "trainer_params.json")
    assert not os.listdir(tmp_path)


def _crash_at(place: Path) -> Any:
    from scena.storage.durable import write_file

    def write(path: Path, data: bytes) -> None:
        if path == place:
            raise KeyboardInterrupt
        write_file(path, data)

    return write


def test_what_people_edit_is_read_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "trainer_params.json"
    write_checked(path, json.dumps({"format": 1, "scenario": "s", "trainer": {"epochs": 3}}))
    write_checked(tmp_path / "history.csv", "epoch,loss\n1,0.5\n")
    read_description(path)
    read_history(tmp_path)
    assert not caplog.text
    path.write_text(path.read_text().replace("3", "4"))
    assert read_description(path)["trainer"] == {"epochs": 4}
    assert f"{path} is not as Scena wrote it: it was edited, or it is damaged." in caplog.text
    (tmp_path / "history.csv").write_text("epoch,loss\n1,0.4\n")
    assert read_history(tmp_path) == [{"epoch": 1.0, "loss": 0.4}]
    assert "history.csv is not as Scena wrote it" in caplog.text
    caplog.clear()
    (tmp_path / MANIFEST).write_text("{")  # a damaged manifest checks nothing, and keeps nobody from reading
    assert read_history(tmp_path) == [{"epoch": 1.0, "loss": 0.4}]
    assert f"{tmp_path / MANIFEST} cannot be read" in caplog.text


def test_the_json_beside_records(tmp_path: Path, caplog: pytest.LogCaptureFixture, rng: random.Random) -> None:
    path = tmp_path / "info.json"
    write_json(path, {"format": "scena-images", "classes": ["cat", "dog"]})
    good = path.read_bytes()
    path.write_text(json.dumps(json.loads(good)))  # another layout is no other content
    assert parse_info(path.read_bytes(), str(path))["classes"] == ["cat", "dog"]
    assert not caplog.text
    for number in range(ROUNDS):
        path.write_bytes(good)
        spoil(path, rng)
        caplog.clear()
        try:
            found = parse_info(path.read_bytes(), f"{path} {number}")
        except DataError:
            continue
        assert "is not as Scena wrote it" in caplog.text or found["classes"] == ["cat", "dog"]


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_an_index_never_leads_to_other_records(
    tmp_path: Path, compression: str, rng: random.Random, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.tfrecord"
    records = [bytes([number]) * (5 + number % 3) for number in range(12)]
    with ShardWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
    good = index_path(path).read_bytes()
    for _ in range(ROUNDS):
        index_path(path).write_bytes(good)
        spoil(index_path(path), rng)
        file = RecordFile(path)
        assert [file[place] for place in range(len(file))] == records
    assert "a.tfrecord.index is damaged (its checksum is wrong). It is not used: the file is scanned." in caplog.text


def test_the_index_of_another_file_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name, sizes in (("c", [10, 4, 30]), ("d", [30, 30])):
        with ShardWriter(tmp_path / name) as writer:
            for size in sizes:
                writer.write(b"x" * size)
    assert (tmp_path / "c").stat().st_size == (tmp_path / "d").stat().st_size
    shutil.copyfile(index_path(tmp_path / "d"), index_path(tmp_path / "c"))
    with pytest.raises(DataError, match="the index beside the file is that of another one"):
        RecordFile(tmp_path / "c")[0]
    data = (tmp_path / "d").read_bytes()
    (tmp_path / "d").write_bytes(data[:46])  # cut off between two records
    assert len(RecordFile(tmp_path / "d")) == 1
    assert "was made for a file of 92 bytes with 2 records, and this one has 46 bytes" in caplog.text


def test_a_cache_never_gives_other_samples(
    tmp_path: Path, rng: random.Random, caplog: pytest.LogCaptureFixture
) -> None:
    path, other = tmp_path / "a.samples", tmp_path / "b.samples"
    for place, offset in ((path, 0), (other, 100)):
        with place.open("wb") as file:
            writer = SampleWriter(file.fileno(), place.name)
            for number in range(5):
                writer.add(Sample({"x": np.arange(20) + number + offset}, {"y": number}, meta={"name": f"s{number}"}))
            writer.finish()
    good = path.read_bytes()

    def read() -> list[Any]:
        with path.open("rb") as file:
            stored = StoredSamples(os.dup(file.fileno()), PipelineMode.TRAINING, path)
            return [(s.inputs["x"].tolist(), s.targets, s.meta) for s in (stored[i] for i in range(len(stored)))]

    assert is_complete(path)
    expected = read()
    for _ in range(ROUNDS):
        path.write_bytes(good)
        spoil(path, rng)
        if not is_complete(path):
            continue
        try:
            assert read() == expected
        except DataError as error:
            assert f"The cache {path} is damaged (sample " in str(error)
    assert "is damaged, or that of something else: it is made again" in caplog.text
    path.write_bytes(other.read_bytes())
    assert not is_complete(path)


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_a_dump_is_whole_or_damaged(tmp_path: Path, name: str, rng: random.Random) -> None:
    path = tmp_path / name
    with DumpWriter(path, {"note": "n"}) as writer:
        for number in range(5):
            writer.write(Sample(outputs={"p": np.arange(9.0) + number}, meta={"n": number}), model="m")

    def read() -> list[Any]:
        return [(model, sample.outputs["p"].tolist(), sample.meta) for model, _, sample in read_dump(path)]

    good, expected = path.read_bytes(), read()
    for _ in range(ROUNDS):
        path.write_bytes(good)
        spoil(path, rng)
        try:
            assert read() == expected
        except DumpError as error:
            assert str(path) in str(error)
    lines = good.splitlines(keepends=True)
    if name == "x.jsonl":
        path.write_bytes(b"".join(lines[:-2]))
        with pytest.raises(DumpError, match="line 6 is damaged: the file ends here"):
            read()
        path.write_bytes(b"".join([lines[0], lines[2], lines[1], *lines[3:]]))
        with pytest.raises(DumpError, match="line 2 is damaged: its checksum, or that of a line before it, is wrong"):
            read()


def test_a_manifest_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for text in ("[" * 100_000, '{"format": 2, "crc32c": {}}', '{"format": 1, "crc32c": 5}', "\0" * 50):
        (tmp_path / MANIFEST).write_text(text)
        with pytest.raises(
            DamagedFileError, match=r"checksums\.json cannot be read .*Delete it to read without a check"
        ):
            verify(tmp_path / "file")


def test_a_description_nested_without_end(tmp_path: Path) -> None:
    (tmp_path / "scenario.json").write_text('{"a":' * 100_000)
    with pytest.raises(ScenarioError, match="it is nested too deeply"):
        read_description(tmp_path / "scenario.json")


def test_every_file_of_a_run_has_a_checksum(reference: Path) -> None:
    covered = {
        path.parent / name for path in reference.rglob(MANIFEST) for name in json.loads(path.read_text())["crc32c"]
    }
    without = {path.name for path in reference.rglob("*") if path.is_file() and path not in covered}
    events = {name for name in without if "tfevents" in name}  # have checksums of their own
    assert without - events == {MANIFEST, ".lock", "train.log"}
    checked = list(verify_path(reference))
    assert covered <= {one.path for one in checked}
    assert not [one for one in checked if one.problem or not one.known]


def test_a_run_goes_back_to_the_checkpoint_before_a_damaged_one(
    zygote: Zygote, reference: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    run, log = tmp_path / "run", tmp_path / "run.log"
    shutil.copytree(reference, run, symlinks=True)
    newest = max(int(path.name) for path in (run / "checkpoint").iterdir())
    path = run / "checkpoint" / str(newest) / "tensors.safetensors"
    data = bytearray(path.read_bytes())
    data[-700:-188] = bytes(512)
    path.unlink()
    path.write_bytes(data)
    assert zygote.run("resume", run, log=log) == 0, log.read_text()
    assert f"{path} is damaged" in log.read_text() and "It is skipped." in log.read_text()
    assert fingerprint(run) == expected


def test_a_damaged_export_is_refused(zygote: Zygote, reference: Path, tmp_path: Path) -> None:
    best, log = tmp_path / "best", tmp_path / "run.log"
    shutil.copytree(reference / "best", best)
    assert zygote.run("lav", best, log=log) == 0, log.read_text()
    assert "not as Scena wrote it" not in log.read_text()
    (best / "scenario.json").write_text((best / "scenario.json").read_text() + "\n")
    data = bytearray((best / "model.keras").read_bytes())
    data[len(data) // 2] ^= 1
    (best / "model.keras").write_bytes(data)
    assert zygote.run("lav", best, log=log) == 1
    assert log.read_text().count("scenario.json is not as Scena wrote it") == 1
    last = log.read_text().splitlines()[-1]
    assert last.startswith(f"scena lav: error: {best / 'model.keras'} is damaged"), log.read_text()
