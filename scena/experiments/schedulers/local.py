"""Running processes over slots: as soon as a slot is free the next job starts in it, and nothing is waited for in vain.

It runs in the main thread; a job's process ends with this one, whatever ends it.
"""

import contextlib
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from scena.experiments.errors import ExperimentError, Interrupted
from scena.experiments.schedulers.base import GRACE, Job, Plan, Running, Slot, local_channel
from scena.experiments.schedulers.params import LocalParams
from scena.signals import noticing_stop_signals

MOST = 10_000


def make_slots(gpus: list[int], cpus: list[int], per_device: int = 1) -> list[Slot]:
    """The slots of some devices; without any, one on the CPU.

    Args:
        gpus: indices of GPUs; a run sees its own one only.
        cpus: how many CPU slots (one number from 1 on), or their numbers; a run there sees no GPU.
        per_device: runs at once on each.
    """
    if per_device < 1:
        raise ExperimentError(f"--per_device must be at least 1. Received: {per_device}.")
    for flag, numbers in (("gpus", gpus), ("cpus", cpus)):
        if wrong := [number for number in numbers if number < 0 or numbers.count(number) > 1]:
            raise ExperimentError(f"--{flag} takes different numbers from 0 on. Received: {wrong[0]}.")
    if len(cpus) * per_device > MOST or (len(cpus) == 1 and cpus[0] * per_device > MOST):
        raise ExperimentError(f"--cpus {' '.join(map(str, cpus))} are too many: at most {MOST} runs go on at once.")
    if len(cpus) == 1 and cpus[0] > 0:
        cpus = list(range(cpus[0]))
    devices = [(f"gpu {index}", str(index)) for index in gpus] + [(f"cpu {index}", "-1") for index in cpus]
    if not devices:
        devices = [("cpu 0", "-1")]
    several = per_device > 1
    return [
        Slot(f"{name}.{number}" if several else name, {"CUDA_VISIBLE_DEVICES": visible, **_order()})
        for number in range(1, per_device + 1)
        for name, visible in devices
    ]


def _order() -> dict[str, str]:
    """GPUs are numbered as nvidia-smi shows them, unless the user has said otherwise."""
    return {} if "CUDA_DEVICE_ORDER" in os.environ else {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


TICK = 0.25
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


class LocalScheduler:
    """Runs the jobs of a plan over slots.

    Args:
        params: which devices; each has slots for so many runs at once.
        grace: seconds that jobs have to end after Ctrl-C.
    """

    def __init__(self, params: LocalParams, grace: float = GRACE) -> None:
        self.slots = make_slots(params.gpus, params.cpus, params.per_device)
        self.at_once = len(self.slots)
        self.grace = grace
        self.busy = 0.0
        """Seconds that slots were busy, over all of them."""
        self._running: dict[str, Running] = {}
        self._requests = 0

    def make_channel(self) -> tuple[socket.socket, str, list[int]]:
        """A pair of sockets."""
        return local_channel()

    def run(self, plan: Plan) -> None:
        """Runs until the plan has no more jobs.

        Raises:
            Interrupted: Ctrl-C or SIGTERM; all jobs have ended.
        """
        with selectors.DefaultSelector() as selector, noticing_stop_signals(self._notice):
            try:
                self._loop(plan, selector)
            except BaseException:
                self._kill_all()
                raise
        if self._requests:
            raise Interrupted("Interrupted; the runs were stopped. The same command goes on with them.")

    def stop(self, running: Running) -> None:
        """Asks one job to end."""
        if running.stop_sent is None:
            running.stop_sent = time.monotonic()
            self._signal(running, signal.SIGTERM)

    def _loop(self, plan: Plan, selector: selectors.BaseSelector) -> None:
        next_tick = 0.0
        self._fill(plan, selector)
        while self._running or (plan.waits() and not self._requests):
            for key, _ in selector.select(max(0.0, min(TICK, next_tick - time.monotonic()))):
                handle: Callable[[], None] = key.data
                handle()
            self._press()
            self._fill(plan, selector)
            if time.monotonic() >= next_tick:
                plan.tick(list(self._running.values()))
                next_tick = time.monotonic() + TICK

    def _fill(self, plan: Plan, selector: selectors.BaseSelector) -> None:
        for slot in self.slots:
            if self._requests:
                return
            if slot.name in self._running:
                continue
            job = plan.next_job(slot)
            if job is None:
                continue
            running = self._start(job, slot)
            self._running[slot.name] = running
            self._watch(running, plan, selector)
            plan.started(running)

    def _watch(self, running: Running, plan: Plan, selector: selectors.BaseSelector) -> None:
        pidfd = os.pidfd_open(running.process.pid)
        channel = running.job.channel

        def ended() -> None:
            selector.unregister(pidfd)
            os.close(pidfd)
            if channel is not None and channel.fileno() >= 0:
                while plan.heard(running):
                    pass  # what it said last
                self._close(channel, selector)
            # Nothing that it started outlives it; before wait(), because its number is not taken by another one until then.
            self._signal_group(running, signal.SIGKILL)
            status = running.process.wait()
            self.busy += running.seconds
            del self._running[running.slot.name]
            plan.ended(running, status)

        selector.register(pidfd, selectors.EVENT_READ, ended)
        if channel is not None:
            selector.register(channel, selectors.EVENT_READ, lambda: self._hear(running, plan, selector))

    def _hear(self, running: Running, plan: Plan, selector: selectors.BaseSelector) -> None:
        channel = running.job.channel
        if channel.fileno() >= 0 and not plan.heard(running):
            self._close(channel, selector)

    def _close(self, channel: Any, selector: selectors.BaseSelector) -> None:
        selector.unregister(channel)
        channel.close()

    def _start(self, job: Job, slot: Slot) -> Running:
        job.log.parent.mkdir(parents=True, exist_ok=True)
        parent = os.getpid()

        def end_with_parent() -> None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(143)

        with job.log.open("ab") as log:
            process = subprocess.Popen(
                job.words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **slot.environment, **job.environment},
                start_new_session=True,  # Ctrl-C in the terminal reaches this process only, which ends jobs in order
                preexec_fn=end_with_parent,
                pass_fds=job.inherited,
            )
        for descriptor in job.inherited:
            os.close(descriptor)
        return Running(job, slot, process, time.monotonic())

    # ---- ending ------------------------------------------------------------------------------------------------------

    def _notice(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._requests += 1
        for running in list(self._running.values()):
            if self._requests == 1:
                self.stop(running)
            else:
                self._signal_group(running, signal.SIGKILL)

    def _press(self) -> None:
        """Ends what was asked to end and has not done so in time."""
        for running in self._running.values():
            if running.stop_sent is not None and time.monotonic() - running.stop_sent > self.grace:
                self._signal_group(running, signal.SIGKILL)

    def _signal(self, running: Running, number: int) -> None:
        if running.job.whole_group:
            self._signal_group(running, number)
        else:
            running.process.send_signal(number)

    def _signal_group(self, running: Running, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(running.process.pid, number)

    def _kill_all(self) -> None:
        for running in self._running.values():
            self._signal_group(running, signal.SIGKILL)
            running.process.wait()
