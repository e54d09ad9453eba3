"""Workers fill the holes that earlier work left in their memory."""

import sys

from scena.data.engines.workers.tasks import HoleFiller

POOL = 16 * 1024


def pools_of(numbers: list[float]) -> set[int]:
    """The allocator's pools that numbers lie in."""
    return {id(number) // POOL for number in numbers}


def test_the_next_numbers_come_from_one_pool() -> None:
    many = [place + 0.25 for place in range(50_000)]
    kept = [number for place, number in enumerate(many) if place % 400]  # about one hole in each pool
    del many
    assert len(pools_of([place + 0.75 for place in range(20)])) > 5, "the holes that the test is about are there"
    filler = HoleFiller()
    filler.fill()
    assert len(pools_of([place + 0.75 for place in range(20)])) == 1
    assert kept


def test_it_does_not_hold_more_and_more() -> None:
    filler, before = HoleFiller(), sys.getallocatedblocks()
    for _ in range(2_000):
        made = [place + 0.5 for place in range(1_000)]
        filler.before_task()
        del made
    assert sys.getallocatedblocks() - before < 40_000
