"""Records against straightforward and hand-tuned code: writing, reading and random access. Prints ratios.

`python -m benchmarks.records [--images 600] [--repeat 3]`. The bars: writing ≥ 1.7 × a plain loop (on two cores), reading
≥ 0.98 × a hand-tuned tf.data pipeline on the same files, random access ≥ 150,000 records/s or 10 × Python's own parsing.
"""

import argparse
import contextlib
import io
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from PIL import Image

from scena.data.image.augment import params as p
from scena.data.image.database import ImageData
from scena.data.image.params import ImageDataParams, ImagePipelineParams, ImagePreparationParams, WriteImagesParams
from scena.data.image.writer import write_images
from scena.data.params import PipelineMode
from scena.data.records.leaf import Leaf
from scena.data.records.record_set import RecordSet
from scena.data.records.schema import Schema
from scena.data.records.writing import write_records
from scena.data.sources.params import ImageRecordsParams

HEIGHT, WIDTH, MAX_EDGE, SIZE, BATCH = 375, 500, 320, 224, 32


def make_images(folder: Path, count: int) -> Path:
    """Photograph-like JPEGs of 500 × 375 in four class folders."""
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        image = np.asarray(Image.fromarray(coarse).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC), np.int16)
        noisy = (image + rng.integers(-8, 9, image.shape)).clip(0, 255).astype(np.uint8)
        path = folder / f"class{number % 4}" / f"{number:05d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noisy).save(path, quality=90)
    return folder


def many_images(images: Path, folder: Path, times: int) -> Path:
    """A larger data set: each image under several names."""
    for path in images.glob("*/*.jpg"):
        for number in range(times):
            target = folder / path.parent.name / f"{path.stem}-{number}.jpg"
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, target)
    return folder


def timed(run: Callable[[], Any], repeat: int) -> float:
    """The median time of some runs, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def plain_loop(images: Path, target: Path, max_edge: int | None) -> None:
    """What anybody would write: Pillow, tf.train.Example, TFRecordWriter."""
    import tensorflow as tf

    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tf.io.TFRecordWriter(str(target / "train.tfrecord")) as writer:
        for label, folder in enumerate(sorted(images.iterdir())):
            for path in sorted(folder.iterdir()):
                data = path.read_bytes()
                with Image.open(io.BytesIO(data)) as image:
                    image.load()  # a damaged image must not get into the records
                    width, height = image.size
                    if max_edge is not None:
                        image.thumbnail((max_edge, max_edge))
                        file = io.BytesIO()
                        image.save(file, "JPEG", quality=95)
                        data = file.getvalue()
                feature = {
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                    "height": tf.train.Feature(int64_list=tf.train.Int64List(value=[height])),
                    "width": tf.train.Feature(int64_list=tf.train.Int64List(value=[width])),
                    "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[path.name.encode()])),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def ours(images: Path, target: Path, max_edge: int | None, workers: int | None = None) -> None:
    """`scena records write`."""
    shutil.rmtree(target, ignore_errors=True)
    params = WriteImagesParams(
        output=target.parent, name=target.name, images=images, split_names=["train"], split_fractions=[1.0], workers=workers,
        preparation=ImagePreparationParams(max_edge=max_edge),
    )  # fmt: skip
    write_images(params)


def folder_builder(images: Path, target: Path) -> None:
    """TensorFlow Datasets: a builder over the folder, as its documentation shows it."""
    import tensorflow_datasets as tfds

    class Pictures(tfds.core.GeneratorBasedBuilder):
        """Images in class folders."""

        VERSION = tfds.core.Version("1.0.0")

        def _info(self) -> Any:
            label = tfds.features.ClassLabel(names=sorted(path.name for path in images.iterdir()))
            features = tfds.features.FeaturesDict({"image": tfds.features.Image(), "label": label})
            return tfds.core.DatasetInfo(builder=self, features=features)

        def _split_generators(self, downloads: Any) -> Any:
            return {"train": self._generate_examples()}

        def _generate_examples(self) -> Any:
            for path in images.glob("*/*.jpg"):
                yield str(path), {"image": str(path), "label": path.parent.name}

    shutil.rmtree(target, ignore_errors=True)
    tfds.disable_progress_bar()
    with contextlib.redirect_stdout(io.StringIO()):
        Pictures(data_dir=str(target)).download_and_prepare()


def hand_tuned(folder: Path, normalise: bool = True) -> Any:
    """tf.data by the book: interleaved files, shuffle, parallel partial decode, augmentation, batch, prefetch."""
    import tensorflow as tf

    auto = tf.data.AUTOTUNE
    files = tf.data.Dataset.list_files(str(folder / "*.tfrecord"), shuffle=True)
    records = files.interleave(tf.data.TFRecordDataset, num_parallel_calls=auto, deterministic=False)
    features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def make(record: Any) -> Any:
        parsed = tf.io.parse_single_example(record, features)
        shape = tf.io.extract_jpeg_shape(parsed["image"])
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            shape, tf.zeros([1, 0, 4]), area_range=(0.08, 1.0), aspect_ratio_range=(0.75, 4 / 3), min_object_covered=0.0,
            use_image_if_no_bounding_boxes=True,
        )  # fmt: skip
        box = tf.stack([begin[0], begin[1], size[0], size[1]])
        image = tf.image.decode_and_crop_jpeg(parsed["image"], box, channels=3)
        image = tf.image.resize(image, [SIZE, SIZE])
        image = tf.image.random_flip_left_right(image)
        image = (image / 255 - tf.constant(p.IMAGENET_MEAN)) / tf.constant(p.IMAGENET_STD)
        return image, parsed["label"]

    dataset = records.shuffle(1000).repeat().map(make, num_parallel_calls=auto, deterministic=False)
    return dataset.batch(BATCH).prefetch(auto)


def our_stream(folder: Path, engine: str) -> Any:
    """The same augmentation through a Scena pipeline."""
    augment = [p.RandomCropThenResizeParams(size=[SIZE, SIZE]), p.RandomHorizontalFlipParams(), p.NormalizeParams()]
    params = ImagePipelineParams(batch_size=BATCH, augment=augment, engine=engine, split="train")
    data = ImageData(ImageDataParams(image_shape=[SIZE, SIZE, 3]))
    return data.create_pipeline(PipelineMode.TRAINING, params, ImageRecordsParams(records=folder)).stream()


def images_per_second(batches: Any, count: int) -> float:
    """After a warm-up of a few batches."""
    for _ in range(8):
        next(batches)
    start = time.perf_counter()
    for _ in range(count):
        next(batches)
    return count * BATCH / (time.perf_counter() - start)


def bench_writing(work: Path, images: Path, count: int, repeat: int) -> None:
    """Images/s of the writers."""
    for title, edge in ((f"scaled to {MAX_EDGE}", MAX_EDGE), ("stored as they are", None)):
        plain_loop(images, work / "loop", edge)
        # alternating, so that a busy machine disturbs both alike
        pairs = [(timed(lambda e=edge: plain_loop(images, work / "loop", e), 1),  # type: ignore[misc]
                  timed(lambda e=edge: ours(images, work / "ours", e), 1)) for _ in range(repeat)]  # type: ignore[misc]  # fmt: skip
        loop, mine = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(one / other for one, other in pairs)
        print(
            f"writing, {title}: loop {count / loop:,.0f} images/s, scena {count / mine:,.0f} images/s, ratio {ratio:.2f}"
        )
    many = many_images(images, work / "many", 10)
    pairs = [(timed(lambda: plain_loop(many, work / "loop", None), 1), timed(lambda: ours(many, work / "ours", None), 1))
             for _ in range(repeat)]  # fmt: skip
    loop, mine = (statistics.median(column) / count / 10 for column in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    print(
        f"writing, {count * 10} as they are: loop {1 / loop:,.0f} images/s, scena {1 / mine:,.0f} images/s, ratio {ratio:.2f}"
    )
    seconds = timed(lambda: folder_builder(images, work / "tfds"), 1)
    mine = timed(lambda: ours(images, work / "ours", None), 1)
    print(f"writing, as they are, against a TFDS builder: {count / seconds:,.0f} images/s, ratio {seconds / mine:.2f}")


def bench_reading(folder: Path, repeat: int, batches: int) -> None:
    """Images/s of the readers, alternating."""
    ratios, theirs, mine = [], [], []
    for _ in range(repeat):
        theirs.append(images_per_second(iter(hand_tuned(folder)), batches))
        with our_stream(folder, "tf.data") as stream:
            mine.append(images_per_second(stream, batches))
        ratios.append(mine[-1] / theirs[-1])
    with our_stream(folder, "python") as stream:
        python = images_per_second(stream, batches)
    print(
        f"reading + decode + augment + batch: hand-tuned tf.data {statistics.median(theirs):,.0f} images/s, scena tf.data "
        f"{statistics.median(mine):,.0f} images/s, ratio {statistics.median(ratios):.2f}; scena python {python:,.0f} images/s"
    )


def consume(values: Any) -> None:
    """Reads to the end and keeps nothing: 100,000 values at once would measure Python's garbage collection."""
    for _ in values:
        pass


def bench_random_access(work: Path, count: int = 100_000) -> None:
    """Records/s by index, as bytes and decoded, against parsing with TensorFlow's classes from an open file."""
    import tensorflow as tf

    schema = Schema({"x": Leaf("x", "float32", (16,)), "y": Leaf("y", "int64", ())})
    values = ({"x": np.arange(16, dtype=np.float32), "y": i} for i in range(count))
    write_records(values, schema, work / "small", shards=4, overwrite=True)
    records = RecordSet(work / "small")
    order = np.random.default_rng(0).permutation(count).tolist()
    raw = timed(lambda: consume(map(records.data, order)), 3)
    decoded = timed(lambda: consume(map(records.__getitem__, order)), 3)
    datas = [records.data(i) for i in range(20_000)]

    def parse() -> None:
        for data in datas:
            features = tf.train.Example.FromString(data).features.feature
            np.frombuffer(features["x"].bytes_list.value[0], np.float32), features["y"].int64_list.value[0]

    parsing = timed(parse, 3) / len(datas)
    scan = timed(
        lambda: sum(1 for _ in tf.data.TFRecordDataset([str(f) for f in records.paths]).as_numpy_iterator()), 1
    )
    print(
        f"random access: {count / raw:,.0f} records/s (bytes, checked), {count / decoded:,.0f} decoded; parsing alone with "
        f"TensorFlow's classes {1 / parsing:,.0f}/s; tf.data in order {count / scan:,.0f}/s"
    )


def main() -> None:
    """Runs all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=600)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--batches", type=int, default=60)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(
        f"{len(os.sched_getaffinity(0))} cores, load {load:.1f}, {options.images} images of {WIDTH} × {HEIGHT}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        images = make_images(work / "images", options.images)
        bench_random_access(work)
        sys.stdout.flush()
        bench_writing(work, images, options.images, options.repeat)
        sys.stdout.flush()
        ours(images, work / "ours", None)
        bench_reading(work / "ours", options.repeat, options.batches)


if __name__ == "__main__":
    main()
