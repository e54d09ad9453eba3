# PYTHON_ARGCOMPLETE_OK
"""The `scena` program: lists the commands, finds the one that is asked for, runs it, and shows errors as one short message."""

import errno
import importlib
import os
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from scena import faults, plugins
from scena.backends.quiet import silence_tensorflow
from scena.display import visible
from scena.errors import ScenaError, did_you_mean

if TYPE_CHECKING:
    from scena.commands.command import Command

GROUPS = {
    "run": (
        "Train",
        {
            "train": "train a scenario",
            "resume": "resume a run from its last checkpoint",
            "launch": "train in several processes of this machine",
            "lr-find": "try learning rates in a short training and suggest one",
            "tune": "search for good parameters",
            "cv": "cross-validate: a run for each fold, tested on samples it has not seen",
            "experiment": "carry out the runs of a sheet: xlsx, csv or yaml",
        },
    ),
    "model": (
        "Use a trained model",
        {
            "lav": "load and validate models (also: evaluate)",
            "predict": "predict with a model; several vote",
            "serve": "serve a model over HTTP",
            "export": "convert a model to SavedModel, ONNX or LiteRT, and check the result",
            "adapt": "copy a model with changed parameters and the same weights",
            "import-checkpoint": "bring a TensorFlow checkpoint into a scenario's model",
        },
    ),
    "data": (
        "Prepare and measure data",
        {
            "records write": "write images as record files",
            "records convert": "write a scenario's samples, or a data set, as record files",
            "records info": "show what record files hold, and check them",
            "records preview": "draw samples before and after augmentation",
            "benchmark-input": "measure an input pipeline and find what slows it down",
            "data-service": "start a tf.data service that makes batches for other machines",
        },
    ),
    "results": (
        "Compare results",
        {
            "runs": "list, compare and plot runs; fold seeds into mean and interval",
            "compare": "test whether two models, or two groups of runs, differ",
            "verify": "check the files of runs, exports, records and caches for damage",
            "track": "bring MLflow and other trackers up to date with runs",
            "evaluate-dump": "evaluate predictions that lav --dump wrote, without the model",
        },
    ),
    "inspect": (
        "Start a project, look things up",
        {
            "new": "write a runnable scenario to start from",
            "params": "show the parameters of a scenario or a run",
            "sets": "list the sets of configuration files, or save a run as a set",
            "schema": "print the JSON schema of a scenario's parameters for editors",
            "zoo": "list networks with their parameters and operations",
            "devices": "list the devices to compute on",
            "completion": "print the shell completion for bash or zsh",
        },
    ),
}
"""Folder -> its title, and the commands in it with their lines of `scena --help`. No command is imported to list them."""

ALIASES = {"evaluate": "lav"}
TOP = """usage: scena COMMAND …

Train, evaluate and deploy Keras models that are described as scenarios."""
BOTTOM = """Examples:
  scena train examples.tutorial.min --trainer.output_dir run
  scena lav run/best
  scena predict run/best --help

`scena COMMAND --help` explains a command; `scena train SCENARIO --help` lists everything that can be set.
SCENA_LOG_LEVEL (debug, info, warning, error) sets how much is logged."""


def main(argv: list[str] | None = None, *, check_only: bool = False) -> int:
    """Runs `scena` with these arguments (default: the process's), or only reads them, and returns its exit status."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    try:
        try:
            return _main(list(sys.argv[1:] if argv is None else argv), check_only)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO) or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left of it is dropped at the end
        print(f"scena: error: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 1


def _main(words: list[str], check_only: bool) -> int:
    faults.interrupt_calls()
    if "_ARGCOMPLETE" in os.environ:
        from scena.commands.inspect.completion import answer_shell

        return answer_shell()
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help"):
        print(overview())
        return 0 if words else 2
    if words[0] == "--version":
        from scena import __version__

        print(f"scena {__version__}")
        return 0
    name, rest = command_name(words)
    if name in command_names():
        return _run(name, rest, check_only)
    if (group := [known for known in command_names() if known.startswith(f"{words[0]} ")]) and (
        not words[1:] or words[1] in ("-h", "--help")
    ):
        print(overview(group))
        return 0 if words[1:] else 2
    tried = " ".join(words[:2]) if group else name
    close = did_you_mean(tried, command_names())
    print(visible(f"scena: error: there is no command {tried!r}{close}. See scena --help."), file=sys.stderr)
    return 2


def command_names() -> list[str]:
    """All commands, also those of other packages, and other names for them."""
    own = [name for _, commands in GROUPS.values() for name in commands]
    return [*own, *ALIASES, *(name for name in plugins.names("Command") if name not in own)]


def command_name(words: list[str]) -> tuple[str, list[str]]:
    """The command that words begin with, which may have two words, and the words after it."""
    count = 2 if " ".join(words[:2]) in command_names() else 1
    name = " ".join(words[:count])
    return ALIASES.get(name, name), words[count:]


def find_command(name: str) -> "type[Command]":
    """Imports a command.

    Raises:
        PluginError: it is one of another package, and cannot be imported.
    """
    from scena.commands.command import Command

    folder = next((folder for folder, (_, commands) in GROUPS.items() if name in commands), None)
    if folder is not None:
        importlib.import_module(f"scena.commands.{folder}.{name.replace('-', '_').replace(' ', '_')}")
    else:
        plugins.load("Command", name)
    found = Command.named(name)
    if found is None:
        raise plugins.PluginError(f"An installed plugin declares the command {name!r}, but its module defines none.")
    return found


def overview(only: Iterable[str] | None = None) -> str:
    """The text of `scena --help`, or the lines of some commands."""
    from scena.params.cli.help import folded, help_width

    groups = dict(GROUPS.values())
    known = {name: line for commands in groups.values() for name, line in commands.items()}
    added = {p.name: f"from {p.package}" for p in plugins.installed() if p.kind == "Command" and p.name not in known}
    if added:
        groups["From other packages"] = added
    if only is not None:
        groups = {"Commands": {name: line for name, line in (known | added).items() if name in only}}
    width = max(len(name) for commands in groups.values() for name in commands) + 2
    blocks = [
        "\n".join([f"{title}:", *(f"  {name:<{width}}{line}" for name, line in commands.items())])
        for title, commands in groups.items()
    ]
    text = "\n\n".join([TOP, *blocks, BOTTOM] if only is None else blocks)
    return "\n".join(folded(text, help_width() - 1)[1:])


def _run(name: str, words: list[str], check_only: bool) -> int:
    silence_tensorflow()
    debugging = os.environ.get("SCENA_LOG_LEVEL", "").lower() == "debug"
    try:
        return find_command(name).call(words, check_only=check_only)
    except ScenaError as error:
        message = "\n".join([f"{error.label}{error}", *getattr(error, "__notes__", ())])
        if error.label and debugging:
            print(visible(f"scena {name}: {message}"), file=sys.stderr)
            raise
        status = error.exit_status
    except RecursionError:
        if debugging:
            raise
        message, status = "error: something is nested too deeply (SCENA_LOG_LEVEL=debug shows where)", 1
    except KeyboardInterrupt:
        message, status = "interrupted", 130
    except OSError as error:  # a file or folder that cannot be read or written
        if debugging or error.filename is None:
            raise
        message, status = f"error: {error.filename}: {error.strerror}", 1
    print(visible(f"scena {name}: {_LONG_WORD.sub(_shortened, message)}"), file=sys.stderr)
    return status


_LONG_WORD = re.compile(r"\S{1000,}")


def _shortened(word: re.Match[str]) -> str:
    return f"{word[0][:100]}…{word[0][-20:]}"


if __name__ == "__main__":
    sys.exit(main())
