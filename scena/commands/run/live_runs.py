"""What `experiment` and `tune` share: where runs are carried out, and a live table of them (log lines where there is no terminal)."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scena.errors import ExperimentError
from scena.experiments.schedulers.params import LocalParams, RayParams, SchedulerParams, SlotParams
from scena.experiments.stored_run import NO_RESULTS, read_history, read_run
from scena.params import Params, ParamsError, param
from scena.storage.run_layout import HISTORY_FILE, PARAMS_FILE


class SlotOptions(SlotParams):
    """Where runs are carried out."""

    cluster: str | None = param(None, help="run on a Ray cluster: ray, or ray://HOST:PORT")
    run_cpus: float = param(1.0, ge=0, help="CPUs of the cluster that each run needs")
    run_gpus: float = param(0.0, ge=0, help="GPUs of the cluster that each run needs")

    def scheduler(self, chosen: SchedulerParams | None) -> SchedulerParams:
        """What carries out the runs, checked before anything is started: what was chosen, or else what these flags say."""
        slots = {name: getattr(self, name) for name in SlotParams.__params__}
        local = SlotParams(**slots) != SlotParams()
        if chosen is not None:
            if local or self.cluster is not None:
                raise ParamsError(
                    "--scheduler has its own flags (--scheduler.…) instead of --gpus, --cpus, --per_device and --cluster"
                )
            return chosen
        if self.cluster is None:
            from scena.experiments.schedulers.local import make_slots

            make_slots(**slots)
            return LocalParams(**slots)
        if local:
            raise ParamsError(
                "--cluster takes --run_cpus and --run_gpus, what each run needs, instead of --gpus, --cpus and --per_device"
            )
        kind, _, address = self.cluster.partition("://")
        if kind != "ray":
            raise ExperimentError(f"--cluster {self.cluster}: expected ray, or ray://HOST:PORT.")
        return RayParams(address=address, cpus=self.run_cpus, gpus=self.run_gpus)


class SchedulerRoot(Params):
    """Where runs are carried out."""

    scheduler: SchedulerParams = param(LocalParams(), help="what carries out the runs")


def carry_out(
    plan: Any, scheduler: Any, what: str, title: Callable[[int], str], directory_of: Callable[[str], Path | None]
) -> None:
    """Runs the jobs of a plan, whose `tick` is set, with a live table of those that are running; `title` gets their number,
    `directory_of` the key of a job.
    """
    progress: dict[str, RunProgress] = {}
    started = time.monotonic()
    running: list[Any] = []

    def table() -> Any:
        from rich.table import Table

        above = f"{title(len(running))}; {clock(time.monotonic() - started)}"
        shown = Table(title=above, title_justify="left", box=None, pad_edge=False)
        for column in (what, "on", "epoch", "last values", "time", "still"):
            shown.add_column(column)
        for one in running:
            own = progress.setdefault(one.job.key, RunProgress(directory_of(one.job.key)))
            own.refresh()
            shown.add_row(one.job.key, one.slot.name, own.epoch, own.values, clock(one.seconds), clock(own.eta))
        return shown

    with live_table(table) as draw:

        def tick(now: list[Any]) -> None:
            running[:] = now
            draw()

        plan.tick = tick
        scheduler.run(plan)


def carry_out_runs(experiment: Any, scheduler: Any) -> None:
    """Carries out the runs of an experiment with a live table."""
    directories = {planned.run.id: planned.directory for planned in experiment.runs}

    def title(running: int) -> str:
        states = [planned.state for planned in experiment.runs]
        waiting = sum(planned.open for planned in experiment.runs)
        return f"{states.count('done')} done, {states.count('failed')} failed, {running} running, {waiting} waiting"

    carry_out(experiment, scheduler, "run", title, directories.get)


def report_runs(experiment: Any) -> int:
    """Prints what became of the runs of an experiment; returns the exit status."""
    states = [planned.state for planned in experiment.runs]
    counted = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    print(f"{len(states)} runs: {', '.join(counted)}.", file=sys.stderr)
    bad = [planned for planned in experiment.runs if planned.state not in ("done", "skipped")]
    for planned in bad:
        print(f"  {planned.run.id}: {planned.state}: {planned.note}", file=sys.stderr)
    return 1 if bad else 0


def report_groups(experiment: Any) -> None:
    """Prints mean, deviation and interval over the seeds of an experiment's trainings."""
    from scena.commands.results.run_groups import print_groups
    from scena.experiments.run_groups import group_runs

    there = [planned.directory for planned in experiment.runs if planned.directory and planned.directory.is_dir()]
    print_groups(group_runs([read_run(path) for path in there if (path / PARAMS_FILE).is_file()]))


class RunProgress:
    """How far a run has come, read from its directory and only when its history has changed."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self.history: list[dict[str, float]] = []
        self.epochs: int | None = None
        self._seen: tuple[int, int] | None = None

    def refresh(self) -> None:
        """Reads what is new."""
        if self.directory is None:
            return
        with contextlib.suppress(OSError, ExperimentError):
            found = (self.directory / HISTORY_FILE).stat()
            if (found.st_mtime_ns, found.st_size) != self._seen:
                self._seen = (found.st_mtime_ns, found.st_size)
                self.history = read_history(self.directory)
                self.epochs = self.epochs or read_run(self.directory).epochs

    @property
    def epoch(self) -> str:
        """`3/10`, or nothing if the run tells nothing."""
        return f"{int(self.history[-1]['epoch'])}/{self.epochs or '?'}" if self.history else ""

    @property
    def values(self) -> str:
        """The results of the last epoch, those of validation first."""
        last = self.history[-1] if self.history else {}
        names = sorted((name for name in last if name not in NO_RESULTS), key=lambda name: not name.startswith("val_"))
        return "  ".join(f"{name} {last[name]:.4g}" for name in names[:4])

    @property
    def eta(self) -> float | None:
        """Seconds that the run will still take, by the time of its last epochs."""
        if not self.history or not self.epochs:
            return None
        recent = [row.get("seconds", 0.0) for row in self.history[-5:]]
        return sum(recent) / len(recent) * max(0, self.epochs - int(self.history[-1]["epoch"]))


def clock(seconds: float | None) -> str:
    """`1:02:03`."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def live_table(make: Callable[[], Any]) -> Iterator[Callable[[], None]]:
    """Keeps what `make` returns on the terminal; the yielded function redraws it, at most twice a second."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    last = 0.0
    with Live(make(), console=console, auto_refresh=False, redirect_stderr=True) as live:

        def draw() -> None:
            nonlocal last
            if time.monotonic() - last >= 0.5:
                last = time.monotonic()
                live.update(make(), refresh=True)

        yield draw
        live.update(make(), refresh=True)
