"""The info file of image records that were written by other means: counts, sizes and statistics from the records."""

import io
from collections import Counter
from typing import Any

from PIL import Image

from scena.data.image.statistics import ChannelStatistics
from scena.data.records.record_set import RecordSet, splits_of


def collect_info(folder: Any, classes: list[str] | None = None) -> dict[str, Any] | None:
    """Counts the records of a folder; None if they are not image records.

    Args:
        folder: the data set.
        classes: the names of the classes; default: the labels themselves.
    """
    sets = {split: RecordSet(files) for split, files in splits_of(folder).items()}
    structure = next(iter(sets.values())).schema.structure
    if not isinstance(structure, dict) or not {"image", "label", "height", "width"} <= set(structure):
        return None
    first = "train" if "train" in sets else next(iter(sets))
    statistics = ChannelStatistics()
    labels: dict[str, Counter[int]] = {}
    heights, widths = [], []
    for split, records in sets.items():
        labels[split] = Counter()
        for record in records:
            labels[split][int(record["label"])] += 1
            heights.append(int(record["height"]))
            widths.append(int(record["width"]))
            if split == first:
                with Image.open(io.BytesIO(record["image"])) as image:
                    statistics.add(image.convert("RGB").histogram())
    highest = max((label for counts in labels.values() for label in counts), default=-1)
    names = classes or [str(number) for number in range(highest + 1)]
    return {
        "format": "scena-images",
        "version": 1,
        "name": folder.name,
        "classes": names,
        "splits": {
            split: {
                "count": len(records),
                "files": len(records.files),
                "classes": {name: labels[split][number] for number, name in enumerate(names)},
            }
            for split, records in sets.items()
        },
        "sizes": {"height": [min(heights), max(heights)], "width": [min(widths), max(widths)]} if heights else {},
        "statistics": {"of": first, **statistics.to_json()},
        "changed": {},
        "left_out": [],
    }
