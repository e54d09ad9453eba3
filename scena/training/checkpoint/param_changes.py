"""Changes between a stored run and the parameters and code it resumes with. No Keras here: `--strict` compares code before it loads."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scena.errors import CheckpointError
from scena.storage.checksums import write_checked
from scena.storage.code_fingerprints import CodeChange, Fingerprints, changed_code
from scena.storage.run_layout import RESUMES_FILE

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Change:
    """A value that differs."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.path}: {_short(self.before)} → {_short(self.after)}"


def compare(before: Any, after: Any, path: str = "") -> list[Change]:
    """The differing values of two raw trees, by path."""
    if isinstance(before, dict) and isinstance(after, dict):
        changes = []
        for name in dict.fromkeys([*before, *after]):
            changes += compare(before.get(name), after.get(name), f"{path}.{name}" if path else name)
        return changes
    return [] if before == after else [Change(path, before, after)]


def compare_code(before: Fingerprints | None, module: str, checkpoint: Path, *, strict: bool) -> list[CodeChange]:
    """Compares the code of a checkpoint with the current code: warns of changes, or raises if `strict`."""
    if before is None:
        if strict:
            raise CheckpointError(f"{checkpoint} does not record its code, which --strict needs for the comparison.")
        logger.info("%s does not record its code, so code changes go unnoticed.", checkpoint)
        return []
    changes = changed_code(before, module)
    if strict and changes:
        raise CheckpointError(
            f"The code has changed since {checkpoint} was written: {'; '.join(map(str, changes))}. "
            "Check out the code of that time, or remove --strict."
        )
    for change in changes:
        logger.warning("The code has changed since %s was written, so the run is not exact: %s", checkpoint, change)
    return changes


def record(directory: Path, entry: dict[str, Any]) -> None:
    """Appends an entry to the record of resumes."""
    path = directory / RESUMES_FILE
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # there is none yet
        entries = []
    write_checked(path, json.dumps([*(entries if isinstance(entries, list) else []), entry], indent=1) + "\n")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
