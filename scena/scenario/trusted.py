"""Finding the scenario that a stored run names, without letting the file decide what is executed.

A module is imported only if it lies on the user's own path, outside the directory the name was read from, and if its source, read
without running it, defines a scenario of that name.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from scena.scenario.errors import ScenarioError
from scena.scenario.finding import AnyScenario, defined_scenarios, find_scenario, import_scenario, use_current_folder


def scenario_of(stored_name: str, directory: Path, explicit: str | None = None) -> AnyScenario:
    """The scenario of a stored run.

    Args:
        stored_name: what the stored file says, `package.module:Class`.
        directory: where that file lies; nothing below it is imported.
        explicit: the scenario a user named with `--scenario`, which is then taken.
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
