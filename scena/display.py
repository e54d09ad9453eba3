"""How text, values and progress are shown: safely on a terminal, as small HTML tables in a notebook. Pages have `scena/pages`."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

LONGEST = 200
"""Characters of a cell in a notebook; longer text is cut."""


def visible(text: str) -> str:
    """The text with control characters escaped, so that a name can neither control a terminal nor hide text; line breaks stay.

    Characters that only change the direction of text, and bytes of a name that are not text, are escaped too.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else _escaped(char) for char in text)


def one_line(text: str) -> str:
    """The same on one line, for a cell of a table."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def terminal_width() -> int | None:
    """The columns of COLUMNS or of the terminal; None if standard output is neither."""
    try:
        return max(20, int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns))
    except (OSError, ValueError):
        return None


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # how Python keeps a byte of a file name that is not text
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class Move(Protocol):
    """Advances a bar."""

    def __call__(self, count: int, total: int | None = None) -> None:
        """Adds `count`; sets `total` if it was not known before."""


@contextmanager
def counting(title: str, total: int | None = None) -> Iterator[Move]:
    """A bar (a counter if the total is unknown) that the yielded function advances."""
    if not sys.stderr.isatty():
        yield lambda count, total=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)

        def move(count: int, total: int | None = None) -> None:
            bar.update(task, advance=count, total=total)

        yield move


@contextmanager
def reporting(title: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar for work that reports its position: the yielded function takes the number done, and the total if known."""
    with counting(title) as move:
        before = 0

        def report(done: int, total: int | None) -> None:
            nonlocal before
            move(done - before, total)
            before = done

        yield report


def html_table(rows: Iterable[Sequence[Any]], heads: Sequence[str] = (), title: str = "") -> str:
    """A table as HTML; cells are converted to text and escaped. `title` stands above."""
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
    import html  # late: no command needs it

    return html.escape(_cut(visible(str(value))))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
