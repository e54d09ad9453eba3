"""Files and directories after power cuts, crashes and errors, and on file systems that cannot do everything."""

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from scena.storage.durable import (
    exchange,
    link_or_copy,
    make_directory,
    recover_directory,
    remove_empty,
    replace_directory,
    write_file,
)
from tests.storage.lazy_disk import LazyDisk


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.fixture
def disk(folder: Path) -> Iterator[LazyDisk]:
    with LazyDisk(folder) as disk:
        yield disk


@pytest.fixture(params=["exchange", "two renames"])
def file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that swaps two names in one step, as Linux does, and one that cannot."""
    if request.param == "two renames":
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace())


def filled(text: str) -> Callable[[Path], None]:
    def fill(aside: Path) -> None:
        (aside / "inside").mkdir()
        (aside / "inside" / "file").write_text(text)

    return fill


def tree(folder: Path) -> dict[str, str]:
    """The files below a folder."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_file_is_safe_once_it_is_written(folder: Path, disk: LazyDisk, tmp_path: Path) -> None:
    for number, text in enumerate(("old", "new")):
        make_directory(folder / "runs" / "first")
        write_file(folder / "runs" / "first" / "file", text)
        assert tree(disk.cut_power(tmp_path / str(number))) == {"runs/first/file": text}


@pytest.mark.usefixtures("file_system")
def test_a_directory_is_safe_once_it_is_in_its_place(folder: Path, disk: LazyDisk, tmp_path: Path) -> None:
    for number, text in enumerate(("first", "second", "third")):
        replace_directory(folder / "runs" / "best", filled(text))
        assert tree(folder) == {"runs/best/inside/file": text}
        assert tree(disk.cut_power(tmp_path / str(number))) == {"runs/best/inside/file": text}


@pytest.mark.usefixtures("file_system")
def test_a_directory_that_cannot_be_filled_leaves_the_old_one(folder: Path) -> None:
    def fail(aside: Path) -> NoReturn:
        (aside / "half").write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    replace_directory(folder / "best", filled("old"))
    with pytest.raises(OSError, match="No space left"):
        replace_directory(folder / "best", fail)
    assert tree(folder) == {"best/inside/file": "old"}


def test_what_a_crash_left_is_repaired(folder: Path) -> None:
    """Without an exchange the old directory stands aside for a moment, and nothing is in its place."""
    filled_old, filled_new = folder / ".best.old", folder / ".best.new"
    for directory, text in ((filled_old, "old"), (filled_new, "half")):
        directory.mkdir()
        filled(text)(directory)
    recover_directory(folder / "best")
    assert tree(folder) == {"best/inside/file": "old"}
    filled_old.mkdir()
    filled("older")(filled_old)
    recover_directory(folder / "best")
    assert tree(folder) == {"best/inside/file": "old"}


def test_an_exchange_that_fails_says_why(folder: Path) -> None:
    (folder / "best").mkdir()
    with pytest.raises(FileNotFoundError) as error:
        exchange(folder / "missing", folder / "best")
    assert (error.value.filename, error.value.filename2) == (str(folder / "missing"), str(folder / "best"))


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_behind(folder: Path) -> None:
    (folder / "history.csv" / "in the way").mkdir(parents=True)
    with pytest.raises(OSError, match=r"history\.csv"):
        write_file(folder / "history.csv", "epoch\n")
    assert os.listdir(folder) == ["history.csv"]


def test_a_file_gets_the_rights_that_files_usually_get(folder: Path) -> None:
    write_file(folder / "ours", "text")
    (folder / "usual").write_text("text")
    assert (folder / "ours").stat().st_mode == (folder / "usual").stat().st_mode


def test_empty_directories_are_removed_up_to_one_that_is_not_empty(folder: Path) -> None:
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "file").touch()
    remove_empty([folder / "a" / "b" / "missing", folder / "a" / "b", folder / "a", folder])
    assert os.listdir(folder) == ["file"]


def test_a_link_is_copied_as_a_link_where_there_are_no_second_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    (folder / "file").write_text("text")
    (folder / "link").symlink_to("file")
    for name in ("file", "link"):
        link_or_copy(folder / name, folder / f"{name} again")
    assert (folder / "file again").read_text() == "text" and not (folder / "file again").is_symlink()
    assert os.readlink(folder / "link again") == "file"
