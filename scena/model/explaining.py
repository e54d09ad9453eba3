"""Turning what Keras says about a user's graph, loss or metric into one line with the user's own line of code."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from scena.errors import ScenaError
from scena.model.errors import ModelError
from scena.user_code import reason, user_line

DEBUG_HINT = "--scenario.debug_graph_construction runs it on real data and shows all shapes."
_BOLD = re.compile(r"\x1b\[1m(.*?)\x1b\[0m", re.DOTALL)


@contextmanager
def explaining_graph(name: str) -> Iterator[None]:
    """While the block builds a graph, an error becomes one line.

    Args:
        name: of the graph's class.

    Raises:
        ModelError: what went wrong in which line of the user's code.
    """
    try:
        yield
    except ScenaError:
        raise
    except Exception as error:
        raise ModelError(f"{name} cannot be built{describe_failure(error)} {DEBUG_HINT}") from error


def describe_failure(error: BaseException) -> str:
    """` at FILE:LINE: REASON.` of an error that came through Keras."""
    line = user_line(error)
    place = f" at {line}" if line is not None else ""
    return f"{place}: {_without_wrapping(error).rstrip('.')}."


def _without_wrapping(error: BaseException) -> str:
    """The reason inside the messages that each layer on the way has put around it."""
    text = str(error.args[0]) if error.args else str(error)
    if isinstance(error, KeyError):
        text = text.encode().decode("unicode_escape", errors="replace") if "\\x1b" in text else text
    if "Exception encountered when calling" not in text:
        return f"there is no {text!r}" if isinstance(error, KeyError) else reason(error)
    inner = text.rpartition("Exception encountered when calling")[2]
    found = _BOLD.search(inner)
    said = " ".join((found[1] if found else inner).split())
    said = re.sub(r" for '\{\{node .*?\}\} = .*?' with", " with", said)
    return f"there is no {said!r}" if isinstance(error, KeyError) else said
