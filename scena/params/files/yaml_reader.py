"""Reading a YAML or JSON file into plain data that knows its lines.

Built on the events of PyYAML's parser, not on its loaders, because a file of parameters needs more: the line of each key, an error
for a duplicate key, YAML 1.2 scalars (`1e-4` is a number, `no` a text), no tags, and limits on nesting and on the size of aliases.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from scena.errors import ParamsError, did_you_mean
from scena.params.convert import shown
from scena.params.files.entries import Section
from scena.params.kinds import CLASS

MAX_DEPTH = 60
MAX_VALUES = 100_000
MAX_BYTES = 10_000_000

_NULL = frozenset({"", "~", "null", "Null", "NULL", "None"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")}


def read(path: str) -> Any:
    """The data of a file: Sections (mappings with the origin of each key), lists, and scalars. None for an empty file."""
    text = _text(path)
    try:
        return _Reader(path, text).document()
    except RecursionError:
        raise ParamsError(f"{path}: is nested too deeply") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark is not None else ""
        problem = error.problem or error.context or ""
        if mark is not None and re.match(r" *\t", "".join(text.splitlines()[mark.line : mark.line + 1])):
            problem += " (indent with spaces instead of a tab)"
        raise ParamsError(f"{path}{line}: this is not valid YAML: {problem}") from None
    except yaml.YAMLError as error:
        raise ParamsError(f"{path}: this is not valid YAML: {' '.join(str(error).split())}") from None


def _text(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ParamsError(f"{path}: there is no such file{_neighbours(path)}") from None
    except IsADirectoryError:
        raise ParamsError(f"{path}: is a directory, expected a YAML or JSON file") from None
    except (OSError, ValueError) as error:
        raise ParamsError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise ParamsError(f"{path}: is too large: a file of parameters has at most {MAX_BYTES / 1e6:.0f} MB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ParamsError(f"{path}: is not a text file in UTF-8") from None
    if "\0" in text:
        raise ParamsError(f"{path}: is not a text file: it has NUL characters")
    return _json_as_yaml(text) if path.endswith(".json") else text


def _json_as_yaml(text: str) -> str:
    """JSON is YAML but for two things: tabs between values, and characters written as a pair of escapes (`\\ud83d\\ude00`)."""
    text = text.replace("\t", " ")  # inside a JSON text a tab is escaped, so none is lost
    pair = re.compile(r"((?:^|[^\\])(?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
    previous = None
    while previous != text:  # a pair right after another one shares no characters with it, but its left neighbour
        previous = text
        text = pair.sub(lambda match: match[1] + json.loads(rf'"\u{match[2]}\u{match[3]}"'), text)
    return text


def _neighbours(path: str) -> str:
    try:
        return did_you_mean(Path(path).name, [entry.name for entry in Path(path).parent.iterdir()])
    except OSError:
        return ""


class _Reader:
    """Makes data of the events of one document."""

    def __init__(self, path: str, text: str) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self.path = path
        self.events: Iterator[Any] = iter(yaml.parse(text, Loader=loader))
        self.anchors: dict[str, Any] = {}
        self.unfinished: set[str] = set()
        self.values = 0

    def document(self) -> Any:
        result: Any = None
        documents = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self.error(event, "a second document begins here (`---`); a file holds one")
                result = self.value(next(self.events), 0)
        return result

    def error(self, event: Any, message: str) -> ParamsError:
        return ParamsError(f"{self.place(event)}: {message}")

    def place(self, event: Any) -> str:
        return f"{self.path}:{event.start_mark.line + 1}"

    def value(self, event: Any, depth: int) -> Any:
        self.count(event)
        if depth > MAX_DEPTH:
            raise self.error(event, f"is nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        tag = getattr(event, "tag", None)
        if tag is not None and tag not in _TAGS and tag != "!":
            raise self.error(event, f"the tag {tag!r} is not allowed: a file of parameters holds plain values only")
        if event.anchor is not None:
            self.unfinished.add(event.anchor)
        if isinstance(event, yaml.ScalarEvent):
            result = self.scalar(event, tag)
        elif isinstance(event, yaml.SequenceStartEvent):
            result = self.sequence(depth)
        else:
            result = self.mapping(depth)
        if event.anchor is not None:
            self.unfinished.discard(event.anchor)
            self.anchors[event.anchor] = result
        return result

    def count(self, event: Any, values: int = 1) -> None:
        self.values += values
        if self.values > MAX_VALUES:
            raise self.error(event, f"holds more than {MAX_VALUES} values, with those that aliases stand for")

    def alias(self, event: Any) -> Any:
        if event.anchor in self.unfinished:
            raise self.error(event, f"*{event.anchor} contains itself")
        if event.anchor not in self.anchors:
            raise self.error(event, f"*{event.anchor} is not defined above{did_you_mean(event.anchor, self.anchors)}")
        target = self.anchors[event.anchor]
        self.count(event, _size(target))
        return target

    def sequence(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self.value(event, depth + 1))
        return items

    def mapping(self, depth: int) -> Section:
        own, merged = Section(), Section()
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self.error(event, "a key must be a plain name")
            key: str = event.value
            value_event = next(self.events)
            value = self.value(value_event, depth + 1)
            if key == "<<" and event.implicit[0]:
                self.merge_key(merged, value, value_event)
                continue
            if key in own:
                first = own.origins[key].rpartition(":")[2]
                raise self.error(event, f"the key {key!r} stands here twice; the first is in line {first}")
            own[key] = value
            own.origins[key] = self.place(event)
        return _laid_over(merged, own)

    def merge_key(self, merged: Section, value: Any, event: Any) -> None:
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, Section):
                raise self.error(event, f"`<<` expects a mapping (`<<: *NAME`), received {shown(source)}")
            both = _laid_over(source, merged)  # YAML: the first one wins
            merged.update(both)
            merged.origins.update(both.origins)

    def scalar(self, event: Any, tag: str | None) -> Any:
        text: str = event.value
        if tag in ("tag:yaml.org,2002:str", "!") or not event.implicit[0]:
            return text
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if _INT.fullmatch(text):
            try:
                return int(text, 0 if text[:2] in ("0o", "0x") else 10)
            except ValueError:
                raise self.error(event, f"the number has too many digits: {shown(text, 40)}") from None
        return float(text.replace(".inf", "inf").replace(".nan", "nan")) if _FLOAT.fullmatch(text) else text


def _laid_over(below: Section, above: Section) -> Section:
    """Both mappings in one. `above` wins; mappings under one key are merged in turn, unless they choose different classes."""
    result = Section(below, below.origins)
    for key, value in above.items():
        other: Any = below.get(key)
        both = isinstance(value, Section) and isinstance(other, Section)
        if both and value.get(CLASS, other.get(CLASS)) == other.get(CLASS):
            value = _laid_over(other, value)
        result[key] = value
        result.origins[key] = above.origins[key]
    return result


def _size(value: Any) -> int:
    """How many values something has, counted only as far as it matters."""
    total, open_values = 0, [value]
    while open_values and total <= MAX_VALUES:
        current = open_values.pop()
        total += 1
        if isinstance(current, dict):
            open_values.extend(current.values())
        elif isinstance(current, list):
            open_values.extend(current)
    return total
