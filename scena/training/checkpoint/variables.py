"""The variables of a training as named arrays, and back.

Keras' variable paths are neither unique nor the same in every process, so state is keyed by group and position; path, shape and
type are stored beside it and checked when it is read.
"""

from typing import Any

import keras
import numpy as np

from scena.model.state.variables import variable_views
from scena.training.checkpoint.store import VariableEntry
from scena.training.errors import CheckpointError

Groups = dict[str, list[keras.Variable]]
Array = np.ndarray[Any, Any]


def variable_groups(model: keras.Model) -> Groups:
    """All state of a compiled Keras model: weights and seeds, optimizer, metrics."""
    return {
        "model": list(model.variables),
        "optimizer": list(model.optimizer.variables),
        "metrics": list(model.metrics_variables),
    }


def keyed(groups: Groups) -> dict[str, keras.Variable]:
    """Each variable by its key in a checkpoint; one that belongs to several groups only by the first."""
    found: dict[str, keras.Variable] = {}
    seen: set[int] = set()
    for group, variables in groups.items():
        for position, variable in enumerate(variables):
            if id(variable) not in seen:
                seen.add(id(variable))
                found[f"{group}/{position}"] = variable
    return found


def read_variables(groups: Groups) -> dict[str, Array]:
    """The values by key, as views that have to be copied before the next step."""
    variables = keyed(groups)
    return dict(zip(variables, variable_views(variables.values()), strict=True))


def describe_variables(groups: Groups) -> list[VariableEntry]:
    """What each variable is."""
    return [
        VariableEntry(key, variable.path, list(variable.shape), str(variable.dtype))
        for key, variable in keyed(groups).items()
    ]


def write_variables(groups: Groups, arrays: dict[str, Array], entries: list[VariableEntry]) -> None:
    """Sets every variable from the arrays; all must be there and fit, else nothing is changed."""
    stored = {entry.key: entry for entry in entries}
    expected = keyed(groups)
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
