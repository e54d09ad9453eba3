"""A model of a disk behind a weakly ordered file system: what may be on it after a power cut.

The calls of a process are recorded with strace and replayed in the model. A file's content is safe once it was synced, a name once its
directory was. Before that, data may be absent, zero, or there in part (blocks of 4 kB); changes of directories may be lost one by one, in
any combination. A rename is atomic: it happened or it did not.
"""

import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

BLOCK = 4096
MARK = "/scena-acknowledged/"
CALLS = (
    "openat,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat,rmdir,ftruncate,truncate,link,linkat,"
    "copy_file_range,sendfile,writev,close"
)
_LINE = re.compile(r"^\d+ +(\w+)\((.*)\) = (-?\d+)")
_HEX = re.compile(r"(?:\\x[0-9a-f]{2})+")
Content = dict[str, bytes | None]
"""Path → content of a file; None for a directory."""


@dataclass
class Inode:
    """A file or a directory, with everything that was done to it."""

    directory: bool
    base: bytes = b""
    entries: dict[str, "Inode"] = field(default_factory=dict)
    """Names before the recording."""
    done: list[tuple[int, int, bytes | None]] = field(default_factory=list)
    """Of a file: (time, offset, data), or (time, size, None) for a truncation."""
    changes: list["Change"] = field(default_factory=list)
    """Of a directory."""
    syncs: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Change:
    """A change of names in one directory, or in two."""

    time: int
    names: list[tuple[Inode, str, Inode | None]]

    def safe(self, now: int) -> bool:
        """Whether it is on the disk for certain."""
        return any(self.time < sync < now for directory, _, _ in self.names for sync in directory.syncs)


class Disk:
    """A directory as it was, and the calls of a process that changed it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.top = _read(root)
        self.time = 0
        self.acknowledged: list[tuple[int, str]] = []
        self._changes: list[Change] = []
        self._open: dict[str, int] = {}
        """The position in each open file; -1, and that of a duplicated descriptor, is its end."""

    def record(self, *command: str) -> None:
        """Runs a Python module and replays what it does in the directory."""
        log = self.root.with_name(f"{self.root.name}.calls")
        words = ["strace", "-f", "-y", "-xx", "-s", "8000000", "-o", str(log), "-e", f"trace={CALLS}"]
        subprocess.run([*words, sys.executable, "-m", *command], check=True, cwd=Path(__file__).parents[2])
        for line in log.read_text().splitlines():
            found = _LINE.match(line)
            if found is not None:
                texts = [bytes.fromhex(text.replace("\\x", "")) for text in _HEX.findall(found[2])]
                self._replay(found[1], found[2], texts, int(found[3]))
        _, content = self._content(self.time + 1, set(self._changes), "whole", random.Random())
        assert content == _tree(self.root), "the recording is not complete"

    # ---- replaying ----------------------------------------------------------------------------------------------------

    def _replay(self, call: str, words: str, texts: list[bytes], result: int) -> None:
        if call in ("mkdir", "mkdirat") and result < 0 and texts and texts[-1].decode().startswith(MARK):
            self.acknowledged.append((self.time, texts[-1].decode().removeprefix(MARK)))
            return
        if result < 0:
            return
        if call == "close":
            self._open.pop(words.partition("<")[0], None)
        elif call == "openat":
            self._opened(_joined(texts[0], texts[1]), words, str(result))
        elif call in ("write", "pwrite64"):
            self._written(texts, words, result, call == "pwrite64")
        elif call in ("fsync", "fdatasync"):
            inode = self._find(texts[0].decode())
            if inode is not None:
                inode.syncs.append(self._tick())
        elif call in ("mkdir", "mkdirat"):
            self._name(_joined(*texts[-2:]) if call == "mkdirat" else texts[0].decode(), Inode(directory=True))
        elif call in ("unlink", "rmdir"):
            self._name(texts[0].decode(), None)
        elif call == "unlinkat":
            self._name(_joined(*texts[:2]), None)
        elif call in ("rename", "renameat", "renameat2", "link", "linkat"):
            ends = texts if len(texts) == 4 else [b"", texts[0], b"", texts[1]]
            old, new = _joined(*ends[:2]), _joined(*ends[2:])
            self._moved(old, new, keep=call.startswith("link"), swap="EXCHANGE" in words)
        elif call in ("ftruncate", "truncate"):
            inode = self._find(texts[0].decode())
            if inode is not None:
                inode.done.append((self._tick(), int(words.rpartition(",")[2]), None))
        elif call in ("copy_file_range", "sendfile", "writev"):
            assert not any(str(self.root).encode() in text for text in texts), f"{call} is not replayed"

    def _tick(self) -> int:
        self.time += 1
        return self.time

    def _opened(self, path: str, words: str, descriptor: str) -> None:
        if not self._inside(path):
            return
        inode = self._find(path)
        if inode is None and "O_CREAT" in words:
            inode = Inode(directory=False)
            self._name(path, inode)
        assert inode is not None, path
        if "O_TRUNC" in words and self._size(inode):
            inode.done.append((self._tick(), 0, None))
        self._open[descriptor] = -1 if "O_APPEND" in words else 0

    def _written(self, texts: list[bytes], words: str, count: int, placed: bool) -> None:
        inode = self._find(texts[0].decode())
        if inode is None:
            return
        descriptor = words.partition("<")[0]
        offset = int(words.rpartition(",")[2]) if placed else self._open.get(descriptor, -1)
        if offset < 0:
            offset = self._size(inode)
        elif not placed and descriptor in self._open:
            self._open[descriptor] += count
        inode.done.append((self._tick(), offset, texts[1][:count] if len(texts) > 1 else b""))

    def _moved(self, old: str, new: str, *, keep: bool, swap: bool) -> None:
        if not self._inside(old) and not self._inside(new):
            return
        (one, first), (two, second) = self._place(old), self._place(new)
        inode, other = self._now(one).get(first), self._now(two).get(second)
        assert inode is not None, old
        names: list[tuple[Inode, str, Inode | None]] = [(two, second, inode)]
        if not keep:
            names.insert(0, (one, first, other if swap else None))
        self._change(names)

    def _name(self, path: str, inode: Inode | None) -> None:
        if self._inside(path):
            directory, name = self._place(path)
            self._change([(directory, name, inode)])

    def _change(self, names: list[tuple[Inode, str, Inode | None]]) -> None:
        change = Change(self._tick(), names)
        self._changes.append(change)
        for directory in {id(directory): directory for directory, _, _ in names}.values():
            directory.changes.append(change)

    def _inside(self, path: str) -> bool:
        return path.startswith(f"{self.root}/")

    def _place(self, path: str) -> tuple[Inode, str]:
        directory = self._find(os.path.dirname(path))
        assert directory is not None, path
        return directory, os.path.basename(path)

    def _find(self, path: str) -> Inode | None:
        if path != str(self.root) and not self._inside(path):
            return None
        inode: Inode | None = self.top
        for name in Path(path).relative_to(self.root).parts:
            inode = self._now(inode).get(name) if inode is not None else None
        return inode

    def _now(self, directory: Inode) -> dict[str, Inode]:
        return names_after(directory, set(directory.changes))

    def _size(self, inode: Inode) -> int:
        return len(content_after(inode, inode.done))

    # ---- what may be on the disk --------------------------------------------------------------------------------------

    def states(self, rng: random.Random, most: int) -> Iterator[tuple[int, Content]]:
        """(time of the cut, what is on the disk) for each moment; `most` combinations of what is lost for each of them."""
        for now in range(1, self.time + 2):
            happened = [change for change in self._changes if change.time < now]
            safe = {change for change in happened if change.safe(now)}
            open_ = [change for change in happened if change not in safe]
            for chosen in _subsets(open_, rng, most):
                for how in ("whole", "absent", "zero", "torn"):
                    pending, content = self._content(now, safe | set(chosen), how, rng)
                    yield now, content
                    if not pending:
                        break

    def _content(self, now: int, applied: set[Change], how: str, rng: random.Random) -> tuple[bool, Content]:
        found: Content = {}
        pending = False

        def visit(directory: Inode, path: str) -> None:
            nonlocal pending
            for name, inode in names_after(directory, applied).items():
                if inode.directory:
                    found[f"{path}{name}"] = None
                    visit(inode, f"{path}{name}/")
                    continue
                done = [one for one in inode.done if one[0] < now]
                last = max((sync for sync in inode.syncs if sync < now), default=0)
                safe = [one for one in done if one[0] < last]
                before, after = content_after(inode, safe), content_after(inode, done)
                pending = pending or before != after
                found[f"{path}{name}"] = _spoilt(before, after, how, rng)

        visit(self.top, "")
        return pending, found


def names_after(directory: Inode, applied: set[Change]) -> dict[str, Inode]:
    """The names in a directory after some of its changes."""
    names = dict(directory.entries)
    for change in directory.changes:
        if change in applied:
            for owner, name, inode in change.names:
                if owner is directory and inode is None:
                    names.pop(name, None)
                elif owner is directory and inode is not None:
                    names[name] = inode
    return names


def content_after(inode: Inode, done: list[tuple[int, int, bytes | None]]) -> bytes:
    """The content of a file after these writes."""
    content = bytearray(inode.base)
    for _, offset, data in done:
        if data is None:
            content = content[:offset].ljust(offset, b"\0")
        else:
            content = content.ljust(offset, b"\0")
            content[offset : offset + len(data)] = data
    return bytes(content)


def write(content: Content, folder: Path) -> None:
    """Writes a state of the disk into an empty folder."""
    folder.mkdir(parents=True)
    for name, data in content.items():  # directories come before what is in them
        if data is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(data)


def _spoilt(before: bytes, after: bytes, how: str, rng: random.Random) -> bytes:
    if before == after or how == "whole":
        return after
    if how == "absent":
        return before
    if how == "zero":
        return before[: len(after)].ljust(len(after), b"\0")
    blocks = []
    for start in range(0, len(after), BLOCK):
        old = before[start : start + BLOCK].ljust(len(after[start : start + BLOCK]), b"\0")
        new = after[start : start + BLOCK]
        cut = rng.randrange(len(new) + 1) if len(after) <= BLOCK else rng.choice([0, len(new)])
        blocks.append(new[:cut] + old[cut : len(new)])
    return b"".join(blocks)


def _subsets(changes: list[Change], rng: random.Random, most: int) -> Iterator[list[Change]]:
    """All combinations; of many, all prefixes, those with or without a single change, and random ones."""
    if 2 ** len(changes) <= most:
        for size in range(len(changes) + 1):
            yield from (list(chosen) for chosen in combinations(changes, size))
        return
    yield from (changes[:end] for end in range(len(changes) + 1))
    yield from ([change] for change in changes)
    yield from ([other for other in changes if other is not change] for change in changes)
    for _ in range(most):
        yield [change for change in changes if rng.random() < rng.choice([0.2, 0.5, 0.8])]


def _joined(folder: bytes, name: bytes) -> str:
    return os.path.join(folder.decode(), name.decode())


def _tree(root: Path) -> Content:
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes() for path in sorted(root.rglob("*"))
    }


def _read(path: Path) -> Inode:
    if not path.is_dir():
        return Inode(directory=False, base=path.read_bytes())
    return Inode(directory=True, entries={entry.name: _read(entry) for entry in sorted(path.iterdir())})
