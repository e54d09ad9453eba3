"""A process that saves, to be killed at one of its system calls: a checkpoint beside older ones, or a directory in place of another.

It imports neither Keras nor TensorFlow, so that hundreds of them can be started.
"""

import sys
from pathlib import Path

import numpy as np

from scena.storage.durable import replace_directory
from scena.storage.tensor_file import TensorBuffer
from scena.training.checkpoint.format import FORMAT, StoredState, VariableEntry
from scena.training.checkpoint.store import CheckpointStore


def arrays(step: int) -> dict[str, np.ndarray]:
    """The tensors of the checkpoint of a step."""
    return {"model/0": np.full((50, 20), step, "float32"), "model/1": np.arange(step, dtype="int64")}


def save(directory: Path, step: int) -> None:
    """Saves the checkpoint of a step."""
    store = CheckpointStore(directory, keep=2)
    buffer = TensorBuffer()
    buffer.fill(arrays(step))
    entries = [VariableEntry(key, key, list(a.shape), a.dtype.name) for key, a in arrays(step).items()]
    state = StoredState(format=FORMAT, progress={"step": step}, callbacks={}, variables=entries, random={})
    store.begin(step)
    store.commit(step, buffer, state)


def replace(directory: Path, content: str) -> None:
    """Puts a directory with two files in the place of another."""

    def fill(aside: Path) -> None:
        (aside / "one").write_text(content)
        (aside / "inside").mkdir()
        (aside / "inside" / "two").write_text(content)

    replace_directory(directory, fill)


if __name__ == "__main__":
    kind, path, value = sys.argv[1:]
    if kind == "checkpoint":
        save(Path(path), int(value))
    else:
        replace(Path(path), value)
