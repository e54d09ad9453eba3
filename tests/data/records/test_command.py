"""`scena records`: writing, describing, verifying and salvaging from the command line."""

from pathlib import Path

import pytest
from PIL import Image

from scena.commands.main import main
from scena.data.records.record_set import RecordSet
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
