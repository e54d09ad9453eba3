"""Runs `scena` with the packages of another environment, in a process that was forked from the zygote."""

import sys

from scena.commands.main import main


def run(arguments: list[str]) -> int:
    """The first argument is the environment's folder of packages; commands are separated by "then", and all must succeed."""
    sys.path.insert(0, arguments[0])
    words: list[str] = []
    for word in [*arguments[1:], "then"]:
        if word != "then":
            words.append(word)
            continue
        status = main(words)
        if status:
            return status
        words = []
    return 0
