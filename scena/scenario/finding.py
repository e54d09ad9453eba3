"""Finding a scenario by the name a user types (`pkg.module`, `pkg.module:Class`, a folder, a `.py` file) or that a run stores; `--import`.

A name that a user types is imported. A name that a file stores must not decide what is executed: its module is imported only if it lies on
the user's own path, outside the directory the name was read from, and if its source, read without running it, defines that scenario.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from scena.errors import ScenaError, ScenarioError, did_you_mean
from scena.params import ParamsError
from scena.params.convert import shown
from scena.scenario.scenario import ScenarioBase

PACKAGE = Path(__file__).parent.parent
AnyScenario = type[ScenarioBase[Any, Any]]
READY = {"classification": "scena.scenario.classification"}
"""Scenarios that come with Scena, by their short names; a module of the user's own with that name takes precedence."""


def find_scenario(name: str) -> AnyScenario:
    """Imports the scenario that a user named.

    Raises:
        ScenarioError: nothing, or more than one scenario, has this name; the message lists what there is.
    """
    module, separator, class_name = name.partition(":")
    return import_scenario(f"{_importable(module)}{separator}{class_name}", asked=name)


def import_scenario(name: str, asked: str = "") -> AnyScenario:
    """Imports a scenario from the present path by its module's name, with or without `:Class`."""
    asked = asked or name
    module_name, _, class_name = name.partition(":")
    module = _import_scenario_module(module_name, asked)
    found = _scenarios_of(module)
    if class_name:
        if class_name not in found:
            choices = did_you_mean(class_name, found) or f"; it has {', '.join(found) or 'none'}"
            raise ScenarioError(f"{module.__name__} has no scenario {class_name!r}{choices}.")
        return found[class_name]
    if not found:
        raise ScenarioError(f"{module.__name__} defines no scenario. A scenario is a subclass of ScenarioBase.")
    if len(found) > 1:
        choices = ", ".join(f"{asked}:{cls}" for cls in found)
        raise ScenarioError(f"{module.__name__} defines several scenarios. Say which: {choices}.")
    return next(iter(found.values()))


def find_object(name: str) -> Any:
    """What a user named as `package.module:name` or `file.py:name`; None if that is a scenario.

    Raises:
        ScenarioError: there is no such module, or it has nothing of that name.
    """
    module_name, _, attribute = name.rpartition(":")
    module_name = _importable(module_name)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ScenarioError(f"There is no module {module_name!r} for {name}: {error}.") from error
    if not hasattr(module, attribute):
        raise ScenarioError(f"{module_name} has no {attribute!r}{did_you_mean(attribute, vars(module))}.")
    found = getattr(module, attribute)
    return None if isinstance(found, type) and issubclass(found, ScenarioBase) else found


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


def use_current_folder() -> None:
    """Makes the modules of the current folder importable, as `python -m` does."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def list_scenarios() -> list[str]:
    """The scenarios in the current folder and those that come with Scena, found by reading files, not by running them."""
    found = list(_search(Path.cwd(), ""))
    if not any(name.startswith("examples.") for name in found):
        found += _search((_clone() or PACKAGE) / "examples", "examples.")
    return sorted({*found, *READY} - set(READY.values()))


def _clone() -> Path | None:
    """The clone that this package is used from; there the examples stand beside the package, not inside it."""
    beside = (PACKAGE.parent / "examples" / "__init__.py").is_file()
    return PACKAGE.parent if beside and not (PACKAGE / "examples").is_dir() else None


def defined_scenarios(path: Path) -> list[str]:
    """The names of the classes in a source file that look like scenarios."""
    import ast  # late: `--help` of a named scenario does not search

    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return []
    classes = {
        node.name: [ast.unparse(base).partition("[")[0] for base in node.bases]
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    return [name for name, bases in classes.items() if _is_scenario(bases)]


def _is_scenario(bases: list[str]) -> bool:
    """Whether a class with these bases can be trained; parameters and commands cannot, nor what is still generic."""
    return "Generic" not in bases and any(
        "Scenario" in base and not base.endswith(("Params", "Options", "Command")) for base in bases
    )


def _search(folder: Path, prefix: str, depth: int = 3) -> Iterator[str]:
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "_")) or not entry.name.removesuffix(".py").isidentifier():
            continue
        if entry.is_dir() and depth > 0 and entry.name not in ("tests", "site", "build", "node_modules"):
            if defined_scenarios(entry / "scenario.py"):
                yield f"{prefix}{entry.name}"
            yield from _search(entry, f"{prefix}{entry.name}.", depth - 1)
        elif entry.suffix == ".py" and entry.name != "scenario.py" and defined_scenarios(entry):
            yield f"{prefix}{entry.stem}"


def _importable(name: str) -> str:
    """The name of a module that a user named, or of a file or folder, which is made importable under its natural name."""
    use_current_folder()
    here = name.isidentifier() and os.path.isfile(Path(name, "scenario.py"))
    if not (here or name.endswith(".py") or os.sep in name or name in (".", "..")):
        return name
    path = Path(name)
    if path.is_dir():
        if not (path / "scenario.py").is_file():
            raise ScenarioError(f"The folder {path} has no scenario.py.")
        path = path / "scenario.py"
    if not path.is_file():
        raise ScenarioError(f"There is no scenario file {path}.")
    path = path.resolve()
    parts = [path.stem]
    folder = path.parent
    # a folder whose modules import each other relatively is a package, with or without an __init__.py
    if path.name == "scenario.py" and not (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return ".".join(parts)


def _import_scenario_module(name: str, asked: str) -> ModuleType:
    shipped = READY.get(name)
    if name.startswith("examples."):
        shipped = f"scena.{name}"
        if (clone := _clone()) is not None and str(clone) not in sys.path:
            sys.path.append(str(clone))  # last: a package of the user's own with that name comes first
    for candidate in (name, shipped) if shipped else (name,):
        module = _import(candidate)
        if module is None:
            continue
        if hasattr(module, "__path__") and not _scenarios_of(module):
            inner = _import(f"{candidate}.scenario")
            if inner is not None:
                return inner
        if not (hasattr(module, "__path__") and module.__file__ is None):  # an empty namespace is not an answer
            return module
    known = list_scenarios()
    close = did_you_mean(asked, known)
    listing = f" Scenarios found here: {', '.join(known)}." if known and not close else ""
    raise ScenarioError(f"There is no scenario {shown(asked)}{close}.{listing}")


def _import(name: str) -> ModuleType | None:
    """The module, or None if it does not exist; errors inside it are the user's to see."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            return None
        raise ScenarioError(f"{name} imports a module that is not installed: {error.name}.") from error
    except (Exception, SystemExit) as error:
        if isinstance(error, ValueError | TypeError) and not all(part.isidentifier() for part in name.split(".")):
            raise ScenarioError(f"{name!r} is not the name of a module, a folder or a .py file.") from error
        raise not_importable(name, error) from error


def not_importable(name: str, error: BaseException) -> ScenaError:
    """What to tell of a module that raises an error, or ends the program, when it is imported."""
    if isinstance(error, ScenaError):
        return error
    from scena.user_code import reason, user_line  # late: almost all modules can be imported

    place = None if isinstance(error, SyntaxError) else user_line(error)  # a syntax error names its line itself
    what = f"it ends the program ({reason(error)})" if isinstance(error, SystemExit) else reason(error)
    return ScenarioError(
        f"{name} cannot be imported: {what}{f', in {place}' if place else ''}. (SCENA_LOG_LEVEL=debug shows the traceback.)"
    )


def _scenarios_of(module: ModuleType) -> dict[str, AnyScenario]:
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, ScenarioBase) and value.__module__ == module.__name__
    }


def scenario_of(stored_name: str, directory: Path, explicit: str | None = None) -> AnyScenario:
    """The scenario of a stored run: `explicit`, which a user named with --scenario, or else what the file names,
    `package.module:Class`.

    Nothing below the directory that holds the file is imported.
    """
    if explicit is not None:
        return find_scenario(explicit)
    use_current_folder()
    module, _, class_name = stored_name.partition(":")
    parts = module.split(".")
    if not class_name.isidentifier() or not all(part.isidentifier() for part in parts):
        raise ScenarioError(
            f"{directory} names the scenario {stored_name!r}, which is not a name. Give it with --scenario."
        )
    for candidate in (parts, ["scena", *parts]) if parts[0] == "examples" else (parts,):
        source = _source_of(candidate, directory.resolve())
        if source is not None and class_name in defined_scenarios(source):
            with _path_without(directory.resolve()):
                return import_scenario(f"{'.'.join(candidate)}:{class_name}")
    raise ScenarioError(
        f"The scenario {stored_name} of {directory} is not on the path. "
        "Change to the folder that holds its code, or name it with --scenario."
    )


def _source_of(parts: list[str], forbidden: Path) -> Path | None:
    """The source file of a module on the user's path, found without importing anything."""
    folders = [entry for entry in sys.path if not _inside(Path(entry or ".").resolve(), forbidden)]
    spec: ModuleSpec | None = None
    for part in parts:
        spec = PathFinder.find_spec(part, folders)
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or [])
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    source = Path(spec.origin)
    return None if _inside(source.resolve(), forbidden) else source


@contextmanager
def _path_without(forbidden: Path) -> Iterator[None]:
    """Imports inside the block cannot come from the forbidden folder, even if it is the current one."""
    before = list(sys.path)
    sys.path[:] = [entry for entry in before if not _inside(Path(entry or ".").resolve(), forbidden)]
    try:
        yield
    finally:
        sys.path[:] = before


def _inside(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents
