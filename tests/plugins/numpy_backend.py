"""Predicts with Keras' numpy backend, as another package might add it: `KERAS_BACKEND=numpy python -m tests.plugins.numpy_backend …`."""

import sys

from scena import Backend
from scena.commands.main import main
from scena.plugins import register


class NumpyBackend(Backend):
    """Predicts op by op, as the base class does."""

    name = "numpy"


if __name__ == "__main__":
    register("Backend", "numpy", NumpyBackend)
    for words in " ".join(sys.argv[1:]).split(" then "):
        status = main(words.split())
    sys.exit(status)
