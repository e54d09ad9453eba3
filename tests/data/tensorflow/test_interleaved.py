"""Files read several at a time inside of TensorFlow, kept samples, and the tf.data service: always the same batches."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.data import Cursor, DataError, PipelineMode
from scena.data.image import params as p
from scena.data.image.database import ImageData
from scena.data.image.params import ImageDataParams, ImagePipelineParams, WriteImagesParams
from scena.data.image.writer import write_images
from scena.data.sources.params import ImageRecordsParams
from scena.data.stages.rng import keys_of
from scena.params import ParamsError
from scena.storage.location import Location
from tests.data.image.pictures import class_folders

AUGMENT = [p.RandomCropThenResizeParams(size=[24, 24]), p.RandomHorizontalFlipParams(), p.NormalizeParams()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("set")
    images = class_folders(root / "flowers", {"daisy": 24, "rose": 23}, size=(40, 61))
    names, fractions = ["train", "validation"], [0.9, 0.1]
    write_images(WriteImagesParams(output=Location(root), name="set", images=Location(images), num_files=3,
                                   split_names=names, split_fractions=fractions))  # fmt: skip
    return root / "set"


def pipeline(folder: Path, mode: PipelineMode = PipelineMode.TRAINING, **options: Any) -> Any:
    options = {"engine": "tf.data.interleave", "augment": AUGMENT, "batch_size": 8, "num_processes": 0, **options}
    data = ImageData(ImageDataParams(image_shape=[24, 24, 3]))
    return data.create_pipeline(
        mode, ImagePipelineParams(**options), ImageRecordsParams(records=Location(folder)), seed=11
    )


def read(made: Any, count: int, cursor: Cursor | None = None) -> list[Any]:
    with made.stream(cursor, repeat=True) as stream:
        return [next(stream) for _ in range(count)]


def assert_same(ones: list[Any], others: list[Any], tolerance: float = 0) -> None:
    for one, other in zip(ones, others, strict=True):
        assert (one.cursor, one.size, one.meta) == (other.cursor, other.size, other.meta)
        np.testing.assert_array_equal(one.targets["label"], other.targets["label"])
        np.testing.assert_allclose(one.inputs["image"], other.inputs["image"], rtol=0, atol=tolerance)


def names(batches: list[Any]) -> list[str]:
    return [meta["name"] for batch in batches for meta in batch.meta]


def test_random_numbers_are_those_of_python() -> None:
    import tensorflow as tf

    from scena.data.tensorflow.augment_ops import sample_keys

    for seed, epoch, processor in ((0, 0, 0), (7, 3, 2), (2**31 - 1, 12, 1 << 40)):
        ordinals = [0, 1, 5, 10**6]
        made = sample_keys(seed, tf.constant(epoch, tf.int64), tf.constant(ordinals, tf.int64), processor)
        np.testing.assert_array_equal(made.numpy(), keys_of(seed, epoch, ordinals, processor))


def test_each_epoch_has_every_sample_once_and_restarts_anywhere(folder: Path) -> None:
    whole = read(pipeline(folder, shuffle_buffer_size=10), 13)
    first, second = names(whole[:6]), names(whole[6:12])
    assert sorted(first) == sorted(second) and len(set(first)) == len(first) == 42
    assert first != second and first != sorted(first)
    for place in (0, 2, 5, 7):
        rest = read(
            pipeline(folder, shuffle_buffer_size=10), 12 - place, Cursor.from_json(whole[place].cursor.to_json())
        )
        assert_same(rest, whole[place + 1 :])


def test_without_shuffling_it_gives_what_reading_by_index_gives(folder: Path) -> None:
    for options in ({}, {"limit": 20}, {"split": "train[10:30]+validation"}, {"batch_drop_remainder": True}):
        kept = {"shuffle_buffer_size": 0, **options}
        assert_same(read(pipeline(folder, **kept), 8), read(pipeline(folder, engine="tf.data", **kept), 8))
    evaluation = {"mode": PipelineMode.EVALUATION}
    assert_same(read(pipeline(folder, **evaluation), 1), read(pipeline(folder, engine="tf.data", **evaluation), 1))


def test_a_position_of_another_order_is_refused(folder: Path) -> None:
    interleaved = read(pipeline(folder), 2)[-1].cursor
    by_index = read(pipeline(folder, engine="tf.data"), 2)[-1].cursor
    for engine in ("python", "tf.data"):
        with pytest.raises(DataError, match="is one of --train.engine tf.data.interleave: keep that engine"):
            read(pipeline(folder, engine=engine), 1, interleaved)
    with pytest.raises(DataError, match="was taken with another order of reading"):
        read(pipeline(folder), 1, by_index)
    with pytest.raises(DataError, match="was taken with another order of reading"):
        read(pipeline(folder, shuffle_buffer_size=3), 1, interleaved)


@pytest.mark.parametrize("keep", ["preload", "cache_dir"])
def test_what_is_kept_gives_the_same_batches(folder: Path, keep: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"preload": True} if keep == "preload" else {"cache_dir": str(tmp_path)}
    for _ in range(2):  # the second time, from the file
        made = read(pipeline(folder, engine="tf.data", **options), 9)
        assert_same(made, read(pipeline(folder, engine="tf.data"), 9), 1e-4)
    with pytest.raises(ParamsError, match="need reading by index: use --train.engine tf.data"):
        pipeline(folder, **options)


def test_batches_are_copied_to_the_device_ahead(folder: Path) -> None:
    import tensorflow as tf

    from scena.data.tensorflow.image_pipeline import TensorEngine

    made = pipeline(folder, engine="tf.data")
    engine = TensorEngine(made._context)
    engine._device = "/device:CPU:0"
    batches = engine.batches(Cursor(), True)
    first = [next(batches) for _ in range(6)]
    assert all(isinstance(batch.inputs["image"], tf.Tensor) for batch in first)
    assert_same(first, read(made, 6))


@contextlib.contextmanager
def data_service(workers: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "scena", "data-service", "--port", str(port), "--workers", str(workers)]
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"data service at 127.0.0.1:{port}, {workers} workers\n"
        yield f"127.0.0.1:{port}", process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 3])
def test_a_data_service_gives_the_same_batches_in_the_same_order(folder: Path, workers: int) -> None:
    local = read(pipeline(folder), 13)
    with data_service(workers) as (address, _):
        assert_same(read(pipeline(folder, data_service=address), 13), local)
        assert_same(read(pipeline(folder, data_service=address), 8, local[4].cursor), local[5:])


@pytest.mark.long
def test_a_service_that_lost_a_worker_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import scena.data.tensorflow.interleaved as service

    monkeypatch.setattr(service.served, "__defaults__", (8.0,))
    with (
        data_service(2) as (address, process),
        pytest.raises(DataError, match="The data service at .* (has sent no batch|failed)"),
        pipeline(folder, data_service=address).stream(repeat=True) as stream,
    ):
        next(stream)
        os.kill(children(process.pid)[0], signal.SIGKILL)
        for _ in range(200):
            next(stream)


def test_wrong_addresses_are_explained(folder: Path) -> None:
    with pytest.raises(DataError, match="There is no data service at 127.0.0.1:1 .* scena data-service --port 1"):
        read(pipeline(folder, data_service="127.0.0.1:1"), 1)
    with pytest.raises(DataError, match="is host:port, such as localhost:5050. Received: 'here'"):
        read(pipeline(folder, data_service="here"), 1)
    with pytest.raises(ParamsError, match="data_service needs --train.engine tf.data.interleave"):
        ImagePipelineParams(data_service="localhost:5050")
