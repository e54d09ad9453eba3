"""The state of layers in an export: a safetensors file beside `model.keras`."""

import stat
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load, save

from scena.model.errors import ModelError
from scena.model.state.layer_state import LayerState, decode, encode
from scena.storage.checksums import verify_tree

LAYERS = "layers.safetensors"
MOST_BYTES = 4 << 30


def write_layer_file(directory: Path, states: list[LayerState]) -> None:
    """Writes the states; no file if there are none."""
    arrays = encode(states)
    if arrays:
        (directory / LAYERS).write_bytes(save(arrays))


def read_layer_file(directory: Path) -> list[LayerState]:
    """The states that an export holds; none if it has no such file.

    Raises:
        ModelError: the file is damaged, or is none.
    """
    path = directory / LAYERS
    try:
        verify_tree(directory, LAYERS)  # also reports that it is missing
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise ModelError(f"{path} is not a plain file.")
        if found.st_size > MOST_BYTES:
            raise ModelError(f"{path} has {found.st_size:,} bytes, more than layers can keep ({MOST_BYTES:,}).")
        content = path.read_bytes()
        return decode(load(content))
    except FileNotFoundError:
        return []
    except (OSError, SafetensorError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path} is not a safetensors file, or is damaged: {error}") from error
