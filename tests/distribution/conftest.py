"""Processes for the tests of several devices and workers, forked from one that has imported TensorFlow."""

from collections.abc import Iterator

import pytest

from tests.faults.harness import Zygote


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """Starts processes of `scena` quickly."""
    zygote = Zygote()
    yield zygote
    zygote.close()
