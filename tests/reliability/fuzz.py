"""Random bytes for everything that parses foreign files and requests: only declared errors, never a traceback.

Inputs are valid ones with random changes. `python -m tests.reliability.fuzz --count 20000` tries that many for each parser, each in a
process of its own with at most 4 GB of memory, and prints the rate, the slowest input and the memory that was used.
"""

import argparse
import csv
import io
import json
import logging
import random
import resource
import signal
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import msgspec
import numpy as np
import openpyxl
from PIL import Image

from scena import Sample
from scena.data.image.statistics import image_info, parse_info
from scena.data.records.example import decode_example, encode_example
from scena.data.records.files import RecordFile, index_path
from scena.data.records.leaf import Leaf
from scena.data.records.schema import Schema
from scena.data.records.writing import ShardWriter
from scena.data.sources.arrays import load_array
from scena.data.spec import ArraySpec
from scena.errors import ScenaError
from scena.evaluation.dump import DumpWriter, read_dump
from scena.experiments.sheets.files import read_sheet
from scena.experiments.sheets.run_registry import RunRegistry
from scena.params.files.yaml_reader import read as read_yaml
from scena.prediction.converted import read_converted
from scena.prediction.serving.payload import (
    PayloadError,
    fields_of_json,
    read_request,
    sample_of_fields,
    sample_of_file,
)
from scena.scenario.ensemble import members
from scena.scenario.stored import read_description
from scena.storage.checksums import DamagedFileError, seal, verify
from scena.storage.run_layout import CONVERTED_FILE, ENSEMBLE_FILE, MANIFEST, STATE_FILE, TENSORS_FILE
from scena.storage.tensor_file import TensorBuffer
from scena.training.checkpoint.format import FORMAT, StoredState, VariableEntry, read_checkpoint
from scena.training.trackers.journal import JournalReader, Points, encode
from tests.reliability.bitrot import warnings_of_scena

MEMORY = 4 << 30
SECONDS = 20
"""Of processor time; an input that takes longer hangs a program."""
MOST_SHOWN = 100

ROWS = [
    ["ID", "SCRIPT", "PARAMS", ""],
    ["", "", "trainer", ""],
    ["", "", "epochs", "seed"],
    ["1", "scena train x", "3", "a b"],
]


class Parser(NamedTuple):
    """A parser: its valid inputs, and what reads them. All errors but `declared` are wrong."""

    seeds: list[bytes]
    parse: Callable[[bytes], Any]
    declared: tuple[type[Exception], ...] = (ScenaError, PayloadError)


class StandInPredictor:
    """Makes samples as a predictor does, without a model. It is its own `data`, too."""

    @property
    def data(self) -> "StandInPredictor":
        return self

    def input_layer_specs(self) -> dict[str, ArraySpec]:
        return self.specs

    def sample_from_fields(self, fields: Any) -> Any:
        return sample_of_fields(fields, self.specs, processed=True)

    specs = {"x": ArraySpec((2, 3), "float32"), "name": ArraySpec((), "str")}

    def sample_from_json(self, instance: Any) -> Any:
        return sample_of_fields(fields_of_json(instance, self.specs), self.specs, processed=True)

    def sample_from_file(self, content: bytes, name: str) -> Any:
        return sample_of_file(content, name, {"image": ArraySpec((4, 4, 3), "uint8")}, processed=False)


def parsers(folder: Path) -> dict[str, Parser]:
    """All of them; they write their inputs into a folder."""
    return {**_data(folder), **_runs(folder), **_texts(folder), **_descriptions(folder), **_archives(folder)}


def _data(folder: Path) -> dict[str, Parser]:
    record = folder / "a.tfrecord"
    example = encode_example({"x": np.arange(5), "y": np.ones(3, np.float32), "z": [b"text", b""]})
    files, indices = [], []
    for compression in ("", "GZIP", "ZLIB"):
        with ShardWriter(record, compression) as writer:
            for _ in range(3):
                writer.write(example)
        files.append(record.read_bytes())
        indices.append(index_path(record).read_bytes())
    whole, index = files[0], index_path(record)

    def records(data: bytes) -> None:
        index.unlink(missing_ok=True)
        record.write_bytes(data)
        list(RecordFile(record))

    def by_index(data: bytes) -> None:
        record.write_bytes(whole)
        index.write_bytes(data)
        file = RecordFile(record)
        assert [file[number] for number in range(len(file))] == [example] * 3

    schema = Schema({"x": Leaf("x", "float32", (2, None), stored="float"), "y": {"z": Leaf("z", "int64", ())}})
    info = image_info("n", ["a", "b"], {"train": {"count": 2, "files": 1, "classes": {"a": 1, "b": 1}}}, [(2, 3)], {})
    return {
        "record file": Parser(files, records),
        "index of records": Parser(indices[:1], by_index),
        "tf.train.Example": Parser([example], decode_example),
        "schema": Parser([json.dumps(schema.to_json()).encode()], lambda data: Schema.parse(data, "schema.json")),
        "info": Parser([json.dumps(info).encode()], lambda data: parse_info(data, "info.json")),
    }


def _runs(folder: Path) -> dict[str, Parser]:
    checkpoint = folder / "1"
    checkpoint.mkdir()
    arrays = {"a": np.ones((2, 3), np.float32), "b": np.arange(4)}
    buffer = TensorBuffer()
    buffer.fill(arrays)
    buffer.write(checkpoint / TENSORS_FILE)
    entries = [VariableEntry(key, key, list(a.shape), a.dtype.name) for key, a in arrays.items()]
    state = StoredState(FORMAT, {"step": 1}, {"x": {"y": [1, None, "ü"]}}, entries, {"seed": 1}, run="r")
    stored = {STATE_FILE: msgspec.json.encode(state), TENSORS_FILE: (checkpoint / TENSORS_FILE).read_bytes()}

    def file_of_checkpoint(name: str) -> Callable[[bytes], Any]:
        def parse(data: bytes) -> None:
            for own, content in stored.items():
                (checkpoint / own).write_bytes(data if own == name else content)
            read_checkpoint(checkpoint)

        return parse

    sealed = folder / "sealed"
    sealed.mkdir()
    seal(sealed, {"a": "00000000", "b/c": "11111111"})
    manifest = (sealed / MANIFEST).read_bytes()

    def check_manifest(data: bytes) -> None:
        (sealed / MANIFEST).write_bytes(data)
        verify(sealed / "z")

    journal = folder / "journal"
    lines = b"".join(encode(Points(0, step, step, {"loss": 1.5, "nan": "nan"})) for step in range(4))

    def read_journal(data: bytes) -> None:
        journal.write_bytes(data)
        list(JournalReader(journal).read())

    return {
        "state.json": Parser([stored[STATE_FILE]], file_of_checkpoint(STATE_FILE)),
        "safetensors": Parser([stored[TENSORS_FILE]], file_of_checkpoint(TENSORS_FILE)),
        "manifest": Parser([manifest], check_manifest, (DamagedFileError,)),
        "journal": Parser([lines], read_journal, ()),
    }


def _texts(folder: Path) -> dict[str, Parser]:
    dump = folder / "dump.jsonl"
    with DumpWriter(dump, {"n": 1}) as writer:
        writer.write(Sample(outputs={"p": np.arange(4.0), "t": "x"}, meta={"b": b"12"}), model="m")
    good_dump = dump.read_bytes()
    plain_dump = b"".join(_without_checksum(line) for line in good_dump.splitlines())

    def read_file(name: str, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
        return _from_file(folder / name, read)

    text = io.StringIO()
    csv.writer(text).writerows(ROWS)
    yaml = b"# c\na: 1e-4\nb: {c: [1, 2, 'x'], d: !!str 5}\nbase: &b\n  x: 1\nother:\n  <<: *b\n  y: |\n    text\n"
    plain = b'{"a": [1, 2.5, null, true], "b": {"c": "\\ud83d\\ude00"}}'
    sheet = b"script: scena train x\nparams: {trainer.epochs: 3}\nruns:\n- id: 1\n  params: {model.units: [1, 2]}\n"
    body = {"instances": [{"x": [[1, 2, 3], [4, 5, 6.5]], "name": "ü"}]}
    part = b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
    form = part % (b"x", b"[[1,2,3],[4,5,6]]") + part % (b"name", b'"text"') + b"--b--\r\n"
    picture = io.BytesIO()
    Image.new("RGB", (4, 4)).save(picture, "PNG")

    def request(kind: str) -> Callable[[bytes], Any]:
        return lambda data: [make() for make in read_request(kind, data, StandInPredictor()).makers]

    return {
        "dump": Parser([good_dump, plain_dump], read_file("dump.jsonl", lambda path: list(read_dump(path)))),
        "YAML": Parser([yaml], read_file("a.yaml", lambda path: read_yaml(str(path)))),
        "JSON parameters": Parser([plain], read_file("a.json", lambda path: read_yaml(str(path)))),
        "sheet, CSV": Parser([text.getvalue().encode()], read_file("s.csv", read_sheet)),
        "sheet, YAML": Parser([sheet], read_file("s.yaml", read_sheet)),
        "request, JSON": Parser([json.dumps(body, ensure_ascii=False).encode()], request("application/json")),
        "request, image": Parser([picture.getvalue()], request("image/png")),
        "request, form": Parser([form], request("multipart/form-data; boundary=b")),
    }  # fmt: skip


def _descriptions(folder: Path) -> dict[str, Parser]:
    """The small JSON files of exports and sheets."""
    member = {
        "format": "onnx",
        "graph": "default",
        "files": {"a.onnx": "00"},
        "source": {},
        "inputs": {},
        "outputs": {},
    }
    converted = {
        "format": 1,
        "models": {"a.onnx": member | {"differences": {"y": 0.0}, "tolerance": 1e-4, "samples": 3}},
    }
    export = {
        "format": 2,
        "scenario": "a:B",
        "trainer": {"epochs": 3},
        "params": {"x": 1},
        "pipelines": {},
        "imports": ["a"],
    }
    entry = {"words": ["scena", "train"], "status": "done", "exit": 0, "seconds": 1.5, "attempts": 1, "directory": None}
    (folder / "m" / "scenario.json").parent.mkdir()
    (folder / "m" / "scenario.json").write_text("{}")

    def file(name: str, content: Any, read: Callable[[Path], Any]) -> Parser:
        return Parser([json.dumps(content).encode()], _from_file(folder / name, read))

    return {
        "scenario.json": file("scenario.json", export, read_description),
        "converted models": file(CONVERTED_FILE, converted, lambda path: read_converted(path.parent)),
        "ensemble": file(ENSEMBLE_FILE, {"format": 1, "members": ["m"]}, lambda path: members(path.parent)),
        "registry of runs": file("r.json", entry, lambda path: RunRegistry(path.parent).read("r")),
    }


def _archives(folder: Path) -> dict[str, Parser]:
    """Zip files of arrays and weights, and what numpy and HDF5 store."""
    from scena.model.state.archive import WEIGHTS, check_hdf5_file, unpacked_weights  # needs Keras

    array, archive, hdf5, keras, sheet = (folder / name for name in ("a.npy", "a.npz", "a.h5", "a.keras", "x.xlsx"))
    np.save(array, np.ones((2, 3), np.float32))
    np.savez_compressed(archive, x=np.arange(4))
    with h5py.File(hdf5, "w", libver="latest") as file:
        file.create_group("layers").create_dataset("w", data=np.ones(3))
    with zipfile.ZipFile(keras, "w") as zipped:
        zipped.write(hdf5, WEIGHTS)
        zipped.writestr("config.json", "{}")
    book = openpyxl.Workbook()
    for row in ROWS:
        book.worksheets[0].append(row)
    book.save(sheet)

    def unpack(path: Path) -> None:
        with unpacked_weights(path, 1000):
            pass

    readers: dict[str, tuple[Path, Callable[[Path], Any]]] = {
        "array": (array, lambda path: load_array(str(path))),
        "arrays": (archive, lambda path: load_array(f"{path}:x")),
        "HDF5": (hdf5, check_hdf5_file),
        "arrays, HDF5": (hdf5, lambda path: load_array(f"{path}:layers/w")),
        "Keras archive": (keras, unpack),
        "sheet, xlsx": (sheet, read_sheet),
    }
    return {name: Parser([path.read_bytes()], _from_file(path, read)) for name, (path, read) in readers.items()}


def _from_file(path: Path, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    """A parser of bytes from one of files."""

    def parse(data: bytes) -> None:
        path.write_bytes(data)
        read(path)

    return parse


def _without_checksum(line: bytes) -> bytes:
    record = json.loads(line)
    record.pop("$crc32c")
    return json.dumps(record).encode() + b"\n"


INTERESTING = [
    b"\0",
    b"\xff",
    b"{",
    b"}",
    b"[" * 50,
    b'"',
    b"-1",
    b"1e999",
    b"9" * 30,
    b"null",
    b"\xe5",
    b"\n",
    b"&a",
    b"*a",
    b"$end",
]


def changed(data: bytes, rng: random.Random) -> bytes:
    """The data with some random changes."""
    for _ in range(rng.choice([1, 1, 2, 4, 8])):
        place = rng.randrange(len(data) + 1)
        length = rng.choice([1, 1, 2, 4, 8, rng.randrange(len(data) + 1)])
        kind = rng.randrange(6)
        if kind == 0 and place < len(data):
            data = data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
        elif kind == 1:
            data = data[:place] + data[place + length :]
        elif kind == 2:
            data = data[:place] + rng.choice(INTERESTING) + data[place:]
        elif kind == 3:
            data = data[:place] + data[place : place + length] * 2 + data[place + length :]
        elif kind == 4:
            data = data[:place] + rng.randbytes(length % 64) + data[place + length % 64 :]
        else:
            data = data[:place]
    return data


def fuzz(parser: Parser, count: int, seed: int) -> Iterator[str]:
    """Tries this many inputs; yields what went wrong."""
    rng = random.Random(seed)
    for seed_input in parser.seeds:
        parser.parse(seed_input)
    for _ in range(count):
        data = changed(rng.choice(parser.seeds), rng)
        try:
            parser.parse(data)
        except parser.declared:
            pass
        except Exception as error:
            yield f"{type(error).__name__}: {str(error)[:120]} for {data[:200]!r}"


class Result(NamedTuple):
    """What the inputs for one parser led to."""

    wrong: list[str]
    seconds: float
    """Of processor time."""
    megabytes: int
    """How much memory was used beyond that before the first input."""


def _campaign(name: str, count: int, seed: int) -> Result:
    """Tries the inputs in this process, which must be a new one: its memory is limited from now on."""
    warnings.simplefilter("ignore")
    logging.disable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGVTALRM, _too_slow)
    with tempfile.TemporaryDirectory(prefix="scena-fuzz-", dir="/dev/shm") as folder:
        parser = parsers(Path(folder))[name]

        def timed(data: bytes) -> None:
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            parser.parse(data)

        wrong = []
        for data in parser.seeds:
            parser.parse(data)
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        with warnings_of_scena() as reported:
            for number, text in enumerate(fuzz(parser._replace(parse=timed), count, seed)):
                if number < MOST_SHOWN:
                    wrong.append(text)
                reported.clear()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return Result(
            wrong,
            time.process_time() - start,
            (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10,
        )


def _too_slow(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s of processor time")


def main() -> int:
    """Fuzzes all parsers, or some."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--count", type=int, default=20_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--only", nargs="*", help="names of parsers")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="scena-fuzz-", dir="/dev/shm") as folder:
        names = list(parsers(Path(folder)))
    failures, total = 0, 0.0
    for name in options.only if options.only is not None else names:
        with get_context("fork").Pool(1) as pool:
            found = pool.apply(_campaign, (name, options.count, options.seed))
        failures += len(found.wrong)
        total += found.seconds
        rate = options.count / found.seconds
        print(
            f"{name:20} {options.count:>8} inputs {len(found.wrong):>3} wrong {found.seconds:7.1f} s of processor time "
            f"{rate:>8,.0f} / s {found.megabytes:>5} MB more",
            flush=True,
        )
        for text in found.wrong[:3]:
            print(f"    {text}", flush=True)
    print(f"{failures} wrong, {total:.0f} s of processor time")
    return bool(failures)


if __name__ == "__main__":
    raise SystemExit(main())
