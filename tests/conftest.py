"""Settings for every test, made before anything imports TensorFlow; subprocesses inherit them. And the process to fork others from."""

import gc
import os
from collections.abc import Iterator

import pytest

from tests.pages.browser import Browser, browser
from tests.zygote import Zygote

# Two pytest workers share two cores, so each gets one TensorFlow thread (a choice, not a measurement).
SETTINGS = {
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "KERAS_BACKEND": "tensorflow",
    "COLUMNS": "120",  # the width of help texts must not depend on the terminal
}
for name, value in SETTINGS.items():
    os.environ.setdefault(name, value)

# What a developer exported for their own runs must not change what the tests see.
for name in ("SCENA_LOG_LEVEL", "FORCE_COLOR", "PYTHONWARNINGS"):
    os.environ.pop(name, None)


def pytest_collection_finish() -> None:
    """What the test modules have imported stays: the garbage collector need not go through TensorFlow's objects each time."""
    gc.freeze()


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """Starts processes of `scena` quickly."""
    zygote = Zygote.started()
    yield zygote
    zygote.close()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless browser that all tests of pages share; ask for it in tests marked `needs_chromium` only."""
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened
