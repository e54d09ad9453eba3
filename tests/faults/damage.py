"""Damage as disks and people do it: flipped bits, zeroed blocks, files that end too early."""

import os
import random
from pathlib import Path


def flip(path: Path, rng: random.Random) -> None:
    """Flips one bit of a file."""
    place = rng.randrange(path.stat().st_size)
    with path.open("r+b") as file:
        file.seek(place)
        old = file.read(1)[0]
        file.seek(place)
        file.write(bytes([old ^ 1 << rng.randrange(8)]))


def zero(path: Path, rng: random.Random, size: int = 512) -> bool:
    """Overwrites a block with zeros; False if it held nothing else before."""
    data = bytearray(path.read_bytes())
    start = rng.randrange(max(1, len(data) - size))
    if not any(data[start : start + size]):
        return False
    data[start : start + size] = bytes(len(data[start : start + size]))
    path.write_bytes(data)
    return True


def cut(path: Path, rng: random.Random) -> None:
    """Cuts off the end of a file."""
    os.truncate(path, rng.randrange(path.stat().st_size))


def spoil(path: Path, rng: random.Random) -> str:
    """Does one of these; returns which."""
    kind = rng.choice(["flip", "flip", "zero", "cut"])
    if kind == "zero" and not zero(path, rng):
        kind = "flip"
    if kind == "flip":
        flip(path, rng)
    elif kind == "cut":
        cut(path, rng)
    return kind
