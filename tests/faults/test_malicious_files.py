"""Files that are damaged or made to do harm, for every reader: one line that names the file, nothing executed, bounded memory."""

import gzip
import json
import os
import pickle
import resource
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from scena.commands.main import main
from scena.data.image.statistics import read_info
from scena.data.params import PipelineMode
from scena.data.records.files import RecordFile, index_path
from scena.data.records.record_set import RecordSet, find_schema
from scena.data.records.writing import ShardWriter
from scena.data.resource import Resource, resolve_resources
from scena.data.sources.arrays import load_array
from scena.data.sources.params import RowGeneratorParams
from scena.data.sources.text_files import RowGenerator
from scena.errors import ScenaError
from scena.evaluation.dump import DumpWriter, read_dump, read_header
from scena.experiments.sheets.files import read_sheet
from scena.experiments.sheets.run_registry import RunRegistry
from scena.experiments.stored_run import read_history, read_run
from scena.params import Params, param
from scena.scenario.stored import read_description
from scena.training.warmstart import stored_weights
from tests.faults import saver
from tests.faults.test_malicious_checkpoints import Payload

Make = Callable[[Path], object]
BOMB = '{"a":' * 200_000
NESTED = '{"a":' * 800 + "1" + "}" * 800


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """What a bomb would need is not there: three gigabytes more than now, which is little beside what they ask for."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + (3 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def text(content: str) -> Make:
    return lambda path: path.write_text(content)


def data(content: bytes) -> Make:
    return lambda path: path.write_bytes(content)


def a_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(Payload(path.with_name("executed"))))


def a_folder(path: Path) -> None:
    path.mkdir()


# ---- JSON ------------------------------------------------------------------------------------------------------------

JSON: dict[str, Make] = {
    "nested without end": text(BOMB),
    "lists without end": text("[" * 200_000),
    "cut off": text('{"format": 1, "scena'),
    "empty": text(""),
    "zeros": data(bytes(4096)),
    "not text": data(b"\xff\xfe\x00\x01" * 100),
    "a long number": text(f'{{"format": {"9" * 10_000}}}'),
    "a list": text("[1, 2]"),
    "a number": text("7"),
    "other names": text('{"format": 1, "scenario": 3, "trainer": []}'),
    "a pickle": a_pickle,
    "a folder": a_folder,
}


def read_schema(path: Path) -> Any:
    return find_schema([path])


JSON_READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "description": ("scenario.json", read_description),
    "run": ("trainer_params.json", lambda path: read_run(path.parent)),
    "schema": ("schema.json", read_schema),
    "info": ("info.json", read_info),
    "ledger": ("1.json", lambda path: RunRegistry(path.parent).read("1")),
    "dump": ("x.jsonl", lambda path: list(read_dump(path))),
}


@pytest.mark.parametrize("kind", JSON)
@pytest.mark.parametrize("reader", JSON_READERS)
def test_json(tmp_path: Path, reader: str, kind: str) -> None:
    name, read = JSON_READERS[reader]
    JSON[kind](tmp_path / name)
    check(tmp_path / name, read)


def check(path: Path, read: Callable[[Path], Any], message: str = "") -> None:
    """Reading fails with one line that names the file or its directory, and does nothing else."""
    with pytest.raises(ScenaError) as error:
        read(path)
    lines = str(error.value)
    assert message in lines
    assert str(path) in lines or str(path.parent) in lines
    assert len(lines.splitlines()) == 1 and len(lines) < 1500
    assert not path.with_name("executed").exists()


# ---- schemas and infos that are JSON, but not what they should be -----------------------------------------------------

SCHEMA = {"format": "scena-records", "version": 1, "interleaved": False}
LEAF = {"kind": "tensor", "key": "x", "dtype": "float32", "shape": [], "stored": "float"}


SCHEMAS: dict[str, Any] = {
    "no structure": SCHEMA,
    "a number": SCHEMA | {"structure": 5},
    "an unknown type": SCHEMA | {"structure": LEAF | {"dtype": "os.system"}},
    "a shape that is none": SCHEMA | {"structure": LEAF | {"shape": ["x"]}},
    "a negative shape": SCHEMA | {"structure": LEAF | {"shape": [-5]}},
    "an unknown way of storing": SCHEMA | {"structure": LEAF | {"stored": "pickle"}},
    "another version": SCHEMA | {"version": "x"},
}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schemas(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMAS[kind]))
    check(path, read_schema)


@pytest.mark.parametrize("depth", [100, 400, 1000])
def test_nested_schemas(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "schema.json"
    inside = '{"kind":"dict","items":[["a",' * depth + json.dumps(LEAF) + "]]}" * depth
    path.write_text(f'{json.dumps(SCHEMA)[:-1]}, "structure": {inside}}}')
    if depth == 100:
        assert len(read_schema(path).leaves) == 1
    else:
        check(path, read_schema)


@pytest.mark.parametrize(
    "info",
    [{"classes": 5, "splits": {}}, {"classes": ["a"], "splits": {"train": 1}}, {"classes": [1], "splits": []}],
)
def test_infos(tmp_path: Path, info: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    with ShardWriter(tmp_path / "train-00000-of-00001.tfrecord") as writer:
        writer.write(b"")
    (tmp_path / "info.json").write_text(json.dumps({"format": "scena-images", **info}))
    assert main(["records", "info", str(tmp_path)]) == 1
    assert one_line(capsys).startswith("scena records info: error: ")


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, "\n".join(lines)
    return lines[0]


# ---- warm starts -----------------------------------------------------------------------------------------------------


def safetensors(header: Any, content: bytes = b"") -> Make:
    words = header if isinstance(header, bytes) else json.dumps(header).encode()
    return data(struct.pack("<Q", len(words)) + words + content)


TENSORS: dict[str, Make] = {
    "empty": data(b""),
    "cut off": safetensors({"x": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, b"1234"),
    "a long header": data(struct.pack("<Q", 1 << 60) + b"{}"),
    "nested": safetensors(BOMB.encode()),
    "a large shape": safetensors(
        {"x": {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 16]}}, b"1234" * 4
    ),
    "negative": safetensors({"x": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 16]}}, b"1234" * 4),
    "overlapping": safetensors({name: {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]} for name in "ab"}, b"1234"),
    "an unknown type": safetensors({"x": {"dtype": "os.system", "shape": [4], "data_offsets": [0, 4]}}, b"1234"),
    "no text": safetensors(b"\xff" * 20),
    "a pickle": a_pickle,
}


@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_of_a_warm_start(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "weights.safetensors"
    TENSORS[kind](path)
    check(path, stored_weights)


def test_a_checkpoint_under_any_name_is_a_warm_start(tmp_path: Path) -> None:
    saver.save(tmp_path, 3)
    (tmp_path / "3").rename(tmp_path / "the-good-one")
    assert stored_weights(tmp_path / "the-good-one") is not None
    (tmp_path / "the-good-one" / "state.json").write_text(BOMB)
    check(tmp_path / "the-good-one", stored_weights)


# ---- sheets ----------------------------------------------------------------------------------------------------------

LAUGHS = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">' + "".join(
    f'<!ENTITY a{i} "' + f"&a{i - 1};" * 10 + '">' for i in range(1, 12)
)


def xlsx(part: str, content: Callable[[bytes], bytes]) -> Make:
    def make(path: Path) -> None:
        import openpyxl

        book = openpyxl.Workbook()
        book.active.append(["ID", "SCRIPT", "x"])
        book.active.append(["1", "scena train", "y"])
        book.save(path)
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, old in parts.items():
                archive.writestr(name, content(old) if name == part else old)

    return make


SHEET = "xl/worksheets/sheet1.xml"
SHEETS: dict[str, tuple[str, Make]] = {
    "entities": ("x.xlsx", xlsx(SHEET, lambda old: f"{LAUGHS}]><x>&a11;</x>".encode())),
    "entities in the book": ("x.xlsx", xlsx("xl/workbook.xml", lambda old: f"{LAUGHS}]><x>&a11;</x>".encode())),
    "an entity of another file": (
        "x.xlsx",
        xlsx(SHEET, lambda old: b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'),
    ),
    "broken XML": ("x.xlsx", xlsx(SHEET, lambda old: old[: len(old) // 2])),
    "a bomb": ("x.xlsx", xlsx(SHEET, lambda old: old.replace(b"<sheetData>", b"<sheetData>" + b" " * (120 << 20)))),
    "a cell at the end of the world": (
        "x.xlsx",
        xlsx(SHEET, lambda old: old.replace(b'r="A1"', b'r="XFD1048576"', 1)),
    ),
    "no zip": ("x.xlsx", text("hello")),
    "an empty zip": ("x.xlsx", data(b"PK\x05\x06" + bytes(18))),
    "a folder": ("x.xlsx", a_folder),
    "a folder for csv": ("x.csv", a_folder),
    "a long cell": ("x.csv", text("ID,SCRIPT\n1," + "x" * 200_000)),
    "zeros": ("x.csv", data(bytes(5000))),
    "not text": ("x.csv", data(b"\xff\xfe" * 50)),
    "nested yaml": ("x.yaml", text("[" * 100_000)),
    "aliases": (
        "x.yaml",
        text("a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{f'*a{i - 1},' * 20}]\n" for i in range(1, 20))),
    ),
}


@pytest.mark.parametrize("kind", SHEETS)
def test_sheets(tmp_path: Path, kind: str) -> None:
    name, make = SHEETS[kind]
    make(tmp_path / name)
    check(tmp_path / name, lambda path: read_sheet(path, None))


# ---- arrays ----------------------------------------------------------------------------------------------------------


def npy(header: str, content: bytes = b"") -> bytes:
    words = header.encode().ljust(118)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words)) + words + content


def npz(member: bytes, spoil: Callable[[bytes], bytes] = bytes) -> Make:
    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", member)
        path.write_bytes(spoil(path.read_bytes()))

    return make


def broken_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(1000), compression="gzip")
    content = bytearray(path.read_bytes())
    content[300:1200] = bytes(900)
    path.write_bytes(content)


LARGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000), }"
ARRAYS: dict[str, tuple[str, Make]] = {
    "empty": ("x.npy", data(b"")),
    "a pickle": ("x.npy", a_pickle),
    "objects": ("x.npy", lambda path: np.save(path, np.array([{}], object), allow_pickle=True)),
    "no header": ("x.npy", data(npy("{'descr': '<f8', 'fortran_"))),
    "code in the header": ("x.npy", data(npy("__import__('os').mkdir('executed')"))),
    "a large shape": ("x.npy", data(npy(LARGE))),
    "cut off": ("x.npy", data(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (100,), }", b"123"))),
    "a folder": ("x.npy", a_folder),
    "no zip": ("x.npz", text("hello")),
    "a damaged zip": ("x.npz", npz(npy(LARGE) * 100, lambda old: old[:60] + b"\xff" * 20 + old[80:])),
    "a large shape in a zip": ("x.npz", npz(npy(LARGE))),
    "no array in a zip": ("x.npz", npz(b"hello")),
    "no HDF5": ("x.h5", text("hello")),
    "broken HDF5": ("x.h5", broken_hdf5),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays(tmp_path: Path, kind: str) -> None:
    name, make = ARRAYS[kind]
    make(tmp_path / name)
    member = ":x" if name != "x.npy" else ""
    check(tmp_path / name, lambda path: np.asarray(load_array(f"{path}{member}")))


def test_rows_with_a_cell_without_end(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('a,b\n"' + "x" * 200_000)
    check(path, lambda path: RowGenerator(RowGeneratorParams(files=[str(path)]), PipelineMode.TRAINING))


# ---- records ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", JSON)
def test_an_index_that_is_none_is_not_used(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "x.tfrecord"
    with ShardWriter(path) as writer:
        writer.write(b"one")
    index_path(path).unlink()
    JSON[kind](index_path(path))
    assert RecordFile(path)[0] == b"one"
    assert "x.tfrecord.index is damaged, or is none" in caplog.text or kind == "a folder"
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    "content", [b"\x0a\xff\xff\xff\xff\x0f", b"\xff" * 40, b"\x0a\x04\x0a\x02\x0a\x7f", b"\x08" * 9]
)
def test_records_that_are_no_examples(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.tfrecord"
    with ShardWriter(path) as writer:
        writer.write(content)
    with pytest.raises(ScenaError):
        RecordSet(path)[0]


# ---- dumps -----------------------------------------------------------------------------------------------------------


def array(**changes: Any) -> str:
    entry = {"$array": "AAAA", "dtype": "<u1", "shape": [3], **changes}
    header = {"format": "scena-dump", "version": 1}
    return json.dumps(header) + "\n" + json.dumps({"outputs": entry}) + "\n"


DUMPS: dict[str, Make] = {
    "a shape that does not fit": text(array(shape=[1 << 50])),
    "a shape that is none": text(array(shape="x")),
    "an unknown type": text(array(dtype="os.system")),
    "objects": text(array(dtype="O,O")),
    "a large type": text(array(dtype="V9999999999")),
    "a type that is none": text(array(dtype={"a": []})),
    "nested": text(array().splitlines()[0] + f'\n{{"outputs":{NESTED}}}\n{BOMB}'),
    "a model that is no name": text(array().splitlines()[0] + '\n{"model": [1]}\n'),
    "no bytes": text(array(**{"$array": "#"})),
}


@pytest.mark.parametrize("kind", DUMPS)
def test_dumps(tmp_path: Path, kind: str) -> None:
    DUMPS[kind](tmp_path / "x.jsonl")
    check(tmp_path / "x.jsonl", lambda path: list(read_dump(path)))


def test_compressed_dumps_that_end_too_early(tmp_path: Path) -> None:
    from scena import Sample

    path = tmp_path / "x.jsonl.gz"
    with DumpWriter(path, {}) as writer:
        for number in range(50):
            writer.write(Sample(outputs=np.random.default_rng(number).random(100)))
    whole = path.read_bytes()
    for size in (0, 5, 15, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        check(path, lambda path: list(read_dump(path)))
    path.write_text("no gzip")
    check(path, read_header)
    path.write_bytes(gzip.compress(b"[" * (16 << 20), 1))
    check(path, read_header)


# ---- histories, resources ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"epoch\n" + b"x" * 200_000, b'epoch,loss\n1,"' + b"x" * 200_000, b"epoch\nx"]
)
def test_histories(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "history.csv").write_bytes(content)
    check(tmp_path / "history.csv", lambda path: read_history(path.parent))


class WithResource(Params):
    """Parameters with a file."""

    file: Resource = param(Resource("x"), help="a file")


@pytest.mark.parametrize("where", ["resources/../../secret", "resources/link", "resources/folder/secret"])
def test_resources_do_not_lead_out_of_an_export(tmp_path: Path, where: str) -> None:
    (tmp_path / "secret").write_text("secret")
    export = tmp_path / "export"
    (export / "resources").mkdir(parents=True)
    (export / "resources" / "link").symlink_to(tmp_path / "secret")
    (export / "resources" / "folder").symlink_to(tmp_path)
    with pytest.raises(ScenaError, match="points out of it"):
        resolve_resources(WithResource(file=Resource(where)), export)


# ---- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "runs {}",
        "resume {}",
        "lav {}",
        "predict {}",
        "params {}",
        "evaluate-dump {}",
        "records info {}",
    ],
)
@pytest.mark.parametrize("kind", ["nested without end", "a folder", "not text"])
def test_commands_print_one_line(tmp_path: Path, command: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("trainer_params.json", "scenario.json", "x.jsonl", "history.csv", "schema.json"):
        JSON[kind](tmp_path / name)
    (tmp_path / "model.keras").write_text("")
    place = {"evaluate-dump": tmp_path / "x.jsonl", "params": tmp_path / "trainer_params.json"}.get(
        command.split()[0], tmp_path
    )
    status = main(command.format(place).split())
    line = one_line(capsys)
    if (command, kind) == ("runs {}", "a folder"):  # it is none of a run
        assert (status, line) == (0, f"There are no runs in {tmp_path}.")
    else:
        assert status in (1, 2) and "error: " in line


def test_what_the_system_refuses_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    name = "x" * 5000
    assert main(["runs", name]) == 1
    assert one_line(capsys) == f"scena runs: error: {'x' * 100}…{'x' * 19}: File name too long"


def test_a_dump_without_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(array())
    assert main(["evaluate-dump", str(path), "--scenario", "tests.faults.survivor"]) == 1
    message = f"{path} does not describe a run: it has no 'scenario' or no 'trainer' entry."
    assert one_line(capsys) == f"scena evaluate-dump: error: {message}"


@pytest.mark.parametrize("depth", [5, 200, 300])
def test_nested_parameters(tmp_path: Path, depth: int, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trainer_params.json"
    trainer = '{"scenario":' * depth + "1" + "}" * depth
    path.write_text(
        f'{{"format": 1, "scenario": "tests.faults.survivor.scenario:SurvivorScenario", "trainer": {trainer}}}'
    )
    assert main(["resume", str(tmp_path)]) in (1, 2)
    assert str(tmp_path) in one_line(capsys)
