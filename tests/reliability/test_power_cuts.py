"""A short form of the power cuts: tests/reliability/power_cuts.py has the long one."""

import shutil
from pathlib import Path

import pytest

from tests.reliability.power_cuts import cut_power
from tests.reliability.writers import WRITERS

SHORT = {"a new run", "resume --from", "records again"}

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SHORT else pytest.mark.long) for name in WRITERS]
)
def test_what_is_left_by_a_power_cut_is_right(name: str, tmp_path: Path) -> None:
    states, wrong = cut_power(name, tmp_path, most=2)
    assert not wrong, wrong
    assert states > 10
