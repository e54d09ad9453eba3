"""Where a command is to write: tried before the work, so that a wrong name costs nothing."""

import os
import tempfile
from pathlib import Path

from scena.scenario.errors import ScenarioError


def check_file(flag: str, file: Path | None) -> None:
    """Looks whether a file can be written; None and `-`, the terminal, always can.

    Raises:
        ScenarioError: its folder does not exist, or it is a folder itself.
    """
    if file is None or str(file) == "-":
        return
    if not file.parent.is_dir():
        raise ScenarioError(f"Cannot write to {flag} {file}: there is no folder {file.parent}.")
    if file.is_dir():
        raise ScenarioError(f"Cannot write to {flag} {file}: it is a folder.")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise ScenarioError(f"Cannot write to {flag} {file}: permission denied.")


def make_folder(flag: str, folder: Path) -> None:
    """Makes a folder and those above it, and tries to write into it.

    Raises:
        ScenarioError: that is not possible.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise ScenarioError(f"Cannot write to {flag} {folder}: {error.strerror or error}.") from error
