"""Loading TensorFlow without its start-up noise, which ignores every log level."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


def load_tensorflow() -> None:
    """Imports TensorFlow and Keras and looks for devices; what that prints is shown only if it fails, or in debug mode."""
    if "tensorflow" in sys.modules:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _silenced_unless_failing():
        import keras  # noqa: F401
        import tensorflow as tf

        tf.config.list_physical_devices()


@contextmanager
def _silenced_unless_failing() -> Iterator[None]:
    if os.environ.get("SCENA_LOG_LEVEL", "").lower() == "debug":
        yield
        return
    sys.stderr.flush()
    real = os.dup(2)
    with tempfile.TemporaryFile() as noise:
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
