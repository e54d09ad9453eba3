"""Laying values over a raw tree: a file, or the words of a command line.

Choices of classes come first, parents before children, because they decide which other names exist; plain values follow.
"""

import typing
from collections.abc import Mapping
from typing import Any

from scena.errors import ParamsError
from scena.params.cli.unknown import unknown_name
from scena.params.cli.words import Raw, from_words
from scena.params.convert import Mismatch, convert, shown
from scena.params.declare import Params
from scena.params.files.entries import Entry, Section, entries_of, origins_of, translated
from scena.params.kinds import CLASS, Kind, candidates, class_of, find, listed, peel, unknown_class
from scena.params.settable import Index, Node, Origins, Path
from scena.params.tree import default_raw


def merge(raw: Mapping[str, Any], layer: Mapping[str, Any], cls: type[Params], *, origin: str = "") -> dict[str, Any]:
    """A new raw tree: `raw` with the values of `layer` laid over it. Nothing is converted yet; `build` does that.

    A changed class starts from its own defaults, the same class keeps its values; lists are replaced; dicts are merged, and None
    removes an entry. `layer` uses the names of fields, or any other name that the command line accepts.
    """
    result: dict[str, Any] = _copy(raw)
    merge_into(Origins(result, cls), entries_of(layer, origin))
    return result


def merge_into(tree: Origins, entries: list[Entry], *, lenient: bool = False) -> None:
    """Lays entries over `tree.raw` in place, and notes their origins. `lenient` skips what is wrong instead of raising."""
    layer = _Layer(tree, entries)
    try:
        layer.pending = translated(entries, layer.index)
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

    def run(self) -> None:
        self.choose_classes()
        for entry in self.pending:
            try:
                self.assign(entry)
            except (ParamsError, Mismatch) as error:
                self.errors.append(entry.error(str(error)))

    def choose_classes(self) -> None:
        while structural := [entry for entry in self.pending if self.structural(entry)]:
            order = {id(node): position for position, node in enumerate(self.index.nodes)}
            entry = min(structural, key=lambda entry: order[id(self.structural(entry)[0])])
            self.pending.remove(entry)
            try:
                if self.choose(entry, self.structural(entry)):
                    self.index = Index(self.tree.raw, self.tree.cls)
            except (ParamsError, Mismatch) as error:
                self.errors.append(entry.error(str(error)))

    def structural(self, entry: Entry) -> list[Node]:
        """The nodes of an entry that choose classes."""
        return [node for node in self.nodes(entry) if node.kind.form != "leaf"]

    def nodes(self, entry: Entry) -> list[Node]:
        return [node for node in self.index.get(entry.name) if not (node.hidden and entry.is_text)]

    def claim(self, node: Node, entry: Entry, *, replaced: bool = False) -> None:
        before = self.set_by.get(node.path)
        if before is not None:
            named = f"in {before.origin}" if before.origin else f"as {before.name}"
            raise ParamsError(f"is given twice, also {f'as --{before.name}' if entry.is_text else named}")
        self.set_by[node.path] = entry
        self.tree.set(node.path, entry.origin, replaced=replaced)

    # ------------------------------------------------------------------------------------------------ classes

    def choose(self, entry: Entry, nodes: list[Node]) -> bool:
        """Applies one choice; True if other names exist from now on."""
        node = nodes[0]
        if not entry.is_text and isinstance(entry.value, Mapping):
            return self.descend(entry, nodes)
        if node.kind.form == "params":
            return self.choose_one(entry, nodes)
        words = entry.value
        if words is None or (entry.is_text and words == ["None"] and node.kind.optional):
            return self.put(node, entry, None)
        if entry.is_text and words in (["[]"], ["{}"]):
            words = []
        if node.kind.form == "list":
            if not isinstance(words, list):
                raise Mismatch(f"a list of {node.kind.expected()}", words)
            return self.put_list(entry, node, words)
        if not entry.is_text:
            raise Mismatch(f"a mapping of names to {node.kind.expected()}", words)
        return self.put(node, entry, self.named_items(words, node))

    def put(self, node: Node, entry: Entry, value: Any) -> bool:
        self.claim(node, entry, replaced=True)
        node.holder[node.key] = value
        return True

    def put_list(self, entry: Entry, node: Node, items: list[Any]) -> bool:
        """A new list: each item starts with the defaults of its class; its other entries follow under their own names."""
        self.put(node, entry, [self.new_item(item, node) for item in items])
        for position, item in enumerate(items):
            own = Entry(f"{entry.name}.{position}", item, entry.origin)
            if isinstance(item, Mapping):
                self.pending += own.children()
            elif not isinstance(item, str) or find(item, *node.choice) is None:
                own.value = [item] if entry.is_text else item
                self.pending.append(own)
        return True

    def new_item(self, item: Any, node: Node) -> dict[str, Any]:
        name = item.get(CLASS) if isinstance(item, Mapping) else item
        if isinstance(name, str) and (cls := find(name, *node.choice)) is not None:
            return default_raw(cls, *node.choice)
        has_shorthand = any(base.__shorthand__ for base in node.kind.bases)
        if name is not None and (isinstance(item, Mapping) or not has_shorthand):
            raise ParamsError(unknown_class(name, *node.choice))
        return self.fresh(node)

    def descend(self, entry: Entry, nodes: list[Node]) -> bool:
        """A mapping: its class first, if it names one, then its entries under their own names."""
        node = nodes[0]
        changed = False
        if node.kind.form == "params":
            if CLASS in entry.value:
                chosen = Entry(entry.name, entry.value[CLASS], origins_of(entry.value).get(CLASS, entry.origin))
                changed = self.choose_one(chosen, nodes)
            elif all(one.value is None for one in nodes):
                changed = self.put(node, entry, self.fresh(node))
        elif node.kind.form == "dict":
            changed = self.descend_dict(entry, node)
        elif node.value is None:
            raise Mismatch(f"a list of {node.kind.expected()}", dict(entry.value))
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
                kept = {name: one for name, one in entry.value.items() if name != key}
                entry.value = Section(kept, origins_of(entry.value))
                self.tree.set((*node.path, key), entry.origin, replaced=True)
                changed = True
            elif value is not None and key not in node.value:
                node.value[key] = self.fresh(node) if isinstance(value, Mapping) and CLASS not in value else None
                changed = True
        return changed

    def fresh(self, node: Node) -> dict[str, Any]:
        """The defaults of the declared class, where a mapping does not say which class it means."""
        options = candidates(*node.choice)
        declared = [cls for cls in node.kind.bases if cls in options.values()]
        if len(declared) != 1 and len(options) != 1:
            raise ParamsError(f"the class is missing: add `{CLASS}: …`, one of {', '.join(options)}")
        return default_raw(declared[0] if len(declared) == 1 else next(iter(options.values())), *node.choice)

    def choose_one(self, entry: Entry, nodes: list[Node]) -> bool:
        value = entry.value
        if entry.is_text:
            value = value[0] if len(value) == 1 else value
        for node in nodes:
            current = class_of(node.value, *node.choice)
            cls = find(value, *node.choice, current) if isinstance(value, str) else None
            if cls is not None:
                self.claim(node, entry, replaced=cls is not current)
                if cls is not current:
                    node.holder[node.key] = default_raw(cls, *node.choice)
                return cls is not current
        for node in nodes:
            if value in (None, "None") and node.kind.optional:
                return self.put(node, entry, None)
        return self.choose_shorthand(entry, nodes, value)

    def choose_shorthand(self, entry: Entry, nodes: list[Node], value: Any) -> bool:
        """`learning_rate: 0.01` sets the field that the class declares as its shorthand."""
        for node in nodes:
            cls = class_of(node.value, *node.choice) or node.kind.bases[0]
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
        node = max(nodes, key=lambda node: len(candidates(*node.choice)))  # where there is most to choose from
        if isinstance(value, str):
            raise ParamsError(unknown_class(value, *node.choice))
        received = "nothing" if value == [] else shown(Raw(" ".join(value)) if entry.is_text else value)
        raise ParamsError(f"expected one of {', '.join(listed(*node.choice))}, received {received}")

    def named_items(self, words: list[str], node: Node) -> dict[str, Any]:
        items: dict[str, Any] = {}
        for word in words:
            name, equals, class_name = word.partition("=")
            if not name or "." in name or name in items or (equals and not class_name):
                raise Mismatch("name=Class pairs, each name once and without dots", Raw(" ".join(words)))
            kept = (node.value or {}).get(name)
            same = not class_name or find(class_name, *node.choice) is class_of(kept, *node.choice)
            if kept is not None and same:
                items[name] = kept
            else:
                items[name] = self.new_item(class_name, node) if class_name else self.fresh(node)
        return items

    # ------------------------------------------------------------------------------------------------ plain values

    def assign(self, entry: Entry) -> None:
        if nodes := self.nodes(entry):
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


def is_merged(kind: Kind) -> bool:
    """Whether a dict of plain values is merged. One that may hold None is replaced, for None could not remove an entry."""
    item = _dict_item(kind)
    alternatives, optional = peel(item)
    return item is not None and not optional and Any not in alternatives


def _dict_item(kind: Kind) -> Any:
    """The type of the entries of a dict of plain values, None if it is no such dict."""
    if kind.form == "leaf" and typing.get_origin(kind.hint) is dict:
        return typing.get_args(kind.hint)[1]
    return None


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list | tuple) else value
