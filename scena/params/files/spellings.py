"""Spellings of another system: flags and file keys that a tree accepts beside its own, and what they stand for.

A params class names its spellings (`__spellings__ = "package.module:NAME"`). They are hidden: help, schema and stored
parameters know our own names only.
"""

import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from scena.params.cli.settable import Index
from scena.params.files.overlay import Entry, Section


class Spellings(NamedTuple):
    """The names of another system, and a function that says them in ours."""

    names: Collection[str]
    """As they stand on a command line: `dataloader.name`."""
    translate: Callable[[dict[str, Entry]], list[Entry]]
    """Takes what was given under these names, in one file or on one command line. May raise ParamsError."""


def spellings_of(index: Index) -> list[Spellings]:
    """The foreign spellings that the classes of a tree accept."""
    places = {node.cls.__spellings__ for node in index.nodes if node.cls is not None and node.cls.__spellings__}
    found = []
    for place in sorted(places):
        module, _, name = place.partition(":")
        found.append(getattr(importlib.import_module(module), name))
    return found


def translated(entries: list[Entry], foreign: list[Spellings]) -> list[Entry]:
    """The entries, those under foreign names replaced by what they stand for."""
    for spellings in foreign:
        given: dict[str, Entry] = {}
        entries = [left for entry in entries if (left := _without(entry, spellings.names, given)) is not None]
        if given:
            entries = entries + spellings.translate(given)
    return entries


def _without(entry: Entry, names: Collection[str], taken: dict[str, Entry]) -> Entry | None:
    """What is left of an entry when foreign names are taken out; they may stand deep in a mapping, beside names of ours."""
    if entry.name in names and not isinstance(entry.value, Mapping):
        taken[entry.name] = entry
        return None
    if not isinstance(entry.value, Mapping) or not any(name.startswith(f"{entry.name}.") for name in names):
        return entry
    prefix = len(entry.name) + 1
    left: dict[str, Any] = {child.name[prefix:]: _without(child, names, taken) for child in entry.children()}
    kept = {key: value for key, value in entry.value.items() if left.get(key, entry) is not None}
    if not kept:
        return None
    values = {key: value if left.get(key) is None else left[key].value for key, value in kept.items()}
    return Entry(entry.name, Section(values, getattr(entry.value, "origins", {})), entry.origin)
