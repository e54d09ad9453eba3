"""Images into records: splits, processing, files as they are, bad input, interruption."""

import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from scena.data.image.listing import ImageEntry
from scena.data.image.params import Processing, WriteImagesParams
from scena.data.image.statistics import read_info, read_statistics
from scena.data.image.writer import balanced_splits, write_images
from scena.data.records.record_set import RecordSet, splits_of
from scena.errors import DataError
from scena.params import ParamsError
from tests.data.image.pictures import class_folders, picture, save


def write(
    tmp_path: Path, images: Path | None, name: str = "set", **options: Any
) -> tuple[dict[str, Any], dict[str, RecordSet]]:
    keys = ("processing", "image_size", "max_edge", "format", "jpeg_quality")
    params = WriteImagesParams(output=tmp_path / "out", name=name, images=images,
                               **{k: v for k, v in options.items() if k not in keys})  # fmt: skip
    params.preparation = params.preparation.replace(**{k: v for k, v in options.items() if k in keys})
    info = write_images(params)
    folder = tmp_path / "out" / name
    assert read_info(folder) == info
    return info, {split: RecordSet(folder, split) for split in splits_of(folder)}


@pytest.mark.parametrize(
    ("classes", "each", "fractions", "totals"),
    [
        (10, 19, [0.8, 0.1, 0.1], [152, 19, 19]),
        (10, 4, [0.8, 0.1, 0.1], [32, 4, 4]),
        (7, 10, [0.7, 0.2, 0.1], [49, 14, 7]),
        (4, 5, [1.0, 0.0, 0.0], [20, 0, 0]),
    ],
)
def test_shares_are_right_for_each_class_and_in_total(
    classes: int, each: int, fractions: list[float], totals: list[int]
) -> None:
    entries = [ImageEntry(None, f"{n:03d}", label) for label in range(classes) for n in range(each)]
    splits = balanced_splits(entries, ["a", "b", "c"], fractions, seed=0)
    assert [len(members) for members in splits.values()] == totals
    for members, fraction in zip(splits.values(), fractions, strict=True):
        counts = Counter(entry.label for entry in members)
        assert all(abs(counts[label] - fraction * each) < 1 for label in range(classes))


def test_balanced_splits_with_the_bytes_of_the_files(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 20, "rose": 11})
    info, sets = write(tmp_path, root)
    assert info["classes"] == ["daisy", "rose"]
    assert {name: split["classes"] for name, split in info["splits"].items()} == {
        "train": {"daisy": 16, "rose": 9},
        "validation": {"daisy": 2, "rose": 1},
        "test": {"daisy": 2, "rose": 1},
    }
    seen = Counter()
    for name, records in sets.items():
        assert len(records) == info["splits"][name]["count"]
        for record in records:
            seen[record["name"].decode()] += 1
            path = root / record["name"].decode()
            assert record["image"] == path.read_bytes()
            assert info["classes"][record["label"]] == path.parent.name
            assert (record["height"], record["width"]) == (40, 60)
    assert set(seen.values()) == {1}
    assert len(seen) == 31
    assert info["changed"] == {}
    assert info["left_out"] == []


def test_the_same_seed_gives_the_same_files_and_another_one_others(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 20, "rose": 11})
    contents = []
    for name, seed, workers in (("a", 1, 1), ("b", 1, 3), ("c", 2, 1)):
        write(tmp_path, root, name, seed=seed, workers=workers, max_edge=30)
        contents.append([p.read_bytes() for p in sorted((tmp_path / "out" / name).glob("*.tfrecord"))])
    assert contents[0] == contents[1] != contents[2]


def test_fractions_are_exact_in_spite_of_floating_point(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 10})
    info, _ = write(tmp_path, root, split_names=["a", "b", "c"], split_fractions=[0.7, 0.2, 0.1])
    assert [split["count"] for split in info["splits"].values()] == [7, 2, 1]


def test_classes_are_spread_evenly_over_files(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 12, "rose": 8})
    for options in ({"num_files": 4}, {"records_per_file": 5}):
        info, _ = write(tmp_path, root, split_names=["all"], split_fractions=[1.0], force=True, **options)
        assert info["splits"]["all"]["files"] == 4
        for path in splits_of(tmp_path / "out" / "set")["all"]:
            assert Counter(record["label"] for record in RecordSet(path)) == {0: 3, 1: 2}


@pytest.mark.parametrize("processing", [Processing.CENTER_CROP_THEN_SCALE, Processing.SQUARE_MARGIN_THEN_SCALE])
def test_squares_of_a_size(tmp_path: Path, processing: Processing) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 2})
    save(root / "daisy" / "right_size.jpg", picture(5, 32, 32))
    info, sets = write(
        tmp_path, root, processing=processing, image_size=[32, 32], split_names=["all"], split_fractions=[1.0]
    )
    assert info["changed"] == {"scaled": 2}
    for record in sets["all"]:
        with Image.open(io.BytesIO(record["image"])) as image:
            assert (image.size, image.format) == ((32, 32), "JPEG")
            corner = np.asarray(image)[0, 16].astype(int).max()
        if record["name"].endswith(b"right_size.jpg"):
            assert record["image"] == (root / "daisy" / "right_size.jpg").read_bytes()
        elif processing is Processing.SQUARE_MARGIN_THEN_SCALE:
            assert corner < 20  # the margin above a wide picture is black


def test_max_edge_keeps_the_aspect_ratio_and_small_images_as_they_are(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 1})
    save(root / "daisy" / "small.jpg", picture(5, 20, 30))
    _, sets = write(tmp_path, root, max_edge=30, split_names=["all"], split_fractions=[1.0])
    sizes = {record["name"]: (record["height"], record["width"]) for record in sets["all"]}
    assert sizes == {b"daisy/daisy_000.jpg": (20, 30), b"daisy/small.jpg": (20, 30)}
    kept = next(record["image"] for record in sets["all"] if record["name"] == b"daisy/small.jpg")
    assert kept == (root / "daisy" / "small.jpg").read_bytes()


def test_a_table_of_paths_and_labels(tmp_path: Path) -> None:
    for i in range(6):
        save(tmp_path / "files" / f"{i}.png", picture(i))
    lines = ["label;file", "10;0.png", "9;1.png", "9;2.png", ";3.png", "10;4.png", "10;4.png", "9;missing.png"]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    info, sets = write(
        tmp_path, tmp_path / "files", csv=tmp_path / "table.csv", delimiter=";", path_column="file", label_column="0",
        split_names=["all"], split_fractions=[1.0],
    )  # fmt: skip
    assert info["classes"] == ["9", "10"]
    assert {record["name"]: record["label"] for record in sets["all"]} == {
        b"0.png": 1,
        b"1.png": 0,
        b"2.png": 0,
        b"4.png": 1,
    }
    assert info["left_out"] == [
        {"name": "3.png", "reason": "line 5 of the table gives no label"},
        {"name": "4.png", "reason": "line 7 repeats it"},
        {"name": "missing.png", "reason": "there is no such file"},
    ]
    (tmp_path / "table.csv").write_text("a.png,x\na.png,y\n")
    with pytest.raises(DataError, match=r"lists 'a.png' twice with different labels: 'x', and 'y' in line 2"):
        write(tmp_path, None, csv=tmp_path / "table.csv", header=False, name="other")


def test_bad_input_is_reported_by_name_and_left_out_of_the_counts(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 10, "röse 玫瑰": 10})
    daisy = root / "daisy"
    (daisy / "empty.jpg").touch()
    (daisy / "text.jpg").write_text("this is no picture")
    whole = (daisy / "daisy_000.jpg").read_bytes()
    (daisy / "cut.jpg").write_bytes(whole[: len(whole) * 9 // 10])
    (daisy / ".hidden").write_text("x")
    (root / "nothing").mkdir()
    (root / "readme.txt").write_text("x")
    info, sets = write(tmp_path, root)
    assert info["classes"] == ["daisy", "röse 玫瑰"]
    assert [split["count"] for split in info["splits"].values()] == [16, 2, 2]  # as if the bad ones were not there
    left_out = {item["name"]: item["reason"] for item in info["left_out"]}
    assert left_out.pop("daisy/cut.jpg").startswith("it cannot be decoded (image file is truncated")
    assert left_out == {
        "readme.txt": "it lies outside of the class folders",
        "nothing/": "the class folder has no images",
        "daisy/empty.jpg": "the file is empty",
        "daisy/text.jpg": "it is not an image in a known format",
    }
    assert any("玫瑰" in record["name"].decode() for record in sets["train"])


def test_unusual_images_become_what_every_reader_decodes_alike(tmp_path: Path) -> None:
    folder = tmp_path / "x" / "a"
    save(folder / "plain.jpg", picture(0))
    save(folder / "wrong_extension.jpg", picture(1), format="PNG")
    save(folder / "grey.jpg", picture(2, channels=1))
    save(folder / "deep.png", (picture(3, channels=1)[..., 0].astype(np.uint16) * 256 + 77))
    Image.fromarray(picture(4)).convert("CMYK").save(folder / "cmyk.jpg")
    exif = Image.Exif()
    exif[0x0112] = 6
    save(folder / "turned.jpg", picture(5), exif=exif)
    Image.fromarray(picture(6)).save(folder / "web.webp", lossless=True)
    Image.fromarray(picture(7)).convert("P").save(folder / "palette.png")
    Image.fromarray(picture(8)).convert("RGBA").save(folder / "alpha.png")
    info, sets = write(tmp_path, tmp_path / "x", split_names=["all"], split_fractions=[1.0])
    assert info["left_out"] == []
    assert info["changed"] == {
        "converted from CMYK": 1,
        "converted from WEBP": 1,
        "reduced to 8 bits": 1,
        "turned as its EXIF orientation says": 1,
    }
    import tensorflow as tf

    records = {record["name"].decode().removeprefix("a/"): record for record in sets["all"]}
    assert (records["turned.jpg"]["height"], records["turned.jpg"]["width"]) == (60, 40)
    for name, record in records.items():
        with Image.open(io.BytesIO(record["image"])) as image:
            ours = np.asarray(image.convert("RGB"))
            assert image.getexif().get(0x0112, 1) == 1
        kind = "INTEGER_ACCURATE" if record["image"][:2] == b"\xff\xd8" else None
        decode = tf.io.decode_jpeg if kind else tf.io.decode_png
        theirs = decode(record["image"], channels=3, **({"dct_method": kind} if kind else {})).numpy()
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    with Image.open(io.BytesIO(records["deep.png"]["image"])) as image:
        np.testing.assert_array_equal(np.asarray(image), picture(3, channels=1)[..., 0])


def test_statistics_are_those_of_the_pixels_of_the_first_split(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 10}, suffix=".png")
    info, sets = write(tmp_path, root)
    pixels = [np.asarray(Image.open(io.BytesIO(record["image"]))) for record in sets["train"]]
    mean, std = read_statistics(tmp_path / "out" / "set")
    np.testing.assert_allclose(mean, np.mean(pixels, axis=(0, 1, 2)) / 255, atol=1e-7)
    np.testing.assert_allclose(std, np.std(pixels, axis=(0, 1, 2)) / 255, atol=1e-7)
    assert info["statistics"]["of"] == "train"


def test_existing_output_is_not_touched_without_force(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 4})
    write(tmp_path, root)
    before = {p.name: p.read_bytes() for p in (tmp_path / "out" / "set").iterdir()}
    with pytest.raises(DataError, match="exists already. Nothing was written; --force replaces it"):
        write(tmp_path, root, seed=3)
    assert {p.name: p.read_bytes() for p in (tmp_path / "out" / "set").iterdir()} == before
    info, _ = write(tmp_path, root, seed=3, force=True)
    assert info["seed"] == 3
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["set"]


def test_an_interrupted_run_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 20})

    def interrupt(count: int) -> None:
        interrupt.seen += count  # type: ignore[attr-defined]
        if interrupt.seen == 10:  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    interrupt.seen = 0  # type: ignore[attr-defined]
    params = WriteImagesParams(output=tmp_path / "out", name="set", images=root, records_per_file=4)
    with pytest.raises(KeyboardInterrupt):
        write_images(params, interrupt)
    assert list((tmp_path / "out").iterdir()) == []


def test_wrong_parameters_and_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match=r"must sum to 1. Received: \[0.5, 0.4\], which sum to 0.9"):
        WriteImagesParams(output=tmp_path, images=tmp_path, split_names=["a", "b"], split_fractions=[0.5, 0.4])
    with pytest.raises(ParamsError, match="needs one share for each of the splits"):
        WriteImagesParams(output=tmp_path, images=tmp_path, split_names=["a", "b"])
    with pytest.raises(ParamsError, match="say where the images are"):
        WriteImagesParams(output=tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        write(tmp_path, tmp_path / "none")
    (tmp_path / "flat").mkdir()
    with pytest.raises(DataError, match="there must be one for each class"):
        write(tmp_path, tmp_path / "flat")
    (tmp_path / "bad" / "a").mkdir(parents=True)
    (tmp_path / "bad" / "a" / "x.jpg").touch()
    with pytest.raises(DataError, match="None of the 1 images can be read:\n  a/x.jpg: the file is empty"):
        write(tmp_path, tmp_path / "bad")
    assert not (tmp_path / "out" / "set").exists()


def test_large_jpegs_are_decoded_at_a_fraction_of_their_size_without_harm(tmp_path: Path) -> None:
    root = tmp_path / "x"
    exif = Image.Exif()
    exif[0x0112] = 6
    smooth = np.asarray(Image.fromarray(picture(3, 40, 60)).resize((1207, 801), Image.Resampling.BICUBIC))
    save(root / "a" / "large.jpg", smooth)
    save(root / "a" / "turned.jpg", smooth, exif=exif)
    options = {"split_names": ["all"], "split_fractions": [1.0]}
    _, sets = write(tmp_path, root, "edge", max_edge=100, **options)
    sizes = {record["name"]: (record["height"], record["width"]) for record in sets["all"]}
    assert sizes == {b"a/large.jpg": (66, 100), b"a/turned.jpg": (100, 66)}
    _, sets = write(
        tmp_path, root, "square", processing=Processing.CENTER_CROP_THEN_SCALE, image_size=[50, 50], **options
    )
    made = np.asarray(Image.open(io.BytesIO(sets["all"][0]["image"])), np.float64)
    turned = sets["all"][0]["name"] == b"a/turned.jpg"
    square = Image.fromarray(smooth[:, 203:1004]).resize((50, 50), Image.Resampling.BICUBIC)
    expected = np.asarray(square.transpose(Image.Transpose.ROTATE_270) if turned else square, np.float64)
    assert np.abs(made - expected).mean() < 4


def test_a_killed_run_leaves_nothing_that_looks_whole_and_can_be_repeated(tmp_path: Path) -> None:
    import signal
    import subprocess
    import sys
    import time

    root = class_folders(tmp_path / "flowers", {"daisy": 150}, size=(200, 300))
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "scena",
        "records",
        "write",
        "--images",
        str(root),
        "--output",
        str(out),
        "--name",
        "set",
    ]
    command += ["--records_per_file", "5", "--max_edge", "290", "--workers", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(list(out.glob(".set.writing-*/*.tfrecord"))) < 3 and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (out / "set").exists()
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert len(RecordSet(out / "set", "train")) == 120


def test_a_size_without_processing_is_not_silently_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 2})
    write(tmp_path, root, image_size=[32, 32], split_names=["all"], split_fractions=[1.0])
    assert "image_size has no effect without processing (CENTER_CROP_THEN_SCALE" in caplog.text
