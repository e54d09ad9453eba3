"""Leaf values: raw (JSON-like) -> typed and back.

The structure (lists, unions, Optional, …) is followed here; numbers, and whatever else is no structure, are converted by msgspec.
"""

import enum
import os
import re
import typing
from typing import Any, Literal

from scena.errors import ParamsError
from scena.params.kinds import peel

_TRUE, _FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})
_OPEN_DECIMAL = re.compile(r"[+-]?(\d+\.|\.\d+)([eE][+-]?\d+)?")


class Mismatch(Exception):  # noqa: N818
    """A value that does not fit its type: what was expected, what was received, and where inside the value."""

    def __init__(self, expected: str, received: Any, where: str = "") -> None:
        super().__init__(expected)
        self.expected, self.received, self.where = expected, received, where

    def __str__(self) -> str:
        return f"expected {self.expected}{self.where}, received {shown(self.received)}"


def shown(value: Any, limit: int = 120) -> str:
    """A value as an error shows it, shortened if it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a whole number with more than 4300 digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def convert(raw: Any, hint: Any) -> Any:
    """A raw value as its declared type; a text is read as the type wants it (`"1e-4"` as a number). Raises Mismatch."""
    alternatives, optional = peel(hint)
    if raw is None and (optional or Any in alternatives):
        return None
    if len(alternatives) == 1:
        try:
            return _one(raw, alternatives[0])
        except Mismatch as mismatch:
            if optional and isinstance(raw, str) and raw.lower() in ("none", "null"):
                return None
            if optional and not mismatch.where:
                raise Mismatch(f"{mismatch.expected} or None", raw) from None
            raise
    return _any_of(raw, alternatives, optional)


def _any_of(raw: Any, alternatives: tuple[Any, ...], optional: bool) -> Any:
    for hint in alternatives:  # the exact type first, so that True stays a bool and "5" a text
        if raw.__class__ is hint:
            return raw
    for hint in sorted(alternatives, key=lambda a: _SPECIFIC.index(a) if a in _SPECIFIC else 3 + (a is str)):
        try:
            return _one(raw, hint)
        except Mismatch:
            continue
    if optional and isinstance(raw, str) and raw.lower() in ("none", "null"):
        return None
    raise Mismatch(describe(typing.Union[(*alternatives, type(None))] if optional else typing.Union[alternatives]), raw)  # noqa: UP007


_SPECIFIC = [bool, int, float]


def _one(raw: Any, hint: Any) -> Any:
    if hint is Any or hint is object:
        return raw
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    kind = origin or hint
    if kind is Literal:
        return _literal(raw, arguments)
    if kind in (list, set, frozenset, tuple):
        return _sequence(raw, kind, arguments, hint)
    if kind is dict:
        return _mapping(raw, arguments or (str, Any), hint)
    if not isinstance(kind, type):
        raise ParamsError(f"The type {hint!r} cannot be a parameter.")
    if hasattr(kind, "from_param"):
        return _custom(raw, kind)
    if issubclass(kind, enum.Enum):
        return _enum(raw, kind)
    if issubclass(kind, os.PathLike):
        if isinstance(raw, str | kind) and raw != "" and "\0" not in str(raw):
            return typing.cast(Any, kind)(raw)
        raise Mismatch("a path", raw)
    return _scalar(raw, kind)


def _scalar(raw: Any, kind: type) -> Any:
    if raw.__class__ is kind:
        return raw
    if kind is bool and isinstance(raw, str) and raw.lower() in _TRUE | _FALSE:
        return raw.lower() in _TRUE
    if kind is float and isinstance(raw, str) and _OPEN_DECIMAL.fullmatch(raw):  # msgspec wants digits on both sides
        return float(raw)
    import msgspec  # not needed for --help

    try:
        return msgspec.convert(raw, kind, strict=kind is str)
    except (msgspec.ValidationError, OverflowError, UnicodeEncodeError):
        quotes = kind is str and isinstance(raw, int | float)
        raise Mismatch(describe(kind), raw, " (put it in quotes to make it a text)" if quotes else "") from None
    except TypeError:
        methods = "from_param(cls, raw) and to_param(self)"
        raise ParamsError(f"The type {kind!r} cannot be a parameter: give it the methods {methods}.") from None


def _literal(raw: Any, values: tuple[Any, ...]) -> Any:
    for value in values:
        if raw == value and raw.__class__ is value.__class__:
            return value
    for value in values:
        if isinstance(raw, str) and value is not None and not isinstance(value, str):
            try:
                if _one(raw, value.__class__) == value:
                    return value
            except Mismatch:
                continue
    raise Mismatch(describe(Literal[values]), raw)


def _enum(raw: Any, kind: type[enum.Enum]) -> Any:
    if isinstance(raw, kind):
        return raw
    for member in kind:
        if raw == member.value and isinstance(raw, bool) == isinstance(member.value, bool):
            return member
    if isinstance(raw, str):
        for member in (*kind, *kind.__members__.values()):
            if raw in (member.name, str(member.value)) or kind.__members__.get(raw) is member:
                return member
    raise Mismatch(describe(kind), raw)


def _custom(raw: Any, kind: type) -> Any:
    if isinstance(raw, kind):
        return raw
    try:
        return kind.from_param(raw)  # type: ignore[attr-defined]
    except (ValueError, TypeError) as error:
        raise Mismatch(str(error), raw) from error


def _sequence(raw: Any, kind: type, arguments: tuple[Any, ...], hint: Any) -> Any:
    if not isinstance(raw, list | tuple | set | frozenset):
        raise Mismatch(describe(hint), raw)
    if kind is tuple and arguments and not (len(arguments) == 2 and arguments[1] is ...):
        if arguments == ((),):
            arguments = ()
        if len(raw) != len(arguments):
            raise Mismatch(f"{len(arguments)} values ({describe(hint)})", raw)
        hints: list[Any] = list(arguments)
    else:
        hints = [arguments[0] if arguments else Any] * len(raw)
    pairs = enumerate(zip(raw, hints, strict=True), 1)
    items = [_item(item, item_hint, f" at position {position}") for position, (item, item_hint) in pairs]
    try:
        return kind(items)
    except TypeError:
        raise Mismatch(describe(hint), raw) from None


def _mapping(raw: Any, arguments: tuple[Any, ...], hint: Any) -> Any:
    if not isinstance(raw, dict):
        raise Mismatch(describe(hint), raw)
    keys, values = arguments
    return {_item(key, keys, " as a key"): _item(value, values, f" for {key!r}") for key, value in raw.items()}


def _item(raw: Any, hint: Any, where: str) -> Any:
    try:
        return convert(raw, hint)
    except Mismatch as mismatch:
        raise Mismatch(mismatch.expected, mismatch.received, f"{where}{mismatch.where}") from None


_NAMES: dict[Any, tuple[str, str]] = {
    bool: ("True or False", "True or False"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    str: ("text", "texts"),
    Any: ("any value", "any values"),
}


def describe(hint: Any, many: bool = False) -> str:
    """A type in words: "a whole number", "a list of numbers"."""
    alternatives, optional = peel(hint)
    words = list(dict.fromkeys(_describe_one(alternative, many) for alternative in alternatives))
    return " or ".join(words + ["None"] * optional)


def _describe_one(hint: Any, many: bool) -> str:
    if hint in _NAMES:
        return _NAMES[hint][many]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    kind = origin or hint
    if kind is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if kind is tuple and arguments and not (len(arguments) == 2 and arguments[1] is ...):
        return ", ".join(describe(argument) for argument in arguments)
    if kind in (list, set, frozenset, tuple):
        return ("lists" if many else "a list") + (f" of {describe(arguments[0], True)}" if arguments else "")
    if kind is dict:
        names = f" of names to {describe(arguments[1], True)}" if arguments else ""
        return ("mappings" if many else "a mapping") + names
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return f"one of {', '.join(str(member.value) for member in kind)}"
    if isinstance(kind, type) and issubclass(kind, os.PathLike):
        return "paths" if many else "a path"
    return getattr(kind, "__name__", str(kind))


def leaf_to_raw(value: Any, hint: Any = Any) -> Any:
    """A typed leaf value as JSON-like data that `convert` reads back."""
    if value is None or value.__class__ in (bool, int, str):
        return value
    if value.__class__ is float:
        # JSON has no infinity and no NaN; a field that can only be a number reads them back from text
        return value if value - value == 0 or float not in peel(hint)[0] or str in peel(hint)[0] else repr(value)
    if hasattr(value, "to_param"):
        return value.to_param()
    if isinstance(value, enum.Enum):
        return leaf_to_raw(value.value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        hints = _item_hints(hint, len(value))
        return [leaf_to_raw(item, item_hint) for item, item_hint in zip(value, hints, strict=True)]
    if isinstance(value, set | frozenset):
        item_hint = _item_hints(hint, 1)[0]
        return sorted((leaf_to_raw(item, item_hint) for item in value), key=lambda item: (str(type(item)), item))
    if isinstance(value, dict):
        item_hint = next((typing.get_args(h)[1] for h in peel(hint)[0] if typing.get_origin(h) is dict), Any)
        return {str(leaf_to_raw(key)): leaf_to_raw(item, item_hint) for key, item in value.items()}
    return _other_to_raw(value)


def _item_hints(hint: Any, count: int) -> list[Any]:
    for alternative in peel(hint)[0]:
        arguments = typing.get_args(alternative)
        if typing.get_origin(alternative) in (list, set, frozenset) and arguments:
            return [arguments[0]] * count
        if typing.get_origin(alternative) is tuple and arguments:
            if len(arguments) == 2 and arguments[1] is ...:
                return [arguments[0]] * count
            if len(arguments) == count:
                return list(arguments)
    return [Any] * count


def _other_to_raw(value: Any) -> Any:
    for plain in (int, float, str):
        if isinstance(value, plain):  # a subclass, such as numpy's float64
            return plain(value)
    if hasattr(value, "tolist"):  # other numbers and arrays of numpy
        return leaf_to_raw(value.tolist())
    import msgspec

    try:
        if isinstance(value, bytes | bytearray | memoryview):
            raise TypeError("msgspec would write other text")
        return msgspec.to_builtins(value)
    except TypeError:
        raise ParamsError(
            f"A value of type {type(value).__name__} cannot be stored as a parameter; received {shown(value)}. "
            "Give its class the methods to_param(self) and from_param(cls, raw)."
        ) from None
