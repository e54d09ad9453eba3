"""`project.yaml` of the current folder: the parameters of a project, used by commands that start from a scenario's defaults."""

import sys
from pathlib import Path

from scena.params.cli.command_line import CONFIG, HELP, is_flag, split

PROJECT_FILE = "project.yaml"


def with_project_file(words: list[str], announce: bool = True) -> list[str]:
    """The flags of a command, and `--config project.yaml` if there is that file and no other was named.

    `--config None` leaves it out. One line tells that it is used, for it may stand there for another reason.
    """
    if CONFIG in split(words, lenient=True) or not Path(PROJECT_FILE).is_file():
        return words
    if words and not is_flag(words[0]):
        return words  # a stray word, which is an error of its own
    if announce and not any(word in HELP for word in words):
        print(f"Using {PROJECT_FILE} of this folder; --config None leaves it out.", file=sys.stderr)
    return [f"--{CONFIG}", PROJECT_FILE, *words]
