"""Files and directories that survive a crash: written aside, flushed to the disk, and put in place in one step.

Nothing here knows what is written; checkpoints, exports and histories are built on it.
"""

import ctypes
import errno
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file aside and renames it into place: a reader sees the old content or the new one, never a part."""
    aside = path.with_name(f".{path.name}.new")
    try:
        with open(aside, "wb", opener=_no_link) as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync(path.parent)


def _no_link(path: str, flags: int) -> int:
    """Opens a file in the place of a link, not the file it leads to."""
    if os.path.islink(path):
        os.unlink(path)
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def make_directory(directory: Path) -> None:
    """Makes a directory and those above it, where they are missing, and waits until their names are on the disk."""
    if directory.is_dir():
        return
    if not directory.parent.exists():
        make_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    sync(directory.parent)


def missing_directories(directory: Path) -> list[Path]:
    """The directory and those above it, as far as they do not exist yet; the innermost first."""
    return [path for path in (directory, *directory.parents) if not os.path.exists(path)]


def remove_empty(directories: Sequence[Path]) -> None:
    """Removes directories, the innermost first, and stops at one that is not empty."""
    for directory in directories:
        try:
            directory.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            return


def replace_directory(directory: Path, fill: Callable[[Path], None]) -> None:
    """Lets `fill` write a new directory aside, then puts it in the place of `directory`; what was there stays until then."""
    aside = directory.with_name(f".{directory.name}.new")
    recover_directory(directory)
    shutil.rmtree(aside, ignore_errors=True)
    make_directory(directory.parent)
    aside.mkdir()
    try:
        fill(aside)
        sync_tree(aside)
        put_in_place(aside, directory)
    except BaseException:
        recover_directory(directory)
        raise


def put_in_place(aside: Path, directory: Path) -> None:
    """Makes the directory `aside` the directory `directory`; one that was there is removed once the new one is in its place."""
    if not os.path.lexists(directory):
        aside.rename(directory)
        sync(directory.parent)
        return
    if exchange(aside, directory):
        sync(directory.parent)
        shutil.rmtree(aside)
        return
    old = _old(directory)
    shutil.rmtree(old, ignore_errors=True)
    directory.rename(old)
    aside.rename(directory)
    sync(directory.parent)
    shutil.rmtree(old)


def recover_directory(directory: Path) -> None:
    """Repairs what a crash in `put_in_place` left: brings the old directory back if no new one came, and clears away the rest."""
    old = _old(directory)
    if old.is_dir() and not os.path.lexists(directory):
        old.rename(directory)
    shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(directory.with_name(f".{directory.name}.new"), ignore_errors=True)


def exchange(one: Path, other: Path) -> bool:
    """Swaps the names of two existing directories in one step; False if the system or its file system cannot do that."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return False
    if function(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


def sync(path: Path) -> None:
    """Waits until a file, or the names in a directory, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(directory: Path) -> None:
    """Waits until everything below a directory is on the disk."""
    for path in [*directory.rglob("*"), directory]:
        if not path.is_symlink():
            sync(path)


def link_tree(source: Path, target: Path) -> None:
    """Copies a directory without copying its files: both share them, so they must never be changed in place.

    Where the file system has no links, or `target` lies on another one, files are copied.
    """
    target.mkdir(exist_ok=True)
    for entry in sorted(source.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            link_tree(entry, target / entry.name)
            continue
        link_or_copy(entry, target / entry.name)


def link_or_copy(source: Path, target: Path) -> None:
    """Gives a file a second name; where that is not possible, copies it."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
            raise
        shutil.copy2(source, target, follow_symlinks=False)


def _old(directory: Path) -> Path:
    return directory.with_name(f".{directory.name}.old")
