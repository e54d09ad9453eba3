"""Record files: equal to TensorFlow's, checked, reached by index, verified, and salvaged after damage."""

import os
from pathlib import Path

import numpy as np
import pytest

from scena.data.records.example import encode_example
from scena.data.records.files import RecordFile, index_path
from scena.data.records.framing import Damage, RecordError, frame, salvage
from scena.data.records.verify import verify_file
from scena.data.records.writing import COMPRESSIONS, ShardWriter
from scena.errors import DataError

RECORDS = [b"", b"a", *(bytes([i % 256]) * (i * 37 % 900) for i in range(2000))]


def written(path: Path, compression: str = "", records: list[bytes] = RECORDS) -> Path:
    with ShardWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
    return path


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_tensorflow_reads_what_we_write_and_we_read_what_it_writes(tmp_path: Path, compression: str) -> None:
    import tensorflow as tf

    path = written(tmp_path / "a.tfrecord", compression)
    assert list(tf.data.TFRecordDataset(str(path), compression).as_numpy_iterator()) == RECORDS
    other = tmp_path / "b.tfrecord"
    with tf.io.TFRecordWriter(str(other), compression) as writer:
        for record in RECORDS:
            writer.write(record)
    file = RecordFile(other)
    assert (file.compression, file.has_index, list(file)) == (compression, False, RECORDS)
    assert [file[i] for i in (5, 1, len(RECORDS) - 1)] == [RECORDS[5], RECORDS[1], RECORDS[-1]]
    if not compression:
        assert path.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_random_access_through_the_index(tmp_path: Path, compression: str) -> None:
    file = RecordFile(written(tmp_path / "a.tfrecord", compression))
    assert file.has_index
    assert len(file) == len(RECORDS)
    for place in np.random.default_rng(0).permutation(len(RECORDS)):
        assert file[int(place)] == RECORDS[place]


def test_an_index_of_another_version_of_the_file_is_not_used(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord")
    old = index_path(path).read_bytes()
    written(path, records=RECORDS[:100])
    index_path(path).write_bytes(old)
    file = RecordFile(path)
    assert not file.has_index
    assert list(file) == RECORDS[:100] == [file[i] for i in range(len(file))]


def test_an_interrupted_writer_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(b"a")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    file = RecordFile(written(tmp_path / "a.tfrecord", records=[]))
    assert (len(file), list(file)) == (0, [])
    (tmp_path / "b.tfrecord").touch()
    assert list(RecordFile(tmp_path / "b.tfrecord")) == []


def test_truncation_is_named_with_its_offset(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", records=[b"x" * 100, b"y" * 100])
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(
        RecordError, match=r"a\.tfrecord: the file ends 32 bytes before the end of a record at byte 116"
    ):
        list(RecordFile(path))


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", records=[b"x" * 100, b"y" * 100, b"z" * 100])
    data = bytearray(path.read_bytes())
    data[116 + 50] ^= 1
    path.write_bytes(data)
    file = RecordFile(path)
    assert file[0] == b"x" * 100
    with pytest.raises(RecordError, match=r"the checksum of a record of 100 bytes is wrong, in the record at byte 116"):
        file[1]
    found = list(salvage(file.contents(), "a"))
    assert [part for part in found if isinstance(part, bytes)] == [b"x" * 100, b"z" * 100]
    assert [(part.offset, part.end) for part in found if isinstance(part, Damage)] == [(116, 232)]


def test_salvage_finds_records_behind_a_broken_header_and_a_gap(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", records=[b"x" * 100, b"y" * 100, b"z" * 100, b"w" * 100])
    data = bytearray(path.read_bytes())
    data[116] ^= 1
    data = data[:240] + data[290:]
    found = list(salvage(bytes(data), "a"))
    assert [part for part in found if isinstance(part, bytes)] == [b"x" * 100, b"w" * 100]


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_a_damaged_compressed_file_is_an_error_and_gives_its_start(tmp_path: Path, compression: str) -> None:
    rng = np.random.default_rng(0)
    records = [rng.bytes(1000) for _ in range(2000)]
    path = written(tmp_path / "a.tfrecord", compression, records)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    file = RecordFile(path)
    read = []
    with pytest.raises(RecordError, match=r"the file ends|cut off"):
        for record in file:
            read.append(record)
    assert len(read) > 500
    assert read == records[: len(read)]


def test_a_wrong_compression_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="compression is one of '', 'GZIP', 'ZLIB'"):
        ShardWriter(tmp_path / "a", "LZ4")
    with pytest.raises(DataError, match="cannot be read: No such file"):
        RecordFile(tmp_path / "a")


def test_what_an_index_holds(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", records=[b"x" * 100, b"y" * 50])
    mark_and_checksum = 213473150955901983  # files of today have it: another one would be that of another file
    assert np.load(index_path(path)).tolist() == [[0, 0], [116, 0], [182, mark_and_checksum]]


def test_a_record_with_a_damaged_length_is_read_where_an_index_gives_its_end(tmp_path: Path) -> None:
    records = [b"x" * 100, b"y" * 100, b"z" * 100]
    path = written(tmp_path / "a.tfrecord", records=records)
    data = bytearray(path.read_bytes())
    data[116] ^= 1
    path.write_bytes(data)
    file = RecordFile(path)
    assert [file[i] for i in range(3)] == records
    with pytest.raises(RecordError, match=r"the checksum of its length is wrong\) at byte 116"):
        list(file)


def test_data_that_resembles_a_record_is_not_salvaged_as_one(tmp_path: Path) -> None:
    before, data, after = frame(b"no record")
    resembling = before[:8] + bytes(4) + data + after  # all but the checksum of the length
    path = written(tmp_path / "a.tfrecord", records=[b"x" + resembling, b"z" * 100])
    contents = bytearray(path.read_bytes())
    contents[12] ^= 1
    found = list(salvage(bytes(contents), "a"))
    assert [part for part in found if isinstance(part, bytes)] == [b"z" * 100]


def test_verifying_names_each_record_that_is_no_example(tmp_path: Path) -> None:
    example = encode_example({"y": 1})
    whole = len(example) + 16
    path = written(tmp_path / "a.tfrecord", records=[b"none", example, b"none", example])
    found = verify_file(path)
    assert (found.sound, found.records, found.size) == (False, 2, 0)
    assert [(damage.offset, damage.end) for damage in found.damages] == [(0, 20), (20 + whole, 40 + whole)]
    assert found.damages[0].reason.startswith(
        "its checksum is right, but a record of 4 bytes is not a tf.train.Example: "
    )
    frames = verify_file(path, examples=False)
    assert (frames.sound, frames.records, frames.size) == (True, 4, path.stat().st_size)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_file_and_its_index_are_on_the_disk_before_they_have_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    synced = {}
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        state = os.fstat(descriptor)
        synced[state.st_ino] = state.st_size

    monkeypatch.setattr(os, "fsync", noted)
    path = written(tmp_path / "a.tfrecord", compression)
    for file in (path, index_path(path)):
        assert synced[file.stat().st_ino] == file.stat().st_size
