"""Bad input and full disks through the command line: named, skipped or refused, and never half a data set."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scena.commands.main import main
from scena.data import PipelineMode
from scena.data.records import files
from scena.data.records.convert import write_source
from scena.data.records.example import encode_example
from scena.data.records.record_set import RecordSet, shard_name
from scena.data.records.writing import ShardWriter
from scena.data.sources.params import ImageFilesParams
from scena.errors import DataError
from tests.data.image.pictures import class_folders, picture, save


def limited(arguments: list[str], size: int) -> subprocess.CompletedProcess[str]:
    """Python in a process whose files cannot grow beyond a size, as on a full disk."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)


def test_a_full_disk_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    images = class_folders(tmp_path / "flowers", {"daisy": 20})
    arguments = ["-m", "scena", "records", "write", "--images", str(images), "--output", str(tmp_path / "out")]
    done = limited(arguments, 8000)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("train-00000-of-00001.tfrecord' cannot be written: File too large.")
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


REPLACE = """
import sys
from scena.data.records.leaf import Leaf
from scena.data.records.schema import Schema
from scena.data.records.writing import write_records
schema = Schema({"x": Leaf("x", "string", ())})
length, folder = int(sys.argv[1]), sys.argv[2]
values = ({"x": bytes(length if i % 2 == 0 else 10)} for i in range(20))
write_records(values, schema, folder, shards=2, overwrite=True)
"""


def test_a_full_disk_leaves_a_data_set_that_was_to_be_replaced_as_it_was(tmp_path: Path) -> None:
    assert limited(["-c", REPLACE, "10", str(tmp_path)], 8000).returncode == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix == ".tfrecord"}
    assert len(before) == 2
    done = limited(["-c", REPLACE, "5000", str(tmp_path)], 8000)  # the first of two files is too large
    assert done.stderr.splitlines()[-1].endswith("data-00000-of-00002.tfrecord' cannot be written: File too large.")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix == ".tfrecord"} == before
    assert len(RecordSet(tmp_path)) == 20
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_names_that_are_not_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = class_folders(tmp_path / "flowers", {"daisy": 10})
    whole = (images / "daisy" / "daisy_000.jpg").read_bytes()
    for name, data in ((b"good\xff.jpg", whole), (b"bad\xff.jpg", b"")):
        Path(os.fsdecode(bytes(images / "daisy") + b"/" + name)).write_bytes(data)
    other = Path(os.fsdecode(bytes(images) + b"/r\xf6se"))
    other.mkdir()
    (other / "one.jpg").write_bytes(whole)
    options = "--split_names all --split_fractions 1.0".split()
    assert main(["records", "write", "--images", str(images), "--output", str(tmp_path / "out"), *options]) == 0
    shown = capsys.readouterr().out
    assert "2 classes; all 12" in shown
    assert "\n  daisy/bad\\xff.jpg: the file is empty\n" in shown
    info = json.loads((tmp_path / "out" / "flowers" / "info.json").read_text())
    assert info["classes"] == ["daisy", "r\\xf6se"]
    names = {record["name"] for record in RecordSet(tmp_path / "out" / "flowers")}
    assert {b"daisy/good\xff.jpg", b"r\xf6se/one.jpg"} <= names


def test_a_table_without_some_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        save(tmp_path / f"{number}.jpg", picture(number))
    (tmp_path / "t.csv").write_text("path,label\n0.jpg,a\n1.jpg,\n2.jpg\n,b\n")
    assert main(["records", "write", "--csv", str(tmp_path / "t.csv"), "--output", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"wrote {tmp_path}/out/t: 1 classes; train 1 (1 files), validation 0 (1 files), test 0 (1 files)",
        "empty: validation, test. There are too few images for these shares of each class.",
        "skipped 3:",
        "  1.jpg: line 3 of the table gives no label",
        "  2.jpg: line 4 of the table gives no label",
        "  line 5: the table gives no path",
    ]


@pytest.mark.parametrize(
    ("output", "reason"), [("file/out", "Not a directory"), ("/proc/out", "No such file or directory")]
)
def test_a_folder_that_cannot_be_made(
    output: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = class_folders(tmp_path / "flowers", {"daisy": 2})
    (tmp_path / "file").touch()
    assert main(["records", "write", "--images", str(images), "--output", str(tmp_path / output)]) == 1
    assert f"cannot be written: {reason}." in capsys.readouterr().err


def test_a_file_that_was_cut_off_between_two_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = class_folders(tmp_path / "flowers", {"daisy": 10, "玫瑰": 10})
    assert (
        main(["records", "write", "--images", str(images), "--output", str(tmp_path)]) == 1
    )  # it is there: the images
    assert main(["records", "write", "--images", str(images), "--output", str(tmp_path), "--name", "set"]) == 0
    folder = tmp_path / "set"
    path = folder / "train-00000-of-00001.tfrecord"
    rows = np.load(f"{path}.index")
    path.write_bytes(path.read_bytes()[: int(rows[12, 0])])
    capsys.readouterr()
    assert main(["records", "info", str(folder), "--verify"]) == 1
    size, whole = int(rows[12, 0]), int(rows[-1, 0])
    assert f"bytes {size} to {size}: its index was made for a file of {whole} bytes with 16 records" in (
        capsys.readouterr().out
    )
    saved = tmp_path / "saved"
    assert main(["records", "info", str(folder), "--salvage", str(saved)]) == 1
    capsys.readouterr()
    assert main(["records", "info", str(saved), "--verify"]) == 0
    shown = capsys.readouterr().out
    assert "3 of 3 files are sound, 16 whole records" in shown
    table = [line for line in shown.splitlines() if line.startswith(("2 classes", "  daisy", "  玫瑰"))]
    assert len({len(line) + line.count("玫瑰") * 2 for line in table}) == 1
    info = json.loads((saved / "info.json").read_text())
    assert info["classes"] == ["daisy", "玫瑰"] and info["splits"]["train"]["count"] == 12


def test_damage_leads_to_verify_and_an_empty_folder_is_no_data_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = class_folders(tmp_path / "flowers", {"daisy": 4})
    assert main(["records", "write", "--images", str(images), "--output", str(tmp_path), "--name", "set"]) == 0
    path = tmp_path / "set" / "train-00000-of-00001.tfrecord"
    path.write_bytes(path.read_bytes()[:-3])
    capsys.readouterr()
    assert main(["records", "info", str(tmp_path / "set")]) == 1
    assert "--verify lists all damage, --salvage DIR saves what is intact." in capsys.readouterr().err
    (tmp_path / "nothing").mkdir()
    assert main(["records", "info", str(tmp_path / "nothing"), "--verify"]) == 1
    assert capsys.readouterr().err.endswith("holds no record files (*.tfrecord).\n")
    for flags in (["--verify"], []):
        assert main(["records", "info", str(tmp_path), *flags]) == 1
        assert f"holds no record files (*.tfrecord). Did you mean {tmp_path}/set?" in capsys.readouterr().err


def test_pictures_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = class_folders(tmp_path / "flowers", {"daisy": 4})
    assert main(["records", "write", "--images", str(images), "--output", str(tmp_path), "--name", "set"]) == 0
    command = ["records", "info", str(tmp_path / "set"), "--contact_sheet"]
    assert main([*command, str(tmp_path / "new" / "sheet.png")]) == 0
    assert main([*command, str(tmp_path / "sheet.xyz")]) == 1
    assert main([*command, "/proc/none/sheet.png"]) == 1
    shown = capsys.readouterr().err
    assert "The name must end with a format, for example .png. Received: " in shown
    assert "The image '/proc/none/sheet.png' cannot be written: No such file or directory." in shown


def test_the_last_of_several_jobs_writes_the_names_of_the_classes(tmp_path: Path) -> None:
    arguments = ["records", "convert", "--dataset", "digits", "--splits", "test", "--output", str(tmp_path)]
    assert main([*arguments, "--shard", "1/2"]) == 0
    assert not (tmp_path / "info.json").exists()
    assert main([*arguments, "--shard", "0/2"]) == 0
    info = json.loads((tmp_path / "info.json").read_text())
    assert info["splits"]["test"]["count"] == 1000
    assert info["classes"] == [str(digit) for digit in range(10)]


def test_a_conversion_that_stops_between_splits_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["records", "convert", "--dataset", "digits", "--output", str(tmp_path)]
    assert main([*arguments, "--splits", "test"]) == 0
    assert main([*arguments, "--splits", "train[:9]", "test", "--shards", "1"]) == 1
    shown = capsys.readouterr()
    assert f"{tmp_path} is not complete: it holds train[:9], but not test" in shown.out
    assert "already holds test-00000-of-00001.tfrecord" in shown.err


def test_a_new_data_set_is_there_as_a_whole_or_not_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["records", "convert", "--dataset", "digits", "--output", str(tmp_path / "digits")]
    assert main([*arguments, "--splits", "train[:9]", "test[:0]"]) == 1
    assert "gives no samples for 'test_-0'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    process = subprocess.Popen([sys.executable, "-m", "scena", *arguments], stdout=subprocess.DEVNULL)
    while not (tmp_path / ".digits.new").is_dir():
        assert process.poll() is None
    process.kill()
    process.wait()
    assert not (tmp_path / "digits").exists()
    assert main(arguments) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["digits"]


def test_converted_images_are_what_every_reader_decodes_alike(tmp_path: Path) -> None:
    images = tmp_path / "flowers" / "daisy"
    exif = Image.Exif()
    exif[0x0112] = 6
    save(images / "a_turned.jpg", picture(5, 40, 60), exif=exif)
    save(images / "b_deep.png", (picture(3, channels=1)[..., 0].astype(np.uint16) * 256 + 77))
    plain = save(images / "c_plain.jpg", picture(1))
    source = ImageFilesParams(images=tmp_path / "flowers", split="all").create(PipelineMode.EVALUATION)
    write_source(source, tmp_path / "out", split="all")
    turned, deep, same = RecordSet(tmp_path / "out")
    assert (turned["height"], turned["width"]) == (60, 40)
    assert deep["image"][24] == 8
    assert same["image"] == plain.read_bytes()


def test_an_unreadable_image_stops_a_conversion_with_its_name(tmp_path: Path) -> None:
    images = class_folders(tmp_path / "flowers", {"daisy": 3})
    (images / "daisy" / "x.jpg").touch()
    source = ImageFilesParams(images=images, split="all").create(PipelineMode.EVALUATION)
    with pytest.raises(DataError, match=r"daisy/x.jpg.*cannot be stored: the file is empty"):
        write_source(source, tmp_path / "out", split="all")
    (images / "daisy" / "x.jpg").unlink()
    with pytest.raises(DataError, match=r"The image 'daisy/x.jpg' of .* cannot be read: No such file or directory"):
        write_source(source, tmp_path / "out", split="all")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("index", [True, False])
def test_a_small_file_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: bool
) -> None:
    monkeypatch.setattr(files, "_ALWAYS", 1 << 20)
    path = tmp_path / "zeros.tfrecord"
    with ShardWriter(path, compression="GZIP") as writer:
        for _ in range(2):
            writer.write(bytes(3 << 20))
    if not index:
        files.index_path(path).unlink()
    assert path.stat().st_size < 10_000
    with pytest.raises(DataError, match=r"zeros.tfrecord: it unpacks to more than 200 times its size, .* at byte"):
        files.RecordFile(path)[0]


def test_a_dense_block_behind_other_data_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_ALWAYS", 1 << 20)
    noise = np.random.default_rng(0).bytes(300_000)  # fills the first block
    with ShardWriter(tmp_path / "zeros.tfrecord", compression="GZIP") as writer:
        writer.write(noise)
        writer.write(bytes(3 << 20))
    file = files.RecordFile(tmp_path / "zeros.tfrecord")
    assert file[0] == noise
    with pytest.raises(DataError, match=r"it unpacks to more than 200 times its size, .* at byte"):
        file[1]


def test_a_dense_file_is_read_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ShardWriter(tmp_path / "zeros.tfrecord", compression="GZIP") as writer:
        writer.write(bytes((1 << 20) - 16))
    file = files.RecordFile(tmp_path / "zeros.tfrecord")
    monkeypatch.setattr(files, "_ALWAYS", 1 << 20)
    assert [len(record) for record in file] == [(1 << 20) - 16]
    monkeypatch.setattr(files, "_ALWAYS", (1 << 20) - 1)
    with pytest.raises(DataError, match="it unpacks to more than 200 times its size"):
        list(file)


def test_a_table_without_a_header_does_not_lose_its_first_image(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 2, "rose": 2})
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.jpg"))
    table = root / "table.csv"
    table.write_text("".join(f"{name},{name.split('/')[0]}\n" for name in names))
    with pytest.raises(
        DataError, match=r"The first line of .*table.csv' names an image, 'daisy/.*\. Set header=False\."
    ):
        ImageFilesParams(csv=str(table)).create(PipelineMode.TRAINING)
    with pytest.raises(DataError, match=r"another character separate columns \(delimiter\)"):
        ImageFilesParams(csv=str(table), delimiter=";", header=False).create(PipelineMode.TRAINING)
    source = ImageFilesParams(csv=str(table), header=False, split="all").create(PipelineMode.EVALUATION)
    assert len(source) == 4


def test_more_files_than_may_be_open_without_an_index(tmp_path: Path) -> None:
    for number in range(60):
        with ShardWriter(tmp_path / shard_name("train", number, 60)) as shard:
            shard.write(encode_example({"n": number}))
        files.index_path(shard.path).unlink()
    used = len(os.listdir("/proc/self/fd"))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, before[1]))
    try:
        assert RecordSet(tmp_path).counts == [1] * 60
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
