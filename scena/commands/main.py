# PYTHON_ARGCOMPLETE_OK
"""The `scena` program: finds the command, runs it, and shows errors as one short message."""

import errno
import importlib
import os
import sys
from typing import NamedTuple

from scena.backends.quiet import silence_tensorflow
from scena.commands.usage import print_usage
from scena.errors import ScenaError
from scena.terminal import visible


class Command(NamedTuple):
    """A subcommand: the module that runs it and its line in the overview."""

    module: str
    help: str


COMMANDS = {
    "train": Command("run.train", "train a scenario"),
    "resume": Command("run.resume", "go on with a run from its last checkpoint"),
    "launch": Command("run.launch", "train in several processes of this machine"),
    "lav": Command("model.lav", "load and validate exported models (also: evaluate)"),
    "evaluate-dump": Command("model.evaluate_dump", "evaluate predictions that lav --dump wrote, without the model"),
    "predict": Command("model.predict", "predict with exported models; several vote"),
    "benchmark-input": Command(
        "data.benchmark_input", "measure the input pipeline of a scenario and find what slows it down"
    ),
    "records": Command("data.records", "images and data sets as record files: write, convert, info, preview"),
    "data-service": Command("data.data_service", "start a tf.data service that makes batches for trainings elsewhere"),
    "export": Command("model.export", "convert an exported model to SavedModel, ONNX or LiteRT, and check it"),
    "adapt": Command("model.adapt", "write an exported model anew with changed parameters and the same weights"),
    "lr-find": Command("run.lr_find", "try learning rates in a short training and suggest one"),
    "serve": Command("model.serve", "serve an exported model over HTTP"),
    "import-checkpoint": Command("model.import_checkpoint", "bring a TensorFlow checkpoint into a scenario's model"),
    "params": Command("inspect.params", "show the parameters of a scenario or a run"),
    "sets": Command("inspect.sets", "list the sets of configuration files, or save a run as a set"),
    "experiment": Command("run.experiment", "carry out the runs of a sheet: xlsx, csv or yaml"),
    "tune": Command("run.tune", "search over parameters"),
    "runs": Command("results.runs", "list runs in a table, compare two of them"),
    "schema": Command("inspect.schema", "print the JSON schema of a scenario's parameters for editors"),
    "zoo": Command("inspect.zoo", "list networks with their parameters and operations"),
    "devices": Command("inspect.devices", "list the devices to compute on"),
    "new": Command("inspect.new", "write a runnable scenario to start from"),
    "completion": Command("completion", "print the shell completion for bash or zsh"),
}
ALIASES = {"evaluate": "lav"}


def main(argv: list[str] | None = None) -> int:
    """Runs `scena` with these arguments (default: the process's) and returns its exit status."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this process
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    try:
        try:
            return _main(list(sys.argv[1:] if argv is None else argv))
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


def _main(arguments: list[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:
        from scena.commands.completion import answer_shell

        return answer_shell()
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print_usage(overview())
        return 0 if arguments else 2
    if arguments[0] == "--version":
        from scena import __version__

        print(f"scena {__version__}")
        return 0
    name = ALIASES.get(arguments[0], arguments[0])
    if name not in COMMANDS:
        from scena.params.errors import did_you_mean

        print(
            f"scena: error: there is no command {name!r}{did_you_mean(name, [*COMMANDS, *ALIASES])}. See scena --help.",
            file=sys.stderr,
        )
        return 2
    return _run(name, arguments[1:])


def overview() -> str:
    """The text of `scena --help`."""
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:<{width}}{command.help}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: scena COMMAND …",
            "",
            "Train, evaluate and deploy Keras models that are described as scenarios.",
            "",
            "commands:",
            *lines,
            "",
            "`scena COMMAND --help` explains a command; `scena train SCENARIO --help` lists everything that can be set.",
            "SCENA_LOG_LEVEL (debug, info, warning, error) says how much is logged.",
        ]
    )


def _run(name: str, arguments: list[str]) -> int:
    silence_tensorflow()
    try:
        module = importlib.import_module(f"scena.commands.{COMMANDS[name].module}")
        status: int = module.run(arguments)
        return status
    except ScenaError as error:
        print(visible(f"scena {name}: {error.label}{error}"), file=sys.stderr)
        if error.label and os.environ.get("SCENA_LOG_LEVEL", "").lower() == "debug":
            raise
        return error.exit_status
    except RecursionError:
        if os.environ.get("SCENA_LOG_LEVEL", "").lower() == "debug":
            raise
        print(
            f"scena {name}: error: something is nested too deeply (SCENA_LOG_LEVEL=debug shows where)", file=sys.stderr
        )
        return 1
    except KeyboardInterrupt:
        print(f"scena {name}: interrupted", file=sys.stderr)
        return 130
    except OSError as error:  # a file or folder that cannot be read or written, wherever it was
        if os.environ.get("SCENA_LOG_LEVEL", "").lower() == "debug" or error.filename is None:
            raise
        print(visible(f"scena {name}: error: {error.filename}: {error.strerror}"), file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
