"""Command lines of runs: the program, the output directory, and resuming."""

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from scena.errors import ExperimentError
from scena.storage.run_layout import PARAMS_FILE

OUTPUT_DIR = "trainer.output_dir"
_NOT_FOR_RESUME = ("params", OUTPUT_DIR, "output_dir")


def is_training(words: Sequence[str]) -> bool:
    """Whether this is `scena train …`, which can be resumed."""
    return list(words[:2]) == ["scena", "train"]


def resolve(words: list[str], python: str) -> list[str]:
    """The command with its program: `scena` and `.py` files run in the chosen Python, others are found in its folder or on the PATH."""
    program = words[0]
    if program == "scena":
        return [python, "-m", "scena", *words[1:]]
    if program.endswith(".py"):
        if not Path(program).is_file():
            raise ExperimentError(f"There is no script {program}.")
        return [python, *words]
    found = shutil.which(program, path=f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        hint = "; Scena's own is `scena train SCENARIO`" if "train" in program else ""
        raise ExperimentError(f"There is no program {program!r}{hint}.")
    return [found, *words[1:]]


def find_python(given: str | None, own: str) -> str:
    """The Python that `--python` names, or this one."""
    if given is None:
        return own
    found = shutil.which(given)
    if found is None:
        raise ExperimentError(f"--python {given}: there is no such program.")
    return os.path.abspath(found)  # not resolved: the link is what makes it the Python of a virtual environment


def output_directory(words: Sequence[str]) -> Path | None:
    """The output directory in the flags of a command, if it is set."""
    for index, word in enumerate(words):
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and name.replace("-", "_") in (OUTPUT_DIR, "output_dir"):
            if equals:
                return Path(value)
            if index + 1 < len(words):
                return Path(words[index + 1])
    return None


def resume_words(words: list[str], directory: Path) -> list[str]:
    """`scena resume DIR` with the flags of the training; the training itself if it has stored nothing yet."""
    if not is_training(words) or not (directory / PARAMS_FILE).is_file():
        return words
    kept: list[str] = []
    dropping = False
    for word in words[2:]:
        if word.startswith("--"):
            dropping = word[2:].partition("=")[0].replace("-", "_") in _NOT_FOR_RESUME
        elif not kept and not dropping:
            continue  # the scenario; the run knows it
        if not dropping:
            kept.append(word)
    return ["scena", "resume", str(directory), *kept]


def only_more_epochs(before: list[str], after: list[str]) -> bool:
    """Whether two command lines differ in the number of epochs only."""
    flag = "--trainer.epochs"
    return before != after and [_without(before, flag), _without(after, flag)].count(_without(before, flag)) == 2


def _without(words: list[str], flag: str) -> list[str]:
    index = words.index(flag) if flag in words else None
    if index is None:
        return [word for word in words if not word.startswith(f"{flag}=")]
    return [*words[:index], *words[index + 2 :]]


def note_command(log: Path, words: list[str]) -> None:
    """Begins the log of a run, or of its next attempt, with the command line to paste into a shell."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {shlex.join(words)}\n")
