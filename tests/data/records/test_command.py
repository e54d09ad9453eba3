"""`scena records`: writing, describing, verifying and salvaging from the command line."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from scena.commands.main import main
from scena.data.records.describe import collect_info, describe_records, records_sheet
from scena.data.records.leaf import Leaf
from scena.data.records.record_set import RecordSet
from scena.data.records.schema import Schema
from scena.data.records.writing import write_records
from scena.errors import DataError
from tests.data.image.pictures import class_folders


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    root = class_folders(tmp_path / "flowers", {"daisy": 10, "rose": 10})
    (root / "rose" / "zero.jpg").touch()
    return root


def test_write_then_info(flowers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = f"records write --images {flowers} --output {tmp_path} --name set --max_edge 32 --seed 4"
    assert main(arguments.split()) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"wrote {tmp_path}/set: 2 classes; train 16 (1 files), validation 2 (1 files), test 2 (1 files)",
        "changed: 20 scaled",
        "skipped 1:",
        "  rose/zero.jpg: the file is empty",
    ]
    sheet = tmp_path / "sheet.png"
    assert main(["records", "info", str(tmp_path / "set"), "--verify", "--contact_sheet", str(sheet)]) == 0
    shown = capsys.readouterr().out
    assert "3 of 3 files are sound, 20 whole records" in shown
    assert "sizes: height 21 to 21, width 32 to 32" in shown
    assert "image: string, scalar" in shown
    with Image.open(sheet) as image:
        assert image.width > 300
    assert main(arguments.split()) == 1
    assert "exists already" in capsys.readouterr().err


def test_info_describes_splits_classes_images_and_schema(flowers: Path, tmp_path: Path) -> None:
    arguments = f"records write --images {flowers} --output {tmp_path} --name set --max_edge 32"
    assert main(arguments.split()) == 0
    folder = tmp_path / "set"
    info = json.loads((folder / "info.json").read_text())
    mean, std = (" ".join(f"{value:.4f}" for value in info["statistics"][key]) for key in ("mean", "std"))
    sizes = {
        split: (folder / f"{split}-00000-of-00001.tfrecord").stat().st_size for split in ("test", "train", "validation")
    }
    assert describe_records(folder).splitlines() == [
        str(folder),
        f"  test: 2 records in 1 files, {sizes['test'] / 1000:.1f} kB",
        f"  train: 16 records in 1 files, {sizes['train'] / 1000:.1f} kB",
        f"  validation: 2 records in 1 files, {sizes['validation'] / 1000:.1f} kB",
        "2 classes:       train  validation        test",
        "  daisy              8           1           1",
        "  rose               8           1           1",
        "sizes: height 21 to 21, width 32 to 32",
        f"channels of train: mean {mean}, std {std}",
        "changed: 20 scaled",
        "skipped: 1 files (named in info.json)",
        "schema:",
        "  image: string, scalar",
        "  label: int64, scalar",
        "  height: int64, scalar",
        "  width: int64, scalar",
        "  name: string, scalar",
    ]
    counted = collect_info(folder, ["daisy", "rose"])
    assert counted is not None
    for key in ("classes", "splits", "sizes"):
        assert counted[key] == info[key]
    (folder / "schema.json").unlink()
    (folder / "train-00000-of-00001.tfrecord.index").unlink()
    lines = describe_records(folder / "train-00000-of-00001.tfrecord").splitlines()
    size = f"{sizes['train'] / 1000:.1f} kB"
    assert lines[1] == f"  train-00000-of-00001.tfrecord: 16 records in 1 files, {size}, no index"
    assert "schema (inferred from the first records):" in lines


@pytest.mark.parametrize("name", ["image", "image/encoded", "img", "x", "grey"])
def test_a_contact_sheet_shows_the_image_under_any_usual_name(name: str, tmp_path: Path) -> None:
    grey = np.full((6, 6), 100, np.uint8)
    file = io.BytesIO()
    Image.fromarray(grey).save(file, "PNG")
    array = name == "grey"
    leaf = Leaf(name, "uint8", (6, 6)) if array else Leaf(name, "string", ())
    value: Any = {"label": 1, name: grey if array else file.getvalue()}
    write_records([value], Schema({"label": Leaf("label", "int64", ()), name: leaf}), tmp_path)
    sheet = records_sheet(tmp_path)
    assert sheet.getpixel((50, 50)) == (100, 100, 100)


def test_a_contact_sheet_needs_images(tmp_path: Path) -> None:
    write_records([{"n": 1}], Schema({"n": Leaf("n", "int64", ())}), tmp_path)
    with pytest.raises(DataError, match=r"The records hold no image; .* They hold:\nn: int64, scalar"):
        records_sheet(tmp_path)


def test_the_spellings_of_the_classification_api(flowers: Path, tmp_path: Path) -> None:
    arguments = f"""records write --tfrecord_dir_path {tmp_path} --name example_dataset --preprocessing
        CENTER_CROP_THEN_SCALE --image_size 16 16 --data.images_dir_path {flowers} --data.split_names train validation
        --data.split_percentages 0.7 0.3"""
    assert main(arguments.split()) == 0
    record = RecordSet(tmp_path / "example_dataset", "validation")[0]
    assert (record["height"], record["width"]) == (16, 16)


def test_damage_is_named_and_the_rest_salvaged(
    flowers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(f"records write --images {flowers} --output {tmp_path} --name set --num_files 2".split())
    path = tmp_path / "set" / "train-00001-of-00002.tfrecord"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data[:-100])
    capsys.readouterr()
    assert main(["records", "info", str(tmp_path / "set"), "--verify"]) == 1
    shown = capsys.readouterr().out
    assert f"{path}  bytes " in shown
    assert "the checksum of a record of" in shown
    assert "the file ends 100 bytes before the end of a record" in shown
    assert "5 of 6 files are sound, 18 whole records" in shown
    assert main(["records", "info", str(tmp_path / "set"), "--salvage", str(tmp_path / "saved")]) == 1
    assert "saved 18 records" in capsys.readouterr().out
    assert len(RecordSet(tmp_path / "saved", "train")) == 14


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ("records", 2, ""),
        ("records wite", 2, "did you mean"),
        ("records info", 2, "name the path first: scena records info PATH [--flag value …]. PATH is a folder, a file"),
        ("records info /nowhere", 1, "There are no record files"),
        ("records write --output x", 2, "say where the images are"),
        ("records write --output x --images y --split_fractions 0.5 0.4 0.3", 2, "must sum to 1"),
    ],
)
def test_wrong_use(arguments: str, status: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments.split()) == status
    assert text in capsys.readouterr().err
