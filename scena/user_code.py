"""Finds the user's own lines in a traceback, between those of Scena, Keras and TensorFlow."""

import re
import sysconfig
import traceback
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from scena.errors import causes

_PACKAGE = str(Path(__file__).parent) + "/"
_PYTHON = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")})
_IN_MESSAGE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


class Line(NamedTuple):
    """A line of code."""

    file: str
    number: int
    function: str
    text: str = ""

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.number}"


def is_users(file: str) -> bool:
    """Whether a file belongs neither to a library, nor to Python, nor to Scena."""
    if file.startswith("<") or "__autograph_generated_file" in file:
        return False
    return not (file.startswith((_PACKAGE, *_PYTHON)) or "-packages/" in file)


def user_lines(trace: TracebackType | None) -> list[Line]:
    """The user's lines of a traceback, the outermost first."""
    return [
        Line(frame.filename, frame.lineno or 0, frame.name, frame.line or "")
        for frame in traceback.extract_tb(trace)
        if is_users(frame.filename)
    ]


def user_line(error: BaseException) -> Line | None:
    """The innermost of the user's lines of an error: in its traceback, its causes, or its message.

    TensorFlow runs converted copies of functions; its message names the original lines.
    """
    for cause in causes(error):
        lines = user_lines(cause.__traceback__)
        lines += [
            Line(file, int(number), name) for file, number, name in _IN_MESSAGE.findall(str(cause)) if is_users(file)
        ]
        if lines:
            return lines[-1]
    return None


def reason(error: BaseException) -> str:
    """An error in one line; in long messages of TensorFlow and Keras it is the last paragraph."""
    text = str(error).partition("Arguments received by ")[0].strip()
    if "in user code:" in text:
        text = text.rstrip().rpartition("\n\n")[2].strip() or text
        named = re.match(r"(\w+(?:Error|Exception)): (.*)", text, re.DOTALL)
        if named:
            return f"{named[1]}: {_first(named[2])}"
    return f"{type(error).__name__}: {_first(text)}"


def _first(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "(no message)"
