"""The tf.data engine makes the batches of the Python engine: same order, same augmentation, same cursor."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from scena.data import DataError, DataPipelineParams, PipelineMode
from scena.data.image import params as p
from scena.data.image.database import ImageData
from scena.data.image.params import ImageDataParams, ImagePipelineParams, WriteImagesParams
from scena.data.image.writer import write_images
from scena.data.sources.params import ImageFilesParams, ImageRecordsParams
from scena.data.tensorflow.image_pipeline import decode_jpeg_part
from scena.data.tensorflow.records import dataset_to_tfrecord
from scena.params import ParamsError
from tests.data.image.pictures import class_folders, picture, save

LISTS: dict[str, list[p.OperationParams]] = {
    "nothing": [],
    "crop first": [p.RandomCropThenResizeParams(size=[24, 24]), p.RandomHorizontalFlipParams(), p.NormalizeParams()],
    "central": [p.CentralCropParams(), p.ColorJitterParams()],
    "random crop": [p.RandomCropParams(size=[30, 31]), p.CutoutParams(length=5)],
    "rotate": [p.RandomRotateParams(), p.TranslateParams(), p.NormalizeParams()],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("set")
    images = class_folders(root / "flowers", {"daisy": 20, "rose": 20}, size=(40, 61))
    save(images / "rose" / "odd.jpg", picture(77, 53, 47), subsampling=0)
    save(images / "rose" / "grey.jpg", picture(78, 53, 47, channels=1))
    save(images / "rose" / "png.png", picture(79, 50, 50))
    Image.fromarray(picture(80)).convert("P").save(images / "rose" / "palette.png")
    write_images(WriteImagesParams(output=root, name="set", images=images, num_files=3))
    return root / "set"


def batches(folder: Path, count: int, engine: str, cursor: Any = None, mode: PipelineMode = PipelineMode.TRAINING,
            **options: Any) -> list[Any]:  # fmt: skip
    data = ImageData(ImageDataParams(image_shape=[24, 24, options.pop("channels", 3)]))
    params = ImagePipelineParams(batch_size=8, num_processes=options.pop("num_processes", 0), engine=engine, **options)
    source = ImageRecordsParams(records=folder, model_classes=["tulip", "rose", "daisy"])
    pipeline = data.create_pipeline(mode, params, source, seed=11)
    with pipeline.stream(cursor, repeat=True) as stream:
        return [next(stream) for _ in range(count)]


def assert_equal(ours: list[Any], theirs: list[Any], tolerance: float) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert (one.cursor, one.size, one.meta) == (other.cursor, other.size, other.meta)
        np.testing.assert_array_equal(one.targets["label"], other.targets["label"])
        assert one.inputs["image"].dtype == other.inputs["image"].dtype == np.float32
        np.testing.assert_allclose(one.inputs["image"], other.inputs["image"], rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", LISTS)
def test_both_engines_give_the_same_batches_over_epochs(folder: Path, name: str) -> None:
    augment = LISTS[name]
    normalised = any(isinstance(operation, p.NormalizeParams) for operation in augment)
    ours = batches(folder, 10, "python", augment=augment)
    theirs = batches(folder, 10, "tf.data", augment=augment)
    assert {batch.epoch for batch in ours} == {0, 1}
    assert {int(label) for batch in ours for label in batch.targets["label"]} == {1, 2}  # those of the model
    assert_equal(ours, theirs, 1e-4 * (5 if normalised else 255))


def test_images_that_only_python_rotates_are_refused(tmp_path: Path) -> None:
    buffer, tags = io.BytesIO(), Image.Exif()
    tags[0x0112] = 6
    Image.fromarray(picture(1)).save(buffer, "JPEG", exif=tags)
    files = {"image": buffer.getvalue(), "label": 0}
    dataset = tf.data.Dataset.from_tensor_slices({name: [value] * 9 for name, value in files.items()})
    dataset_to_tfrecord(dataset, tmp_path / "set")
    with pytest.raises(
        ParamsError, match=r"does not rotate images by their EXIF orientation, .*sample 0 of .*set has one"
    ):
        batches(tmp_path / "set", 1, "tf.data", split="data")
    assert len(batches(tmp_path / "set", 1, "python", split="data")) == 1


SMALL: list[p.OperationParams] = [
    p.RandomHorizontalFlipParams(),
    p.ColorJitterParams(),
    p.RandomRotateParams(),
    p.CutoutParams(length=5),
    p.NormalizeParams(),
]


def test_small_images_of_one_size_are_augmented_as_whole_batches(tmp_path: Path) -> None:
    images = class_folders(tmp_path / "flowers", {"daisy": 30}, size=(30, 28))
    write_images(WriteImagesParams(output=tmp_path, name="set", images=images))
    ours = batches(tmp_path / "set", 7, "python", augment=SMALL)
    theirs = batches(tmp_path / "set", 7, "tf.data", augment=SMALL)
    assert {batch.size for batch in ours} == {8}
    assert {batch.epoch for batch in ours} == {0, 1, 2}
    assert_equal(ours, theirs, 5e-4)


@pytest.mark.parametrize(
    ("operations", "size", "single"),
    [
        (SMALL, (32, 32), 1),
        (SMALL, (None, None), 6),
        (SMALL, (65, 64), 6),
        ([p.RandomCropParams(size=[32, 32]), *SMALL], (None, None), 2),
        ([*SMALL, p.RandomVerticalFlipParams()], (32, 32), 6),
        ([p.RandomCropThenResizeParams(size=[224, 224]), p.NormalizeParams()], (None, None), 1),
        ([p.RandomCropThenResizeParams(size=[96, 96]), p.ColorJitterParams(), p.NormalizeParams()], (None, None), 4),
        ([p.NormalizeParams()], (None, None), 2),
        ([], (None, None), 1),
        ([], (32, 32), 0),
    ],
)
def test_what_runs_on_single_images(operations: list[Any], size: Any, single: int) -> None:
    from scena.data.image.augment.operations import OperationList
    from scena.data.tensorflow.image_pipeline import single_images

    last = [p.ResizeParams(size=[224, 224] if size == (None, None) else [32, 32])]
    count, _ = single_images(OperationList([*operations, *last]), (*size, 3))
    assert count == single


def test_worker_processes_give_the_same_batches(folder: Path) -> None:
    augment = LISTS["crop first"]
    alone = batches(folder, 7, "python", augment=augment)
    assert_equal(alone, batches(folder, 7, "python", augment=augment, num_processes=2), 0)


def test_grey_input(folder: Path) -> None:
    assert_equal(batches(folder, 3, "python", channels=1), batches(folder, 3, "tf.data", channels=1), 0.02)


def test_a_stream_restored_at_any_batch_goes_on_identically(folder: Path) -> None:
    augment = LISTS["crop first"]
    whole = batches(folder, 11, "tf.data", augment=augment)
    for place in (0, 2, 4, 7):
        rest = batches(folder, 10 - place, "tf.data", cursor=whole[place].cursor, augment=augment)
        assert_equal(whole[place + 1 :], rest, 0)


def test_options_of_the_pipeline(folder: Path) -> None:
    for options in (
        {"limit": 10},
        {"batch_drop_remainder": True},
        {"shuffle_buffer_size": 0},
        {"split": "train[:50%]+test"},
    ):
        assert_equal(batches(folder, 6, "python", **options), batches(folder, 6, "tf.data", **options), 0.03)
    evaluation = batches(folder, 1, "tf.data", mode=PipelineMode.EVALUATION)
    assert evaluation[0].size == 5
    prediction = batches(folder, 1, "tf.data", mode=PipelineMode.PREDICTION)
    assert prediction[0].targets == {}


def test_a_damaged_image_is_named(folder: Path, tmp_path: Path) -> None:
    from scena.data.image.writer import IMAGE_SCHEMA
    from scena.data.records.writing import write_records

    good = (folder.parent / "flowers" / "daisy" / "daisy_000.jpg").read_bytes()
    values = [
        {"image": good if i != 5 else good[:300], "label": 0, "height": 1, "width": 1, "name": f"image {i}"}
        for i in range(9)
    ]
    write_records(values, IMAGE_SCHEMA, tmp_path, split="train")
    with pytest.raises(DataError, match="image 5"):
        batches(tmp_path, 2, "tf.data", split="train")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"on_error": "skip"}, "no buckets and no on_error=skip"),
        ({"source": ImageFilesParams(images=Path(__file__).parent)}, "reads image records"),
    ],
)
def test_what_only_python_can_do_is_said(options: dict[str, Any], text: str, folder: Path, tmp_path: Path) -> None:
    source = options.pop("source", None) or ImageRecordsParams(records=folder)
    if isinstance(source, ImageFilesParams):
        source = ImageFilesParams(images=class_folders(tmp_path / "x", {"a": 2}))
    params = ImagePipelineParams(engine="tf.data", **options)
    with pytest.raises(ParamsError, match=text):
        ImageData(ImageDataParams()).create_pipeline(PipelineMode.TRAINING, params, source)


def test_plain_pipeline_parameters_work_too(folder: Path) -> None:
    data = ImageData(ImageDataParams(image_shape=[24, 24, 3]))
    pipeline = data.create_pipeline(
        PipelineMode.EVALUATION, DataPipelineParams(batch_size=4, num_processes=0), ImageRecordsParams(records=folder)
    )
    with pipeline.stream() as stream:
        assert next(stream).inputs["image"].shape == (4, 24, 24, 3)


def test_a_part_of_a_jpeg_has_the_values_of_the_whole() -> None:
    import io

    import tensorflow as tf

    rng = np.random.default_rng(0)
    for number in range(200):
        height, width = (int(size) for size in rng.integers(20, 120, 2))
        file = io.BytesIO()
        options = {"subsampling": int(rng.integers(3)), "progressive": bool(rng.integers(2)), "quality": 90}
        Image.fromarray(picture(number, height, width)).save(file, "JPEG", **options)
        whole = np.asarray(Image.open(file))
        rows, columns = int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1))
        top, left = int(rng.integers(height - rows + 1)), int(rng.integers(width - columns + 1))
        part = decode_jpeg_part(tf.constant(file.getvalue()), (top, left, rows, columns), width).numpy()
        np.testing.assert_array_equal(part, whole[top : top + rows, left : left + columns])
