"""Which images there are, of which class and split: folders with a folder for each class, or tables of paths and labels.

Every command and source that takes images finds them here.
"""

import functools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scena.data.image.params import ImagePlacesParams
from scena.errors import DataError
from scena.storage.location import entries, files_below, is_folder, located, unquoted

_SPLIT = re.compile(
    r"(train|training|validation|valid|val|dev|testing|test|evaluation|eval)(?:[-_ ]?(?:set|data|images))?(\d*)", re.I
)
_IMAGES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")

Skipped = list[tuple[str, str]]
"""What was found but cannot be used: (name, reason)."""


@dataclass(slots=True, eq=False)
class ImageEntry:
    """One image file: where it is, its name, and the number of its class."""

    path: Any
    name: str
    label: int


@dataclass
class FoundImages:
    """The images of a data set."""

    classes: list[str]
    """The names of the classes; a label is an index of this list."""
    entries: list[ImageEntry]
    """The images, by class and name."""
    skipped: Skipped
    splits: dict[str, list[ImageEntry]] = field(default_factory=dict)
    """The images of each split, if the data set is divided already; the training split is the first."""
    strays: list[str] = field(default_factory=list)
    """The names of files in class folders whose suffix is not that of an image."""

    def __post_init__(self) -> None:
        self.classes = [printable(name) for name in self.classes]
        self.skipped = [(printable(name), reason) for name, reason in self.skipped]
        self.strays = [printable(name) for name in self.strays]


def find_images(params: ImagePlacesParams) -> FoundImages:
    """The images of a folder or table."""
    if params.csv is None:
        return images_in_tree(params.images or ".", params.folders)
    from scena.data.image.table import images_in_table

    return images_in_table(params)


def printable(name: str) -> str:
    """The name of a file, with bytes that are not UTF-8 as \\xff."""
    return os.fsencode(name).decode(errors="backslashreplace")


def split_name(name: str) -> str | None:
    """The split that a folder's or column's word stands for (`Train`, `test1`, `validation_set`), None if it is no split."""
    found = _SPLIT.fullmatch(name)
    return found[1].lower() + found[2] if found else None


def in_order(splits: Sequence[str]) -> list[str]:
    """Training splits first, then those for validation, then those for tests."""
    kinds = ("train", "val", "dev")
    rank = {name: next((n for n, kind in enumerate(kinds) if name.startswith(kind)), len(kinds)) for name in splits}
    return sorted(splits, key=lambda name: (rank[name], name))


def images_in_tree(folder: Any, kind: str = "auto") -> FoundImages:
    """The images of a folder of class folders, or of split folders with those in them.

    `kind` says whether the folders are "classes" or "splits"; "auto" finds out, and raises where both are possible.
    """
    root = _existing(folder)
    folders = {unquoted(path): path for path, inner in entries(root) if inner}
    named = {name: path for name, path in folders.items() if split_name(name)}
    if kind == "classes" or (kind == "auto" and not named):
        return images_in_folders(root)
    if not named:
        known = _some(folders)
        raise DataError(f"{str(root)!r} has no folder named like a split (train, validation, test). It has: {known}.")
    others = {name: path for name, path in folders.items() if name not in named}
    divided = {name: path for name, path in named.items() if any(inner for _, inner in entries(path))}
    unclear = [name for name, path in others.items() if kind == "auto" and _may_be_class(path)]
    if unclear:
        raise DataError(
            f"{str(root)!r} has folders named like splits ({_some(named)}) beside others with images ({_some(unclear)}). Set "
            "folders=classes if all of them are classes, or folders=splits to skip the others."
        )
    if not divided:
        raise DataError(
            f"{str(root / next(iter(named)))!r} has no folders in it: a split needs one for each class, with its images. If "
            f"{_some(named)} are classes, set folders=classes; if names or a table tell the class, use a table (csv)."
        )
    skipped = [(f"{name}/", "its images are in no class folder") for name in named if name not in divided]
    skipped += [(f"{name}/", "it is no split") for name in others]
    return _in_splits(root, divided, skipped)


def _in_splits(root: Any, folders: dict[str, Any], skipped: Skipped) -> FoundImages:
    canonical = {name: str(split_name(name)) for name in folders}
    if len(set(canonical.values())) < len(canonical):
        canonical = {name: name for name in folders}
    found = {canonical[name]: images_in_folders(path, f"{name}/") for name, path in folders.items()}
    splits = in_order(list(found))
    classes = found[splits[0]].classes
    if not splits[0].startswith("train"):
        classes = sorted({name for each in found.values() for name in each.classes})
    for split in splits:
        more = [name for name in found[split].classes if name not in classes]
        if more:
            raise DataError(
                f"The splits of {str(root)!r} have different classes: {splits[0]} does not have {_some(more)} of {split}."
            )
        for entry in found[split].entries:
            entry.label = classes.index(found[split].classes[entry.label])
        skipped += found[split].skipped
    strays = [name for split in splits for name in found[split].strays]
    given = {split: found[split].entries for split in splits}
    return FoundImages(classes, [entry for entries in given.values() for entry in entries], skipped, given, strays)


def _may_be_class(folder: Any) -> bool:
    """Whether a folder holds images, and no splits of its own (as a `sample/train` does)."""
    if any(inner and split_name(unquoted(path)) for path, inner in entries(folder)):
        return False
    return any(name.lower().endswith(_IMAGES) for name, _ in files_below(folder))


def images_in_folders(folder: Any, prefix: str = "") -> FoundImages:
    """The images in a folder for each class, at any depth below it; `prefix` comes before names of what is skipped.

    Hidden files are ignored. A file is taken for an image if its suffix is that of an image, or if it has none.
    """
    root = _existing(folder)
    inside = entries(root)
    if not any(inner for _, inner in inside):
        raise DataError(f"{str(root)!r} has no folders in it: there must be one for each class, with its images.")
    classes: list[str] = []
    images: list[ImageEntry] = []
    skipped: Skipped = []
    strays: list[str] = []
    for path, inner in inside:
        name = unquoted(path)
        files = []
        for below, file in files_below(path) if inner else []:
            if _may_be_image(below):
                files.append((below, file))
            else:
                strays.append(f"{prefix}{name}/{below}")
        if not inner:
            skipped.append((f"{prefix}{name}", "it lies outside of the class folders"))
        elif not files:
            skipped.append((f"{prefix}{name}/", "the class folder has no images"))
        else:
            images += [ImageEntry(file, f"{name}/{below}", len(classes)) for below, file in files]
            classes.append(name)
    if not images:
        others = f" They hold other files, such as {printable(strays[0])!r}." if strays else ""
        raise DataError(f"The class folders of {str(root)!r} hold no images.{others}")
    return FoundImages(classes, images, skipped, strays=strays)


def _may_be_image(name: str) -> bool:
    suffix = os.path.splitext(name)[1].lower()
    return suffix in _IMAGES or not suffix.strip(".0123456789") or suffix in _readable_suffixes()


@functools.cache
def _readable_suffixes() -> frozenset[str]:
    """All suffixes that Pillow reads; asked for the rare ones only, since it imports every format."""
    from PIL import Image

    known = Image.registered_extensions()
    return frozenset(suffix for suffix, kind in known.items() if kind in Image.OPEN)


def _existing(folder: Any) -> Any:
    root = located(folder)
    if not is_folder(root):
        raise DataError(f"The folder of images {str(root)!r} does not exist.")
    return root


def _some(names: Any, most: int = 5) -> str:
    names = list(names)
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def as_report(skipped: Skipped, most: int = 10) -> str:
    """What was skipped, in a few lines."""
    lines = [f"  {name}: {reason}" for name, reason in skipped[:most]]
    more = len(skipped) - most
    return "\n".join([*lines, *([f"  … and {more} more"] if more > 0 else [])])
