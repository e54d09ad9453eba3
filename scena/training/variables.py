"""The variables of a training as named arrays, and back.

Keras' variable paths are neither unique nor the same in every process, so state is keyed by group and position; path, shape and
type are stored beside it and checked when it is read.
"""

from typing import Any

import keras
import numpy as np

from scena.training.errors import TrainingError

Groups = dict[str, list[keras.Variable]]


def variable_groups(model: keras.Model) -> Groups:
    """All state of a compiled Keras model: weights and seeds, optimizer, metrics."""
    return {
        "model": list(model.variables),
        "optimizer": list(model.optimizer.variables),
        "metrics": list(model.metrics_variables),
    }


def read_variables(groups: Groups) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
    """The values as arrays by key, and what each of them is."""
    arrays: dict[str, np.ndarray] = {}
    entries: list[dict[str, Any]] = []
    for group, variables in groups.items():
        for position, variable in enumerate(variables):
            key = f"{group}/{position}"
            arrays[key] = np.ascontiguousarray(keras.ops.convert_to_numpy(variable.value)).reshape(variable.shape)
            entries.append(
                {"key": key, "path": variable.path, "shape": list(variable.shape), "dtype": str(variable.dtype)}
            )
    return arrays, entries


def write_variables(groups: Groups, arrays: dict[str, np.ndarray], entries: list[dict[str, Any]]) -> None:
    """Sets every variable from the arrays; all must be there and fit."""
    stored = {entry["key"]: entry for entry in entries}
    expected = {f"{group}/{i}": variable for group, variables in groups.items() for i, variable in enumerate(variables)}
    if set(stored) != set(expected) or set(arrays) != set(expected):
        raise TrainingError(
            f"The checkpoint holds {len(arrays)} variables, the model has {len(expected)}: its parameters or code have changed."
        )
    for key, variable in expected.items():
        if tuple(stored[key]["shape"]) != tuple(variable.shape) or arrays[key].shape != tuple(variable.shape):
            raise TrainingError(
                f"The checkpoint's {stored[key]['path']} has shape {tuple(stored[key]['shape'])}, "
                f"the model's {variable.path} has {tuple(variable.shape)}: its parameters or code have changed."
            )
        variable.assign(arrays[key])
