"""Runs several `scena` commands in one process, which compiles Keras' small functions once."""

import contextlib
import io
import json

from scena.commands.main import main


def run(lines: list[str]) -> None:
    """Prints a JSON list of [exit status, what the command printed]."""
    done = []
    for line in lines:
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            status = main(line.split())
        done.append([status, text.getvalue()])
    print(json.dumps(done))
