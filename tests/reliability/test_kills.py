"""A short form of the kills: tests/reliability/kills.py has the long one, for all kinds."""

import random
from pathlib import Path

import pytest

from tests.reliability.kills import KINDS, Killer
from tests.zygote import Zygote


def kill(name: str, zygote: Zygote, folder: Path, count: int) -> None:
    kills, problem = Killer(KINDS[name], zygote, folder).kill_until_finished(folder / "killed", random.Random(3), count)
    assert kills == count
    assert not problem, problem


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in KINDS if name != "jax"])
def test_what_is_killed_ends_as_if_it_was_not(name: str, zygote: Zygote, tmp_path: Path) -> None:
    kill(name, zygote, tmp_path, 2)


@pytest.mark.long
def test_jax_too(tmp_path: Path) -> None:
    zygote = Zygote.started(KERAS_BACKEND="jax")
    kill("jax", zygote, tmp_path, 2)
    zygote.close()
