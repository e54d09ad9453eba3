"""What a folder of records holds: in words, as the info file of image records, and as a contact sheet."""

import io
from collections import Counter
from typing import Any

import numpy as np
from PIL import Image

from scena.data.image.contact_sheet import contact_sheet
from scena.data.image.statistics import INFO_FILE, ChannelStatistics, image_info, parse_info
from scena.data.records.record_set import RecordSet, find_files, no_records, splits_of
from scena.errors import DataError
from scena.storage.checksums import warn_if_changed
from scena.storage.location import is_folder, is_remote, located, read_bytes


def record_sets(path: Any) -> dict[str, RecordSet]:
    """The splits of a folder of records, or the one set of a file or pattern."""
    folder = located(path)
    if is_folder(folder):
        found = splits_of(folder)
        if not found:
            raise no_records(folder)
        return {split: RecordSet(files) for split, files in found.items()}
    return {"": RecordSet(find_files(path))}


def info_of(path: Any) -> dict[str, Any]:
    """The info file beside records, or nothing."""
    where = located(path)
    file = (where if is_folder(where) else where.parent) / INFO_FILE
    try:
        data = read_bytes(file)
    except OSError:
        return {}
    if not is_remote(file):
        warn_if_changed(file, data)
    return parse_info(data, str(file))


def describe_records(path: Any) -> str:
    """Counts, classes, sizes and the schema of records."""
    sets = record_sets(path)
    info = info_of(path)
    lines = [f"{path}"]
    for split, records in sets.items():
        size = sum(file.size for file in records.files)
        name = split or records.paths[0].name
        compression = records.files[0].compression
        lines.append(
            f"  {name}: {len(records):,} records in {len(records.files)} files, {_bytes(size)}"
            f"{f', {compression}' if compression else ''}{'' if all(f.has_index for f in records.files) else ', no index'}"
        )
    if info:
        lines += _described_images(info)
    any_set = next(iter(sets.values()))
    lines.append("schema (inferred from the first records):" if any_set.inferred else "schema:")
    lines += [f"  {line}" for line in str(any_set.schema).splitlines()]
    return "\n".join(lines)


def _described_images(info: dict[str, Any]) -> list[str]:
    from rich.cells import cell_len  # Chinese and Japanese characters take two columns

    splits = info.get("splits", {})
    classes = info.get("classes", [])
    rows = [(f"{len(classes)} classes:", [f"{name:>10}" for name in splits])]
    for name in classes:
        rows.append((f"  {name}", [f"{split['classes'][name]:>10,}" for split in splits.values()]))
    width = max(cell_len(name) for name, _ in rows)
    lines = ["  ".join([name + " " * (width - cell_len(name)), *counts]) for name, counts in rows]
    sizes = info.get("sizes") or {}
    if sizes:
        (low, high), (left, right) = sizes["height"], sizes["width"]
        lines.append(f"sizes: height {low} to {high}, width {left} to {right}")
    statistics = info.get("statistics", {})
    if statistics.get("mean"):
        numbers = (" ".join(f"{value:.4f}" for value in statistics[key]) for key in ("mean", "std"))
        lines.append("channels of {}: mean {}, std {}".format(statistics["of"], *numbers))
    if info.get("changed"):
        lines.append("changed: " + ", ".join(f"{count} {what}" for what, count in info["changed"].items()))
    if info.get("left_out"):
        lines.append(f"skipped: {len(info['left_out'])} files (named in {INFO_FILE})")
    return lines


def _bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def records_sheet(path: Any, count: int = 40, seed: int = 0) -> Any:
    """A contact sheet of random records of the largest split."""
    records = max(record_sets(path).values(), key=len)
    classes: list[str] = info_of(path).get("classes", [])
    key = _image_key(records)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(records))[:count])
    images = []
    for index in chosen:
        record = records[int(index)]
        label = record.get("label", "")
        named = isinstance(label, int | np.integer) and 0 <= label < len(classes)
        images.append((record[key], classes[label] if named else str(label)))
    return contact_sheet(images)


def _image_key(records: RecordSet) -> str:
    structure = records.schema.structure
    if isinstance(structure, dict):
        names = [name for name in ("image", "image/encoded", "img", "x") if name in structure]
        images = [*names, *(name for name, leaf in structure.items() if len(getattr(leaf, "shape", ())) in (2, 3))]
        if images:
            return str(images[0])
    raise DataError(f"The records hold no image; a contact sheet needs one. They hold:\n{records.schema}")


def collect_info(folder: Any, classes: list[str] | None = None) -> dict[str, Any] | None:
    """The info of a folder of image records, counted; None for other records. Without `classes` the labels name themselves."""
    sets = {split: RecordSet(files) for split, files in splits_of(folder).items()}
    structure = next(iter(sets.values())).schema.structure
    if not isinstance(structure, dict) or not {"image", "label", "height", "width"} <= set(structure):
        return None
    first = "train" if "train" in sets else next(iter(sets))
    statistics = ChannelStatistics()
    labels: dict[str, Counter[int]] = {}
    sizes: list[tuple[int, int]] = []
    for split, records in sets.items():
        labels[split] = Counter()
        for record in records:
            labels[split][int(record["label"])] += 1
            sizes.append((int(record["height"]), int(record["width"])))
            if split == first:
                with Image.open(io.BytesIO(record["image"])) as image:
                    statistics.add(image.convert("RGB").histogram())
    highest = max((label for counts in labels.values() for label in counts), default=-1)
    names = classes or [str(number) for number in range(highest + 1)]
    splits = {}
    for split, records in sets.items():
        counts = {name: labels[split][number] for number, name in enumerate(names)}
        splits[split] = {"count": len(records), "files": len(records.files), "classes": counts}
    info = image_info(folder.name, names, splits, sizes, {"of": first, **statistics.to_json()})
    return {**info, "changed": {}, "left_out": []}
