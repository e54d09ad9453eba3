"""Data at any address: memory, zip files, a web server on this machine, TensorFlow's own file systems."""

import functools
import http.server
import os
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.commands.main import main
from scena.data import DataError, DataPipelineParams, PipelineMode
from scena.data.image.database import ImageData
from scena.data.image.params import ImageDataParams, WriteImagesParams
from scena.data.image.writer import write_images
from scena.data.records.leaf import Leaf
from scena.data.records.record_set import RecordSet
from scena.data.records.schema import Schema
from scena.data.records.writing import write_records
from scena.data.sources.params import (
    ArrayGeneratorParams,
    ImageFilesParams,
    ImageRecordsParams,
    ListFileGeneratorParams,
    RecordsParams,
    RowGeneratorParams,
)
from scena.storage.location import BLOCK, Location, RemoteBytes, located, send_folder, state_of, unquoted
from tests.data.image.pictures import class_folders


class WithRanges(http.server.SimpleHTTPRequestHandler):
    """Python's own handler does not know ranges; web servers do."""

    ranges = True

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        path = Path(self.translate_path(self.path))
        if not self.ranges or wanted is None or not path.is_file():
            return super().do_GET()
        first, last = wanted.removeprefix("bytes=").split("-")
        data = path.read_bytes()
        part = data[int(first) : int(last) + 1 if last else None]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)


class WithoutRanges(WithRanges):
    ranges = False


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, image records, records, a table, arrays and a list."""
    folder = tmp_path_factory.mktemp("data")
    images = class_folders(folder / "flowers", {"daisy": 6, "wild rose": 5})
    write_images(WriteImagesParams(output=Location(folder), name="set", images=Location(images), num_files=2))
    schema = Schema({"x": Leaf("x", "float32", (300,)), "y": Leaf("y", "int64", ())})
    values = [{"x": np.full(300, i, np.float32), "y": i} for i in range(500)]
    write_records(values, schema, folder / "records", shards=2)
    write_records(values, schema, folder / "packed", compression="GZIP")
    (folder / "table.csv").write_text("name,label\nfirst,1\nsecond,2\n")
    (folder / "pictures.csv").write_text(
        "path,label\nflowers/daisy/daisy_000.jpg,a\nflowers/wild rose/wild rose_000.jpg,b\n"
    )
    (folder / "list.txt").write_text("one\n# no\ntwo\n")
    np.save(folder / "x.npy", np.arange(12).reshape(4, 3))
    np.savez(folder / "xy.npz", y=np.arange(4))
    import h5py

    with h5py.File(folder / "z.h5", "w") as file:
        file["z"] = np.arange(8).reshape(4, 2)
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".zip":
                archive.write(path, path.relative_to(folder))
    return folder


@pytest.fixture(scope="module")
def server(root: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    handler = functools.partial(getattr(request, "param", WithRanges), directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_port}"
        web.shutdown()


def in_memory(root: Path) -> str:
    for path in root.rglob("*"):
        if path.is_file() and path.suffix != ".zip":
            target = located(f"memory://{root.name}/{path.relative_to(root)}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return f"memory://{root.name}"


@functools.cache  # opened again, a file would be appended to
def in_tensorflow(root: Path) -> str:
    import tensorflow as tf

    for path in root.rglob("*"):
        if path.is_file() and path.suffix != ".zip":
            target = f"ram://{root.name}/{path.relative_to(root)}"
            tf.io.gfile.makedirs(target.rpartition("/")[0])
            tf.io.gfile.GFile(target, "wb").write(path.read_bytes())
    return f"ram://{root.name}"


@pytest.fixture(params=["file", "memory", "zip", "http", "ram"])
def address(request: pytest.FixtureRequest, root: Path) -> Any:
    """A function from a name to an address that holds what the folder holds."""
    if request.param == "zip":
        return lambda name: f"zip://{name}::{root / 'all.zip'}"
    start = {
        "file": lambda: f"file://{root}",
        "memory": lambda: in_memory(root),
        "http": lambda: request.getfixturevalue("server"),
        "ram": lambda: in_tensorflow(root),
    }[request.param]()
    return lambda name: f"{start}/{name}"


def test_every_source_reads_every_address(root: Path, address: Any) -> None:
    for name in ("records", "packed"):
        records = RecordSet(address(name))
        assert len(records) == 500
        for index in (0, 499, 137):
            assert records[index]["y"] == index
            np.testing.assert_array_equal(records[index]["x"], np.full(300, index))
    known = [
        lambda at: ImageRecordsParams(records=Location(at("set")), split="train"),
        lambda at: ImageFilesParams(images=Location(at("flowers")), split="all"),
        lambda at: ImageFilesParams(csv=Location(at("pictures.csv")), split="all"),
        lambda at: RecordsParams(records=at("records"), target_keys={"y": "y"}),
        lambda at: RowGeneratorParams(files=[at("table.csv")], target_columns=["label"]),
        lambda at: ListFileGeneratorParams(lists=[at("list.txt")]),
        lambda at: ArrayGeneratorParams(inputs={"x": at("x.npy"), "z": at("z.h5:z")}, targets={"y": at("xy.npz:y")}),
    ]
    for make in known:
        here = make(lambda name: str(root / name)).create(PipelineMode.EVALUATION)
        there = make(address).create(PipelineMode.EVALUATION)
        assert len(here) == len(there) > 1
        for index in range(min(len(here), 20)):
            one, other = here[index], there[index]
            for part in ("inputs", "targets"):
                np.testing.assert_equal(getattr(one, part), getattr(other, part))


@pytest.mark.parametrize("protocol", ["zip", "memory"])
def test_a_pipeline_with_workers(root: Path, protocol: str) -> None:
    """What exists in this process only is read here; anything else in the workers."""
    start = in_memory(root) + "/set" if protocol == "memory" else f"zip://set::{root / 'all.zip'}"
    data = ImageData(ImageDataParams(image_shape=[24, 24, 3]))
    batches = []
    for source in (str(root / "set"), start):
        params = DataPipelineParams(batch_size=4, num_processes=1)
        pipeline = data.create_pipeline(PipelineMode.TRAINING, params, ImageRecordsParams(records=Location(source)))
        with pipeline.stream() as stream:
            batches.append([next(stream).inputs["image"] for _ in range(3)])
        pipeline.close()
    for here, there in zip(*batches, strict=True):
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("server", [WithRanges, WithoutRanges], indirect=True)
def test_parts_of_a_large_file_on_a_web_server(root: Path, server: str) -> None:
    data = np.random.default_rng(0).bytes(BLOCK * 3 + 77)
    (root / "large.bin").write_bytes(data)
    remote = RemoteBytes(located(f"{server}/large.bin"))
    assert len(remote) == len(data)
    for start, stop in ((0, 12), (BLOCK - 5, BLOCK + 5), (5, 2 * BLOCK), (len(data) - 3, len(data)), (7, 7)):
        assert remote[start:stop] == data[start:stop]


def test_names_are_readable_whatever_the_address(tmp_path: Path) -> None:
    for address, name in (
        ("http://nowhere.invalid/a/wild%20rose", "wild rose"),
        ("https://nowhere.invalid/a/wild%20rose", "wild rose"),
        ("memory://a/100%25", "100%25"),
        (str(tmp_path / "100%25"), "100%25"),
    ):
        assert unquoted(located(address)) == name


def test_a_changed_file_is_noticed_at_any_address(tmp_path: Path) -> None:
    """By its size, where nothing else is known, and by what a web server calls its version."""
    states = []
    for number in (1, 2, 3):
        path = tmp_path / str(number) / "a.zip"
        path.parent.mkdir()
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(zipfile.ZipInfo("x"), b"x" * min(number, 2))  # all are from 1 January 1980
        states.append(state_of(located(f"zip://x::{path}")))
    assert states[0] != states[1] == states[2]


class WithVersions(WithRanges):
    """A server that sends the version of a file and no time."""

    def send_header(self, keyword: str, value: str) -> None:
        if keyword == "Last-Modified":
            keyword, value = "ETag", str(Path(self.translate_path(self.path)).stat().st_mtime_ns)
        super().send_header(keyword, value)


@pytest.mark.parametrize("server", [WithVersions, WithRanges], indirect=True)
def test_a_web_server_tells_the_version_of_a_file(root: Path, server: str) -> None:
    (root / "versions.csv").write_text("old")
    os.utime(root / "versions.csv", (1e9, 1e9))
    old = state_of(located(f"{server}/versions.csv"))
    assert state_of(located(f"{server}/versions.csv")) == old
    (root / "versions.csv").write_text("new")
    assert state_of(located(f"{server}/versions.csv")) != old


def test_a_folder_is_sent_where_there_is_none_yet(tmp_path: Path) -> None:
    """To a file system that makes no folders by itself, as those of most servers."""
    from upath import UPath

    (tmp_path / "set").mkdir()
    for name in ("info.json", "a.tfrecord"):
        (tmp_path / "set" / name).write_text(name)
    send_folder(tmp_path / "set", UPath(f"file://{tmp_path}/far/away"))
    assert {path.name: path.read_text() for path in (tmp_path / "far" / "away").iterdir()} == {
        "info.json": "info.json",
        "a.tfrecord": "a.tfrecord",
    }


def test_records_are_written_to_an_address(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = f"records write --images {root}/flowers --output memory://written --name set --split_names train "
    assert main([*arguments.split(), "--split_fractions", "1.0"]) == 0
    assert "wrote memory://written/set: 2 classes; train 11" in capsys.readouterr().out
    assert len(RecordSet("memory://written/set", "train")) == 11
    assert main([*arguments.split(), "--split_fractions", "1.0"]) == 1
    assert "exists already. Nothing was written; --force replaces it" in capsys.readouterr().err
    assert main([*arguments.split(), "--split_fractions", "1.0", "--force"]) == 0
    for part in ("0/2", "1/2"):
        command = "records convert --dataset digits --splits test --output memory://written/digits --shard"
        assert main([*command.split(), part]) == 0
    assert len(RecordSet("memory://written/digits", "test")) == 1000
    assert main(["records", "info", "memory://written/digits", "--verify"]) == 0
    assert "2 of 2 files are sound, 1,000 whole records" in capsys.readouterr().out


def test_tf_data_reads_any_address(root: Path, address: Any) -> None:
    from scena.data.records import dataset_from_tfrecord

    values = [int(value["y"]) for value in dataset_from_tfrecord(address("records")).take(70)]
    assert values == list(range(70))


def test_what_cannot_be_opened_or_written_is_said(root: Path, server: str, tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"'strange://x' cannot be opened: .*TensorFlow does not know strange:// either"
    ):
        RecordSet("strange://x")
    with pytest.raises(DataError, match=r"no_such.tfrecord' cannot be read"):
        RecordSet(f"{server}/no_such.tfrecord")
    for target in (f"{server}/out", f"zip://out::{root / 'all.zip'}"):
        with pytest.raises(
            DataError, match="cannot be written: .* can be read only. Write to a folder of this machine"
        ):
            write_images(WriteImagesParams(output=Location(target), images=Location(root / "flowers")))
    with pytest.raises(DataError, match="The table 'memory://none.csv' cannot be read"):
        ImageFilesParams(csv=Location("memory://none.csv")).create(PipelineMode.TRAINING)
    assert not list(tmp_path.iterdir())
