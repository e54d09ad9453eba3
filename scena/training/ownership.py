"""Which directories belong to a run, so that it never writes to or removes files of another run.

A run has an identity, drawn when it starts and stored with its parameters; its checkpoints carry it. Directories outside the
run's own (`checkpoint_dir`, `log_dir`, `export_dir`, `best_dir`) hold a file that names the run that uses them.
"""

import json
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from scena.errors import TrainingError
from scena.storage.durable import write_file
from scena.storage.run_layout import DIRECTORIES, OWNER_FILE, PARAMS_FILE, RunPaths, run_paths, step_of
from scena.training.directory import locked, withdraw


def run_identity(directory: Path) -> str:
    """The identity of the run in a directory; empty if it has none."""
    found = read_json(directory / PARAMS_FILE).get("run")
    return found if isinstance(found, str) else ""


def paths_outside(directory: Path, params: Any) -> dict[str, str]:
    """The paths outside its directory that a run writes to, by flag."""
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
            f"The run in {directory} writes to paths outside its directory; repeat them if you trust it: "
            f"scena resume {shlex.join(words)}{flags_for(missing)}"
        )


def _owner(params: Any, flag: str) -> tuple[Any, str]:
    part, _, name = flag.partition(".")
    return (params if part == "trainer" else getattr(params.gen, part)), name


@contextmanager
def claimed(directory: Path, params: Any, *, fresh: bool) -> Iterator[None]:
    """Locks the directories outside the run's own while the block runs.

    Args:
        directory: the run's directory.
        params: its parameters, with converted paths.
        fresh: whether the run is new, so that it owns no file there yet; if it fails, its parameters are removed again.

    Raises:
        TrainingError: one cannot be written, belongs to another run, or holds files that the run would overwrite.
    """
    with ExitStack() as stack:
        try:
            for flag, place in _claims(directory, params).items():
                _claim(stack, place, flag, directory, params, fresh=fresh)
        except TrainingError:
            if fresh:
                withdraw(directory)
            raise
        yield


def _claim(stack: ExitStack, place: Path, flag: str, directory: Path, params: Any, *, fresh: bool) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
        stack.enter_context(locked(place))
        _check_owner(place, directory, flag)
        if fresh:
            _check_free(run_paths(directory, params), place, flag)
        owner = {"run": run_identity(directory), "directory": str(directory.absolute())}
        write_file(place / OWNER_FILE, json.dumps(owner))
    except OSError as error:
        raise TrainingError(f"Cannot write to --{flag} {place}: {error.strerror or error}.") from error


def release(directory: Path, params: Any) -> None:
    """Releases the directories of a run that failed before its first step."""
    from scena.training.callbacks.event_files import cut_back  # late: it needs TensorFlow

    for place in _claims(directory, params).values():
        (place / OWNER_FILE).unlink(missing_ok=True)
        if place == run_paths(directory, params).logs.resolve():
            cut_back(run_paths(directory, params).tensorboard, {})


def _claims(directory: Path, params: Any) -> dict[str, Path]:
    """The outside directories, each once."""
    outside = paths_outside(directory, params)
    places = {flag: Path(place) for flag, place in outside.items() if flag.startswith("trainer.")}
    return {flag: place for flag, place in places.items() if flag == next(f for f, p in places.items() if p == place)}


def _check_owner(place: Path, directory: Path, flag: str) -> None:
    owner = read_json(place / OWNER_FILE)
    identity, where = owner.get("run"), owner.get("directory")
    if not owner or not isinstance(where, str):
        return
    moved = identity == run_identity(directory) and (
        Path(where).resolve() == directory.resolve() or run_identity(Path(where)) != identity
    )
    if not moved:
        raise TrainingError(f"--{flag} {place} belongs to the run {where}. Give each run a directory of its own.")


def _check_free(paths: RunPaths, place: Path, flag: str) -> None:
    """Refuses a directory with files that the run would take for its own."""
    taken = [
        path
        for path in (paths.best, paths.export, paths.tensorboard)
        if path.parent.resolve() == place and path.exists()
    ]
    if paths.checkpoint.resolve() == place:
        taken += sorted(place / name for name in os.listdir(place) if step_of(name) is not None)
    if taken:
        raise TrainingError(
            f"--{flag} {place} already holds {taken[0].name} of another run. Choose a directory without it."
        )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty if the file is missing or damaged."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
