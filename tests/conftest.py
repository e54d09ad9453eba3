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


FIRST = """backends/jax/test_tutorials training/distribution docs/test_site faults/test_resume plugins/test_third_party
packaging/test_wheel docs/test_pages examples/test_atr examples/test_seq2seq examples/test_faces
examples/test_finetuningbert experiments/search/test_search""".split()
"""Tests that take long or share something that takes long; each worker of pytest-xdist begins with half of them."""


@pytest.hookimpl(trylast=True)  # when long tests are no longer there
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Short tests come last, so that both workers end at the same time and seldom make the same expensive fixture."""
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.timeout(3600))

    def module(item: pytest.Item) -> str:
        return item.nodeid.partition("::")[0]

    long = sorted({module(item) for item in items if item.nodeid.startswith(tuple(f"tests/{name}" for name in FIRST))})
    one, other = ([item for item in items if module(item) in long[start::2]] for start in (0, 1))
    short = [item for item in items if module(item) not in long]
    until = max(0, len(items) // 2 - len(one))
    items[:] = [*one, *short[:until], *other, *short[until:]]


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
