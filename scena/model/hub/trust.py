"""Whether the user said that foreign SavedModels may do what they like: `--trust`. Never stored, never read from a file."""

from collections.abc import Iterator
from contextlib import contextmanager

_trusted: list[bool] = [False]


def trust_saved_models() -> None:
    """From now on, in this process, SavedModels with operations on files or in Python are loaded."""
    _trusted[-1] = True


@contextmanager
def trusting() -> Iterator[None]:
    """Inside the block, SavedModels with operations on files or in Python are loaded."""
    _trusted.append(True)
    try:
        yield
    finally:
        _trusted.pop()


def is_trusting() -> bool:
    """Whether such SavedModels are loaded."""
    return _trusted[-1]
