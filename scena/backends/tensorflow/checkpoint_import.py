"""Weights from TensorFlow's own checkpoints (`tf.train.Checkpoint`, TF1's `Saver`), matched to variables of a model.

Only tensors are read; nothing in a checkpoint is executed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np

from scena.errors import ModelError

_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# The other content of a checkpoint: counters, and states of optimizers.
_NOT_WEIGHTS = re.compile(
    r"(^|/)(save_counter|global_step|beta1_power|beta2_power|_iterations|_learning_rate|learning_rate|iter|decay)$"
    r"|/\.OPTIMIZER_SLOT/|(^|/)optimizer/_variables/|/(Adam|Adam_1|Momentum|RMSProp|RMSProp_1|Adagrad|Ftrl|Ftrl_1)$"
)
# Keras 3 hands its variables to the optimizer, which TensorFlow then names first; they are in the model's order.
_BUILT_IN = [("(^|.*/)optimizer/_trainable_variables/", "trainable/")]


@dataclass
class StoredVariable:
    """A variable in a checkpoint."""

    key: str
    shape: tuple[int, ...]
    full_name: str = ""
    """The variable's own name, where the checkpoint knows it (TensorFlow 2)."""

    @property
    def name(self) -> str:
        """The key without TensorFlow's suffix."""
        return self.key.removesuffix(_SUFFIX)


@dataclass
class Matches:
    """The stored variable of each variable of the model, and the rest."""

    found: dict[int, StoredVariable] = field(default_factory=dict)
    """By position among the model's variables."""
    misfits: list[tuple[StoredVariable, int]] = field(default_factory=list)
    unused: list[StoredVariable] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    left_out: int = 0
    """Counters and states of optimizers, which are skipped."""


class TensorFlowCheckpoint:
    """A checkpoint of TensorFlow 1 or 2.

    Args:
        path: its prefix (`…/model.ckpt-100`), or a directory, of which the latest is taken.
    """

    def __init__(self, path: Path) -> None:
        import tensorflow as tf

        prefix = str(path)
        if path.is_dir():
            prefix = tf.train.latest_checkpoint(str(path)) or ""
            if not prefix:
                found = sorted({str(file)[: -len(".index")] for file in path.glob("*.index")})
                hint = f" Name one of: {', '.join(found)}." if found else ""
                raise ModelError(f"{path} names no latest checkpoint.{hint}")
        try:
            self._reader = tf.train.load_checkpoint(prefix)
            shapes = self._reader.get_variable_to_shape_map()
        except (ValueError, tf.errors.OpError) as error:
            raise ModelError(f"{path} is not a checkpoint of TensorFlow, or is damaged: {error}") from error
        self.prefix = prefix
        names = self._full_names() if _GRAPH in shapes else {}
        keys = sorted(key for key in shapes if key != _GRAPH)
        self.variables = [StoredVariable(key, tuple(shapes[key]), names.get(key, "")) for key in keys]

    def value(self, variable: StoredVariable) -> np.ndarray[Any, Any]:
        """The stored value."""
        try:
            value: np.ndarray[Any, Any] = np.asarray(self._reader.get_tensor(variable.key))
        except Exception as error:  # TensorFlow raises several kinds, none of them public
            raise ModelError(f"{self.prefix}: {variable.name} cannot be read: {error}") from error
        return value

    def _full_names(self) -> dict[str, str]:
        from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

        graph = TrackableObjectGraph.FromString(self._reader.get_tensor(_GRAPH))
        return {entry.checkpoint_key: entry.full_name for node in graph.nodes for entry in node.attributes}


def parse_rule(text: str) -> tuple[str, str]:
    """A rule `old=new`: a regular expression, and what its matches become."""
    old, sign, new = text.partition("=")
    if not sign or not old:
        raise ValueError("a rule such as 'fc1/weights=dense/kernel'")
    try:
        re.compile(old)
        re.sub(old, new, "")
    except re.error as error:
        raise ValueError(f"a regular expression before '=' ({error})") from None
    return old, new


def match_variables(
    stored: Iterable[StoredVariable], variables: list[keras.Variable], rules: list[tuple[str, str]]
) -> Matches:
    """Finds for each stored variable the model's variable of that name, after applying the rules.

    A name fits if it is the whole path of a variable, or the end of just one path (`dense/kernel`); `trainable/3` is the fourth
    trainable variable.
    """
    matches = Matches()
    index = _names(variables)
    for item in stored:
        if _NOT_WEIGHTS.search(item.name):
            matches.left_out += 1
            continue
        position = next((index[name] for name in _candidates(item, rules) if name in index), None)
        if position is None or position in matches.found:
            matches.unused.append(item)
        elif item.shape != tuple(variables[position].shape):
            matches.misfits.append((item, position))
        else:
            matches.found[position] = item
    taken = {*matches.found, *(position for _, position in matches.misfits)}
    matches.missing = [i for i, variable in enumerate(variables) if i not in taken and not _is_seed(variable)]
    return matches


def _candidates(item: StoredVariable, rules: list[tuple[str, str]]) -> list[str]:
    names = []
    for name in filter(None, (item.name, item.full_name.removesuffix(":0"))):
        for old, new in [*rules, *_BUILT_IN]:
            name = re.sub(old, new, name)
        names.append(name.strip("/"))
    return names


def _names(variables: list[keras.Variable]) -> dict[str, int]:
    """Each name that identifies exactly one variable."""
    called: dict[str, set[int]] = {}
    trainable = 0
    for position, variable in enumerate(variables):
        if _is_seed(variable):
            continue
        parts = variable.path.split("/")
        for start in range(len(parts)):
            called.setdefault("/".join(parts[start:]), set()).add(position)
        if variable.trainable:
            called[f"trainable/{trainable}"] = {position}
            trainable += 1
    return {name: positions.pop() for name, positions in called.items() if len(positions) == 1}


def _is_seed(variable: keras.Variable) -> bool:
    return bool(variable.path.endswith("seed_generator_state"))
