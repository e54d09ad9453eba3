"""Which stored array belongs to which weight: by path, and by order where Keras has only numbered its layers differently.

Keras numbers layers as a process creates them, so the same network may be `dense`, `dense_1` in one process and `dense_4`,
`dense_5` in another. Paths that differ in such numbers only are taken for the same group; inside a group the order decides.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field

Shape = tuple[int, ...]


@dataclass
class Matching:
    """What belongs to what, by position in the two lists."""

    pairs: dict[int, int] = field(default_factory=dict)
    """Target to source."""
    misfits: dict[int, int] = field(default_factory=dict)
    """The same where the shapes differ."""
    missing: list[int] = field(default_factory=list)
    """Targets without a source."""
    unused: list[int] = field(default_factory=list)
    """Sources without a target."""


def match(targets: list[tuple[str, Shape]], sources: list[tuple[str, Shape]]) -> Matching:
    """Finds the source of each target, each given by path and shape."""
    found = Matching()
    groups: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, entries in enumerate((targets, sources)):
        for position, (path, _) in enumerate(entries):
            groups[without_numbers(path)][side].append(position)
    for wanted, stored in groups.values():
        for target, source in _group(wanted, stored, targets, sources):
            fits = targets[target][1] == sources[source][1]
            (found.pairs if fits else found.misfits)[target] = source
    used = {*found.pairs.values(), *found.misfits.values()}
    found.missing = [i for i in range(len(targets)) if i not in found.pairs and i not in found.misfits]
    found.unused = [i for i in range(len(sources)) if i not in used]
    return found


def without_numbers(path: str) -> str:
    """The path without the numbers that Keras appends to the names of layers."""
    return re.sub(r"_\d+(?=/|$)", "", path)


def _group(
    wanted: list[int], stored: list[int], targets: list[tuple[str, Shape]], sources: list[tuple[str, Shape]]
) -> list[tuple[int, int]]:
    if len(wanted) == len(stored):
        return list(zip(wanted, stored, strict=True))
    pairs = []
    left = list(stored)
    for target in wanted:  # the same path first, so that one layer more or less does not shift all others
        same = next((source for source in left if sources[source][0] == targets[target][0]), None)
        if same is not None:
            pairs.append((target, same))
            left.remove(same)
    taken = {target for target, _ in pairs}
    return pairs + list(zip([target for target in wanted if target not in taken], left, strict=False))
