"""A form of the failing calls for the long suite: tests/reliability/failing_calls.py tries more of them."""

from pathlib import Path

import pytest

from tests.reliability.failing_calls import comparable, fail_at
from tests.zygote import Zygote


@pytest.mark.long
def test_a_failure_is_reported_or_harmless(zygote: Zygote, tmp_path: Path) -> None:
    total, _ = fail_at(zygote, 0, tmp_path / "whole", None)
    expected = comparable(tmp_path / "whole" / "run")
    for number in range(1, total, total // 8):
        _, outcome = fail_at(zygote, number, tmp_path / str(number), expected)
        assert not outcome.problem, (number, outcome)
