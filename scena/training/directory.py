"""The directories of a run: their names, lock and log file, and who owns them, so that no run writes to files of another.

A run has an identity, drawn when it starts and stored with its parameters; its checkpoints carry it. Directories outside the
run's own (`checkpoint_dir`, `log_dir`, `export_dir`, `best_dir`) hold a file that names the run that uses them.
"""

import contextlib
import fcntl
import json
import logging
import os
import shlex
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from scena.errors import TrainingError, TrainingInterrupted
from scena.logs import VisibleFormatter, shown_log
from scena.storage.checksums import forget, warn_if_changed
from scena.storage.durable import make_directory, missing_directories, remove_empty, write_file
from scena.storage.run_layout import (
    BEST,
    CHECKPOINTS,
    DIRECTORIES,
    EXPORT,
    HISTORY_FILE,
    LOCK_FILE,
    LOG_FILE,
    OWNER_FILE,
    PARAMS_FILE,
    RESUMES_FILE,
    RUNS,
    TENSORBOARD,
    RunPaths,
    run_paths,
    step_of,
)
from scena.training.trackers.params import services_of

logger = logging.getLogger(__name__)

MARKS = (PARAMS_FILE, CHECKPOINTS, BEST, EXPORT, HISTORY_FILE, TENSORBOARD)
"""Files that show that a directory already holds a run."""


def default_directory(scenario_name: str) -> Path:
    """`runs/NAME-TIME`, with a number if it exists."""
    module, _, name = scenario_name.partition(":")
    parts = [part for part in module.split(".") if part != "scenario"]
    stem = f"{RUNS}/{parts[-1] if parts else name}-{time.strftime('%Y%m%d-%H%M%S')}"
    candidates = (Path(stem if number == 1 else f"{stem}-{number}") for number in range(1, 1000))
    return next(path for path in candidates if not path.exists())


def refuse_used_directory(directory: Path) -> None:
    """Raises TrainingError if the directory already holds a run, or a file is in its place."""
    place = next(path for path in (directory, *directory.parents) if os.path.lexists(path))
    if not place.is_dir():
        raise TrainingError(
            f"Cannot write to the output directory {directory}: {place} is not a directory. Choose another --trainer.output_dir."
        )
    found = [mark for mark in MARKS if (directory / mark).exists()]
    if found:
        raise TrainingError(
            f"{directory} already holds a run ({', '.join(found)}). Choose another --trainer.output_dir, "
            f"continue it with `scena resume {directory}`, or delete it."
        )


def create_directory(directory: Path) -> list[Path]:
    """Creates the directory of a new run; refuses one that already holds a run. Returns the directories that it made."""
    refuse_used_directory(directory)
    made, probe = missing_directories(directory), directory / ".writable"
    try:
        make_directory(directory)
        probe.write_bytes(b"scena")
        probe.unlink()
    except OSError as error:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
        remove_empty(made)
        raise TrainingError(
            f"Cannot write to the output directory {directory}: {error.strerror or error}. Choose another --trainer.output_dir."
        ) from error
    return made


@contextmanager
def withdrawn_if_it_fails(directory: Path, made: Sequence[Path], begun: Callable[[], bool]) -> Iterator[None]:
    """Removes what a new run has left in its directory if it ends before its first step, so that the command can be retried.

    The directories that were made for it go, too. A training that a single signal stops has kept its state, and can be resumed.
    """
    try:
        yield
    except TrainingInterrupted:
        raise
    except BaseException:
        if not begun():
            _withdraw(directory, made)
        raise


def _withdraw(directory: Path, made: Sequence[Path]) -> None:
    forget(directory / PARAMS_FILE)
    for name in (LOG_FILE, LOCK_FILE):
        (directory / name).unlink(missing_ok=True)
    remove_empty([directory, *made])  # a directory stays if it holds files that are not the run's


def settle_paths(directory: Path, params: Any, before: Any = None) -> None:
    """Converts paths relative to the current folder into the stored form: relative to the run, or absolute.

    Args:
        directory: the run's directory.
        params: its parameters; changed in place.
        before: the stored parameters, whose paths are already converted.
    """
    for name in DIRECTORIES:
        path = getattr(params, name)
        if path is None or (before is not None and getattr(before, name, None) == path):
            continue
        path, inside = path.absolute(), directory.absolute()
        setattr(params, name, path.relative_to(inside) if path.is_relative_to(inside) else path)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Holds the lock while the block runs. The system releases it when the process ends, however it ends."""
    handle = _lock(directory)
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _lock(directory: Path) -> int:
    path = directory / LOCK_FILE
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return handle
        except BlockingIOError:
            owner = os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process"
            os.close(handle)
            raise TrainingError(
                f"{directory} is in use: {owner} trains in it. Wait until it ends, or stop it."
            ) from None
        os.close(handle)  # its owner, a run that failed before its first step, has removed the file: try again


class _LogFile(logging.FileHandler):
    """A log file that reports once that it cannot be written, and never ends a training because of it."""

    _failed = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)

    def _open(self) -> Any:
        def no_link(path: str, flags: int) -> int:
            return os.open(path, flags | os.O_NOFOLLOW, 0o666)

        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=no_link)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (logging's name)
        if not self._failed:
            self._failed = True
            sys.stderr.write(f"Cannot write {self.baseFilename}: {sys.exc_info()[1]}\n")

    def close(self) -> None:
        with contextlib.suppress(OSError):  # errors were reported before
            super().close()


@contextmanager
def log_file(directory: Path) -> Iterator[None]:
    """Copies Scena's log to `train.log` while the block runs."""
    directory.mkdir(parents=True, exist_ok=True)
    handler = _LogFile(directory / LOG_FILE, encoding="utf-8", delay=True)
    handler.setFormatter(VisibleFormatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("scena")
    log.addHandler(handler)
    try:
        with shown_log():
            yield
    finally:
        log.removeHandler(handler)
        handler.close()


# ---- directories outside the run's own --------------------------------------------------------------------------------


def run_identity(directory: Path) -> str:
    """The identity of the run in a directory; empty if it has none."""
    found = read_json(directory / PARAMS_FILE).get("run")
    return found if isinstance(found, str) else ""


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty if the file is missing or damaged."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read_resumes(directory: Path) -> list[dict[str, Any]]:
    """What was changed each time a run was resumed; empty if there is no such record, or none that can be read."""
    path = directory / RESUMES_FILE
    try:
        data = path.read_bytes()
        found = json.loads(data)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        logger.warning("%s cannot be read (%s): what it said is lost.", path, error)
        return []
    warn_if_changed(path, data)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def paths_outside(directory: Path, params: Any) -> dict[str, str]:
    """The paths outside its directory that a run writes to, and the addresses that it sends to, by flag."""
    own = directory.resolve()
    places = dict(zip(DIRECTORIES, run_paths(directory, params)[1:], strict=True))
    if params.best_dir is None:  # it goes where the exports go
        del places["best_dir"]
    resolved = {f"trainer.{name}": place.resolve() for name, place in places.items()}
    found = {flag: str(place) for flag, place in resolved.items() if not place.is_relative_to(own)}
    for name in type(params.gen).__params__:
        cache = getattr(getattr(params.gen, name), "cache_dir", None)
        if cache is not None and not Path(cache).resolve().is_relative_to(own):
            found[f"{name}.cache_dir"] = str(cache)
    for name, service in services_of(params.tracker).items():
        found |= {f"tracker.{name}.{field}": address for field, address in service.foreign_addresses().items()}
    return found


def flags_for(places: dict[str, str]) -> str:
    """These paths as flags of a command line, each with a leading space."""
    return "".join(f" --{flag} {shlex.quote(place)}" for flag, place in places.items())


def forget_paths(params: Any, places: dict[str, str]) -> None:
    """Removes stored paths from parameters, so that only the user's own flags set them."""
    for flag in places:
        owner, name = _owner(params, flag)
        setattr(owner, name, None)


def check_repeated(directory: Path, params: Any, places: dict[str, str], words: Sequence[str]) -> None:
    """Refuses to write to stored paths outside a run's directory that the user has not repeated.

    Raises:
        TrainingError: a path was not repeated.
    """
    missing = {flag: place for flag, place in places.items() if getattr(*_owner(params, flag)) is None}
    if missing:
        raise TrainingError(
            f"The run in {directory} writes or sends to places outside its directory; repeat them if you trust it: "
            f"scena resume {shlex.join(words)}{flags_for(missing)}"
        )


def _owner(params: Any, flag: str) -> tuple[Any, str]:
    part, _, name = flag.partition(".")
    if part == "tracker":
        service, _, name = name.rpartition(".")
        return services_of(params.tracker)[service], name
    return (params if part == "trainer" else getattr(params.gen, part)), name


@contextmanager
def claimed(directory: Path, params: Any, *, fresh: bool) -> Iterator[None]:
    """Locks the directories outside the run's own while the block runs.

    Args:
        directory: the run's directory.
        params: its parameters, with converted paths.
        fresh: whether the run is new, so that it owns no file there yet; if one is refused, it keeps none of them.

    Raises:
        TrainingError: one cannot be written, belongs to another run, or holds files that the run would overwrite.
    """
    with ExitStack() as stack:
        try:
            for flag, place in _claims(directory, params).items():
                try:
                    _claim(stack, place, flag, directory, run_paths(directory, params) if fresh else None)
                except OSError as error:
                    raise TrainingError(f"Cannot write to --{flag} {place}: {error.strerror or error}.") from error
        except TrainingError:
            if fresh:
                _give_back(directory, params)
            raise
        yield


def _claim(stack: ExitStack, place: Path, flag: str, directory: Path, fresh: RunPaths | None) -> None:
    place.mkdir(parents=True, exist_ok=True)
    locked_before = (place / LOCK_FILE).exists()
    stack.enter_context(locked(place))
    try:
        _own(place, flag, directory, fresh)
    except (TrainingError, OSError):
        if not locked_before:  # a refused command leaves nothing behind
            (place / LOCK_FILE).unlink(missing_ok=True)
        raise


def _own(place: Path, flag: str, directory: Path, fresh: RunPaths | None) -> None:
    """Notes that a directory belongs to the run, if it is free."""
    identity, owner = run_identity(directory), read_json(place / OWNER_FILE)
    where = owner.get("directory")
    if isinstance(where, str):
        same = owner.get("run") == identity
        moved = Path(where).resolve() == directory.resolve() or run_identity(Path(where)) != identity
        if not (same and moved):
            raise TrainingError(f"--{flag} {place} belongs to the run {where}. Give each run a directory of its own.")
    if fresh is not None:
        _check_free(fresh, place, flag)
    write_file(place / OWNER_FILE, json.dumps({"run": identity, "directory": str(directory.absolute())}))


def _check_free(paths: RunPaths, place: Path, flag: str) -> None:
    """Refuses a directory with files that the run would take for its own."""
    outputs = (paths.best, paths.export, paths.tensorboard)
    taken = [path for path in outputs if path.parent.resolve() == place and path.exists()]
    if paths.checkpoint.resolve() == place:
        taken += sorted(place / name for name in os.listdir(place) if step_of(name) is not None)
    if taken:
        raise TrainingError(
            f"--{flag} {place} already holds {taken[0].name} of another run. Choose a directory without it."
        )


def release(directory: Path, params: Any) -> None:
    """Removes the event files of a run that failed before its first step, and gives back the outside directories that it claimed."""
    from scena.training.callbacks.event_files import cut_back  # late: it needs TensorFlow

    tensorboard = run_paths(directory, params).tensorboard
    cut_back(tensorboard, {})
    with contextlib.suppress(OSError):
        for folder, _, _ in os.walk(tensorboard, topdown=False):
            os.rmdir(folder)
    _give_back(directory, params)


def _give_back(directory: Path, params: Any) -> None:
    """Gives back the outside directories that a run has claimed; it still holds their locks."""
    identity = run_identity(directory)
    for place in _claims(directory, params).values():
        if identity and read_json(place / OWNER_FILE).get("run") == identity:
            (place / OWNER_FILE).unlink()
            (place / LOCK_FILE).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it holds files that are not the run's
                place.rmdir()


def _claims(directory: Path, params: Any) -> dict[str, Path]:
    """The outside directories, each once, by the first flag that names it."""
    claims: dict[Path, str] = {}
    for flag, place in paths_outside(directory, params).items():
        if flag.startswith("trainer."):
            claims.setdefault(Path(place), flag)
    return {flag: place for place, flag in claims.items()}
