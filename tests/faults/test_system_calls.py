"""Killed, or failing, at each system call of a save: what was there before, or what should be there, and nothing between."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from scena.storage import durable
from scena.training.checkpoint.store import CheckpointStore
from tests.faults import saver
from tests.zygote import ROOT

CALLS = "openat,write,fsync,rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat,rmdir,ftruncate,link,linkat"

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


def traced(kind: str, path: Path, value: str, inject: str) -> tuple[int, list[str]]:
    """Runs the saver with a fault injected; its status, and the calls that concerned the path."""
    log = path.parent / "calls"
    done = subprocess.run(
        ["strace", "-f", "-o", log, "-P", path, *_below(path, value), "-e", f"trace={CALLS}", *(["-e", inject] if inject else []),
         sys.executable, "-m", "tests.faults.saver", kind, path, value],
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    calls = [line.split("(")[0].split()[-1] for line in log.read_text().splitlines() if "(" in line]
    return done.returncode, calls


def _below(path: Path, value: str) -> Iterator[str | Path]:
    """The paths that are touched; strace compares whole paths."""
    if value.isdecimal():
        aside = path / f".{value}.new"
        removed = path / "1.discarded"
        names = [aside, path / value, path / "1", removed, removed / "state.json", removed / "tensors.safetensors"]
        names += [aside / name for name in ("state.json", ".state.json.new", "tensors.safetensors")]
    else:
        aside, old = path.with_name(f".{path.name}.new"), path.with_name(f".{path.name}.old")
        names = [d / name for d in (aside, old) for name in ("", "one", "inside", "inside/two")]
    for name in names:
        yield "-P"
        yield name


def test_a_checkpoint_survives_a_kill_at_every_system_call(tmp_path: Path) -> None:
    base = tmp_path / "base"
    saver.save(base, 1)
    saver.save(base, 2)
    status, calls = traced("checkpoint", _copy(base, tmp_path / "whole"), "3", "")
    assert status == 0
    assert {"write", "fsync", "mkdir"} <= set(calls)
    assert any(call.startswith("rename") for call in calls)
    for call, number in each(calls):
        directory = _copy(base, tmp_path / "store")
        status, _ = traced("checkpoint", directory, "3", f"inject={call}:signal=KILL:when={number}")
        assert status != 0, (call, number)
        check_store(directory)
        saver.save(directory, 3)  # and it can go on
        assert CheckpointStore(directory).steps() == [2, 3]
    print(f"killed at {len(calls)} system calls of a checkpoint")


def each(calls: list[str]) -> list[tuple[str, int]]:
    """Each call with its number among those of its name, which is how strace counts."""
    return [(call, calls[: place + 1].count(call)) for place, call in enumerate(calls)]


def check_store(directory: Path) -> None:
    """Every checkpoint that can be seen is complete, and the newest is 2 or 3."""
    store = CheckpointStore(directory)
    store.clean()
    assert max(store.steps()) in (2, 3)
    for step in store.steps():
        _, tensors, state = store.load(step)
        assert state.progress["step"] == step
        for key, array in saver.arrays(step).items():
            np.testing.assert_array_equal(tensors[key], array)
    assert not [path for path in directory.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EACCES"])
def test_a_checkpoint_survives_an_error_in_every_system_call(tmp_path: Path, error: str) -> None:
    base = tmp_path / "base"
    saver.save(base, 1)
    saver.save(base, 2)
    _, calls = traced("checkpoint", _copy(base, tmp_path / "whole"), "3", "")
    for call, number in each(calls)[::3]:  # every third: the kills above are at each of them
        directory = _copy(base, tmp_path / "store")
        traced("checkpoint", directory, "3", f"inject={call}:error={error}:when={number}")
        check_store(directory)


@pytest.mark.parametrize("atomic", [True, False], ids=["exchange", "two renames"])
def test_a_directory_survives_a_kill_at_every_system_call(tmp_path: Path, atomic: bool) -> None:
    directory = tmp_path / "best"
    no_exchange = "" if atomic else "inject=renameat2:error=EINVAL"
    saver.replace(directory, "old")
    status, calls = traced("directory", directory, "new", no_exchange)
    assert (status, (directory / "one").read_text()) == (0, "new")
    for call, number in each(calls) if atomic else [("", number) for number in range(4)]:
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        saver.replace(directory, "old")
        if atomic:
            traced("directory", directory, "new", f"inject={call}:signal=KILL:when={number}")
            assert directory.is_dir()
        else:
            _cut_off_after(number, tmp_path, directory)
        durable.recover_directory(directory)
        contents = {(directory / name).read_text() for name in ("one", "inside/two")}
        assert contents in ({"old"}, {"new"})
        assert sorted(os.listdir(tmp_path)) in (["best"], ["best", "calls"])


def _cut_off_after(number: int, folder: Path, directory: Path) -> None:
    """The same without RENAME_EXCHANGE, which strace cannot take away and kill at once: the renames one by one."""
    aside = folder / ".best.new"
    aside.mkdir()
    (aside / "one").write_text("new")
    (aside / "inside").mkdir()
    (aside / "inside" / "two").write_text("new")
    steps: list[Callable[[], object]] = [
        lambda: directory.rename(folder / ".best.old"),
        lambda: aside.rename(directory),
        lambda: shutil.rmtree(folder / ".best.old" / "inside"),
    ]
    for step in steps[:number]:
        step()


def _copy(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target
