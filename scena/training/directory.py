"""The directory of a run: found free, created, locked against overwriting, with its log file."""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scena.training.errors import TrainingError

MARKS = ("trainer_params.json", "checkpoint", "best", "export", "history.csv")
"""What shows that a directory already holds a run."""


def default_directory(scenario_name: str) -> Path:
    """`runs/NAME-TIME`, a new one."""
    module, _, name = scenario_name.partition(":")
    parts = [part for part in module.split(".") if part != "scenario"]
    stem = f"runs/{parts[-1] if parts else name}-{time.strftime('%Y%m%d-%H%M%S')}"
    candidates = (Path(stem if number == 1 else f"{stem}-{number}") for number in range(1, 1000))
    return next(path for path in candidates if not path.exists())


def create_directory(directory: Path) -> None:
    """Creates the directory of a new run; refuses one that holds a run already."""
    found = [mark for mark in MARKS if (directory / mark).exists()]
    if found:
        raise TrainingError(
            f"{directory} already holds a run ({', '.join(found)}). Choose another --trainer.output_dir, "
            f"go on with `scena resume {directory}`, or delete it."
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / ".writable"
        probe.write_bytes(b"scena")
        probe.unlink()
    except OSError as error:
        raise TrainingError(
            f"Cannot write to the output directory {directory}: {error.strerror or error}. Choose another --trainer.output_dir."
        ) from error


@contextmanager
def log_file(directory: Path) -> Iterator[None]:
    """Writes what Scena logs to `train.log` as well, while the block runs."""
    handler = logging.FileHandler(directory / "train.log", encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("scena")
    if log.level == logging.NOTSET:
        log.setLevel(os.environ.get("SCENA_LOG_LEVEL", "info").upper())
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        handler.close()
