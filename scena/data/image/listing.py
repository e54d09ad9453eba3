"""Which images there are, of which class and split: folders with a folder for each class, or tables of paths and labels.

Every command and source that takes images finds them here.
"""

import os
import re
from collections.abc import Sequence
from typing import Any, Protocol

from scena.errors import DataError
from scena.storage.location import Location, entries, files_below, is_folder, located, unquoted

_SPLIT = re.compile(
    r"(train|training|validation|valid|val|dev|testing|test|evaluation|eval)(?:[-_ ]?(?:set|data|images))?(\d*)", re.I
)
_IMAGES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


class ImageEntry:
    """One image file: where it is, how it is called, and the number of its class."""

    __slots__ = ("label", "name", "path")

    def __init__(self, path: Any, name: str, label: int) -> None:
        self.path = path
        self.name = name
        self.label = label

    def __repr__(self) -> str:
        return f"ImageEntry({self.name!r}, {self.label})"


class FoundImages:
    """The images of a data set.

    Attributes:
        classes: the names of the classes; a label is a place in this list.
        entries: the images, by class and name.
        left_out: what was found but cannot be used: (name, reason).
        splits: the images of each split, if the data set is divided already; the training split is the first.
    """

    def __init__(self, classes: list[str], entries: list[ImageEntry], left_out: list[tuple[str, str]],
                 splits: dict[str, list[ImageEntry]] | None = None) -> None:  # fmt: skip
        self.classes = [printable(name) for name in classes]
        self.entries = entries
        self.left_out = [(printable(name), reason) for name, reason in left_out]
        self.splits = splits or {}


class WhereImagesAre(Protocol):
    """The parameters that say where images are."""

    images: Location | None
    csv: Location | None
    delimiter: str | None
    header: bool
    path_column: str | None
    label_column: str | None
    split_column: str | None
    folders: str


def find_images(params: WhereImagesAre) -> FoundImages:
    """The images of a folder or table."""
    if params.csv is None:
        return images_in_tree(params.images or ".", params.folders)
    from scena.data.image.table import images_in_table

    return images_in_table(
        params.csv,
        folder=params.images,
        delimiter=params.delimiter,
        header=params.header,
        path_column=params.path_column,
        label_column=params.label_column,
        split_column=params.split_column,
    )


def printable(name: str) -> str:
    """The name of a file, with what is not text in it (a system without UTF-8 has written it) as \\xff."""
    return os.fsencode(name).decode(errors="backslashreplace")


def split_name(name: str) -> str | None:
    """The split that a folder's or column's word stands for (`Train`, `test1`, `validation_set`), None if it is no split."""
    found = _SPLIT.fullmatch(name)
    return found[1].lower() + found[2] if found else None


def in_order(splits: Sequence[str]) -> list[str]:
    """Training splits first, then those for validation, then those for tests."""
    kinds = ("train", "val", "dev")
    place = {name: next((n for n, kind in enumerate(kinds) if name.startswith(kind)), len(kinds)) for name in splits}
    return sorted(splits, key=lambda name: (place[name], name))


def images_in_tree(folder: Any, kind: str = "auto") -> FoundImages:
    """The images of a folder of class folders, or of folders for splits with those in them.

    Args:
        folder: where to look.
        kind: "classes" or "splits" say what the folders in it are; "auto" finds out, and refuses where both is possible.
    """
    root = _existing(folder)
    folders = {unquoted(path): path for path, inner in entries(root) if inner}
    named = {name: path for name, path in folders.items() if split_name(name)}
    if kind == "classes" or (kind == "auto" and not named):
        return images_in_folders(root)
    if not named:
        raise DataError(
            f"{str(root)!r} has no folder named like a split (train, validation, test). It has: {_some(folders)}."
        )
    others = {name: path for name, path in folders.items() if name not in named}
    divided = {name: path for name, path in named.items() if any(inner for _, inner in entries(path))}
    unclear = [name for name, path in others.items() if kind == "auto" and _may_be_class(path)]
    if unclear:
        raise DataError(
            f"{str(root)!r} has folders named like splits ({_some(named)}) beside others with images ({_some(unclear)}). If all "
            "of them are classes, say folders=classes; if the others are to be left out, folders=splits."
        )
    if not divided:
        raise DataError(
            f"{str(root / next(iter(named)))!r} has no folders in it: a split needs one for each class, with its images. If "
            f"{_some(named)} are classes, say folders=classes; if names or a table tell the class, use a table (csv)."
        )
    left_out = [(f"{name}/", "its images are in no class folder") for name in named if name not in divided]
    left_out += [(f"{name}/", "it is no split") for name in others]
    return _in_splits(root, divided, left_out)


def _in_splits(root: Any, folders: dict[str, Any], left_out: list[tuple[str, str]]) -> FoundImages:
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
                f"The splits of {str(root)!r} have different classes: {split} has {_some(more)}, which {splits[0]} does not have."
            )
        for entry in found[split].entries:
            entry.label = classes.index(found[split].classes[entry.label])
        left_out += found[split].left_out
    given = {split: found[split].entries for split in splits}
    return FoundImages(classes, [entry for entries in given.values() for entry in entries], left_out, given)


def _may_be_class(folder: Any) -> bool:
    """Whether a folder holds images, and no splits of its own (as a `sample/train` does)."""
    if any(inner and split_name(unquoted(path)) for path, inner in entries(folder)):
        return False
    return any(name.lower().endswith(_IMAGES) for name, _ in files_below(folder))


def images_in_folders(folder: Any, prefix: str = "") -> FoundImages:
    """The files in a folder for each class, at any depth below it. Hidden files are not looked at.

    Args:
        folder: the folder of class folders.
        prefix: what comes before the names of what is left out.
    """
    root = _existing(folder)
    inside = entries(root)
    folders = [path for path, inner in inside if inner]
    if not folders:
        raise DataError(f"{str(root)!r} has no folders in it: there must be one for each class, with its images.")
    classes: list[str] = []
    images: list[ImageEntry] = []
    left_out = [
        (f"{prefix}{unquoted(path)}", "it lies outside of the class folders") for path, inner in inside if not inner
    ]
    for class_folder in folders:
        name = unquoted(class_folder)
        files = files_below(class_folder)
        if not files:
            left_out.append((f"{prefix}{name}/", "the class folder has no images"))
            continue
        images += [ImageEntry(path, f"{name}/{inner}", len(classes)) for inner, path in files]
        classes.append(name)
    if not images:
        raise DataError(f"The class folders of {str(root)!r} hold no files.")
    return FoundImages(classes, images, left_out)


def _existing(folder: Any) -> Any:
    root = located(folder)
    if not is_folder(root):
        raise DataError(f"The folder of images {str(root)!r} does not exist.")
    return root


def _some(names: Any, most: int = 5) -> str:
    names = list(names)
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def as_report(left_out: list[tuple[str, str]], most: int = 10) -> str:
    """What was left out, in a few lines."""
    lines = [f"  {name}: {reason}" for name, reason in left_out[:most]]
    more: Any = len(left_out) - most
    return "\n".join([*lines, *([f"  … and {more} more"] if more > 0 else [])])
