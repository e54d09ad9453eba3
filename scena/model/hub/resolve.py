"""From a handle to a folder on this machine."""

import re
from pathlib import Path

from scena.model.errors import ModelError

ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://")


def resolve_handle(handle: str) -> Path:
    """The folder of a SavedModel.

    Args:
        handle: a folder, or an address that TensorFlow Hub knows; what is behind it is downloaded once, by TensorFlow Hub.

    Raises:
        ModelError: there is no SavedModel, or it cannot be fetched.
    """
    path = Path(_fetched(handle)) if ADDRESS.match(handle) else Path(handle)
    if not (path / "saved_model.pb").is_file():
        what = "it has no saved_model.pb" if path.is_dir() else "there is no such folder"
        raise ModelError(f"--model.handle {handle} is not a SavedModel: {what} ({path.resolve()}).")
    return path.resolve()


def _fetched(handle: str) -> str:
    try:
        import tensorflow_hub
    except ImportError as error:
        raise ModelError(f"The handle {handle} needs TensorFlow Hub: pip install 'scena[hub]'.") from error
    try:
        return str(tensorflow_hub.resolve(handle))
    except Exception as error:  # whatever the network or the site says
        raise ModelError(
            f"TensorFlow Hub cannot fetch {handle}: {error}. Download it, and give its folder as --model.handle."
        ) from error
