"""`scena verify`: what is damaged is named, and everything else is counted."""

from pathlib import Path

import pytest

from scena.commands.main import main
from tests.reliability.files import write_all


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "all"
    write_all(folder, 0)
    return folder


def test_sound_files_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "run" / "notes.txt").write_text("mine")
    assert main(["verify", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "files are sound, 48 whole records; 3 without a checksum, such as " in shown


def test_damage_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "run/checkpoint/3/tensors.safetensors"
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    try:
        assert main(["verify", str(folder / "cache"), str(folder / "run")]) == 1
        shown = capsys.readouterr().out.splitlines()
        assert shown[0].split() == ["damaged", "problem"]
        assert shown[1].startswith(f"{path}  is damaged, or belongs to something else")
        assert len(shown) == 3
        assert main(["verify", str(path)]) == 1
        assert main(["verify", str(path.parent / "state.json")]) == 0
    finally:
        path.write_bytes(good)


def test_checkpoints_that_changed_places(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    three, four = folder / "run/checkpoint/3", folder / "run/checkpoint/4"
    three.rename(tmp_path / "three")
    four.rename(three)
    try:
        assert main(["verify", str(folder / "run")]) == 1
        assert f"{three} cannot be read: it is that of step 4, renamed" in capsys.readouterr().out
    finally:
        three.rename(four)
        (tmp_path / "three").rename(three)


def test_a_missing_file_is_damage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("run/best/resources/words.txt", "records/plain/train-00001-of-00002.tfrecord"):
        path = folder / name
        good = path.read_bytes()
        path.unlink()
        try:
            assert main(["verify", str(folder)]) == 1
            assert path.name in capsys.readouterr().out
        finally:
            path.write_bytes(good)


def test_what_cannot_be_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path / "nothing")]) == 1
    assert capsys.readouterr().err == f"scena verify: error: There is no file or directory {tmp_path / 'nothing'}.\n"
    (tmp_path / "mine.txt").write_text("x")
    assert main(["verify", str(tmp_path / "mine.txt")]) == 1
    assert "it has no checksum, so nothing is known about it" in capsys.readouterr().out


def test_a_saved_model_has_no_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """TensorFlow names its files as record files and their indices are named."""
    variables = tmp_path / "saved_model" / "variables"
    variables.mkdir(parents=True)
    for name in ("variables.index", "variables.data-00000-of-00001"):
        (variables / name).write_bytes(b"TensorFlow's")
    assert main(["verify", str(tmp_path)]) == 0
    assert "0 of 0 files are sound; 2 without a checksum" in capsys.readouterr().out
