"""Laying values over a raw tree: a file, or the words of a command line.

Choices of classes come first, parents before children, because they decide which other names exist; then the plain
values.
"""

import functools
import typing
from collections.abc import Mapping
from typing import Any

from scena.errors import ParamsError
from scena.params.cli.settable import COMMAND_LINE, Index, Node, Origins, Path, sentence
from scena.params.cli.unknown import unknown_name
from scena.params.cli.words import Raw, from_words
from scena.params.convert import Mismatch, convert, shown
from scena.params.declare import Params
from scena.params.selection import CLASS, candidates, class_of, find, listed, unknown_class
from scena.params.tree import default_raw
from scena.params.type_kinds import DICT, LEAF, LIST, PARAMS, Kind, peel


class Section(dict[str, Any]):
    """A mapping of a file that knows where each of its keys stands."""

    def __init__(self, values: Mapping[str, Any] | None = None, origins: Mapping[str, str] | None = None) -> None:
        super().__init__(values or {})
        self.origins: dict[str, str] = dict(origins or {})

    def dotted(self) -> str | None:
        """The first key that is no single name, as in `trainer.epochs: 3`; `module:Name` is a single one."""
        return next((key for key in self if "." in key and ":" not in key), None)


def nest_instead(key: str) -> str:
    """What to say about a key with dots. Files nest names, so that each value has one place, which the schema knows."""
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
        """The entries of a mapping, each under its own name; the class name is none of them."""
        origins = self.value.origins if isinstance(self.value, Section) else {}
        if isinstance(self.value, Section) and (dotted := self.value.dotted()) is not None:
            raise ParamsError(nest_instead(dotted))
        return [
            Entry(f"{self.name}.{key}", value, origins.get(key, self.origin))
            for key, value in self.value.items()
            if key != CLASS
        ]

    def error(self, message: str) -> str:
        """`message` with the name, and the place in the file, in front."""
        if self.is_text:
            return sentence(f"--{self.name}", message)
        return f"{self.origin}: {sentence(self.name, message)}" if self.origin else sentence(self.name, message)


def merge(raw: Mapping[str, Any], layer: Mapping[str, Any], cls: type[Params], *, origin: str = "") -> dict[str, Any]:
    """A new raw tree: `raw` with the values of `layer` laid over it. Nothing is converted yet; `build` does that.

    A changed class starts from its own defaults, the same class keeps its values; lists are replaced; dicts are
    merged, and None removes an
    entry. `layer` uses the names of fields, or any other name that the command line accepts.
    """
    result: dict[str, Any] = _copy(raw)
    merge_into(Origins(result, cls), entries_of(layer, origin))
    return result


def entries_of(layer: Mapping[str, Any], origin: str) -> list[Entry]:
    """The top level of a layer as entries."""
    origins = layer.origins if isinstance(layer, Section) else {}
    if isinstance(layer, Section) and (dotted := layer.dotted()) is not None:
        raise ParamsError(f"{origins.get(dotted, origin)}: {nest_instead(dotted)}")
    return [Entry(key, value, origins.get(key, origin)) for key, value in layer.items() if key != CLASS]


def merge_into(tree: Origins, entries: list[Entry], *, lenient: bool = False) -> None:
    """Lays entries over `tree.raw` in place, and notes their origins. `lenient` skips what is wrong instead of
    raising.
    """
    layer = _Layer(tree, entries)
    try:
        layer.translate()
    except ParamsError:
        if not lenient:
            raise
    layer.run()
    if layer.errors and not lenient:
        raise ParamsError("\n".join(layer.errors))


class _Layer:
    """One layer on its way into the tree."""

    def __init__(self, tree: Origins, entries: list[Entry]) -> None:
        self.tree = tree
        self.pending = entries
        self.index = Index(tree.raw, tree.cls)
        self.errors: list[str] = []
        self.set_by: dict[Path, Entry] = {}

    def translate(self) -> None:
        """Says foreign spellings in our own."""
        from scena.params.files.spellings import spellings_of, translated

        if foreign := spellings_of(self.index):
            self.pending = translated(self.pending, foreign)

    def run(self) -> None:
        self.choose_classes()
        for entry in self.pending:
            try:
                self.assign(entry)
            except (ParamsError, Mismatch) as error:
                self.errors.append(entry.error(str(error)))

    def choose_classes(self) -> None:
        order = {id(node): position for position, node in enumerate(self.index.nodes)}
        while True:
            structural = [
                (order[id(nodes[0])], position)
                for position, entry in enumerate(self.pending)
                if (nodes := self.structural(entry))
            ]
            if not structural:
                return
            entry = self.pending.pop(min(structural)[1])
            try:
                changed = self.choose(entry, self.structural(entry))
            except (ParamsError, Mismatch) as error:
                self.errors.append(entry.error(str(error)))
                changed = False
            if changed:
                self.index = Index(self.tree.raw, self.tree.cls)
                order = {id(node): position for position, node in enumerate(self.index.nodes)}

    def structural(self, entry: Entry) -> list[Node]:
        """The places of an entry that choose classes."""
        return [
            node
            for node in self.index.get(entry.name)
            if node.kind.form != LEAF and not (node.hidden and entry.is_text)
        ]

    def claim(self, node: Node, entry: Entry, *, replaced: bool = False) -> None:
        before = self.set_by.get(node.path)
        if before is not None:
            other = (
                f"as --{before.name}"
                if entry.is_text
                else f"in {before.origin}"
                if before.origin
                else f"as {before.name}"
            )
            raise ParamsError(f"is given twice, also {other}")
        self.set_by[node.path] = entry
        self.tree.set(node.path, entry.origin, replaced=replaced)

    # ------------------------------------------------------------------------------------------------ classes

    def choose(self, entry: Entry, nodes: list[Node]) -> bool:
        """Applies one choice; True if other names exist from now on."""
        node = nodes[0]
        if not entry.is_text and isinstance(entry.value, Mapping):
            return self.descend(entry, nodes)
        if node.kind.form == PARAMS:
            return self.choose_one(entry, nodes)
        words = entry.value
        if words is None or (entry.is_text and words == ["None"] and node.kind.optional):
            return self.put(node, entry, None)
        if entry.is_text and words in (["[]"], ["{}"]):
            words = []
        if node.kind.form == LIST:
            if not isinstance(words, list):
                raise Mismatch(f"a list of {_names(node)}", words)
            return self.put_list(entry, node, words)
        if not entry.is_text:
            raise Mismatch(f"a mapping of names to {_names(node)}", words)
        return self.put(node, entry, self.named_items(words, node))

    def put(self, node: Node, entry: Entry, value: Any) -> bool:
        self.claim(node, entry, replaced=True)
        node.holder[node.key] = value
        return True

    def put_list(self, entry: Entry, node: Node, items: list[Any]) -> bool:
        """A new list: each item starts with the defaults of its class; what else it says follows under its own name."""
        self.put(node, entry, [self.new_item(item, node) for item in items])
        for position, item in enumerate(items):
            own = Entry(f"{entry.name}.{position}", item, entry.origin)
            if isinstance(item, Mapping):
                self.pending += own.children()
            elif not isinstance(item, str) or find(item, node.kind, node.field) is None:
                own.value = [item] if entry.is_text else item
                self.pending.append(own)
        return True

    def new_item(self, item: Any, node: Node) -> dict[str, Any]:
        name = item.get(CLASS) if isinstance(item, Mapping) else item
        if isinstance(name, str) and (cls := find(name, node.kind, node.field)) is not None:
            return default_raw(cls, node.kind, node.field)
        has_shorthand = any(base.__shorthand__ for base in node.kind.bases)
        if name is not None and (isinstance(item, Mapping) or not has_shorthand):
            raise ParamsError(unknown_class(name, node.kind, node.field))
        return self.fresh(node)

    def descend(self, entry: Entry, nodes: list[Node]) -> bool:
        """A mapping: its class first, if it names one, then its entries under their own names."""
        node = nodes[0]
        changed = False
        if node.kind.form == PARAMS:
            if CLASS in entry.value:
                origins = entry.value.origins if isinstance(entry.value, Section) else {}
                changed = self.choose_one(
                    Entry(entry.name, entry.value[CLASS], origins.get(CLASS, entry.origin)), nodes
                )
            elif all(one.value is None for one in nodes):
                changed = self.put(node, entry, self.fresh(node))
        elif node.kind.form == DICT:
            changed = self.descend_dict(entry, node)
        elif node.value is None:
            raise Mismatch(f"a list of {_names(node)}", dict(entry.value))
        self.pending += entry.children()
        return changed

    def descend_dict(self, entry: Entry, node: Node) -> bool:
        if node.value is None:
            node.holder[node.key] = {}
        changed = False
        for key, value in list(entry.value.items()):
            if "." in key or not key:
                raise ParamsError(f"a name in it must not be empty and must not have a dot, received {key!r}")
            if value is None and key in node.value:
                del node.value[key]
                entry.value = Section(
                    {k: v for k, v in entry.value.items() if k != key}, getattr(entry.value, "origins", {})
                )
                self.tree.set((*node.path, key), entry.origin, replaced=True)
                changed = True
            elif value is not None and key not in node.value:
                node.value[key] = self.fresh(node) if isinstance(value, Mapping) and CLASS not in value else None
                changed = True
        return changed

    def fresh(self, node: Node) -> dict[str, Any]:
        """The defaults of the declared class, where a mapping does not say which class it means."""
        options = candidates(node.kind, node.field)
        declared = [cls for cls in node.kind.bases if cls in options.values()]
        if len(declared) != 1 and len(options) != 1:
            raise ParamsError(f"the class is missing: add `{CLASS}: …`, one of {', '.join(options)}")
        return default_raw(declared[0] if len(declared) == 1 else next(iter(options.values())), node.kind, node.field)

    def choose_one(self, entry: Entry, nodes: list[Node]) -> bool:
        value = entry.value
        if entry.is_text:
            value = value[0] if len(value) == 1 else value
        for node in nodes:
            current = class_of(node.value, node.kind, node.field)
            cls = find(value, node.kind, node.field, current) if isinstance(value, str) else None
            if cls is not None:
                self.claim(node, entry, replaced=cls is not current)
                if cls is not current:
                    node.holder[node.key] = default_raw(cls, node.kind, node.field)
                return cls is not current
        for node in nodes:
            if (value is None or value == "None") and (node.kind.optional):
                return self.put(node, entry, None)
        return self.choose_shorthand(entry, nodes, value)

    def choose_shorthand(self, entry: Entry, nodes: list[Node], value: Any) -> bool:
        """`learning_rate: 0.01` sets the field that the class declares as its shorthand."""
        for node in nodes:
            cls = class_of(node.value, node.kind, node.field) or node.kind.bases[0]
            if cls.__shorthand__ is None:
                continue
            hint = node.kind.hints_of(cls)[cls.__shorthand__]
            try:
                convert(from_words(entry.value, hint) if entry.is_text else value, hint)
            except Mismatch:
                continue
            changed = node.value is None
            if changed:
                node.holder[node.key] = self.fresh(node)
                self.tree.set(node.path, entry.origin, replaced=True)
            self.pending.append(Entry(f"{entry.name}.{cls.__shorthand__}", entry.value, entry.origin))
            return changed
        node = max(nodes, key=lambda node: len(candidates(node.kind, node.field)))  # where there is most to choose from
        if isinstance(value, str):
            raise ParamsError(unknown_class(value, node.kind, node.field))
        received = "nothing" if value == [] else shown(Raw(" ".join(value)) if entry.is_text else value)
        raise ParamsError(f"expected one of {', '.join(listed(node.kind, node.field))}, received {received}")

    def named_items(self, words: list[str], node: Node) -> dict[str, Any]:
        items: dict[str, Any] = {}
        for word in words:
            name, equals, class_name = word.partition("=")
            if not name or "." in name or name in items or (equals and not class_name):
                raise Mismatch("name=Class pairs, each name once and without dots", Raw(" ".join(words)))
            kept = (node.value or {}).get(name)
            if kept is not None and (
                not class_name or find(class_name, node.kind, node.field) is class_of(kept, node.kind, node.field)
            ):
                items[name] = kept
            else:
                items[name] = self.new_item(class_name, node) if class_name else self.fresh(node)
        return items

    # ------------------------------------------------------------------------------------------------ plain values

    def assign(self, entry: Entry) -> None:
        nodes = [node for node in self.index.get(entry.name) if not (node.hidden and entry.is_text)]
        if nodes:
            node = nodes[0]
            self.claim(node, entry)
            node.holder[node.key] = self.leaf_value(entry, node)
        elif not self.assign_dict_item(entry) and not self.assign_below(entry):
            message = unknown_name(entry.name, self.index, flags=entry.is_text)
            self.errors.append(message if entry.is_text or not entry.origin else f"{entry.origin}: {message}")

    def leaf_value(self, entry: Entry, node: Node) -> Any:
        if entry.is_text:
            return from_words(entry.value, node.hint)
        if isinstance(entry.value, Mapping) and isinstance(node.value, dict) and is_merged(node.kind):
            return {key: value for key, value in {**node.value, **entry.value}.items() if value is not None}
        return _copy(entry.value)

    def assign_dict_item(self, entry: Entry) -> bool:
        """`--weights.a 2` sets one entry of a dict of plain values."""
        name, dot, _ = entry.name.rpartition(".")
        while dot:
            for node in self.index.get(name):
                item = _dict_item(node.kind)
                if item is not None and not (node.hidden and entry.is_text):
                    rest = entry.name[len(name) + 1 :]
                    value = from_words(entry.value, item) if entry.is_text else _copy(entry.value)
                    node.holder[node.key] = {**(node.value or {}), rest: value}
                    self.tree.set(node.path, entry.origin)
                    return True
            name, dot, _ = name.rpartition(".")
        return False

    def assign_below(self, entry: Entry) -> bool:
        """A mapping whose name is only the beginning of other names, as an alias with a dot makes it."""
        if entry.is_text or not isinstance(entry.value, Mapping):
            return False
        if not any(name.startswith(f"{entry.name}.") for name in self.index.by_name):
            return False
        for child in entry.children():
            self.assign(child)
        return True


def _names(node: Node) -> str:
    return " or ".join(base.__name__ for base in node.kind.bases)


def is_merged(kind: Kind) -> bool:
    """Whether a dict of plain values is merged. One that may hold None is replaced, for None could not remove an entry."""
    item = _dict_item(kind)
    alternatives, optional = peel(item)
    return item is not None and not optional and Any not in alternatives


def _dict_item(kind: Kind) -> Any:
    """The type of the entries of a dict of plain values, None if it is no such dict."""
    if kind.form == LEAF and typing.get_origin(kind.hint) is dict:
        return typing.get_args(kind.hint)[1]
    return None


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list | tuple) else value
