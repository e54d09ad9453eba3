"""Runs the jobs of a plan on a Ray cluster, as many at once as fit; runs of a lost node resume on another.

Runs, logs and the current folder must be on storage that all nodes share under the same path.
"""

import logging
import os
import secrets
import selectors
import socket
import time
from types import FrameType
from typing import Any

from scena.backends.cluster import receive_line
from scena.errors import ExperimentError, Interrupted, first_line
from scena.experiments.schedulers.base import GRACE, Job, Plan, Running, Slot
from scena.experiments.schedulers.params import RayParams
from scena.signals import noticing_stop_signals

logger = logging.getLogger(__name__)

MOST_LOSSES = 10
POLL = 0.05
"""Seconds between two checks for ended jobs; messages of trials are handled at once."""
CLIENT_PORT = "10001"


def connect(address: str) -> Any:
    """Ray, connected to the cluster at HOST:PORT; without an address to that of this machine, or to a new one."""
    address = address.removeprefix("ray://")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # a run without GPUs hides them itself
    try:
        import ray
    except ImportError as error:
        raise ExperimentError("--cluster ray needs Ray: install scena[cluster].") from error
    options = {"logging_level": logging.ERROR, "log_to_driver": False, "configure_logging": True}
    try:
        if address:
            client = address.rpartition(":")[2] == CLIENT_PORT
            ray.init(address=f"ray://{address}" if client else address, **options)
        else:
            try:
                ray.init(address="auto", **options)
            except ConnectionError:
                ray.init(include_dashboard=False, **options)
    except Exception as error:  # Ray raises many kinds
        cluster = f"ray://{address}" if address else "ray"
        raise ExperimentError(f"--cluster {cluster}: cannot be reached: {first_line(error)}") from error
    return ray


class RayScheduler:
    """Runs the jobs of a plan on a cluster; they have `grace` seconds to end after Ctrl-C."""

    at_once = 2
    """At least: nodes come and go."""

    def __init__(self, params: RayParams, grace: float = GRACE) -> None:
        from scena.experiments.schedulers.ray_process import run_process

        ray = connect(params.address)
        self.ray, self.cpus, self.gpus, self.grace = ray, params.cpus, params.gpus, grace
        self._remote = ray.remote(
            num_cpus=params.cpus, num_gpus=params.gpus, max_retries=0, scheduling_strategy="SPREAD"
        )(run_process)
        self._running: dict[Any, Running] = {}
        self._losses: dict[str, int] = {}
        self._requests = 0
        self._counted = (0.0, 0)

    def make_channel(self) -> tuple[socket.socket, str, list[int]]:
        """A socket on which a job may report over the network, and how it is reached."""
        listener = socket.create_server((self.ray.util.get_node_ip_address(), 0))
        host, port = listener.getsockname()[:2]
        return listener, f"{host}:{port}:{secrets.token_hex(16)}", []

    def run(self, plan: Plan) -> None:
        """Runs until the plan has no more jobs.

        Raises:
            Interrupted: Ctrl-C or SIGTERM; all jobs have ended.
        """
        try:
            with selectors.DefaultSelector() as selector, noticing_stop_signals(self._notice):
                self._loop(plan, selector)
        finally:
            for running in self._running.values():
                self._release(running)
        if self._requests:
            raise Interrupted("Interrupted; the runs were stopped. The same command resumes them.")

    def _loop(self, plan: Plan, selector: selectors.BaseSelector) -> None:
        self._fill(plan, selector)
        while self._running or (plan.waits() and not self._requests):
            for key, _ in selector.select(POLL):  # trials wait for their answers here
                key.data()
            ready = self.ray.wait(list(self._running), num_returns=1, timeout=0)[0] if self._running else []
            for reference in ready:
                self._end(reference, plan, selector)
            self._fill(plan, selector)
            plan.tick(list(self._running.values()))

    def _capacity(self) -> int:
        """How many runs fit on the nodes."""
        if time.monotonic() - self._counted[0] > 1:
            nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
            capacity = 0
            for resources in nodes:
                parts = [resources.get("CPU", 0) / self.cpus] if self.cpus else []
                parts += [resources.get("GPU", 0) / self.gpus] if self.gpus else []
                capacity += int(min(parts)) if parts else 1
            self._counted = (time.monotonic(), capacity)
        return self._counted[1]

    def _fill(self, plan: Plan, selector: selectors.BaseSelector) -> None:
        while not self._requests and len(self._running) < self._capacity():
            slot = Slot("ray", {} if self.gpus else {"CUDA_VISIBLE_DEVICES": "-1"})
            job = plan.next_job(slot)
            if job is None:
                return
            running = self._start(job, slot)
            if job.channel is not None:
                selector.register(
                    job.channel, selectors.EVENT_READ, lambda one=running: self._accept(one, plan, selector)
                )
            plan.started(running)

    def _start(self, job: Job, slot: Slot) -> Running:
        job.log.parent.mkdir(parents=True, exist_ok=True)
        environment = {**slot.environment, **job.environment}
        if "PYTHONPATH" in os.environ:
            environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
        log = job.log.absolute()
        reference = self._remote.remote(
            job.words, environment, os.getcwd(), str(log), str(log.with_suffix(".lock")), self.grace
        )
        running = Running(job, slot, None, time.monotonic())
        self._running[reference] = running
        return running

    def _accept(self, running: Running, plan: Plan, selector: selectors.BaseSelector) -> None:
        """Accepts the job's connection if it knows the secret that only the job received."""
        listener = running.job.channel
        secret = running.job.secret.encode() + b"\n"
        connection, _ = listener.accept()
        connection.settimeout(5)
        try:
            told = receive_line(connection, len(secret))
        except OSError:
            told = b""
        if not secrets.compare_digest(told, secret):
            connection.close()
            return
        connection.setblocking(False)
        selector.unregister(listener)
        listener.close()
        running.job.channel = connection

        def hear() -> None:
            if connection.fileno() >= 0 and not plan.heard(running):
                selector.unregister(connection)
                connection.close()

        selector.register(connection, selectors.EVENT_READ, hear)

    def _end(self, reference: Any, plan: Plan, selector: selectors.BaseSelector) -> None:
        errors = self.ray.exceptions
        running = self._running.pop(reference)
        channel = running.job.channel
        if channel is not None and channel.fileno() >= 0:
            if not channel.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):  # the job has connected
                while plan.heard(running):
                    pass
            selector.unregister(channel)
            channel.close()
        self._release(running)
        try:
            status, _ = self.ray.get(reference)
        except errors.TaskCancelledError:
            status = 143
        except errors.RayTaskError as error:
            with running.job.log.open("a", encoding="utf-8") as log:
                log.write(f"{error.cause}\n")
            status = 1
        except errors.RayError as error:
            self._losses[running.job.key] = self._losses.get(running.job.key, 0) + 1
            if self._losses[running.job.key] > MOST_LOSSES or self._requests:
                plan.ended(running, 143 if self._requests else 1)
                return
            logger.warning(
                "Run %s: its node is lost (%s); it continues on another", running.job.key, type(error).__name__
            )
            self._counted = (0.0, 0)
            plan.lost(running)
            return
        plan.ended(running, status)

    def _release(self, running: Running) -> None:
        for descriptor in running.job.inherited:  # this process holds the lock on behalf of the node
            os.close(descriptor)
        running.job.inherited = []

    def _notice(self, number: int, frame: FrameType | None) -> None:
        self._requests += 1
        for reference, running in list(self._running.items()):
            running.stop_sent = time.monotonic()
            self.ray.cancel(reference, force=self._requests > 1)
