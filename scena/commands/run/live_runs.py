"""What `experiment` and `tune` share: where runs are carried out, and a live table of them (log lines where there is no terminal)."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scena.experiments.errors import ExperimentError
from scena.experiments.schedulers.params import LocalParams, RayParams, SchedulerParams
from scena.experiments.stored_run import NO_RESULTS, read_history
from scena.params import Params, ParamsError, param, parse, take_part
from scena.storage.run_layout import HISTORY_FILE, PARAMS_FILE


class SchedulerRoot(Params):
    """Where runs are carried out."""

    scheduler: SchedulerParams = param(LocalParams(), help="what carries out the runs")


def take_scheduler(arguments: list[str]) -> tuple[SchedulerParams | None, list[str]]:
    """What `--scheduler NAME --scheduler.…` choose, None without them; and the other words."""
    own, rest = take_part("scheduler", arguments)
    return (parse(SchedulerRoot(), own).params.scheduler if own else None), rest


def choose_scheduler(chosen: SchedulerParams | None, options: Any) -> SchedulerParams:
    """What carries out the runs, checked before anything is started: `--scheduler`, or what the flags of local and Ray runs say."""
    local = options.gpus or options.cpus or options.per_device != 1
    if chosen is not None:
        if local or options.cluster is not None:
            raise ParamsError(
                "--scheduler has its own flags (--scheduler.…) instead of --gpus, --cpus, --per_device and --cluster"
            )
        return chosen
    if options.cluster is None:
        from scena.experiments.schedulers.local import make_slots

        make_slots(options.gpus, options.cpus, options.per_device)
        return LocalParams(gpus=options.gpus, cpus=options.cpus, per_device=options.per_device)
    if local:
        raise ParamsError(
            "--cluster takes --run_cpus and --run_gpus, what each run needs, instead of --gpus, --cpus and --per_device"
        )
    kind, _, address = options.cluster.partition("://")
    if kind != "ray":
        raise ExperimentError(f"--cluster {options.cluster}: expected ray, or ray://HOST:PORT.")
    return RayParams(address=address, cpus=options.run_cpus, gpus=options.run_gpus)


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
        try:
            found = (self.directory / HISTORY_FILE).stat()
        except OSError:
            return
        if (found.st_mtime_ns, found.st_size) == self._seen:
            return
        self._seen = (found.st_mtime_ns, found.st_size)
        try:
            self.history = read_history(self.directory)
        except ExperimentError:
            return
        if self.epochs is None:
            self.epochs = _epochs(self.directory / PARAMS_FILE)

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
        if not self.history or self.epochs is None:
            return None
        recent = [row.get("seconds", 0.0) for row in self.history[-5:]]
        return sum(recent) / len(recent) * max(0, self.epochs - int(self.history[-1]["epoch"]))


def _epochs(path: Path) -> int | None:
    import json

    try:
        found = json.loads(path.read_text(encoding="utf-8"))["trainer"]["epochs"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, int) else None


def clock(seconds: float | None) -> str:
    """`1:02:03`."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def live_table(make: Callable[[], Any]) -> Iterator[Callable[[], None]]:
    """Keeps what `make` returns on the terminal; the yielded function draws it anew, at most twice a second."""
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
