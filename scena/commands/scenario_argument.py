"""The first argument of commands that take a scenario, and the root of the tree that their flags set."""

import importlib
import os
import sys
import types
from typing import Any

from scena.commands.usage import print_usage
from scena.params import Params, ParamsError, param
from scena.scenario.errors import ScenarioError
from scena.scenario.finding import (
    AnyScenario,
    find_scenario,
    list_scenarios,
    not_importable,
    use_current_folder,
)

HEAVY = ("keras", "tensorflow")


class ImportOptions(Params):
    """What to import before the flags are read."""

    modules: list[str] = param([], flat="import", help="modules to import first, for example with graphs of your own")


class WorkOptions(ImportOptions):
    """What a command that builds a model asks beside its flags."""

    trust: bool = param(
        False, help="load foreign SavedModels (--model.name hub) although their graphs work with files or run Python"
    )


def set_up_console() -> None:
    """Shows the log on the console; imported late, because `--help` does not need logging."""
    from scena import logs

    logs.set_up_console()


def check_training(params: Any, *, fresh: bool = True) -> None:
    """Finds what is wrong with a training before TensorFlow is loaded."""
    from scena.training.checks.before_start import check_before_start

    set_up_console()
    check_before_start(params, fresh=fresh)


def start_work(options: WorkOptions | None = None) -> None:
    """What a command does once its arguments are right: shows the log, loads TensorFlow, and notes whom the user trusts."""
    from scena.backends.quiet import load_tensorflow

    if options is not None and options.trust:
        from scena.model.hub.inspect import trust_saved_models

        trust_saved_models()
    set_up_console()
    load_tensorflow()


def take_scenario(command: str, arguments: list[str]) -> tuple[AnyScenario, list[str]]:
    """The scenario that the first argument names, and the other arguments."""
    if not arguments or arguments[0].startswith("-"):
        if any(argument in ("-h", "--help") for argument in arguments):
            print_usage(how_to_name(command))
            raise SystemExit(0)
        raise ParamsError(f"name the scenario first: scena {command} SCENARIO [--flags].\n{_found()}")
    scenario = find_scenario(arguments[0])
    heavy = [name for name in HEAVY if name in sys.modules]
    if heavy and os.environ.get("SCENA_LOG_LEVEL", "").lower() == "debug":
        import logging

        set_up_console()
        logging.getLogger(__name__).debug(
            "%s imports %s at its top: --help would be faster without.", scenario.__module__, " and ".join(heavy)
        )
    return scenario, arguments[1:]


def how_to_name(command: str) -> str:
    """What `scena train --help` says without a scenario."""
    return "\n".join(
        [
            f"usage: scena {command} SCENARIO [--flags]",
            "",
            "SCENARIO is one of",
            "  package.module          a module, or a package with a scenario.py, that defines one scenario",
            "  package.module:Class    a scenario of a module that defines several",
            "  path/to/folder, file.py the same by its path",
            "",
            _found(),
            "",
            f"`scena {command} SCENARIO --help` lists everything that can be set.",
        ]
    )


def import_modules(modules: list[str]) -> None:
    """Imports what `--import` names, so that the classes in it can be chosen."""
    use_current_folder()
    for name in modules:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ParamsError(f"--import takes the names of modules, such as package.module. Received: {name!r}.")
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ScenarioError(f"--import {name}: {error}.") from error
        except (Exception, SystemExit) as error:
            raise not_importable(f"--import {name}", error) from error
        from scena.storage.code_fingerprints import note_import  # late: `--help` without --import does not need it

        note_import(name)


def root_of(**parts: Params) -> Any:
    """A params object with these parts: the root of a command's flags."""

    def body(namespace: dict[str, Any]) -> None:
        namespace["__annotations__"] = {name: type(part) for name, part in parts.items()}
        namespace.update({name: param(part) for name, part in parts.items()})

    return types.new_class("Root", (Params,), {}, body)()


def _found() -> str:
    known = list_scenarios()
    return (
        "\n".join(["Scenarios found here:", *(f"  {name}" for name in known)])
        if known
        else "No scenarios were found here."
    )
