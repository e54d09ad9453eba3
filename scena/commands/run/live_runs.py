"""What `experiment` and `tune` share: where runs are carried out, and a live table of them (log lines where there is no terminal)."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scena.experiments.errors import ExperimentError
from scena.experiments.stored_run import NO_RESULTS, read_history
from scena.params import ParamsError
from scena.storage.run_layout import HISTORY_FILE, PARAMS_FILE


def check_devices(options: Any) -> None:
    """Checks the flags that say where to run, before anything is started."""
    from scena.experiments.schedulers.local import make_slots

    if options.cluster is None:
        make_slots(options.gpus, options.cpus, options.per_device)
    elif options.gpus or options.cpus or options.per_device != 1:
        raise ParamsError(
            "--cluster takes --run_cpus and --run_gpus, what each run needs, instead of --gpus, --cpus and --per_device"
        )


def make_scheduler(options: Any) -> Any:
    """What carries out the runs."""
    if options.cluster is None:
        from scena.experiments.schedulers.local import Scheduler, make_slots

        return Scheduler(make_slots(options.gpus, options.cpus, options.per_device))
    from scena.experiments.schedulers.ray_cluster import RayScheduler, connect

    return RayScheduler(connect(options.cluster), options.run_cpus, options.run_gpus)


def at_once(scheduler: Any) -> int:
    """How many runs there may be at the same time, as far as it is known."""
    return len(scheduler.slots) if hasattr(scheduler, "slots") else 2


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
