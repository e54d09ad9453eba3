"""The error of everything that can be set wrongly, and suggestions for misspelled names."""

from collections.abc import Iterable
from typing import ClassVar

from scena.errors import ScenaError


class ParamsError(ScenaError, ValueError):
    """A parameter, file or flag is wrong. The message names it, says what was received and how to fix it; no traceback
    is needed.
    """

    exit_status: ClassVar[int] = 2


def close_names(word: str, options: Iterable[str], count: int = 3) -> list[str]:
    """The options that look most like `word`, whatever their case; the best first."""
    import difflib  # only errors need it, and it is slow to import

    folded: dict[str, str] = {}
    for option in options:
        if not option.startswith("_"):
            folded.setdefault(option.lower().replace("-", "_"), option)
    matches = difflib.get_close_matches(word.lower().replace("-", "_"), list(folded), count, 0.65)
    return [folded[match] for match in matches]


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """` (did you mean …?)`, or nothing if nothing is close."""
    close = close_names(word, options)
    return f" (did you mean {' or '.join(close)}?)" if close else ""
