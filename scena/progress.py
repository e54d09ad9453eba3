"""A progress bar on the terminal for long work; nothing where there is no terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Move(Protocol):
    """Moves a bar on."""

    def __call__(self, count: int, total: int | None = None) -> None:
        """`count` more are done; of `total`, if that was not known before."""


@contextmanager
def counting(title: str, total: int | None = None) -> Iterator[Move]:
    """A bar (or a count, if the total is not known) that the yielded function moves on."""
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
    """A bar for work that says how far it is: the yielded function takes what is done, and the total if that is known."""
    with counting(title) as move:
        before = 0

        def report(done: int, total: int | None) -> None:
            nonlocal before
            move(done - before, total)
            before = done

        yield report
