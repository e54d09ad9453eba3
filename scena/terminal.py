"""Text from files, folders and clients as a terminal may show it, and progress bars. Pages have `html.escape`."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


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
