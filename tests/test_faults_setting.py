"""`SCENA_FAULT` makes rare branches common."""

import os

import pytest

from scena import faults


def test_without_the_setting_nothing_changes() -> None:
    assert "SCENA_FAULT" in os.environ or (faults.smaller("a", 9), faults.happens("a", 1)) == (9, False)


def test_numbers_are_those_of_the_seed_and_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(seed: str) -> list[int]:
        monkeypatch.setattr(faults, "_seed", seed)
        monkeypatch.setattr(faults, "_draws", {})
        return [faults.smaller(name, 100) for _ in range(20) for name in ("a", "b")]

    assert drawn("1") == drawn("1") != drawn("2")
    assert drawn("1")[::2] != drawn("1")[1::2]
    assert min(drawn("1")) == 1 and max(drawn("1")) > 1
    monkeypatch.setattr(faults, "_happened", {})
    events = [sum(faults.happens("c", 4) for _ in range(1000)) for _ in range(2)]
    assert 10 < events[0] < 40 and 0 < events[1] < events[0]
