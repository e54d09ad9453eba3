"""Image files into a data set of records: prepared on all cores, written aside, and complete when it has its name."""

import contextlib
import logging
import os
import shutil
import tempfile
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from scena.data.image.listing import FoundImages, ImageEntry, as_report, find_images, printable
from scena.data.image.params import ImagePreparationParams, Processing, WriteImagesParams
from scena.data.image.prepare import PreparedImage, UnreadableImageError, prepare_image
from scena.data.image.statistics import INFO_FILE, ChannelStatistics, image_info
from scena.data.records.leaf import Leaf
from scena.data.records.record_set import shard_name
from scena.data.records.schema import SCHEMA_FILE, Schema
from scena.data.records.writing import ShardWriter, make_folder, write_json
from scena.errors import DataError
from scena.storage.durable import put_in_place, sync
from scena.storage.location import Location, check_writable, is_remote, located, remove_folder, send_folder

logger = logging.getLogger("scena.data")

_FEATURES = {"image": "string", "label": "int64", "height": "int64", "width": "int64", "name": "string"}
IMAGE_SCHEMA = Schema({name: Leaf(name, dtype, ()) for name, dtype in _FEATURES.items()})
Progress = Callable[[int], None]
COUNTED_IMAGES = 2000
"""Mean and standard deviation come from at most this many images of a split: making all pixels takes twice as long as
checking that they can be made."""
_TOGETHER = 4
"""Images that a thread prepares at a time: waking up for each one costs more than waiting for some."""


def write_images(params: WriteImagesParams, progress: Progress = lambda count: None,
                 found: FoundImages | None = None) -> dict[str, Any]:  # fmt: skip
    """Writes a data set of images; returns its info. `found` are the images, if they were searched for already."""
    found = found or find_images(params)
    check_splits(params, found)
    preparation = params.preparation
    if preparation.processing is Processing.NONE and preparation.image_size != ImagePreparationParams().image_size:
        logger.warning(
            "image_size has no effect without processing (CENTER_CROP_THEN_SCALE, …): images keep their size."
        )
    output = located(params.output)
    target = output / (params.name or _default_name(params))
    if is_remote(output):
        return _write_elsewhere(params, target, progress, found)
    if target.exists() and not params.force:
        raise DataError(f"{str(target)!r} exists already. Nothing was written; --force replaces it.")
    if target.exists() and not (target / INFO_FILE).exists() and any(target.iterdir()):
        raise DataError(f"{str(target)!r} is no data set, so --force does not replace it: it has no {INFO_FILE}.")
    make_folder(output)
    aside = output / f".{target.name}.writing-{os.getpid()}"
    shutil.rmtree(aside, ignore_errors=True)
    for left in output.glob(f".{target.name}.writing-*"):
        logger.info("%s is left over from an interrupted run, unless another one is writing now: remove it.", left)
    try:
        info = _write_readable(params, found, aside, progress)
        info["name"] = target.name
        write_json(aside / SCHEMA_FILE, IMAGE_SCHEMA.to_json())
        write_json(aside / INFO_FILE, info)
        sync(aside)
        put_in_place(aside, target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return info


def check_splits(params: WriteImagesParams, found: FoundImages) -> None:
    """Raises if splits are asked for although the images are divided already."""
    default = WriteImagesParams(output=params.output, images=params.images, csv=params.csv)
    asked = (params.split_names, params.split_fractions) != (default.split_names, default.split_fractions)
    if found.splits and asked:
        where = str(params.csv or params.images)
        first = next(iter(found.splits))
        raise DataError(
            f"{where!r} is divided already, into {', '.join(found.splits)}. To keep that, set neither split_names nor split_fractions"
            + ("." if params.csv else f"; or name one of its folders, {str(located(where) / first)!r} for example.")
        )


def _write_elsewhere(params: WriteImagesParams, target: Any, progress: Progress, found: FoundImages) -> dict[str, Any]:
    """Writes on this machine, and sends the whole."""
    check_writable(target.parent)
    if target.exists():
        if not params.force:
            raise DataError(f"{str(target)!r} exists already. Nothing was written; --force replaces it.")
        remove_folder(target)
    with tempfile.TemporaryDirectory(prefix="scena-records-") as folder:
        here = params.replace(output=Location(folder), name=target.name, force=False)
        info = write_images(here, progress, found)
        send_folder(Path(folder) / target.name, target)
    return info


def _default_name(params: WriteImagesParams) -> str:
    if params.csv is not None:
        return str(located(params.csv).stem)
    images = located(params.images)
    return str(images.name if is_remote(images) else images.resolve().name)


def _write_readable(params: WriteImagesParams, found: FoundImages, aside: Path, progress: Progress) -> dict[str, Any]:
    """Writes all images that can be read. If some cannot, the splits are made again without them."""
    entries, skipped = found.entries, [*found.skipped, *((name, "it is not an image") for name in found.strays)]
    while True:
        make_folder(aside)
        bad, info = _write_splits(params, found.classes, _divided(params, found, entries), aside, progress)
        if not bad:
            break
        skipped += [(printable(entry.name), reason) for entry, reason in bad.items()]
        entries = [entry for entry in entries if entry not in bad]
        if not entries:
            raise DataError(f"None of the {len(found.entries)} images can be read:\n{as_report(skipped)}")
        logger.info("%d images cannot be read; dividing the others again", len(bad))
        shutil.rmtree(aside)
    empty = sorted(set(found.classes) - {found.classes[entry.label] for entry in entries})
    skipped += [(name, "none of its images can be read") for name in empty]
    info["left_out"] = [{"name": name, "reason": reason} for name, reason in skipped]
    return info


def _divided(params: WriteImagesParams, found: FoundImages, entries: list[ImageEntry]) -> "Splits":
    if not found.splits:
        return balanced_splits(entries, params.split_names, params.split_fractions, params.seed)
    readable = set(entries)
    return {name: [entry for entry in members if entry in readable] for name, members in found.splits.items()}


def _write_splits(params: WriteImagesParams, classes: list[str], splits: "Splits", folder: Path,
                  progress: Progress) -> tuple[dict[ImageEntry, str], dict[str, Any]]:  # fmt: skip
    bad: dict[ImageEntry, str] = {}
    changes: Counter[str] = Counter()
    sizes: list[tuple[int, int]] = []
    statistics = ChannelStatistics()
    first = next(iter(splits))
    counted = _counted(splits[first], params.seed)
    described: dict[str, Any] = {}
    with prepared_images(params.preparation, params.workers) as prepare:
        for split, members in splits.items():
            files = params.num_files or max(1, -(-len(members) // params.records_per_file))
            for number, part in enumerate(spread_over_files(members, files, params.seed)):
                with ShardWriter(folder / shard_name(split, number, files), params.compression) as writer:
                    for entry, image in prepare(part, counted):
                        progress(1)
                        if isinstance(image, str):
                            bad[entry] = image
                            continue
                        writer.write(IMAGE_SCHEMA.encode(record_of(entry, image)))
                        changes.update(image.changes)
                        sizes.append((image.height, image.width))
                        if image.histogram:
                            statistics.add(image.histogram)
            counts = Counter(classes[entry.label] for entry in members)
            described[split] = {"count": len(members), "files": files, "classes": {n: counts[n] for n in classes}}
    found = {"of": first, "images": len(counted), **statistics.to_json()}
    info = image_info("", classes, described, sizes, found) | {
        "processing": params.preparation.processing.value,
        "max_edge": params.preparation.max_edge,
        "seed": params.seed,
        "changed": dict(sorted(changes.items())),
    }
    return bad, info


def _counted(entries: list[ImageEntry], seed: int) -> set[ImageEntry]:
    """The images whose pixels are counted: all, or enough of a large split to give the mean to three digits."""
    if len(entries) <= COUNTED_IMAGES:
        return set(entries)
    drawn = np.random.default_rng([seed, len(entries)]).permutation(len(entries))[:COUNTED_IMAGES]
    return {entries[index] for index in drawn}


def record_of(entry: ImageEntry, image: PreparedImage) -> dict[str, Any]:
    """The values of an image's record."""
    name = os.fsencode(entry.name)
    return {"image": image.data, "label": entry.label, "height": image.height, "width": image.width, "name": name}


Made = tuple[ImageEntry, PreparedImage | str]
"""An image, or why it cannot be read."""
Prepare = Callable[[Sequence[ImageEntry], Set[ImageEntry]], Iterator[Made]]


@contextlib.contextmanager
def prepared_images(params: ImagePreparationParams, workers: int | None) -> Iterator[Prepare]:
    """Prepares images on several threads (Pillow works outside of Python's lock) and hands them out in order."""
    Image.init()  # loading plugins is not safe on several threads
    threads = workers or len(os.sched_getaffinity(0))

    def some(entries: Sequence[ImageEntry], counted: Set[ImageEntry]) -> list[Made]:
        return [(entry, one(entry, entry in counted)) for entry in entries]

    def one(entry: ImageEntry, statistics: bool) -> PreparedImage | str:
        try:
            return prepare_image(entry.path, params, statistics)
        except UnreadableImageError as error:
            return str(error)

    with ThreadPoolExecutor(threads) as pool:

        def prepare(entries: Sequence[ImageEntry], counted: Set[ImageEntry]) -> Iterator[Made]:
            waiting: deque[Future[list[Made]]] = deque()
            for start in range(0, len(entries), _TOGETHER):
                waiting.append(pool.submit(some, entries[start : start + _TOGETHER], counted))
                if len(waiting) > threads * 2:  # enough to keep all busy, and little in memory
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()

        try:
            yield prepare
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


Splits = dict[str, list[ImageEntry]]


def balanced_splits(entries: list[ImageEntry], names: list[str], fractions: list[float], seed: int) -> Splits:
    """Each split with its share of each class (largest remainders, so that totals are right too), sorted by class.

    Entries of one class are drawn in an order that depends on the seed and their names only.
    """
    by_class: dict[int, list[ImageEntry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: (entry.label, entry.name)):
        by_class[entry.label].append(entry)
    splits: Splits = {name: [] for name in names}
    owed = np.zeros(len(names))
    for label, members in by_class.items():
        order = np.random.default_rng([seed, label]).permutation(len(members))
        start = 0
        for name, size in zip(names, _shares(len(members), fractions, owed), strict=True):
            splits[name] += [members[number] for number in order[start : start + size]]
            start += size
    return splits


def _shares(count: int, fractions: list[float], owed: Any) -> list[int]:
    """How many of `count` each split gets: its share, rounded up where most is owed. `owed` is updated."""
    exact = count * np.asarray(fractions)
    shares = np.floor(exact + 1e-6)  # 0.7 * 10 is a little less than 7 in floating point
    remainders = np.maximum(exact - shares, 0)
    missing = max(0, count - int(shares.sum()))
    # rounding keeps three splits of 0.1 that are owed the same apart by their order
    wanting = np.where(remainders > 1e-6, np.round(remainders + owed, 6), -np.inf)
    shares[np.argsort(-wanting, kind="stable")[:missing]] += 1
    owed += exact - shares
    return [int(share) for share in shares]


def spread_over_files(entries: list[ImageEntry], files: int, seed: int) -> list[list[ImageEntry]]:
    """Entries that are sorted by class, dealt to `files` files in turn, and shuffled within each."""
    dealt = [entries[number::files] for number in range(files)]
    orders = [np.random.default_rng([seed, files, number]).permutation(len(part)) for number, part in enumerate(dealt)]
    return [[part[index] for index in order] for part, order in zip(dealt, orders, strict=True)]
