"""Names from files and folders cannot steer a terminal: control characters are shown as escapes."""

import logging
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from scena.commands.main import main
from scena.commands.output import print_table
from scena.display import one_line, visible
from scena.logs import ConsoleHandler, VisibleFormatter

EVIL = "red\x1b[31m\x07"
SHOWN = r"red\x1b[31m\x07"


def test_what_is_escaped() -> None:
    assert visible("plain äöü 漢字 🙂\n\tline") == "plain äöü 漢字 🙂\n\tline"
    assert visible(EVIL) == SHOWN
    assert visible("\r\x9b2J‮txt.exe \udcff") == r"\x0d\x9b2J\u202etxt.exe \xff"
    assert one_line("a\nb\tc") == r"a\nb\tc"


def test_errors_and_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lav", str(tmp_path / EVIL)]) != 0
    error = capsys.readouterr().err
    assert SHOWN in error and "\x1b" not in error
    handler = ConsoleHandler()
    handler.setFormatter(VisibleFormatter("%(message)s"))
    handler.emit(logging.LogRecord("scena", logging.INFO, "", 0, "file %s", (EVIL,), None))
    assert capsys.readouterr().err == f"file {SHOWN}\n"


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["run", "b\nc"], [[EVIL, "1"]])
    assert capsys.readouterr().out.splitlines() == [f"run{' ' * (len(SHOWN) - 3)}  b\\nc", f"{SHOWN}  1"]


def test_names_of_classes(tmp_path: Path, capsys: Any) -> None:
    for name in (EVIL, "green"):
        (tmp_path / "images" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "images" / name / "a.png")
    assert main(["records", "write", "--images", str(tmp_path / "images"), "--output", str(tmp_path / "out")]) == 0
    folder = next(path for path in (tmp_path / "out").iterdir() if path.is_dir())
    assert main(["records", "info", str(folder)]) == 0
    output = capsys.readouterr()
    assert SHOWN in output.out and "\x1b" not in output.out + output.err
