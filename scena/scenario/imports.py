"""`--import MODULE`: modules of the user's own whose classes can be chosen by name."""

import importlib

from scena.errors import ScenarioError
from scena.params import Params, ParamsError, param
from scena.scenario.finding import not_importable, use_current_folder


class ImportOptions(Params):
    """What to import before the flags are read."""

    modules: list[str] = param([], flat="import", help="modules to import first, for example with graphs of your own")


def import_modules(modules: list[str]) -> None:
    """Imports what `--import` names, so that the classes in it can be chosen.

    Raises:
        ParamsError: a name cannot be that of a module.
        ScenarioError: a module cannot be imported.
    """
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
