"""Weights & Biases: offline files in the run's directory, which `wandb sync` uploads.

Each process that sends writes a file of its own. Together, the files of one run id hold each value once: before anything is sent,
W&B's own reader says what they hold. What a killed process had not written yet is sent again by the next one.
"""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import wandb
from wandb.util import get_core_path

from scena.training.trackers.params import WandbParams
from scena.training.trackers.service import Held, Picture, Point, TrackerRun, TrackerService

LONGEST_WAIT = 60.0
"""Seconds in which W&B's own process must have ended after the sender that started it was killed."""


class WandbService(TrackerService):
    """Writes offline files."""

    params: WandbParams

    def __init__(self, params: WandbParams, directory: Path) -> None:
        super().__init__(params, directory.absolute())
        for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):  # nothing in the user's home
            os.environ.setdefault(name, str(self.directory))
        self._live: tuple[str, Any] | None = None
        self._ended: set[str] = set()
        self._shown: dict[str, set[tuple[str, int]]] = {}
        """Images and texts by run, key and step."""
        self._artifacts: dict[str, set[str]] = {}

    def open(self, run: TrackerRun) -> Held:
        self._finish()
        held: Held = {}
        shown, artifacts = self._shown[run.identity], self._artifacts[run.identity] = set(), set()
        for record in self._records(run.identity):
            if "history" in record:
                step = int(record["history"]["step"].get("num", 0))
                for key, value in record["history"]["item"].items():
                    if isinstance(value, int | float) or value in ("NaN", "Infinity", "-Infinity"):
                        held[key, step] = float(value)
                    else:
                        shown.add((key.removesuffix("._type"), step))  # the reader names each part of an image
            elif "artifact" in record:
                artifacts.add(record["artifact"].get("digest", ""))
        return held

    def send(self, run: TrackerRun, points: list[Point]) -> None:
        self._ended.discard(run.identity)
        for (step, when), group in groupby(points, lambda point: (point.step, point.time)):
            values: dict[str, Any] = {point.key: point.value for point in group}
            self._run(run).log({**values, "_timestamp": when / 1000}, step=step)

    def send_picture(self, run: TrackerRun, picture: Picture) -> None:
        self._show(run, picture.key, picture.step, lambda: wandb.Image(str(picture.file)))

    def send_text(self, run: TrackerRun, key: str, step: int, text: str) -> None:
        self._show(run, key, step, lambda: text)

    def send_tags(self, run: TrackerRun, tags: dict[str, str]) -> None:
        if self._live is not None:  # a new file begins with all of them
            self._run(run).config.update(tags, allow_val_change=True)

    def send_artifact(self, run: TrackerRun, name: str, path: Path) -> None:
        known = self._artifacts[run.identity]
        if _artifact(run, name, path, "immutable").digest not in known:
            artifact = _artifact(run, name, path, "mutable")  # a copy: the training may go on and replace the files
            self._run(run).log_artifact(artifact)
            known.add(artifact.digest)

    def end(self, run: TrackerRun, time: int) -> None:
        if not self._files(run.identity):
            self._run(run)
        self._ended.add(run.identity)

    def url(self, run: TrackerRun) -> str | None:
        return f"upload it with: wandb sync {self.directory / 'wandb'}"

    def close(self) -> None:
        self._finish()

    def _show(self, run: TrackerRun, key: str, step: int, make: Any) -> None:
        if (key, step) not in self._shown[run.identity]:
            self._run(run).log({key: make()}, step=step)
            self._shown[run.identity].add((key, step))

    def _run(self, run: TrackerRun) -> Any:
        """The run to write to; a file is created when it is first needed."""
        if self._live is not None and self._live[0] != run.identity:
            self._finish()
        if self._live is None:
            self.directory.mkdir(parents=True, exist_ok=True)
            made = wandb.init(
                project=self.params.project or run.branch.scenario.rpartition(":")[2],
                id=run.identity,
                name=run.name,
                group=run.branch.run,
                config={**run.branch.params, **run.described()},
                tags=self.params.tags,
                dir=str(self.directory),
                mode="offline",
                resume="allow",
                settings=wandb.Settings(
                    console="off",
                    silent=True,
                    disable_git=True,
                    save_code=False,
                    x_disable_meta=True,
                    x_disable_stats=True,  # they would be those of the sender
                ),
            )
            self._live = run.identity, made
        return self._live[1]

    def _finish(self) -> None:
        """Writes the file of this process to its end."""
        live, self._live = self._live, None
        if live is not None:
            live[1].finish(exit_code=0 if live[0] in self._ended else 1)

    def _files(self, identity: str) -> list[Path]:
        return sorted(self.directory.glob(f"wandb/offline-run-*-{identity}/run-{identity}.wandb"))

    def _records(self, identity: str) -> Iterator[dict[str, Any]]:
        """All records of the files of a run, read by W&B."""
        files = self._files(identity)
        _wait_until_closed(files)
        for file in files:
            command = [get_core_path(), "leet", "inspect", "--no-observability", "--json", "--run-file"]
            done = subprocess.run([*command, str(file), str(file.parents[1])], capture_output=True, check=False)
            if done.returncode and not done.stdout:
                if file.stat().st_size < 1024:  # killed before its first record was complete
                    continue
                raise RuntimeError(f"W&B cannot read {file}: {done.stderr.decode(errors='replace').strip()}")
            for line in done.stdout.decode().splitlines():
                if line.startswith("{"):
                    yield json.loads(line)


def _artifact(run: TrackerRun, name: str, path: Path, policy: Literal["mutable", "immutable"]) -> Any:
    artifact = wandb.Artifact(f"{run.identity}-{name}", "model" if path.is_dir() else "result")
    if path.is_dir():
        artifact.add_dir(str(path), policy=policy)
    else:
        artifact.add_file(str(path), policy=policy)
    return artifact


def _wait_until_closed(files: list[Path]) -> None:
    """Waits until no process writes to these files: W&B's own process outlives a sender that is killed for a moment."""
    until = time.monotonic() + LONGEST_WAIT
    wanted = {str(file) for file in files}
    while wanted and any(path in wanted for path in _open_files()):
        if time.monotonic() > until:
            raise RuntimeError("another process still writes to W&B's files of this run")
        time.sleep(0.2)


def _open_files() -> Iterator[str]:
    for process in os.listdir("/proc"):
        if process.isdecimal() and int(process) != os.getpid():
            with contextlib.suppress(OSError):
                for handle in os.scandir(f"/proc/{process}/fd"):
                    with contextlib.suppress(OSError):
                        yield os.readlink(handle.path)
