"""Words of a command line <-> raw leaf values. Only structure is made here; `build` checks types."""

import json
import typing
from typing import Any

from scena.params.convert import Mismatch, convert, describe, leaf_to_raw
from scena.params.kinds import peel


def from_words(words: list[str], hint: Any) -> Any:
    """The raw value that the words after a flag stand for. Raises Mismatch."""
    alternatives, optional = peel(hint)
    if optional and words == ["None"]:
        return None
    structured = next((alternative for alternative in alternatives if _form(alternative) is not None), None)
    if structured is not None and (len(alternatives) == 1 or len(words) != 1 or words[0][:1] in ("[", "{")):
        return _mapping(words, structured) if _form(structured) is dict else _sequence(words, structured)
    if not words and bool in alternatives:
        return True
    if len(words) != 1:
        received = " ".join(words) if words else "nothing"
        raise Mismatch(describe(hint) if not words else f"one value ({describe(hint)})", Raw(received))
    return _single(words[0], hint)


class Raw(str):
    """A text that errors show as it is, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _form(hint: Any) -> type | None:
    kind = typing.get_origin(hint) or hint
    if kind is dict:
        return dict
    return list if kind in (list, tuple, set, frozenset) else None


def _json(word: str) -> Any:
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        return None


def _sequence(words: list[str], hint: Any) -> Any:
    items = _item_hint(hint)
    nested = any(_form(alternative) is list for alternative in peel(items)[0])
    if (len(words) == 1 and words[0].startswith("[[" if nested else "[")) or words == ["[]"]:
        whole = _json(words[0])
        if isinstance(whole, list):
            return whole
        if nested and words[0].startswith("[["):
            raise Mismatch('lists in a list, texts in quotes: [["a","b"],["c"]]', Raw(words[0]))
        if nested or (words[0].endswith("]") and str not in peel(items)[0]):
            return _split(words[0], hint)
    return _nested_each(words, hint)


def _nested_each(words: list[str], hint: Any) -> list[Any]:
    """The items of a list, or those of a tuple, which may have a type for each position."""
    types = typing.get_args(hint)
    if typing.get_origin(hint) is tuple and len(types) == len(words) and ... not in types:
        return [_nested(word, item) for word, item in zip(words, types, strict=True)]
    return [_nested(word, _item_hint(hint)) for word in words]


def _nested(word: str, hint: Any) -> Any:
    alternatives, optional = peel(hint)
    if optional and word == "None":
        return None
    if len(alternatives) == 1 and _form(alternatives[0]) is list:
        return _split(word, alternatives[0])
    return _single(word, hint)


def _split(word: str, hint: Any) -> Any:
    """`1,2` or `[1,2]`: a list in one word."""
    if word.startswith("[") and isinstance(whole := _json(word), list):
        return whole
    inner = word[1:-1] if word.startswith("[") and word.endswith("]") else word
    return _nested_each([part.strip() for part in inner.split(",")], hint) if inner else []


def _mapping(words: list[str], hint: Any) -> Any:
    if len(words) == 1 and words[0].startswith("{") and isinstance(whole := _json(words[0]), dict):
        return whole
    arguments = typing.get_args(hint)
    items = arguments[1] if arguments else Any
    raw: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name in raw:
            raise Mismatch("name=value pairs, each name once", Raw(" ".join(words)))
        raw[name] = _nested(text, items)
    return raw


def _item_hint(hint: Any) -> Any:
    arguments = [argument for argument in typing.get_args(hint) if argument is not ...]
    if not arguments:
        return Any
    return arguments[0] if len(set(map(str, arguments))) == 1 else typing.Union[tuple(arguments)]  # noqa: UP007


def _single(word: str, hint: Any) -> Any:
    """One word; where several types are possible, the narrowest that fits (`5` is a number, `"5"` in quotes a text)."""
    alternatives, optional = peel(hint)
    if optional and word == "None":
        return None
    if Any in alternatives:
        value = _json(word)
        return _CONSTANTS.get(word, word if value is None else value)
    ambiguous = str in alternatives and (len(alternatives) > 1 or optional)
    if ambiguous and len(word) > 1 and word.startswith('"') and isinstance(text := _json(word), str):
        return text
    if len(alternatives) > 1:
        for alternative in sorted(alternatives, key=lambda a: _NARROW.index(a) if a in _NARROW else 3 + (a is str)):
            try:
                value = convert(word, alternative)
            except Mismatch:
                continue
            return value if alternative in (bool, int, float) else word
    return word


_NARROW = [int, float, bool]  # `1` is a number before it is True
_CONSTANTS = {"True": True, "False": False, "None": None, "null": None}


def to_words(raw: Any, hint: Any) -> list[str]:
    """The words that `from_words` reads as `raw`."""
    words = _plain_words(raw, hint)
    if words is not None and not any(word.startswith("-") and not _is_number(word) for word in words):
        try:
            if _same(from_words(words, hint), raw, hint):
                return words
        except Mismatch:
            pass
    if isinstance(raw, str) and _same(from_words([raw], hint), raw, hint):
        return [raw]
    return [json.dumps(raw, ensure_ascii=False)]


def _same(first: Any, second: Any, hint: Any) -> bool:
    try:
        one, two = convert(first, hint), convert(second, hint)
    except Mismatch:
        return False
    return repr(leaf_to_raw(one, hint)) == repr(leaf_to_raw(two, hint))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _plain_words(raw: Any, hint: Any) -> list[str] | None:
    if isinstance(raw, list):
        words = [_plain_word(item) for item in raw]
        return None if None in words else typing.cast(list[str], words)
    if isinstance(raw, dict):
        pairs = [(name, _plain_word(item)) for name, item in raw.items()]
        if any(word is None or "=" in name for name, word in pairs):
            return None
        return [f"{name}={word}" for name, word in pairs]
    return [str(raw)]


def _plain_word(item: Any) -> str | None:
    if isinstance(item, list):
        parts = [_plain_word(part) or "" for part in item]
        clear = all(part and part == part.strip() and not {",", "["} & {*part} for part in parts)
        return ",".join(parts) if parts and clear else None
    return None if isinstance(item, dict) else str(item)
