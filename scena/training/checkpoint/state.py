"""The complete state of a training, collected for a checkpoint and restored from one.

It is all that a run depends on: variables, progress with the data's cursor, callbacks, and the random generators that belong to
no layer.
"""

import logging
import os
import platform
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import keras
import msgspec

from scena.backends.base import backend
from scena.errors import CheckpointError, ModelError
from scena.model.state.layer_state import Layers, LayerState, decode, encode
from scena.model.state.randomness import global_seed_variables, random_state, set_random_state
from scena.model.state.untracked import untracked_variables
from scena.storage.tensor_file import Array
from scena.training.callbacks.base import TrainerCallback
from scena.training.callbacks.keras_callbacks import KerasCallbackState
from scena.training.checkpoint.format import FORMAT, LoadedCheckpoint, StoredState, VariableEntry
from scena.training.checkpoint.store import CheckpointStore, CheckpointWriter
from scena.training.run import Progress, TrainingRun

logger = logging.getLogger(__name__)

LAYERS = "layers/"
"""Prefix of the keys of layer states."""
OWN_STATE = "own"
"""The group of a model's `state_variables`, and of variables found in its attributes."""
Groups = dict[str, list[keras.Variable]]
"""Variables by what they belong to. Keras' paths are neither unique nor the same in every process, so a variable is stored under its
group and position; path, shape and type are stored with it and checked when it is read."""


class TrainingState:
    """Saves and restores a run with all its callbacks."""

    def __init__(self, run: TrainingRun, store: CheckpointStore) -> None:
        self.run = run
        self.store = store
        self.writer = CheckpointWriter(store)
        names = _names(run.callbacks)
        self._own = {name: item for name, item in names.items() if isinstance(item, TrainerCallback)}
        self._foreign = [
            KerasCallbackState(item, name) for name, item in names.items() if not isinstance(item, TrainerCallback)
        ]
        self._restored: tuple[dict[str, dict[str, Any]], dict[str, Array]] | None = None
        self._number = 0
        self._layers = Layers(run.built.root, run.model)
        self.begun = False
        """Whether the training runs, so that a checkpoint can be taken."""
        global_seed_variables()  # creates the generator, which draws from Python's, before the state is restored

    def begin(self) -> None:
        """Call it after `on_train_begin` of all callbacks and, in the middle of an epoch, after `on_epoch_begin`."""
        self.begun = True
        for item in self._foreign:
            item.begin()
        if self._restored is not None:
            states, tensors = self._restored
            for item in self._foreign:
                item.restore(states.get(item.key, {}), tensors)
            self._restored = None
        self.writer.reserve({**read_variables(self._groups()), **self._of_layers()})

    @cached_property
    def sample_counts(self) -> dict[str, int]:
        """How many samples training and validation have, where their sources know it."""
        pipelines = {"training": self.run.train_data, "validation": self.run.val_data}
        counts = {name: pipeline.samples_per_epoch() for name, pipeline in pipelines.items() if pipeline is not None}
        return {name: count for name, count in counts.items() if count is not None}

    def save(self) -> None:
        """Takes a checkpoint; it is written in the background."""
        callbacks = {name: callback.state() for name, callback in self._own.items()}
        arrays: dict[str, Array] = {}
        for item in self._foreign:
            callbacks[item.key], more = item.state()
            arrays |= more
        arrays |= self._of_layers()
        groups = self._groups()
        state = StoredState(
            format=FORMAT,
            progress=self.run.progress.to_json(),
            callbacks=callbacks,
            variables=describe_variables(groups),
            random=random_state(),
            environment=environment(),
            code=self.run.code,
            samples=self.sample_counts,
            number=self._number + 1,
            run=self.store.run,
        )
        pinned = next((step for item in self._own.values() if (step := item.pinned_step()) is not None), None)

        def accompany(directory: Any) -> None:
            for callback in self._own.values():
                callback.add_files(directory)

        self._number += 1
        self.writer.save(self.run.progress.step, lambda: {**read_variables(groups), **arrays}, state, accompany, pinned)

    def reset(self) -> None:
        """Resets the callbacks: there is no checkpoint."""
        for callback in self._own.values():
            callback.reset()

    def restore(self, store: CheckpointStore, loaded: LoadedCheckpoint) -> None:
        """Restores a checkpoint of the store, which sets later ones aside."""
        step, tensors, state = loaded
        try:
            progress = Progress.from_json(state.progress)
            set_random_state(state.random)
        except (msgspec.ValidationError, KeyError, TypeError, ValueError, OverflowError, IndexError) as error:
            raise CheckpointError(f"The checkpoint {store.path(step)} cannot be read: {error}.") from error
        _check_backend(state.environment, store.path(step))
        write_variables(self._groups(), tensors, state.variables)
        try:
            self._layers.set(stored_layers(loaded))
        except ModelError as error:
            raise CheckpointError(f"The checkpoint {store.path(step)} cannot be used: {error}.") from error
        _compare_environment(state.environment)
        store.discard_after(step)
        self.run.progress = progress
        self.run.resumed_from = store.path(step)
        self._number = state.number
        for name, callback in self._own.items():
            if name in state.callbacks:
                _restore(callback, name, state.callbacks[name], store.path(step))
            else:
                callback.reset()
        self._restored = state.callbacks, tensors

    def _of_layers(self) -> dict[str, Array]:
        return encode(self._layers.read(), LAYERS)

    def _groups(self) -> Groups:
        own = {f"callbacks/{name}": callback.variables() for name, callback in self._own.items()}
        return {**variable_groups(self.run.model), **own, "random": global_seed_variables()}


def stored_layers(loaded: LoadedCheckpoint) -> list[LayerState]:
    """The layer states of a checkpoint."""
    try:
        return decode(loaded.tensors, LAYERS)
    except ModelError as error:
        raise CheckpointError(f"The checkpoint of step {loaded.step} cannot be read: {error}.") from error


def _restore(callback: TrainerCallback, name: str, stored: dict[str, Any], path: Path) -> None:
    try:
        callback.restore(stored)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"The checkpoint {path} has no usable state of {name}: {type(error).__name__}: {error}."
        ) from error


def _names(callbacks: list[keras.callbacks.Callback]) -> dict[str, keras.callbacks.Callback]:
    """Names callbacks by class, with a number from the second on; the same in every process."""
    named: dict[str, keras.callbacks.Callback] = {}
    for callback in callbacks:
        kind = type(callback).__name__
        number = 1 + sum(type(other).__name__ == kind for other in named.values())
        named[kind if number == 1 else f"{kind}-{number}"] = callback
    return named


def _check_backend(before: dict[str, str], path: Path) -> None:
    """Refuses another backend: its random numbers differ, so the result would not be repeatable."""
    written, now = before.get("backend", "tensorflow"), keras.config.backend()
    if written != now:
        raise CheckpointError(
            f"The checkpoint {path} was written with the {written} backend, and this is {now}. Resume with KERAS_BACKEND={written}; "
            "or start a new run from its weights with --warmstart.model and the run's best directory."
        )


def environment() -> dict[str, str]:
    """Influences on results other than the parameters: versions, and the number of cores that TensorFlow uses."""
    own = backend()
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in ("keras", "tensorflow", "numpy")},
        "machine": platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        **(
            {} if own.name == "tensorflow" else {"backend": own.name, **{name: _version(name) for name in own.packages}}
        ),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _compare_environment(before: dict[str, str]) -> None:
    now = environment()
    differing = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if before and differing:
        changes = ", ".join(f"{name}: {before.get(name)} → {now.get(name)}" for name in differing)
        logger.warning(
            "The environment differs from that of the checkpoint (%s): the result may differ in the last digits.",
            changes,
        )


def variable_groups(model: Any) -> Groups:
    """All state of a compiled training model."""
    return {
        "model": list(model.variables),
        "optimizer": list(model.optimizer.variables),
        "metrics": list(model.metrics_variables),
        OWN_STATE: [*model.state_variables(), *untracked_variables(model)],
    }


def keyed(groups: Groups) -> dict[str, keras.Variable]:
    """Each variable by its key in a checkpoint; a variable of several groups has the key of the first."""
    found: dict[str, keras.Variable] = {}
    seen: set[int] = set()
    for group, variables in groups.items():
        for position, variable in enumerate(variables):
            if id(variable) not in seen:
                seen.add(id(variable))
                found[f"{group}/{position}"] = variable
    return found


def read_variables(groups: Groups) -> dict[str, Array]:
    """The values by key, as views that must be copied before the next step."""
    variables = keyed(groups)
    return dict(zip(variables, backend().variable_views(variables.values()), strict=True))


def describe_variables(groups: Groups) -> list[VariableEntry]:
    """Key, path, shape and type of each variable."""
    return [
        VariableEntry(key, variable.path, list(variable.shape), str(variable.dtype))
        for key, variable in keyed(groups).items()
    ]


def write_variables(groups: Groups, arrays: dict[str, Array], entries: list[VariableEntry]) -> None:
    """Sets all variables from the arrays; raises and changes nothing if one is missing or does not fit."""
    stored = {entry.key: entry for entry in entries}
    expected = keyed(groups)
    if groups.get(OWN_STATE) and not any(key.startswith(f"{OWN_STATE}/") for key in stored):
        logger.warning(
            "The checkpoint does not hold the model's state_variables, which older versions did not store: they are initialized again."
        )
        expected = keyed({**groups, OWN_STATE: []})
    if set(stored) != set(expected):
        raise CheckpointError(_difference(stored, expected))
    for key, variable in expected.items():
        entry = stored[key]
        if tuple(entry.shape) != tuple(variable.shape) or entry.dtype != str(variable.dtype):
            raise CheckpointError(
                f"The checkpoint's {entry.path} is {entry.dtype} {tuple(entry.shape)}, the model's {variable.path} is "
                f"{variable.dtype} {tuple(variable.shape)}: the parameters or the code of the model have changed."
            )
    for key, variable in expected.items():
        variable.assign(arrays[key])


def _difference(stored: dict[str, VariableEntry], expected: dict[str, keras.Variable]) -> str:
    lost = [stored[key].path for key in stored if key not in expected]
    new = [expected[key].path for key in expected if key not in stored]
    parts = [
        f"{text}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}"
        for text, names in (("only the checkpoint has", lost), ("only the run has", new))
        if names
    ]
    return (
        f"The checkpoint holds {len(stored)} variables, the run needs {len(expected)} ({'; '.join(parts)}): "
        "the parameters or the code of the model or the optimizer have changed."
    )
