"""The journal survives kills, damage and full disks."""

import logging
import math
import resource
from pathlib import Path

import pytest

from scena.training.trackers.journal import Branch, Entry, JournalReader, JournalWriter, Points, to_number


def number(step: int, value: float = 0.1) -> Points:
    return Points(0, step, 1000 + step, {"loss": to_number(value)})


def write(path: Path, *entries: Entry) -> None:
    writer = JournalWriter(path)
    writer.append(*entries)
    writer.close()


def test_numbers_come_back_bit_by_bit(tmp_path: Path) -> None:
    values = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, math.inf, -math.inf, math.nan]
    entries = [
        Branch("run", 0, None, 0, 5, "scenario", "dir", {"lr": 0.1}),
        *(number(i, v) for i, v in enumerate(values)),
    ]
    write(tmp_path / "journal", *entries)
    read = list(JournalReader(tmp_path / "journal").read())
    assert read == entries
    assert [float(e.values["loss"]).hex() for e in read[1:] if isinstance(e, Points)] == [v.hex() for v in values]


def test_a_reader_follows_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    reader = JournalReader(path)
    assert list(reader.read()) == []
    writer = JournalWriter(path)
    writer.append(number(1), number(2))
    assert list(reader.read()) == [number(1), number(2)]
    with path.open("ab") as file:
        file.write(b"0123")  # a line that is being written
    assert list(reader.read()) == []


@pytest.mark.parametrize("left", [1, 9, 40, -1])
def test_half_a_line_is_removed(tmp_path: Path, left: int) -> None:
    path = tmp_path / "journal"
    write(path, number(1))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:left])
    write(path, number(2))
    assert list(JournalReader(path).read()) == [number(1), number(2)]


def test_damage_is_reported_and_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "journal"
    write(path, number(1), number(2), number(3))
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"step":2', b'"step":7'))
    with caplog.at_level(logging.WARNING):
        assert list(JournalReader(path).read()) == [number(1), number(3)]
    assert "damaged" in caplog.text


def test_a_full_disk_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "journal"
    writer = JournalWriter(path)
    writer.append(number(1))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, before[1]))
    try:
        with caplog.at_level(logging.INFO):
            writer.append(number(2))
            assert writer.unwritten == [number(2)]
            assert list(JournalReader(path).read()) == [number(1)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with caplog.at_level(logging.INFO):
        writer.append(number(3))
    assert list(JournalReader(path).read()) == [number(1), number(2), number(3)]
    assert "kept in memory" in caplog.text and "nothing was lost" in caplog.text
