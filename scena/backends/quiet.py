"""Loading TensorFlow and Keras without TensorFlow's start-up noise, which ignores every log level, and without collecting garbage."""

import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def silence_tensorflow() -> None:
    """Makes imports of TensorFlow quiet; its output is shown only if it fails, or in debug mode."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if "tensorflow" not in sys.modules and not any(isinstance(finder, _QuietFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _QuietFinder())


def load_tensorflow() -> None:
    """Imports TensorFlow and Keras and looks for devices, quietly.

    For programs, not for libraries: the first call freezes all objects of the process, so the collector never frees them.
    """
    from scena.backends.selection import load_keras

    silence_tensorflow()
    with _without_collector():
        load_keras()
        import tensorflow as tf

        _freeze_once()
    with silenced_unless_failing():
        tf.config.list_physical_devices()


class _QuietFinder:
    """Precedes the other finders until Keras and TensorFlow are imported for the first time."""

    def __init__(self) -> None:
        self._waiting = {"keras", "tensorflow"}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self._waiting:
            return None
        self._waiting.remove(name)
        if name == "tensorflow":
            sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            load = loader.exec_module
            quiet = silenced_unless_failing if name == "tensorflow" else nullcontext

            def exec_module(module: ModuleType) -> None:
                with _without_collector():
                    with quiet():
                        load(module)
                    _make_old()

            loader.exec_module = exec_module
        return spec


@contextmanager
def _without_collector() -> Iterator[None]:
    """Importing modules makes no garbage, and collecting takes a fifth of the time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


@cache
def _freeze_once() -> None:
    """Hides what is loaded from the collector, which would spend 0.3 s on it each time.

    Only once: a later command in the same process would freeze the garbage of the one before, such as its model.
    """
    gc.freeze()


def _make_old() -> None:
    """Moves all objects to the oldest generation, as two collections would."""
    if not gc.get_freeze_count():  # somebody else's frozen objects stay frozen
        gc.freeze()
        gc.unfreeze()


_SILENCE = threading.RLock()
"""Of two threads, the second would put back what the first one writes to."""


@contextmanager
def silenced_unless_failing() -> Iterator[None]:
    """Drops what native code writes to standard error while the block runs, unless it fails. What other threads write is dropped, too."""
    if os.environ.get("SCENA_LOG_LEVEL", "").lower() == "debug":
        yield
        return
    import tempfile

    sys.stderr.flush()
    with _SILENCE, tempfile.TemporaryFile() as noise:
        real = os.dup(2)
        os.dup2(noise.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(real, 2)
            noise.seek(0)
            os.write(2, noise.read())
            raise
        finally:
            os.dup2(real, 2)
            os.close(real)
