"""The study of a search: Optuna's storage, samplers and pruners, set up so that a killed search resumes where it was."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from scena.errors import ExperimentError, first_line
from scena.experiments.search.space import Axis, SearchSpace, Value
from scena.storage.run_layout import STUDY_FILE

Sampler = Literal["tpe", "random", "grid"]
Pruner = Literal["none", "median", "hyperband"]
SEARCHED = "scena_search"


def import_optuna() -> Any:
    """Optuna, quiet.

    Raises:
        ExperimentError: it is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise ExperimentError("Searching needs Optuna: install scena[search].") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def storage_url(given: str | None, output: Path) -> str:
    """The address of the study: a file beside the trials, unless --storage names another database."""
    return given if given is not None else f"sqlite:///{output.absolute() / STUDY_FILE}"


def open_storage(url: str) -> Any:
    """Opens, or creates, the database of a study."""
    optuna = import_optuna()
    if url.startswith("postgresql://"):
        url = url.replace("postgresql://", "postgresql+psycopg://", 1)  # the driver of the extra `cluster`
    try:
        # queries are rare, so waiting for another process's lock costs nothing; a lost connection is opened again
        engine = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {"pool_pre_ping": True}
        return optuna.storages.RDBStorage(url, engine_kwargs=engine)
    except ImportError as error:
        raise ExperimentError(f"--storage {url}: its driver is missing ({error}); install scena[cluster].") from error
    except Exception as error:  # the errors of every database there is
        raise ExperimentError(f"--storage {url}: cannot be opened: {first_line(error)}") from error


@contextmanager
def explaining_storage() -> Iterator[None]:
    """Turns an error of the study's database into one line.

    Raises:
        ExperimentError: what the database says.
    """
    try:
        yield
    except Exception as error:
        cause = error.__cause__ or error
        if not any(type(one).__module__.startswith(("sqlalchemy", "optuna.exceptions")) for one in (error, cause)):
            raise
        raise ExperimentError(
            f"The study cannot be read or written any more: {str(cause).splitlines()[0]}. The runs of its trials are untouched. If its "
            "database is damaged, restore a backup, or search with another --output."
        ) from error


def close_storage(storage: Any) -> None:
    """Closes the connections to the database of a study."""
    storage.remove_session()
    storage.engine.dispose()


def find_study(storage: Any, name: str) -> Any | None:
    """The study of this name, or None."""
    optuna = import_optuna()
    if name not in [summary.study_name for summary in optuna.get_all_study_summaries(storage)]:
        return None
    return optuna.load_study(study_name=name, storage=storage)


def open_study(storage: Any, name: str, direction: str, description: dict[str, Any]) -> Any:
    """The study of this name, created if there is none.

    Raises:
        ExperimentError: there is one, for another search.
    """
    optuna = import_optuna()
    study = find_study(storage, name)
    if study is None:
        study = optuna.create_study(
            study_name=name,
            storage=storage,
            direction="maximize" if direction == "max" else "minimize",
            load_if_exists=True,
        )
        study.set_user_attr(SEARCHED, description)
        return study
    before = study.user_attrs.get(SEARCHED, description)
    for key in dict.fromkeys([*before, *description]):
        if before.get(key) != description.get(key):
            raise ExperimentError(
                f"The study {name!r} is another search ({key}: {before.get(key)!r} before, {description.get(key)!r} now). "
                "Choose another --output, or another --study."
            )
    return study


def make_sampler(kind: Sampler, seed: int | None, existing: int, parallel: bool) -> Any:
    """The sampler. Its seed depends on the number of trials, so that a resumed search does not draw the same numbers again."""
    optuna = import_optuna()
    own = None if seed is None else (seed + 7919 * existing) % 2**32
    if kind == "tpe":
        with warnings.catch_warnings():  # constant_liar is "experimental"; it keeps parallel trials apart
            warnings.simplefilter("ignore")
            return optuna.samplers.TPESampler(seed=own, constant_liar=parallel)
    return optuna.samplers.RandomSampler(seed=own)


def make_pruner(kind: Pruner, epochs: int, warmup: int) -> Any:
    """The pruner, which ends bad trials early."""
    optuna = import_optuna()
    if kind == "median":
        return optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=warmup)
    if kind == "hyperband":
        return optuna.pruners.HyperbandPruner(
            min_resource=max(1, warmup), max_resource=max(epochs, 2), reduction_factor=3
        )
    return optuna.pruners.NopPruner()


def draw(trial: Any, space: SearchSpace) -> dict[str, Value]:
    """The values of a trial."""

    def suggest(axis: Axis, whole: bool) -> Value:
        if axis.choices:
            found: Value = trial.suggest_categorical(axis.name, list(axis.values))
        elif whole:
            step = int(axis.step) if axis.step is not None else 1
            found = trial.suggest_int(axis.name, int(axis.low), int(axis.high), step=step, log=axis.log)
        else:
            found = trial.suggest_float(axis.name, axis.low, axis.high, step=axis.step, log=axis.log)
        return found

    return space.draw(suggest)


def enqueue_grid(study: Any, space: SearchSpace) -> int:
    """Enqueues all combinations that the study does not have yet; returns the number of all combinations."""
    known = {_key(trial.params or trial.system_attrs.get("fixed_params", {})) for trial in study.trials}
    combinations = list(space.combinations())
    for chosen in combinations:
        if _key(chosen) not in known:
            study.enqueue_trial(chosen)
    return len(combinations)


def _key(chosen: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, repr(value)) for name, value in chosen.items()))
