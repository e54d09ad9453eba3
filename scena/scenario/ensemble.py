"""An ensemble on disk: a folder of exports that vote, used like a single export."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scena.errors import ScenarioError
from scena.scenario.finding import AnyScenario
from scena.storage.checksums import warn_if_changed, write_checked
from scena.storage.durable import link_tree, replace_directory
from scena.storage.run_layout import ENSEMBLE_FILE, EXPORT_FILE

FORMAT = 1


def write_ensemble(directory: Path, scenario: AnyScenario, exports: dict[str, Path], **more: Any) -> None:
    """Writes an ensemble: its members, which share the files of the exports where that is possible, and how they vote.

    Args:
        directory: the folder to write or to replace.
        scenario: whose voter combines the outputs.
        exports: the export directories by the names of the members.
        more: what else to note.
    """
    description = {
        "format": FORMAT,
        "scenario": scenario.name(),
        "members": list(exports),
        "voter": scenario.voter_params.implementation().__qualname__,
        **more,
    }

    def fill(aside: Path) -> None:
        for name, export in exports.items():
            link_tree(export, aside / name)
        write_checked(aside / ENSEMBLE_FILE, json.dumps(description, indent=1, ensure_ascii=False) + "\n")

    replace_directory(directory, fill)


def is_ensemble(directory: Path) -> bool:
    return (directory / ENSEMBLE_FILE).is_file()


def members(directory: Path) -> list[Path]:
    """The export directories of an ensemble.

    Raises:
        ScenarioError: it cannot be read, or is not complete.
    """
    path = directory / ENSEMBLE_FILE
    try:
        data = path.read_bytes()
        stored = json.loads(data)
        names = stored["members"]
        if stored["format"] > FORMAT:
            raise ScenarioError(
                f"{path} has format {stored['format']!r}; this version of Scena reads up to {FORMAT}. Update Scena."
            )
        if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
            raise ValueError("members must be names of folders in it")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ScenarioError(f"Cannot read the ensemble {path}: {error}") from error
    warn_if_changed(path, data)
    missing = [name for name in names if not (directory / name / EXPORT_FILE).is_file()]
    if missing:
        raise ScenarioError(f"The ensemble {directory} is not complete: its member {missing[0]} is missing.")
    return [directory / name for name in names]


def with_members(exports: Iterable[Any]) -> list[Any]:
    """Exports, with the members of each ensemble in its place."""
    found: list[Any] = []
    for export in exports:
        there = isinstance(export, str | Path) and is_ensemble(Path(export))
        found += members(Path(export)) if there else [export]
    return found
