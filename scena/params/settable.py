"""The nodes of a raw tree that can be set under its current selection, and what a user calls them.

A node has one canonical name (`model.graph.filters`) and may have more that are accepted: full paths of flat and inline fields,
aliases, the index of a list item. Names are the same on the command line and in files.
"""

from collections.abc import Iterator
from typing import Any

from scena.errors import ParamsError
from scena.params.declare import Field, Params
from scena.params.kinds import CLASS, Kind, class_of, kind_of

Path = tuple[str | int, ...]  # keys from the root of a raw tree


class Node:
    """One node of the tree."""

    __slots__ = ("cls", "field", "hidden", "hint", "holder", "key", "kind", "names", "path", "title")

    def __init__(self, names: tuple[str, ...], path: Path, holder: Any, key: Any, kind: Kind, hint: Any, field: Field,
                 cls: type[Params] | None, hidden: bool, title: str) -> None:  # fmt: skip
        self.names = names  # the canonical one first
        self.path = path
        self.holder, self.key = holder, key  # holder[key] is the raw value
        self.kind, self.hint, self.field = kind, hint, field
        self.cls = cls  # the class of the params object this is a field of
        self.hidden = hidden
        self.title = title  # the canonical name of that params object, "" at the root

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def value(self) -> Any:
        return self.holder[self.key]

    @property
    def choice(self) -> tuple[Kind, Field]:
        """What decides which classes can be chosen here."""
        return self.kind, self.field

    def __repr__(self) -> str:
        return f"<Node {self.name} {self.kind.form}>"


def walk(
    raw: dict[str, Any], cls: type[Params], prefixes: tuple[str, ...] = ("",), kind: Kind | None = None
) -> Iterator[Node]:
    """All nodes of a tree, parents before children, in the order of declaration."""
    yield from _walk_object(raw, cls, kind or kind_of(cls), prefixes, (), False, False)


def _walk_object(raw: dict[str, Any], cls: type[Params], kind: Kind, prefixes: tuple[str, ...], path: Path, in_item: bool,
                 hidden: bool) -> Iterator[Node]:  # fmt: skip
    hints = kind.hints_of(cls)
    for name, field in cls.__params__.items():
        hint = hints[name]
        inner = kind_of(hint)
        names = _names(field, prefixes, in_item)
        secret = hidden or field.hidden or bool(field.positional)
        node = Node(names, (*path, name), raw, name, inner, hint, field, cls, secret, prefixes[0])
        raw.setdefault(name, None)
        yield node
        if inner.form == "params":
            yield from _walk_value(node, (*prefixes, *names) if field.inline else names, in_item)
        elif inner.form == "list" and node.value:
            yield from _walk_items(node, list(enumerate(node.value)))
        elif inner.form == "dict" and node.value:
            yield from _walk_items(node, list(node.value.items()))


def _walk_value(node: Node, prefixes: tuple[str, ...], in_item: bool) -> Iterator[Node]:
    cls = class_of(node.value, *node.choice)
    if cls is not None:
        yield from _walk_object(node.value, cls, node.kind, prefixes, node.path, in_item, node.hidden)


def _walk_items(node: Node, items: list[tuple[Any, Any]]) -> Iterator[Node]:
    classes = [item.get(CLASS) if isinstance(item, dict) else None for _, item in items]
    for (key, _), class_name in zip(items, classes, strict=True):
        keys = [str(key)]
        if isinstance(key, int) and class_name is not None and classes.count(class_name) == 1:
            keys.insert(0, class_name)  # by class name where that is unique, by index always
        names = tuple(f"{name}.{own}" for own in keys for name in node.names)
        kind = Kind("params", node.kind.hint, False, node.kind.bases, aliases=node.kind.aliases)
        path = (*node.path, key)
        item = Node(names, path, node.value, key, kind, node.hint, node.field, None, node.hidden, node.name)
        yield item
        yield from _walk_value(item, names, True)


def _names(field: Field, prefixes: tuple[str, ...], in_item: bool) -> tuple[str, ...]:
    own = (field.name, *(alias for alias in field.aliases if "." not in alias))
    names = [f"{prefix}.{name}" if prefix else name for name in own for prefix in prefixes]
    if field.flat and not in_item:  # inside a list, a name at the root could belong to any of the items
        names = [field.root_name, *own[1:], *names]
    names += [alias for alias in field.aliases if "." in alias]
    return tuple(dict.fromkeys(names)) if len(names) > 1 else tuple(names)


class Index:
    """The nodes of a tree by name."""

    def __init__(self, raw: dict[str, Any], cls: type[Params]) -> None:
        self.raw, self.cls = raw, cls
        self.nodes = list(walk(raw, cls))
        self.by_name: dict[str, list[Node]] = {}
        for node in self.nodes:
            same = self.by_name.setdefault(node.names[0], [])
            if same and "leaf" in (node.kind.form, same[0].kind.form):
                one, other = (f"{one.field.owner.__name__}.{one.field.name}" for one in (same[0], node))
                problem = f"--{node.name} is declared twice: by {one} and by {other}"
                raise ParamsError(f'{problem}; rename one of them, or give it another name with param(flat="…").')
            same.append(node)
        canonical = set(self.by_name)
        for node in self.nodes:
            for name in node.names[1:]:
                if name not in canonical:
                    self.by_name.setdefault(name, []).append(node)

    def get(self, name: str) -> list[Node]:
        """The nodes called `name`: several only where params objects share a name at the root (`data`)."""
        return self.by_name.get(name, [])

    def known_elsewhere(self, name: str) -> list[str]:
        """The flags that other frameworks call by this name."""
        return [node.name for node in self.nodes if not node.hidden and name in node.field.known_as]

    def name_of(self, path: Path) -> str:
        """The canonical name of a path; for a path that does not exist, what a user would call it."""
        for node in self.nodes:
            if node.path == path:
                return node.name
        if not path:
            return ""
        parent = self.name_of(path[:-1])
        return f"{parent}.{path[-1]}" if parent else str(path[-1])


class Where:
    """How errors name a parameter: here by its dotted path; `Origins` knows files, lines and flags."""

    def error(self, path: Path, message: str) -> str:
        """`message` with its place in front."""
        return sentence(".".join(map(str, path)), message)


def sentence(name: str, message: str) -> str:
    """`name: message`, or `name is …` where the message is a predicate."""
    if not name:
        return message
    return f"{name} {message}" if message.startswith(("is ", "must ")) else f"{name}: {message}"


DEFAULT, COMMAND_LINE = "default", "command line"


class Origins(Where):
    """Path -> "default", "runs.yaml:12 (set big)" or "command line"."""

    def __init__(self, raw: dict[str, Any], cls: type[Params]) -> None:
        self.raw, self.cls = raw, cls
        self.known: dict[Path, str] = {}

    def set(self, path: Path, origin: str, *, replaced: bool = False) -> None:
        """Notes who set a path; `replaced`: and everything below it is reset."""
        if replaced:
            self.known = {other: label for other, label in self.known.items() if other[: len(path)] != path}
        self.known[path] = origin

    def get(self, path: Path) -> str:
        return self.known.get(path, DEFAULT)

    def error(self, path: Path, message: str) -> str:
        """`--flag: message`, or `file:line: name: message` for a value that came from a file."""
        name = Index(self.raw, self.cls).name_of(path)
        above = (path[:length] for length in range(len(path), 0, -1))
        origin = next((self.known[one] for one in above if one in self.known), DEFAULT)
        if origin in (DEFAULT, COMMAND_LINE) or message.startswith("is required"):
            return sentence(f"--{name}" if name else "", message)
        return f"{origin}: {sentence(name, message)}"

    def by_name(self) -> dict[str, str]:
        """The canonical name of every value of the tree -> who set it."""
        return {node.name: self.get(node.path) for node in Index(self.raw, self.cls).nodes}
