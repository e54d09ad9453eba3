"""Wrong and malicious files for `bad_inputs.py`, and the good ones beside them."""

import csv
import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from PIL import Image

from scena.data.records.example import encode_example
from scena.data.records.writing import ShardWriter
from tests.zygote import Zygote


def write_run(zygote: Zygote, here: Path, log: Path) -> None:
    """A run with its models, and a dump."""
    train = "train examples.tutorial.min --trainer.epochs 1 --train.limit 32 --val.limit 16 --trainer.output_dir run"
    for line in (train, "lav run --dump dump.jsonl"):
        assert zygote.run(*line.split(), log=log, folder=here) == 0, log.read_text()


def write_good_files(here: Path) -> None:
    """Record files, images, a sheet and parameters."""
    for name in "ab":
        folder = here / "images" / name
        folder.mkdir(parents=True)
        Image.new("RGB", (9, 9)).save(folder / "0.png")
    with ShardWriter(here / "images.tfrecord", "") as writer:
        writer.write(encode_example({"x": np.arange(5)}))
    (here / "table.csv").write_text("path,label\nimages/a/0.png,a\nimages/b/0.png,b\n")
    (here / "params.yaml").write_text("trainer: {epochs: 1}\n")
    (here / "sheet.csv").write_text("ID,SCRIPT,PARAMS\n,,trainer\n,,epochs\n1,scena train examples.tutorial.min,1\n")
    (here / "lines.lst").write_text("one\ntwo\n")


Make = Callable[[Path], object]


class Payload:
    """Makes the folder `executed` if it is ever unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, (os.path.abspath("executed"),)


def text(content: str) -> Make:
    return lambda path: path.write_text(content)


def data(content: bytes) -> Make:
    return lambda path: path.write_bytes(content)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(Payload()))


def _object_array(path: Path) -> None:
    stored = io.BytesIO()
    np.save(stored, np.array([Payload()], dtype=object), allow_pickle=True)
    path.write_bytes(stored.getvalue())


def _archive(path: Path, **members: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def _lambda_model(path: Path) -> None:
    config = {
        "class_name": "Lambda",
        "module": "keras.layers",
        "config": {"function": {"class_name": "__lambda__", "config": {"code": "x"}}},
    }
    _archive(path, **{"config.json": json.dumps(config).encode(), "metadata.json": b"{}", "model.weights.h5": b""})


def _slip(path: Path) -> None:
    _archive(path, **{"../executed": b"x", "/executed": b"x"})


def _bomb(path: Path) -> None:
    _archive(path, **{"model.weights.h5": bytes(200 << 20), "xl/workbook.xml": bytes(200 << 20)})


def _entities(path: Path) -> None:
    xml = (
        b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "'
        + b"a" * 1000
        + b'">'
        + b"".join(b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 20) for n in range(8))
        + b'<!ENTITY f SYSTEM "file:///etc/passwd">]><x>&i;&f;</x>'
    )
    _archive(path, **{"[Content_Types].xml": xml, "_rels/.rels": xml, "xl/workbook.xml": xml})


def _external(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = h5py.ExternalLink("/etc/passwd", "/")
        file.create_dataset("y", (10,), "u1", external=[("/etc/passwd", 0, 10)])


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _formulas(path: Path) -> None:
    text = io.StringIO()
    csv.writer(text).writerows(
        [["ID", "SCRIPT"], ["1", "=cmd|' /C touch executed'!A0"], ["2", "$(touch executed); `touch executed`"]]
    )
    path.write_text(text.getvalue())


def _no_name(path: Path) -> None:
    """No such file."""


CONTENTS: dict[str, Make] = {
    "missing": _no_name,
    "a folder": lambda path: path.mkdir(),
    "a loop of links": _loop,
    "empty": text(""),
    "zeros": data(bytes(4096)),
    "not text": data(b"\xff\xfe\x00\x01" * 100),
    "a number": text("7"),
    "a list": text("[1, 2]"),
    "cut off": text('{"format": 1, "scena'),
    "other names": text('{"format": 1, "scenario": 3, "trainer": []}'),
    "a tab": text("trainer:\n\tepochs: 1\n"),
    "quotes": text('trainer: {epochs: "1\n'),
    "unknown names": text("trainer: {epocs: 1}\n"),
    "wrong type": text("trainer: {epochs: many}\n"),
    "too new": text('{"format": 999, "scenario": "a", "trainer": {}}'),
    "names twice": text("trainer: {epochs: 1}\ntrainer: {epochs: 2}\n"),
    "one column": text("path\nimages/a/0.png\n"),
    "images that are none": text("path,label\ntable.csv,a\nparams.yaml,b\n"),
    "missing images": text("path,label\nnosuch.png,a\nnosuch2.png,b\n"),
    "an ID twice": text("ID,SCRIPT\n1,scena train examples.tutorial.min\n1,scena train examples.tutorial.min\n"),
    "unknown flag": text("ID,SCRIPT,PARAMS\n,,nosuch\n1,scena train examples.tutorial.min,1\n"),
    "no script": text("ID,PARAMS\n1,2\n"),
    "cut records": data(struct.pack("<Q", 1 << 40) + b"1234"),
    "a cut image": lambda path: path.write_bytes(Path("images/a/0.png").read_bytes()[:40]),
    "malicious: a pickle": _pickle,
    "malicious: an array of objects": _object_array,
    "malicious: YAML that calls": text("trainer: !!python/object/apply:os.mkdir [executed]\n"),
    "malicious: YAML that makes an object": text('a: !!python/object/new:os.mkdir ["executed"]\n'),
    "malicious: YAML bomb": text(
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9))
    ),
    "malicious: nested without end": text('{"a":' * 200_000),
    "malicious: lists without end": text("[" * 200_000),
    "malicious: a module": text(
        '{"format": 1, "scenario": "os:mkdir", "trainer": {"class": "os:mkdir"}, "imports": ["antigravity"]}'
    ),
    "malicious: formulas": _formulas,
    "malicious: shell": text("script: $(touch executed); touch executed\nruns:\n- id: ../../executed\n"),
    "malicious: a Lambda": _lambda_model,
    "malicious: paths out of an archive": _slip,
    "malicious: an archive that unpacks to much": _bomb,
    "malicious: XML entities": _entities,
    "malicious: HDF5 that points elsewhere": _external,
    "malicious: a link to another file": _link,
    "malicious: control characters": text("trainer: {epochs: '\x1b[2J\x1b]0;x\x07'}\n"),
    "malicious: a huge length": data(struct.pack("<Q", (1 << 63) - 1) + b"{" * 100),
}
"""What a file holds; those that mean harm begin with `malicious`."""

ANY = [
    "missing",
    "a folder",
    "a loop of links",
    "empty",
    "zeros",
    "not text",
    "malicious: a pickle",
    "malicious: an array of objects",
]
YAML = [
    *ANY[:3], *ANY[4:], "a number", "a list", "cut off", "a tab", "quotes", "unknown names", "wrong type", "names twice",
    "malicious: YAML that calls", "malicious: YAML that makes an object", "malicious: YAML bomb", "malicious: nested without end",
    "malicious: lists without end", "malicious: control characters", "malicious: a link to another file",
]  # fmt: skip
JSON = [
    *ANY, "a number", "a list", "cut off", "other names", "too new", "malicious: nested without end",
    "malicious: lists without end", "malicious: a module", "malicious: a link to another file", "malicious: a huge length",
]  # fmt: skip
ZIP = [
    *ANY, "malicious: paths out of an archive", "malicious: an archive that unpacks to much", "malicious: XML entities",
    "malicious: a link to another file", "malicious: HDF5 that points elsewhere",
]  # fmt: skip
SHEET = [*ANY, "an ID twice", "unknown flag", "no script", "malicious: formulas"]
TABLE = [
    *ANY,
    "one column",
    "images that are none",
    "missing images",
    "malicious: formulas",
    "malicious: a link to another file",
]
RUN = ["missing", "a folder", "empty", "not text", "malicious: a pickle", "a loop of links"]

MIN = "examples.tutorial.min"
FILES: list[tuple[str, list[str]]] = [
    (f"train {MIN} --trainer.output_dir new --config {{a.yaml}}", YAML),
    (f"params {MIN} --config {{a.yaml}}", YAML),
    ("sets {a.yaml}", [kind for kind in YAML if kind not in ("unknown names", "wrong type", "malicious: control characters")]),
    (f"train {MIN} --trainer.output_dir new --params {{a.json}}", JSON),
    (f"train {MIN} --trainer.output_dir new --warmstart.model {{a.keras}}", [*ZIP, "malicious: a Lambda"]),
    (f"train {MIN} --trainer.output_dir new --warmstart.model {{a.h5}}", ZIP),
    (f"train {MIN} --trainer.output_dir new --warmstart.model {{a.safetensors}}", [*ANY, "malicious: a huge length"]),
    ("train classification --trainer.output_dir new --data ImageFiles --data.images {a}", RUN),
    ("train classification --trainer.output_dir new --data ImageFiles --data.csv {a.csv}", TABLE),
    ("records write --output new --name n --images {a}", RUN),
    ("records write --output new --name n --csv {a.csv}", TABLE),
    ("records info {a.tfrecord}", [*ANY, "cut records"]),
    ("records info --verify {a.tfrecord}", [*ANY, "cut records"]),
    ("experiment {a.csv} --output new", SHEET),
    ("experiment {a.yaml} --output new", [*YAML, "malicious: shell"]),
    ("experiment {a.xlsx} --output new", ZIP),
    ("evaluate-dump {a.jsonl}", JSON),
    ("compare dump.jsonl {a.jsonl}", JSON),
    ("compare {a} dump.jsonl", RUN),
    ("resume {a}", RUN),
    ("lav {a}", RUN),
    ("predict {a}", RUN),
    ("serve {a}", RUN),
    ("export {a} --format saved_model", RUN),
    ("adapt {a} --out new", RUN),
    ("params {a}", RUN),
    ("track {a}", RUN),
    ("verify {a}", ["missing", "a loop of links"]),
    (f"import-checkpoint {{a}} {MIN} --out new", RUN),
    ("lav run --json nosuch/{a.json}", ["missing"]),
    ("lav run --dump run/trainer_params.json/{a.jsonl}", ["missing"]),
    ("predict run --out {a.csv}", ["a folder"]),
    ("runs run --csv {a.csv}", ["a folder"]),
    ("runs run --plot {a.xyz}", ["missing"]),
    ("new {a}", ["empty", "zeros"]),
]  # fmt: skip
"""Command lines with the place of a file, and what it holds."""

DESCRIPTION = [kind for kind in JSON if kind != "malicious: a link to another file"]
RUN_FILES: list[tuple[str, dict[str, list[str]]]] = [
    ("resume run", {"trainer_params.json": DESCRIPTION}),
    ("params run", {"trainer_params.json": DESCRIPTION}),
    ("lav run", {"best/scenario.json": DESCRIPTION[3:], "best/model.keras": [*ZIP, "malicious: a Lambda"]}),
    ("predict run", {"best/scenario.json": DESCRIPTION[3:]}),
    ("serve run", {"best/scenario.json": DESCRIPTION[3:]}),
    ("adapt run --out new", {"best/scenario.json": DESCRIPTION[3:]}),
    ("export run --format saved_model", {"best/scenario.json": DESCRIPTION[3:]}),
    ("verify run", {"best/scenario.json": DESCRIPTION, "best/model.keras": ZIP}),
    ("track run", {"trainer_params.json": DESCRIPTION}),
]  # fmt: skip
"""Commands for a run of which one file is wrong."""
