"""Checkpoints: the complete state of a training in one directory that appears at once.

Tensors are stored as safetensors, everything else as JSON; nothing in a checkpoint is ever executed.
"""

import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from scena.training.errors import TrainingError

logger = logging.getLogger(__name__)

FORMAT = 1
TENSORS = "tensors.safetensors"
STATE = "state.json"


class CheckpointStore:
    """The checkpoints of one run, each in a directory named by its step.

    Args:
        directory: where they are.
        keep: how many of the last ones to keep.
    """

    def __init__(self, directory: Path, keep: int = 2) -> None:
        self.directory = directory
        self.keep = keep

    def steps(self) -> list[int]:
        """The steps of the checkpoints there are, oldest first."""
        if not self.directory.is_dir():
            return []
        return sorted(int(path.name) for path in self.directory.iterdir() if path.name.isdecimal())

    def save(self, step: int, tensors: dict[str, np.ndarray], state: dict[str, Any]) -> Path:
        """Writes a checkpoint aside, renames it into place and removes those that are too old."""
        final = self.directory / str(step)
        aside = self.directory / f".{step}.new"
        try:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            save_file(tensors, aside / TENSORS)
            text = json.dumps({"format": FORMAT, **state}, indent=1, allow_nan=True)
            (aside / STATE).write_text(text, encoding="utf-8")
            for path in (aside / TENSORS, aside / STATE, aside):
                _fsync(path)
            if final.exists():
                shutil.rmtree(final)
            aside.rename(final)
            _fsync(self.directory)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(aside, ignore_errors=True)
            last = self.steps()
            kept = f" The last good checkpoint is {self.directory / str(last[-1])}." if last else ""
            raise TrainingError(f"Cannot write the checkpoint {final}: {error}.{kept}") from error
        for old in self.steps()[: -self.keep]:
            shutil.rmtree(self.directory / str(old))
        return final

    def load_latest(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """The newest checkpoint that can be read; those that cannot are named and passed over."""
        for step in reversed(self.steps()):
            try:
                return self.load(step)
            except TrainingError as error:
                logger.warning("%s It is passed over.", error)
        return None

    def load(self, step: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Reads one checkpoint: its tensors and its state."""
        path = self.directory / str(step)
        try:
            state = json.loads((path / STATE).read_text(encoding="utf-8"))
            tensors = load_file(path / TENSORS)
        except (OSError, ValueError, SafetensorError) as error:
            raise TrainingError(f"The checkpoint {path} cannot be read: {error}.") from error
        if not isinstance(state, dict) or not isinstance(state.get("format"), int):
            raise TrainingError(f"The checkpoint {path} has no format number.")
        if state["format"] > FORMAT:
            raise TrainingError(
                f"The checkpoint {path} has format {state['format']}; this version of Scena reads up to {FORMAT}."
            )
        return tensors, state


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
