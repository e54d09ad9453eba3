"""Writing YAML for people: one value a line, lists in brackets, a comment beside it."""

import json
import re
from typing import Any

from scena.errors import ParamsError

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./+-]*")
# words that YAML 1.1 or 1.2 does not read as text
_SPECIAL = frozenset("null none ~ true false yes no on off y n .inf .nan - . ..".split())


class Leaf:
    """A value to write in one line, and the comment beside it."""

    __slots__ = ("comment", "value")

    def __init__(self, value: Any, comment: str = "") -> None:
        self.value, self.comment = value, comment

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
    if (
        _PLAIN.fullmatch(text)
        and text.lower() not in _SPECIAL
        and not re.match(r"\.\d|\.(inf|nan)", text, re.IGNORECASE)
    ):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else _escape(char) for char in quoted)


def _escape(char: str) -> str:
    code = ord(char)
    if 0xD800 <= code < 0xE000:
        raise ParamsError(
            f"The text has a character that is not valid Unicode (U+{code:04X}) and cannot be written to a file."
        )
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
