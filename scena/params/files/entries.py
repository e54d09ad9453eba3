"""What a file or a command line gives: values under names, each with its origin.

A params class may also accept the names of another system (`__spellings__ = "package.module:NAME"`). They are hidden: help, schema
and stored parameters know our own names only.
"""

import functools
import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from scena.errors import ParamsError
from scena.params.kinds import CLASS
from scena.params.settable import COMMAND_LINE, Index, sentence


class Section(dict[str, Any]):
    """A mapping of a file that knows where each of its keys stands."""

    def __init__(self, values: Mapping[str, Any] | None = None, origins: Mapping[str, str] | None = None) -> None:
        super().__init__(values or {})
        self.origins: dict[str, str] = dict(origins or {})

    def dotted(self) -> str | None:
        """The first key that is no single name, as in `trainer.epochs: 3`; `module:Name` is a single one."""
        return next((key for key in self if "." in key and ":" not in key), None)


def origins_of(layer: Mapping[str, Any]) -> dict[str, str]:
    """Where each key of a mapping stands, as far as it is known."""
    return layer.origins if isinstance(layer, Section) else {}


def nest_instead(key: str) -> str:
    """The hint for a key with dots. Files nest names, so that each value has one place, which the schema knows."""
    *parents, last = key.split(".")
    nested = functools.reduce(lambda inner, name: f"{name}: {{{inner}}}", reversed(parents), f"{last}: …")
    return f"a name in a file has no dots; write `{nested}` instead of `{key}: …`"


class Entry:
    """One value that was given: under which name, and by whom."""

    __slots__ = ("name", "origin", "value")

    def __init__(self, name: str, value: Any, origin: str) -> None:
        self.name, self.value, self.origin = name, value, origin

    @property
    def is_text(self) -> bool:
        """Whether the value is the list of words of a command line, still to be read by type."""
        return self.origin == COMMAND_LINE

    def children(self) -> "list[Entry]":
        """The entries of a mapping, each under its own name."""
        if isinstance(self.value, Section) and (dotted := self.value.dotted()) is not None:
            raise ParamsError(nest_instead(dotted))
        return [Entry(f"{self.name}.{one.name}", one.value, one.origin) for one in entries_of(self.value, self.origin)]

    def error(self, message: str) -> str:
        """`message` with the name, and the place in the file, in front."""
        if self.is_text:
            return sentence(f"--{self.name}", message)
        return f"{self.origin}: {sentence(self.name, message)}" if self.origin else sentence(self.name, message)


def entries_of(layer: Mapping[str, Any], origin: str) -> list[Entry]:
    """The top level of a layer as entries; the class name is none of them."""
    origins = origins_of(layer)
    if isinstance(layer, Section) and (dotted := layer.dotted()) is not None:
        raise ParamsError(f"{origins.get(dotted, origin)}: {nest_instead(dotted)}")
    return [Entry(key, value, origins.get(key, origin)) for key, value in layer.items() if key != CLASS]


class Spellings(NamedTuple):
    """The names of another system, and a function that translates them into ours."""

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


def translated(entries: list[Entry], index: Index) -> list[Entry]:
    """The entries, those under foreign names replaced by what they stand for."""
    for spellings in spellings_of(index):
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
    return Entry(entry.name, Section(values, origins_of(entry.value)), entry.origin)
