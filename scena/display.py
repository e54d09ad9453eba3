"""How objects show themselves in a notebook: small tables as HTML, all text escaped."""

import html
from collections.abc import Iterable, Sequence
from typing import Any

from scena.terminal import visible

LONGEST = 200
"""Characters of a cell; longer text is cut."""


def html_table(rows: Iterable[Sequence[Any]], heads: Sequence[str] = (), title: str = "") -> str:
    """A table as HTML; cells are converted to text and escaped.

    Args:
        rows: the cells.
        heads: the names of the columns.
        title: what stands above.
    """
    head = f"<thead><tr>{''.join(f'<th>{_text(name)}</th>' for name in heads)}</tr></thead>" if heads else ""
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    caption = f"<caption>{_text(title)}</caption>" if title else ""
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>"


def short(value: Any) -> str:
    """A value in a few characters: of an array type and shape, of a dict what its entries are."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {short(item)}' for name, item in value.items())}}}"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype}{list(value.shape)}" if value.shape else str(value)
    return _cut(repr(value))


def number(value: Any) -> str:
    """A result for a table."""
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def _text(value: Any) -> str:
    return html.escape(_cut(visible(str(value))))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
