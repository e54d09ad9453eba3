"""Runs jobs as processes over slots of this machine; the next job starts as soon as a slot is free.

It runs in the main thread; a job's process ends with this one, whatever ends it.
"""

import contextlib
import logging
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from scena.backends.selection import gpu_names, visible_gpus
from scena.errors import ExperimentError, Interrupted
from scena.experiments.schedulers.base import GRACE, Job, Plan, Running, Slot, local_channel
from scena.experiments.schedulers.params import LocalParams
from scena.signals import end_with_parent, noticing_stop_signals

logger = logging.getLogger(__name__)

MOST = 10_000
TICK = 0.25


def make_slots(gpus: Sequence[int | str], cpus: list[int], per_device: int = 1) -> list[Slot]:
    """The slots of some devices for `per_device` runs each; without any device, one on the CPU.

    `gpus` are indices (into CUDA_VISIBLE_DEVICES if it is set), and each run sees only its own GPU. ["auto"] is the first visible GPU
    unless there are `cpus`, ["none"] no GPU. `cpus` is the number of CPU slots, or their indices; a run there sees no GPU.
    """
    if per_device < 1:
        raise ExperimentError(f"--per_device must be at least 1. Received: {per_device}.")
    if len(gpus) > 1 and any(isinstance(gpu, str) for gpu in gpus):
        raise ExperimentError(f"--gpus is auto, none, or indices. Received: {' '.join(map(str, gpus))}.")
    indices = [gpu for gpu in gpus if isinstance(gpu, int)]
    for flag, numbers in (("gpus", indices), ("cpus", cpus)):
        if wrong := [number for number in numbers if number < 0 or numbers.count(number) > 1]:
            raise ExperimentError(f"--{flag} takes distinct numbers of at least 0. Received: {wrong[0]}.")
    automatic = list(gpus) == ["auto"] and not cpus
    names = visible_gpus()[:1] if automatic else gpu_names(indices, "--gpus")
    if len(cpus) * per_device > MOST or (len(cpus) == 1 and cpus[0] * per_device > MOST):
        raise ExperimentError(f"--cpus {' '.join(map(str, cpus))} are too many: at most {MOST} runs at once.")
    if len(cpus) == 1 and cpus[0] > 0:
        cpus = list(range(cpus[0]))
    devices = [(f"gpu {name}", name) for name in names] + [(f"cpu {index}", "-1") for index in cpus]
    if not devices:
        devices = [("cpu 0", "-1")]
    several = per_device > 1
    # GPUs are numbered as nvidia-smi does, unless the user has set another order
    order = {} if "CUDA_DEVICE_ORDER" in os.environ else {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    return [
        Slot(f"{name}.{number}" if several else name, {"CUDA_VISIBLE_DEVICES": visible, **order})
        for number in range(1, per_device + 1)
        for name, visible in devices
    ]


class LocalProcess:
    """The process of a job; it can be watched by a selector, and ends with this one."""

    def __init__(self, job: Job, slot: Slot) -> None:
        parent = os.getpid()
        with job.log.open("ab") as log:
            self._process = subprocess.Popen(
                job.words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **slot.environment, **job.environment},
                start_new_session=True,  # Ctrl-C in the terminal reaches only this process, which ends the jobs
                preexec_fn=lambda: end_with_parent(parent),
                pass_fds=job.inherited,
            )
        self._pidfd = os.pidfd_open(self._process.pid)

    def fileno(self) -> int:
        """Can be read once the process has ended."""
        return self._pidfd

    def wait(self) -> int:
        """Its exit status; negative for a signal."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        return self._process.wait()

    def send_signal(self, number: int, *, group: bool) -> None:
        """Sends a signal to it, or to all processes that it has started as well."""
        if not group:
            self._process.send_signal(number)
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


class LocalScheduler:
    """Runs the jobs of a plan over slots; they have `grace` seconds to end after Ctrl-C.

    A simulation gives it another clock, other processes, and a selector that knows them.
    """

    make_channel = staticmethod(local_channel)

    def __init__(
        self,
        params: LocalParams,
        grace: float = GRACE,
        *,
        clock: Callable[[], float] = time.monotonic,
        start: Callable[[Job, Slot], Any] = LocalProcess,
        selector: Callable[[], selectors.BaseSelector] = selectors.DefaultSelector,
    ) -> None:
        self._clock, self._start_process, self._selector = clock, start, selector
        self.slots = make_slots(params.gpus, params.cpus, params.per_device)
        if params.gpus == ["auto"] and self.slots[0].name.startswith("gpu"):
            logger.info("Runs use %s; --gpus none uses the CPU, indices choose others.", self.slots[0].name)
        self.at_once = len(self.slots)
        self.grace = grace
        self._running: dict[str, Running] = {}
        self._requests = 0

    def run(self, plan: Plan) -> None:
        """Runs until the plan has no more jobs.

        Raises:
            Interrupted: Ctrl-C or SIGTERM; all jobs have ended.
        """
        with self._selector() as selector, noticing_stop_signals(self._notice):
            try:
                self._loop(plan, selector)
            except BaseException:
                for running in self._running.values():
                    running.process.send_signal(signal.SIGKILL, group=True)
                    running.process.wait()
                raise
        if self._requests:
            raise Interrupted("Interrupted; the runs were stopped. The same command resumes them.")

    def _loop(self, plan: Plan, selector: selectors.BaseSelector) -> None:
        next_tick = 0.0
        self._fill(plan, selector)
        while self._running or (plan.waits() and not self._requests):
            for key, _ in selector.select(max(0.0, min(TICK, next_tick - self._clock()))):
                key.data()
            for running in self._running.values():
                if running.stop_sent is not None and self._clock() - running.stop_sent > self.grace:
                    running.process.send_signal(signal.SIGKILL, group=True)
            self._fill(plan, selector)
            if self._clock() >= next_tick:
                plan.tick(list(self._running.values()))
                next_tick = self._clock() + TICK

    def _fill(self, plan: Plan, selector: selectors.BaseSelector) -> None:
        for slot in self.slots:
            if self._requests:
                return
            job = plan.next_job(slot) if slot.name not in self._running else None
            if job is None:
                continue
            running = self._start(job, slot)
            self._running[slot.name] = running
            self._watch(running, plan, selector)
            plan.started(running)

    def _watch(self, running: Running, plan: Plan, selector: selectors.BaseSelector) -> None:
        process, channel = running.process, running.job.channel

        def close() -> None:
            selector.unregister(channel)
            channel.close()

        def hear() -> None:
            if channel.fileno() >= 0 and not plan.heard(running):
                close()

        def ended() -> None:
            selector.unregister(process)
            if channel is not None and channel.fileno() >= 0:
                while plan.heard(running):
                    pass  # reads its last messages
                close()
            # nothing that it started outlives it; before wait(), because its process id cannot be reused until then
            process.send_signal(signal.SIGKILL, group=True)
            status = process.wait()
            del self._running[running.slot.name]
            plan.ended(running, status)

        selector.register(process, selectors.EVENT_READ, ended)
        if channel is not None:
            selector.register(channel, selectors.EVENT_READ, hear)

    def _start(self, job: Job, slot: Slot) -> Running:
        job.log.parent.mkdir(parents=True, exist_ok=True)
        process = self._start_process(job, slot)
        for descriptor in job.inherited:
            os.close(descriptor)
        return Running(job, slot, process, self._clock(), clock=self._clock)

    def _notice(self, number: int, frame: FrameType | None) -> None:
        self._requests += 1
        for running in list(self._running.values()):
            if self._requests > 1:
                running.process.send_signal(signal.SIGKILL, group=True)
            else:
                running.process.send_signal(signal.SIGTERM, group=running.job.whole_group)
            running.stop_sent = running.stop_sent or self._clock()
