"""A disk that keeps what was synced and nothing else, in the process that runs the tests.

Removals reach it at once, before anything that was done earlier: the worst order there is. tests/reliability/disk.py has all orders, of
processes that are recorded.
"""

import os
import stat
from pathlib import Path
from typing import Any, Self

import pytest

from tests.reliability.disk import Content, write


class LazyDisk:
    """What a power cut leaves of a folder; everything that is there at first is safe. To be used in a `with` statement."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.moments: list[Content] = []
        """What was on the disk after each change of it."""
        self._handles: dict[int, int] = {}
        """They keep the numbers of removed files from being given to new ones."""
        self._files: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._calls = os.fsync, os.unlink, os.rmdir
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Self:
        for path in [self.folder, *self.folder.rglob("*")]:
            self._keep(path)
        self._patch.setattr(os, "fsync", self._fsync)
        self._patch.setattr(os, "unlink", self._unlink)
        self._patch.setattr(os, "rmdir", self._rmdir)
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()
        for handle in self._handles.values():
            os.close(handle)

    def cut_power(self, place: Path) -> Path:
        """Writes what is on the disk now to another place."""
        write(self._content(), place)
        return place

    def _keep(self, path: Path) -> None:
        inode = self._known(path)
        if path.is_dir():
            self._names[inode] = {name: self._known(path / name) for name in os.listdir(path)}
        elif not path.is_symlink():
            self._files[inode] = path.read_bytes()

    def _known(self, path: Path) -> int:
        inode = os.lstat(path).st_ino
        if inode not in self._handles:
            self._handles[inode] = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        return inode

    def _fsync(self, handle: int) -> None:
        self._calls[0](handle)
        self._keep(Path(os.readlink(f"/proc/self/fd/{handle}")))
        self.moments.append(self._content())

    def _unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._calls[1](path, dir_fd=dir_fd)
        self._forget(path, dir_fd)

    def _rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._calls[2](path, dir_fd=dir_fd)
        self._forget(path, dir_fd)

    def _forget(self, path: Any, dir_fd: int | None) -> None:
        folder = os.stat(Path(path).parent) if dir_fd is None else os.fstat(dir_fd)
        self._names.get(folder.st_ino, {}).pop(os.path.basename(path), None)
        self.moments.append(self._content())

    def _content(self) -> Content:
        found: Content = {}

        def visit(directory: int, path: str) -> None:
            for name, inode in self._names.get(directory, {}).items():
                if stat.S_ISDIR(os.fstat(self._handles[inode]).st_mode):
                    found[f"{path}{name}"] = None
                    visit(inode, f"{path}{name}/")
                else:
                    found[f"{path}{name}"] = self._files.get(inode, b"")

        visit(os.stat(self.folder).st_ino, "")
        return found
