"""Power cuts at every moment of what Scena writes, on a disk that keeps what was synced and any part of the rest.

`python -m tests.reliability.power_cuts --most 128` prints how many states were loaded, and what was wrong with them.
"""

import argparse
import hashlib
import os
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from tests.reliability.bitrot import warnings_of_scena
from tests.reliability.disk import Content, Disk, write
from tests.reliability.writers import WRITERS


def cut_power(name: str, folder: Path, most: int, seed: int = 1) -> tuple[int, Counter[str]]:
    """Records one writer and loads each state that a power cut may leave; returns how many, and how often what went wrong."""
    writer, root = WRITERS[name], folder / "disk"
    root.mkdir(parents=True)
    writer.prepare(root)
    disk = Disk(root)
    disk.record("tests.reliability.writers", name, str(root))
    shutil.rmtree(root)
    seen: set[bytes] = set()
    wrong: Counter[str] = Counter()
    for now, content in disk.states(random.Random(seed), most):
        acknowledged = [text for time, text in disk.acknowledged if time < now]
        key = _digest(content, acknowledged)
        if key in seen:
            continue
        seen.add(key)
        write(content, root)
        try:
            with warnings_of_scena():
                writer.check(root, acknowledged)
        except Exception as error:
            wrong[f"{type(error).__name__}: {str(error).replace(str(root), '')[:150]} after {acknowledged[-1:]}"] += 1
        shutil.rmtree(root)
    return len(seen), wrong


def _digest(content: Content, acknowledged: list[str]) -> bytes:
    digest = hashlib.blake2b(repr(acknowledged).encode())
    for name in sorted(content):
        data = content[name]
        digest.update(f"\0{name}\0".encode() + (b"/" if data is None else hashlib.blake2b(data).digest()))
    return digest.digest()


def main() -> int:
    """Runs all writers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=128, help="combinations of lost changes tried at each moment")
    parser.add_argument("--only", choices=WRITERS, nargs="+", default=list(WRITERS))
    options = parser.parse_args()
    states, failures = 0, 0
    for name in options.only:
        with tempfile.TemporaryDirectory(
            prefix="scena-power-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None
        ) as folder:
            count, wrong = cut_power(name, Path(folder), options.most)
        print(f"{name:16} {count:>7} states {wrong.total():>5} wrong", flush=True)
        for text, number in wrong.most_common(8):
            print(f"    {number} × {text}")
        states, failures = states + count, failures + wrong.total()
    print(f"{states} states, {failures} wrong")
    return bool(failures)


if __name__ == "__main__":
    raise SystemExit(main())
