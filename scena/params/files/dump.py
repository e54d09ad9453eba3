"""A params object written back: as a YAML file in the names of the command line, and as a command line.

Both hold what differs from a default, so that reading them over that default gives the same params object again.
"""

import functools
import json
import operator
import re
import shlex
from typing import Any, NamedTuple

from scena.errors import ParamsError
from scena.params.cli.words import to_words
from scena.params.declare import Field, Params
from scena.params.files.entries import Entry
from scena.params.files.overlay import is_merged, merge_into
from scena.params.kinds import CLASS, Kind, candidates, class_of, kind_of
from scena.params.settable import COMMAND_LINE, Index, Node, Origins, Path
from scena.params.tree import default_raw, to_raw


def dump_words(params: Params, default: Params | None = None) -> list[str]:
    """The words of a command line that turns `default` (by default that of the class) into `params`.

    Hidden state has no flags, so it is not part of it.
    """
    target = to_raw(params)
    tree = Origins(to_raw(default) if default is not None else default_raw(type(params)), type(params))
    words: list[str] = []
    index = Index(tree.raw, tree.cls)
    while (choice := _next_choice(index, target)) is not None:
        name, chosen = choice
        merge_into(tree, [Entry(name, chosen, COMMAND_LINE)])
        words += [f"--{name}", *chosen]
        index = Index(tree.raw, tree.cls)
    for node in index.nodes:
        if node.kind.form == "leaf" and not node.hidden and _at(target, node.path) != node.value:
            own = to_words(_at(target, node.path), node.hint)
            name = _unique_name(node, index)
            one_word = len(own) == 1 and own[0].startswith("-")
            words += [f"--{name}={own[0]}"] if one_word else [f"--{name}", *own]
    return words


def dump_command(params: Params, default: Params | None = None) -> str:
    """`dump_words` as text to paste into a shell."""
    return shlex.join(dump_words(params, default))


def _at(raw: Any, path: Path) -> Any:
    return functools.reduce(operator.getitem, path, raw)


def _next_choice(index: Index, target: dict[str, Any]) -> tuple[str, list[str]] | None:
    """The first place, parents first, where another class stands in the target: (name, words)."""
    for node in index.nodes:
        if node.kind.form == "leaf" or node.hidden:
            continue
        wanted = _classes(_at(target, node.path), node)
        if wanted != _classes(node.value, node):
            return _unique_name(node, index), wanted
    return None


def _classes(value: Any, node: Node) -> list[str]:
    if value is None:
        return ["None"]
    if node.kind.form == "params":
        return [value[CLASS]]
    if node.kind.form == "list":
        return [item[CLASS] for item in value]
    return sorted(f"{name}={item[CLASS]}" for name, item in value.items())


def _unique_name(node: Node, index: Index) -> str:
    return next((name for name in node.names if index.get(name) == [node]), node.name)


def dump_yaml(params: Params, default: Params | None = None, *, full: bool = False, comments: bool = False) -> str:
    """A YAML file that turns `default` (by default that of the class) into `params`.

    Args:
        full: write every value, not only those that differ from `default`.
        comments: write what each parameter does beside it.
    """
    cls = type(params)
    base = to_raw(default) if default is not None else default_raw(cls)
    root: dict[str, Any] = {}
    writer = _Writer(root, full, comments)
    writer.fields(to_raw(params), base, cls, kind_of(cls), root, in_item=False)
    return write(root)


class _Writer:
    """Collects the values of a tree that have to be written."""

    def __init__(self, root: dict[str, Any], full: bool, comments: bool) -> None:
        self.root, self.full, self.comments = root, full, comments

    def fields(
        self, raw: dict[str, Any], base: Any, cls: type[Params], kind: Kind, own: dict[str, Any], in_item: bool
    ) -> None:
        hints = kind.hints_of(cls)
        for name, field in cls.__params__.items():
            inner = kind_of(hints[name])
            value, before = raw.get(name), base.get(name) if base is not None else None
            place, key = (self.root, field.root_name) if field.flat and not in_item else (own, name)
            if inner.form == "params":
                self.object(value, before, inner, field, place, key, own, in_item)
            elif inner.form == "leaf":
                if (self.full and not (value is None and field.required)) or value != before:
                    place[key] = Leaf(_leaf(value, before, inner), field.help if self.comments else "")
            elif value is None or before is None or inner.form == "list":
                if self.full or value != before:
                    place[key] = self.container(value, inner, field)
            elif entries := self.entries(value, before, inner, field):
                place[key] = entries

    def object(self, value: Any, before: Any, kind: Kind, field: Field, place: dict[str, Any], key: str, own: dict[str, Any],
               in_item: bool) -> None:  # fmt: skip
        if value is None:
            if before is not None or (self.full and kind.optional):
                place[key] = Leaf(None, field.help if self.comments else "")
            return
        cls = _class(value, kind, field)
        same = isinstance(before, dict) and before.get(CLASS) == value[CLASS]
        inside: dict[str, Any] = {}
        if not same or (self.full and has_choice(kind, field)):
            inside[CLASS] = Leaf(value[CLASS], field.help if self.comments else "")
        target = own if field.inline and not inside else inside
        self.fields(value, before if same else default_raw(cls, kind, field), cls, kind, target, in_item)
        if not inside:
            return
        if isinstance(shared := place.get(key), dict) and not (shared.keys() & inside.keys()):
            shared.update(inside)  # two params objects under one name at the root
        elif key in place and (place is not own or key != field.name):
            own[field.name] = _shortened(inside)
        else:
            place[key] = _shortened(inside)

    def item(self, value: Any, before: Any, kind: Kind, field: Field) -> Any:
        """One params object of a list or dict."""
        cls = _class(value, kind, field)
        same = isinstance(before, dict) and before.get(CLASS) == value[CLASS]
        inside: dict[str, Any] = {} if same and not self.full else {CLASS: Leaf(value[CLASS], "")}
        self.fields(value, before if same else default_raw(cls, kind, field), cls, kind, inside, in_item=True)
        return _shortened(inside)

    def container(self, value: Any, kind: Kind, field: Field) -> Any:
        if value is None:
            return Leaf(None, field.help if self.comments else "")
        if kind.form == "list":
            return [self.item(item, None, kind, field) for item in value] or Leaf([], "")
        return {name: self.item(item, None, kind, field) for name, item in value.items()} or Leaf({}, "")

    def entries(self, value: dict[str, Any], before: dict[str, Any], kind: Kind, field: Field) -> dict[str, Any]:
        """What changes a dict of params objects; None removes an entry."""
        new = {name: item for name, item in value.items() if self.full or item != before.get(name)}
        changed = {name: self.item(item, before.get(name), kind, field) for name, item in new.items()}
        return {**changed, **{name: Leaf(None, "") for name in before if name not in value}}


def _class(value: Any, kind: Kind, field: Field) -> type[Params]:
    cls = class_of(value, kind, field)
    if cls is None:
        raise ParamsError(f"{field.name}: the class {value.get(CLASS)!r} is not known")
    return cls


def has_choice(kind: Kind, field: Field) -> bool:
    """Whether a user can choose a class for the field."""
    return kind.optional or len(candidates(kind, field)) > 1


def _shortened(inside: dict[str, Any]) -> Any:
    """`graph: CNN` instead of a mapping with nothing but the class."""
    return inside[CLASS] if inside.keys() == {CLASS} else inside


def _leaf(value: Any, before: Any, kind: Kind) -> Any:
    """A value to write; a dict is merged when it is read, so entries that are gone have to be removed by None."""
    if not isinstance(value, dict) or not isinstance(before, dict) or not is_merged(kind):
        return value
    return {**value, **{name: None for name in before if name not in value}}


_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./+-]*")
# words that YAML 1.1 or 1.2 does not read as text
_SPECIAL = frozenset("null none ~ true false yes no on off y n .inf .nan - . ..".split())


class Leaf(NamedTuple):
    """A value to write in one line, and the comment beside it."""

    value: Any
    comment: str = ""

    def text(self) -> str:
        """The value and its comment."""
        comment = f"  # {' '.join(self.comment.split())}" if self.comment else ""
        return f"{flow(self.value)}{comment}"


def write(data: dict[str, Any]) -> str:
    """Nested dicts and lists of Leafs as the text of a YAML file."""
    return "\n".join(_mapping(data, "")) + "\n" if data else "{}\n"


def _mapping(data: dict[str, Any], indent: str) -> list[str]:
    lines = []
    for key, value in data.items():
        name = f"{indent}{flow(key)}:"
        if isinstance(value, Leaf):
            lines.append(f"{name} {value.text()}")
        elif isinstance(value, list):
            lines.append(name)
            for item in value:
                lines += _item(item, f"{indent}  ")
        elif value:
            lines += [name, *_mapping(value, f"{indent}  ")]
        else:
            lines.append(f"{name} {{}}")
    return lines


def _item(item: Any, indent: str) -> list[str]:
    if isinstance(item, Leaf):
        return [f"{indent}- {item.text()}"]
    lines = _mapping(item, f"{indent}  ")
    return [f"{indent}- {lines[0].lstrip()}", *lines[1:]]


def flow(value: Any) -> str:
    """A plain value in one line."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, float) and value - value != 0:
        return ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    return json.dumps(value)


def _text(text: str) -> str:
    number = re.match(r"\.\d|\.(inf|nan)", text, re.IGNORECASE)
    if _PLAIN.fullmatch(text) and text.lower() not in _SPECIAL and not number:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else _escape(char) for char in quoted)


def _escape(char: str) -> str:
    code = ord(char)
    if 0xD800 <= code < 0xE000:
        raise ParamsError(
            f"The text has a character that is not valid Unicode, U+{code:04X}: it cannot be written to a file."
        )
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
