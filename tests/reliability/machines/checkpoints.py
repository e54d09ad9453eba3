"""The checkpoint store {save, kill, load, set aside, full disk, damage}: what was acknowledged is there, and nothing else is loaded."""

import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from scena.errors import CheckpointError
from scena.storage.durable import link_tree
from scena.storage.run_layout import STATE_FILE, TENSORS_FILE
from scena.storage.tensor_file import TensorBuffer
from scena.training.checkpoint.format import FORMAT, StoredState, VariableEntry
from scena.training.checkpoint.store import CheckpointStore, CheckpointWriter
from tests.reliability.machines.base import Machine

EVENTS = {
    "open",
    "os.mkdir",
    "os.rename",
    "os.link",
    "os.remove",
    "os.rmdir",
    "os.listdir",
    "os.scandir",
    "shutil.rmtree",
}
RUN = "this run"


def arrays(version: int) -> dict[str, Any]:
    """The tensors of one checkpoint."""
    return {"a": np.full((40, 30), version, np.float32), "b": np.arange(version % 7, dtype=np.int64)}


def state(step: int, version: int, number: int) -> StoredState:
    """The rest of it."""
    entries = [VariableEntry(key, key, list(a.shape), a.dtype.name) for key, a in arrays(version).items()]
    return StoredState(FORMAT, {"step": step, "version": version}, {}, entries, {}, run=RUN, number=number)


def dying(function: Callable[[], object], after: int) -> None:
    """Calls the function in a copy of this process, which is killed at a call to the file system, or at the end."""
    pid = os.fork()
    if pid == 0:
        left = after

        def hook(event: str, _: Any) -> None:
            nonlocal left
            left -= event in EVENTS
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(hook)
            function()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


class CheckpointMachine(Machine):
    """The checkpoints of a run that is killed, resumed, set back, and short of space."""

    @initialize(keep=st.integers(1, 3), keep_every=st.sampled_from([0, 0, 2]), name=st.sampled_from(["", "epoch"]))
    def start(self, keep: int, keep_every: int, name: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="scena-machine-", dir="/dev/shm"))
        self.best = self.folder / "best"
        self.best.mkdir()
        (self.best / "model").write_bytes(b"best")
        self.store = CheckpointStore(self.folder / "checkpoint", keep, keep_every, RUN, name)
        self.there: dict[int, int] = {}
        """Step → version of the checkpoints that must be there."""
        self.kept: set[int] = set()
        self.damaged: set[int] = set()
        self.version = self.number = 0

    # ---- what a save leaves --------------------------------------------------------------------------------------------

    def after_save(self, step: int, pinned: int | None) -> set[int]:
        others = sorted(set(self.there) - {step})
        last = set(others[len(others) - self.store.keep + 1 :]) if self.store.keep > 1 else set()
        return {step} | last | (self.kept & set(others)) | ({pinned} & set(others) if pinned is not None else set())

    def write(self, step: int, version: int, number: int, pinned: int | None) -> None:
        buffer = TensorBuffer()
        link_tree(self.best, self.store.begin(step) / "best")
        buffer.fill(arrays(version))
        self.store.commit(step, buffer, state(step, version, number), pinned)

    def next_version(self) -> tuple[int, int]:
        self.version, self.number = self.version + 1, self.number + 1
        return self.version, self.number

    def saved(self, step: int, version: int, number: int, left: set[int]) -> None:
        self.there = {s: v for s, v in {**self.there, step: version}.items() if s in left}
        self.damaged = (self.damaged - {step}) & left
        self.kept = {s for s in self.kept if s != step} & left
        if self.store.keep_every and number % self.store.keep_every == 0:
            self.kept.add(step)

    @rule(ahead=st.integers(0, 3), pin=st.booleans(), background=st.booleans())
    def save(self, ahead: int, pin: bool, background: bool) -> None:
        """At a step at or after the last one, as trainings do."""
        step = max(self.there, default=0) + ahead
        pinned = min(self.there, default=None) if pin else None
        version, number = self.next_version()
        left = self.after_save(step, pinned)
        if background:
            writer = CheckpointWriter(self.store)
            writer.save(step, lambda: arrays(version), state(step, version, number), lambda aside: None, pinned)
            writer.close()
            assert writer.failure is None
        else:
            self.write(step, version, number, pinned)
        self.saved(step, version, number, left)

    @rule(ahead=st.integers(0, 3), after=st.integers(0, 60))
    def kill(self, ahead: int, after: int) -> None:
        """A process dies while it saves; the next one cleans up. The checkpoint is there or not, and the others are."""
        step = max(self.there, default=0) + ahead
        version, number = self.next_version()
        left = self.after_save(step, None)
        dying(lambda: self.write(step, version, number, None), after)
        self.store.clean()
        found = set(self.store.steps())
        new = step in found and self.readable(step) == version
        if new:
            assert left <= found <= set(self.there) | {step}, "a checkpoint that must stay is gone"
            self.saved(step, version, number, found)
        else:
            assert found == set(self.there), "a save that never ended removed checkpoints"

    @rule(ahead=st.integers(0, 2), size=st.integers(0, 9000), background=st.booleans())
    def full_disk(self, ahead: int, size: int, background: bool) -> None:
        """No file can grow beyond some bytes; what is not saved is reported and leaves nothing."""
        step = max(self.there, default=0) + ahead
        version, number = self.next_version()
        left = self.after_save(step, None)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            if background:
                writer = CheckpointWriter(self.store)
                writer.save(step, lambda: arrays(version), state(step, version, number), lambda aside: None)
                writer.close()
                failed = writer.failure is not None
            else:
                self.write(step, version, number, None)
                failed = False
        except CheckpointError:
            failed = True
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)
        if not failed:
            self.saved(step, version, number, left)

    @precondition(lambda self: self.there)
    @rule(data=st.data(), after=st.integers(0, 40) | st.none())
    def set_aside(self, data: st.DataObject, after: int | None) -> None:
        """Resumes from an earlier checkpoint, `resume --from`; perhaps it is killed while doing so."""
        step = data.draw(st.sampled_from(sorted(self.there)))
        kept = {s for s in self.there if s <= step}
        if after is None:
            self.store.discard_after(step)
        else:
            dying(lambda: self.store.discard_after(step), after)
            assert kept <= set(self.store.steps()) <= set(self.there)
            kept = set(self.store.steps())
        self.there = {s: v for s, v in self.there.items() if s in kept}
        self.kept &= kept
        self.damaged &= kept

    @precondition(lambda self: set(self.there) - self.damaged)
    @rule(data=st.data(), name=st.sampled_from([STATE_FILE, TENSORS_FILE]), place=st.floats(0, 1, exclude_max=True))
    def damage(self, data: st.DataObject, name: str, place: float) -> None:
        """A bit flips in a checkpoint, which is never loaded again. With another name of its run it would not be removed either."""
        step = data.draw(st.sampled_from(sorted(set(self.there) - self.damaged)))
        path = self.store.path(step) / name
        content = bytearray(path.read_bytes())
        named = content.count(RUN.encode())
        content[int(place * len(content))] ^= 4
        if content.count(RUN.encode()) < named:
            return
        path.write_bytes(content)
        self.damaged.add(step)

    # ---- what is there ------------------------------------------------------------------------------------------------

    def readable(self, step: int) -> int | None:
        try:
            return self.load(step)
        except CheckpointError:
            return None

    def load(self, step: int) -> int:
        loaded = self.store.load(step)
        version = int(loaded.state.progress["version"])
        for key, array in arrays(version).items():
            np.testing.assert_array_equal(loaded.tensors[key], array)
        return version

    @rule()
    def load_latest(self) -> None:
        found = self.store.load_latest()
        readable = [step for step in self.there if step not in self.damaged]
        if found is None:
            assert not readable
        else:
            assert found.step == max(readable)
            assert found.state.progress["version"] == self.there[found.step]

    @rule(step=st.integers(1, 6))
    def load_one(self, step: int) -> None:
        if step in self.there and step not in self.damaged:
            assert self.load(step) == self.there[step]
        else:
            assert self.readable(step) is None, "a damaged or missing checkpoint was loaded"

    @invariant()
    def exactly_those_are_there(self) -> None:
        if hasattr(self, "there"):
            assert self.store.steps() == sorted(self.there)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)
