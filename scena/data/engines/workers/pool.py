"""The processes of a parallel pipeline, their channels and their shared memory. Kept from epoch to epoch."""

import contextlib
import logging
import os
import select
import subprocess
import sys
import threading
import time
import weakref

import msgspec

from scena import faults
from scena.data.engines.workers.config import notebook_path, stored_context
from scena.data.engines.workers.memory import SharedMemory, SlotPool
from scena.data.engines.workers.messages import Channel, Configuration, Message
from scena.data.engines.workers.worker import StreamServer, main
from scena.data.generator import is_shared
from scena.data.stages.context import PipelineContext

logger = logging.getLogger("scena.data")

_BOOT = (
    f"import sys; sys.path[:] = sys.argv[5].split(chr(0x1f)); from {main.__module__} import main; main(*sys.argv[1:5])"
)
END_SECONDS = 0.5
"""How long processes that are told to end may take before they are killed."""
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Member:
    """One process, or the thread that reads a source which must stay in this process."""

    def __init__(self, name: str, channel: Channel, process: subprocess.Popen[bytes] | None, life: int) -> None:
        self.name = name
        self.channel = channel
        self.process = process
        self.thread: threading.Thread | None = None
        self.up = False
        """Whether it has reported that it is ready."""
        self._life = life

    def send(self, message: Message) -> None:
        """Sends a message. If the other side is gone, reading reports it."""
        with contextlib.suppress(OSError):
            self.channel.send(message)

    def status(self) -> int | None:
        """The exit status, None if it runs (waits a moment: its channel closes before its process is reaped)."""
        if self.process is None:
            return None
        try:
            return self.process.wait(1.0)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        """Tells it to end."""
        self.channel.close()
        if self._life >= 0:
            os.close(self._life)
            self._life = -1

    def join(self, deadline: float) -> None:
        """Waits until it is gone; kills it after the deadline."""
        if self.process is not None:
            try:
                self.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(max(0.0, deadline - time.monotonic()))


class WorkerPool:
    """`processes` workers for parallel stages, and one process for each serial stage."""

    def __init__(self, context: PipelineContext, processes: int) -> None:
        self.context = context
        self.memory = SharedMemory()
        self.slots = SlotPool()
        self._generation = 0
        self.closed = False
        """Whether it cannot be used again: it was closed, or a process is gone."""
        self.group = faults.smaller("group", max(1, min(16, context.pipeline.prefetch // (2 * max(1, processes)))))
        self.members: list[Member] = []
        self.streams: dict[int, Member] = {}
        self._finalizer = weakref.finalize(self, _close, self.members, self.memory)
        config = Configuration(
            stored_context(context),
            self.group,
            # The kernel signals the end of the starting *thread*: only the main one lives as long as the process.
            die_with_thread=threading.current_thread() is threading.main_thread(),
        )
        shared = (context.source.descriptor,) if is_shared(context.source) else ()
        if any(stage.parallel for stage in context.stages):
            for number in range(processes):
                self.members.append(_start(f"worker {number}", config, self.memory, shared))
        self.workers = self.members.copy()
        for stage_index, stage in enumerate(context.stages):
            if stage.parallel:
                continue
            if stage.source and context.main_source:
                member = _start_thread(context, stage_index, self.group, self.memory)
            else:
                name = "source" if stage.source else f"serial worker {stage_index}"
                own = msgspec.structs.replace(config, stage_index=stage_index)
                member = _start(name, own, self.memory, shared)
            self.streams[stage_index] = member
            self.members.append(member)

    def next_generation(self) -> int:
        """The number of a new run; messages of earlier ones are recognized by theirs."""
        self._generation += 1
        return self._generation

    def ready(self) -> bool:
        """Whether all processes are up (or have sent why they are not)."""
        if self.closed:
            return True
        waiting = [member.channel for member in self.members if member.process is not None and not member.up]
        return not waiting or len(select.select(waiting, [], [], 0)[0]) == len(waiting)

    def close(self) -> None:
        """Ends all processes; frees the memory."""
        self.closed = True
        self._finalizer()


def _close(members: list[Member], memory: SharedMemory) -> None:
    for member in members:
        member.close()
    deadline = time.monotonic() + END_SECONDS
    for member in members:
        member.join(deadline)
    memory.close()


def _start(name: str, config: Configuration, memory: SharedMemory, shared: tuple[int, ...]) -> Member:
    ours, theirs = Channel.pair()
    life, held = os.pipe()
    descriptors = (theirs.fileno(), life, memory.descriptor)
    path = "\x1f".join(os.path.abspath(entry or os.curdir) for entry in [*sys.path, *notebook_path()])
    environment = {**dict.fromkeys(_ONE_THREAD, "1"), **os.environ}
    process = subprocess.Popen(
        [sys.executable, "-c", _BOOT, *map(str, descriptors), str(os.getpid()), path],
        pass_fds=descriptors + shared,
        stdin=subprocess.DEVNULL,
        env=environment,
        process_group=0,  # Ctrl-C of the terminal is for the parent alone
    )
    os.close(life)
    theirs.close()
    member = Member(f"{name} (process {process.pid})", ours, process, held)
    member.send(config)
    return member


def _start_thread(context: PipelineContext, stage_index: int, group: int, memory: SharedMemory) -> Member:
    ours, theirs = Channel.pair()
    member = Member("source in the main process", ours, None, -1)
    server = StreamServer(theirs, memory, context, stage_index, group)
    member.thread = threading.Thread(target=server.run, name="scena-source", daemon=True)
    member.thread.start()
    return member
