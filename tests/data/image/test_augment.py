"""Each operation gives the same image in numpy and in tf.data for the same seed, and does what it says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from scena.data import DataBaseParams, DataError, PipelineMode, Sample
from scena.data.image import params as p
from scena.data.image.augment import arrays
from scena.data.image.augment.operations import OperationList
from scena.data.image.augment.processor import decode_image
from scena.data.image.params import AugmentParams, DecodeImageParams
from scena.data.stages.rng import SampleRandom, keys_of, philox_words, uniforms
from scena.data.tensorflow import augment_ops as tensors
from scena.errors import SampleError
from scena.params import ParamsError
from tests.data.image.pictures import picture

OPERATIONS: dict[str, list[p.OperationParams]] = {
    "Normalize": [p.NormalizeParams()],
    "ColorJitter": [p.ColorJitterParams(brightness=0.3, contrast=[0.5, 1.5], saturation=[0.2, 1.8], hue=0.5)],
    "ColorJitter unclipped": [p.ColorJitterParams(clip=False)],
    "RandomHorizontalFlip": [p.RandomHorizontalFlipParams()],
    "RandomVerticalFlip": [p.RandomVerticalFlipParams()],
    "RandomRotate": [p.RandomRotateParams(angle=180, fill=30)],
    "RandomRotate nearest": [p.RandomRotateParams(angle=45, interpolation="nearest")],
    "RandomRotate90": [p.RandomRotate90Params()],
    "RandomCrop": [p.RandomCropParams(size=[20, 30])],
    "CentralCrop": [p.CentralCropParams(proportion=0.6)],
    "CentralCrop resized": [p.CentralCropParams(size=[24, 24])],
    "RandomCropThenResize": [p.RandomCropThenResizeParams(size=[32, 24])],
    "Resize": [p.ResizeParams(size=[64, 33])],
    "Resize nearest": [p.ResizeParams(size=[23, 71], interpolation="nearest")],
    "ResizeThenRandomCrop": [p.ResizeThenRandomCropParams(size=[50, 48], crop_size=[40, 32])],
    "Translate": [p.TranslateParams(width=0.3, height=0.4)],
    "Translate constant": [p.TranslateParams(padding="constant", fill=9)],
    "Translate symmetric": [p.TranslateParams(padding="symmetric", width=0.9, height=0.9)],
    "Cutout": [p.CutoutParams(length=13, fill=128)],
    "Pad": [p.PadParams(pixels=5, padding="symmetric")],
    "several": [
        p.PadParams(),
        p.RandomCropThenResizeParams(size=[32, 32], scale=[0.3, 1]),
        p.RandomHorizontalFlipParams(),
        p.RandomRotateParams(),
        p.ColorJitterParams(),
        p.CutoutParams(),
        p.NormalizeParams(),
    ],
}


def pictures() -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [picture(i, *(int(size) for size in rng.integers(32, 80, 2))) for i in range(100)]


@pytest.mark.parametrize("name", OPERATIONS)
def test_numpy_and_tf_data_agree_on_100_images(name: str) -> None:
    images = pictures()
    operations = OperationList(OPERATIONS[name])
    keys = keys_of(3, 1, range(100), 2)
    dataset = tf.data.Dataset.from_generator(
        lambda: zip(images, keys, strict=True),
        output_signature=(tf.TensorSpec((None, None, 3), tf.uint8), tf.TensorSpec((), tf.uint64)),
    ).map(lambda image, key: operations.apply(tensors, image, tensors.uniforms(key, operations.draws)))
    scale = 1 if operations.operations[-1].__class__.__name__ == "Normalize" else 255
    changed = 0
    for number, (image, theirs) in enumerate(zip(images, dataset.as_numpy_iterator(), strict=True)):
        ours = operations.apply(arrays, image, uniforms(int(keys[number]), operations.draws))
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(
            ours.astype(np.float64) / scale, theirs.astype(np.float64) / scale, rtol=0, atol=1e-4
        )
        changed += ours.shape != image.shape or bool((ours != image).any())
    assert changed > 25


WHOLE_BATCHES = [
    "Normalize",
    "ColorJitter",
    "ColorJitter unclipped",
    "RandomRotate",
    "RandomRotate nearest",
    "Resize",
    "Resize nearest",
    "Cutout",
]


def test_which_operations_run_on_whole_batches() -> None:
    lists = {name: OperationList(operations) for name, operations in OPERATIONS.items() if len(operations) == 1}
    assert [name for name, one in lists.items() if one.operations[0].whole_batch] == WHOLE_BATCHES


@pytest.mark.parametrize("channels", [3, 1])
@pytest.mark.parametrize("name", WHOLE_BATCHES)
def test_a_whole_batch_gives_what_100_single_images_give(name: str, channels: int) -> None:
    images = [picture(number, 37, 48, channels) for number in range(100)]
    operations = OperationList(OPERATIONS[name])
    keys = keys_of(5, 2, range(100), 1)
    u = tf.stack([tensors.uniforms(tf.constant(key), operations.draws) for key in keys])
    batch = operations.apply(tensors, tf.constant(np.stack(images)), tf.transpose(u)[..., None, None, None]).numpy()
    changed = 0
    for image, key, theirs in zip(images, keys, batch, strict=True):
        ours = operations.apply(arrays, image, uniforms(int(key), operations.draws))
        single = operations.apply(tensors, tf.constant(image), tensors.uniforms(tf.constant(key), operations.draws))
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        scale = 1 if name == "Normalize" else 255
        for other in (ours, single.numpy()):
            np.testing.assert_allclose(theirs / scale, other / scale, rtol=0, atol=1e-4)
        changed += ours.shape != image.shape or bool((ours != image).any())
    assert changed > 90


@pytest.mark.parametrize("name", ["ColorJitter", "RandomRotate", "Resize", "Cutout", "Pad"])
def test_grey_images(name: str) -> None:
    image = picture(1, channels=1)
    operations = OperationList(OPERATIONS[name])
    theirs = operations.apply(
        tensors, tf.constant(image), tensors.uniforms(tf.constant(5, tf.uint64), operations.draws)
    )
    ours = operations.apply(arrays, image, uniforms(5, operations.draws))
    np.testing.assert_allclose(ours / 255, theirs.numpy() / 255, rtol=0, atol=1e-4)


def test_the_generator_is_tensorflows_philox() -> None:
    for key in (0, 1, 0x123456789ABCDEF0, 2**64 - 1):
        assert uniforms(key, 11) == tensors.uniforms(tf.constant(key, tf.uint64), 11).numpy().tolist()
    assert all(0 <= value < 1 for value in uniforms(9, 1000))
    assert abs(np.mean(uniforms(9, 1000)) - 0.5) < 0.03
    assert len(set(philox_words(4, 50))) == 50


def test_the_generator_gives_the_same_numbers_for_ever() -> None:
    """Those of key 0 are published with Philox 4x32-10, in the known answers of Random123; the others agree with TensorFlow's."""
    assert philox_words(0, 4) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox_words(0x0123456789ABCDEF, 10) == [
        0xB850222E, 0xC58CB04B, 0x14A7A020, 0x7A84FFF9, 0xADCA1466, 0x523E0D85, 0x65401425, 0xB299DA3F, 0xF7CE299F, 0x823CCB40,
    ]  # fmt: skip


def test_the_processor_draws_what_the_keys_say() -> None:
    operations = OPERATIONS["several"]
    processor = AugmentParams(operations=operations).create(DataBaseParams(), PipelineMode.TRAINING)
    image = picture(3)
    ours = processor.apply(Sample(inputs={"image": image}), SampleRandom(8, 2).at(17, 0, 4)).inputs["image"]
    (key,) = keys_of(8, 2, [17], 4)
    many = OperationList(operations)
    np.testing.assert_array_equal(ours, many.apply(arrays, image, uniforms(int(key), many.draws)))


def run(operation: p.OperationParams, image: np.ndarray, key: int = 0) -> np.ndarray:
    operations = OperationList([operation])
    result: np.ndarray = operations.apply(arrays, image, uniforms(key, operations.draws))
    return result


def test_flips_happen_as_often_as_asked() -> None:
    image = picture(0)
    flips = sum(
        bool((run(p.RandomHorizontalFlipParams(probability=0.3), image, key) != image).any()) for key in range(400)
    )
    assert 80 < flips < 160
    np.testing.assert_array_equal(run(p.RandomHorizontalFlipParams(probability=1), image), image[:, ::-1])
    np.testing.assert_array_equal(run(p.RandomVerticalFlipParams(probability=1), image), image[::-1])
    np.testing.assert_array_equal(run(p.RandomVerticalFlipParams(probability=0), image), image)


def test_normalize_gives_mean_zero_and_deviation_one() -> None:
    image = picture(0)
    mean, std = (image / 255).mean((0, 1)).tolist(), (image / 255).std((0, 1)).tolist()
    result = run(p.NormalizeParams(mean=mean, std=std), image)
    np.testing.assert_allclose(result.mean((0, 1)), 0, atol=1e-4)
    np.testing.assert_allclose(result.std((0, 1)), 1, atol=1e-4)


def test_normalize_takes_the_statistics_of_a_data_set(tmp_path: Path) -> None:
    (tmp_path / "info.json").write_text(
        '{"format": "scena-images", "statistics": {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.25, 1.0]}}'
    )
    image = np.full((2, 2, 3), 255, np.uint8)
    np.testing.assert_allclose(run(p.NormalizeParams(info=tmp_path), image)[0, 0], [1, 2, 0.5], atol=1e-6)
    with pytest.raises(DataError, match="cannot be read"):
        run(p.NormalizeParams(info=tmp_path / "none"), image)


def test_cutout_stays_inside_and_translate_and_rotate_keep_the_size() -> None:
    image = np.full((30, 40, 3), 200, np.uint8)
    for key in range(50):
        cut = run(p.CutoutParams(length=8), image, key)
        assert (cut == 0).sum() == 8 * 8 * 3
        assert run(p.TranslateParams(), image, key).shape == image.shape
        assert run(p.RandomRotateParams(), image, key).shape == image.shape


def test_random_crops_cover_the_image_and_too_large_ones_are_explained() -> None:
    image = np.arange(40 * 50).reshape(40, 50, 1).astype(np.float32)
    corners = {int(run(p.RandomCropParams(size=[36, 47]), image, key)[0, 0, 0]) for key in range(300)}
    assert corners == {row * 50 + column for row in range(5) for column in range(4)}
    with pytest.raises(DataError, match="RandomCrop cannot crop 64 × 64 from an image of 40 × 50"):
        run(p.RandomCropParams(size=[64, 64]), image)


def test_quarter_turns_are_equally_frequent() -> None:
    image = picture(0, 8, 8)
    turned = [run(p.RandomRotate90Params(), image, key) for key in range(400)]
    counts = [sum(np.array_equal(one, np.rot90(image, k)) for one in turned) for k in range(4)]
    assert sum(counts) == 400
    assert min(counts) > 70


def test_colour_changes_keep_grey_grey() -> None:
    image = np.full((4, 4, 3), 100, np.uint8)
    jitter = p.ColorJitterParams(brightness=0, contrast=[1, 1], saturation=[0, 3], hue=0.5)
    for key in range(20):
        np.testing.assert_allclose(run(jitter, image, key), 100, atol=0.1)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: p.ResizeParams(size=[3]), "size takes two values"),
        (lambda: p.ColorJitterParams(contrast=[2.0, 1.0]), "contrast is a range, the lower value first"),
        (lambda: p.ResizeThenRandomCropParams(size=[10, 10], crop_size=[11, 10]), "crop_size must fit into size"),
    ],
)
def test_wrong_parameters(make: Any, text: str) -> None:
    with pytest.raises(ParamsError, match=text):
        make()


def test_an_image_without_channels_is_explained() -> None:
    processor = AugmentParams().create(DataBaseParams(), PipelineMode.TRAINING)
    with pytest.raises(DataError, match="need an image of shape"):
        processor.apply(Sample(inputs={"image": np.zeros((3, 3))}), SampleRandom(0, 0).at(0))


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"no picture", "its format is not known"), (b"\x89PNG\r\n\x1a\n", ".*")],
)
def test_what_is_no_image_is_said_in_words(data: bytes, reason: str) -> None:
    with pytest.raises(DataError, match=f"^An image of {len(data)} bytes cannot be decoded: {reason}") as caught:
        decode_image(data)
    assert "0x" not in str(caught.value)


def test_a_damaged_image_can_be_skipped_and_the_error_says_how() -> None:
    """One broken file of a folder should not stop a newcomer."""
    processor = DecodeImageParams().create(DataBaseParams(), PipelineMode.TRAINING)
    with pytest.raises(SampleError, match=r"^'image' of a sample .*cut\.jpg.*cannot be decoded.*\. Set on_error=skip"):
        processor.apply(Sample(inputs={"image": b"\xff\xd8\xff\xe0broken"}, meta={"name": "cut.jpg"}))
