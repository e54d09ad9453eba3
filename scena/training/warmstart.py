"""`WarmStarter`: sets the initial weights of a training from an export, a run, a checkpoint or a safetensors file.

Stored arrays are matched to weights by path. Keras numbers layers as a process creates them, so the same network may be `dense`,
`dense_1` in one process and `dense_4`, `dense_5` in another. Paths that differ only in such numbers form a group; inside a group
the order decides.
"""

import itertools
import logging
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from scena.errors import ModelError, TrainingError
from scena.model.state.archive import read_layer_file
from scena.model.state.layer_state import Layers, LayerState, set_layer
from scena.storage.run_layout import BEST, CHECKPOINTS, EXPORT, EXPORT_FILE, STATE_FILE
from scena.storage.tensor_file import read_tensors
from scena.training.checkpoint.format import read_checkpoint
from scena.training.checkpoint.state import stored_layers
from scena.training.checkpoint.store import CheckpointStore
from scena.training.params import WarmStartParams

if TYPE_CHECKING:
    from scena.scenario.scenario import ScenarioBase

logger = logging.getLogger(__name__)

Weights = list[tuple[str, np.ndarray[Any, Any]]]
"""Stored arrays with their paths, in order."""
Row = tuple[str, str, str]
MANY = 8
"""More equal rows in sequence than this are joined."""
Shape = tuple[int, ...]


@dataclass
class Matching:
    """Pairs of targets and sources, by position in the two lists."""

    pairs: dict[int, int] = field(default_factory=dict)
    """Target to source."""
    misfits: dict[int, int] = field(default_factory=dict)
    """Pairs whose shapes differ."""
    missing: list[int] = field(default_factory=list)
    """Targets without a source."""
    unused: list[int] = field(default_factory=list)
    """Sources without a target."""


def match(targets: list[tuple[str, Shape]], sources: list[tuple[str, Shape]]) -> Matching:
    """Finds the source of each target, each given by path and shape."""
    found = Matching()
    groups: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, entries in enumerate((targets, sources)):
        for position, (path, _) in enumerate(entries):
            groups[without_numbers(path)][side].append(position)
    for wanted, stored in groups.values():
        for target, source in _group(wanted, stored, targets, sources):
            fits = targets[target][1] == sources[source][1]
            (found.pairs if fits else found.misfits)[target] = source
    used = {*found.pairs.values(), *found.misfits.values()}
    found.missing = [i for i in range(len(targets)) if i not in found.pairs and i not in found.misfits]
    found.unused = [i for i in range(len(sources)) if i not in used]
    return found


def without_numbers(path: str) -> str:
    """The path without the numbers that Keras appends to the names of layers."""
    return re.sub(r"_\d+(?=/|$)", "", path)


def _group(
    wanted: list[int], stored: list[int], targets: list[tuple[str, Shape]], sources: list[tuple[str, Shape]]
) -> list[tuple[int, int]]:
    if len(wanted) == len(stored):
        return list(zip(wanted, stored, strict=True))
    pairs = []
    left = list(stored)
    for target in wanted:  # equal paths first, so that one layer more or less does not shift all others
        same = next((source for source in left if sources[source][0] == targets[target][0]), None)
        if same is not None:
            pairs.append((target, same))
            left.remove(same)
    taken = {target for target, _ in pairs}
    return pairs + list(zip([target for target in wanted if target not in taken], left, strict=False))


class WarmStarter:
    """Reads stored weights and sets those of a model. Override `read` for another format, or `rename` for other rules.

    Args:
        params: the source of the weights, and which to set.
        scenario: the scenario to train.
    """

    def __init__(self, params: WarmStartParams, scenario: "ScenarioBase[Any, Any]") -> None:
        self.params = params
        self.scenario = scenario

    def read(self, path: Path) -> Weights:
        """The stored weights."""
        found = _weights_path(path)
        stored = stored_weights(found)
        if stored is not None:
            return stored
        if found != path:
            logger.info("Warm start from %s", found)
        return self.scenario.read_weights(found)

    def read_layers(self, path: Path) -> list[LayerState]:
        """The state of layers besides their weights, such as vocabularies; empty if it is not stored there."""
        if type(self).read is not WarmStarter.read or type(self).apply is not WarmStarter.apply:
            return []  # only the custom reader knows what is stored there
        found = _weights_path(path)
        if found.is_file():
            return []
        if (found / STATE_FILE).is_file():
            return stored_layers(read_checkpoint(found))
        return read_layer_file(found)

    def rename(self, path: str) -> str:
        """The path in the model of a stored path."""
        path = path.removeprefix(self.params.trim_prefix)
        for rule in self.params.rename:
            old, _, new = rule.partition("=")
            path = re.sub(old, new, path)
        return path

    def wants(self, path: str) -> bool:
        """Whether to set a weight of the model."""
        include, exclude = self.params.include, self.params.exclude
        if include is not None and not re.fullmatch(include, path):
            return False
        return exclude is None or not re.fullmatch(exclude, path)

    def apply(self, weights: list[keras.Variable]) -> Matching:
        """Sets the weights; logs and returns what was loaded, skipped and missing."""
        assert self.params.model is not None
        stored = [(self.rename(path), array) for path, array in self.read(self.params.model)]
        targets = [(weight.path, tuple(weight.shape)) for weight in weights]
        found = match(targets, [(path, tuple(array.shape)) for path, array in stored])
        for i, j in list(found.pairs.items()):
            if ("float" in str(weights[i].dtype)) != ("float" in str(stored[j][1].dtype)):  # one of them is quantized
                found.misfits[i] = found.pairs.pop(i)
        wanted = [self.wants(path) for path, _ in targets]
        table = _table(weights, stored, found, wanted)
        logger.info("Warm start from %s:\n%s", self.params.model, table)
        lacking = [i for i in [*found.missing, *found.misfits] if wanted[i]]
        loaded = [i for i in found.pairs if wanted[i]]
        if not loaded or (lacking and not self.params.allow_partial):
            problem = (
                f"{len(lacking)} of {sum(wanted)} weights are missing or do not fit"
                if loaded
                else "no weight was found"
            )
            raise TrainingError(
                f"Warm start from {self.params.model}: {problem}.\n{table}\nChoose weights with --warmstart.include, exclude and "
                "rename, or start with those that were found: --warmstart.allow_partial."
            )
        for i in loaded:
            weights[i].assign(stored[found.pairs[i]][1])
        return found

    def apply_layers(self, layers: Layers) -> None:
        """Sets the state of layers besides their weights, if it is stored and wanted. Call it after `apply`.

        Raises:
            TrainingError: a layer does not accept its stored state.
        """
        assert self.params.model is not None
        stateful, states = list(layers.stateful().items()), self.read_layers(self.params.model)
        found = match([(path, ()) for _, (path, _) in stateful], [(self.rename(state.path), ()) for state in states])
        taken = []
        for i, (place, (path, layer)) in enumerate(stateful):
            state = states[found.pairs[i]] if i in found.pairs and self.wants(path) else None
            if state is None or state.kind != type(layer).__name__ or not (state.values or state.files):
                continue
            try:
                set_layer(path, layer, state)
            except ModelError as error:
                raise TrainingError(
                    f"Warm start from {self.params.model}: {error}. Keep this layer as it is with --warmstart.exclude '{path}'."
                ) from error
            taken.append(place)
            logger.info("Warm start: %s has its stored state", path)
        layers.refresh(taken)


def _weights_path(path: Path) -> Path:
    """The file, checkpoint or export with the weights; of a run its best model, else its last one, else its newest checkpoint."""
    if (
        (path.suffix == ".safetensors" and path.is_file())
        or (path / STATE_FILE).is_file()
        or (path / EXPORT_FILE).is_file()
    ):
        return path
    for inside in (BEST, EXPORT):
        if (path / inside / EXPORT_FILE).is_file():
            return path / inside
    store = CheckpointStore(path / CHECKPOINTS)
    if path.is_dir() and (steps := store.steps()):
        return store.path(steps[-1])
    raise TrainingError(
        f"--warmstart.model {path}: {'it does not exist' if not path.exists() else 'it holds no weights'}. "
        "Give an export, the directory of a run, a checkpoint (OUTPUT_DIR/checkpoint/STEP) or a .safetensors file."
    )


def stored_weights(path: Path) -> Weights | None:
    """The weights of a safetensors file or a checkpoint; None if the path is neither.

    Raises:
        TrainingError: it is damaged.
    """
    if path.suffix == ".safetensors" and path.is_file():
        try:
            return sorted(read_tensors(path).items())
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            raise TrainingError(f"--warmstart.model {path} cannot be read: {error}.") from error
    if not (path / STATE_FILE).is_file():
        return None
    _, tensors, state = read_checkpoint(path)
    return [(entry.path, tensors[entry.key]) for entry in state.variables if entry.key.startswith("model/")]


def _table(weights: list[keras.Variable], stored: Weights, found: Matching, wanted: list[bool]) -> str:
    rows: list[Row] = []
    for i, weight in enumerate(weights):
        path = weight.path
        if not wanted[i]:
            rows.append(("skipped", path, ""))
        elif i in found.pairs:
            source = stored[found.pairs[i]][0]
            rows.append(("loaded", path, "" if source == path else f"from {source}"))
        elif i in found.misfits:
            source, array = stored[found.misfits[i]]
            ours, theirs = f"{weight.dtype} {tuple(weight.shape)}", f"{array.dtype} {tuple(array.shape)}"
            rows.append(("does not fit", path, f"is {ours}, {source} is {theirs}"))
        else:
            rows.append(("missing", path, ""))
    rows += [("not used", stored[i][0], "") for i in found.unused]
    rows = _shortened(rows)
    width = max(len(path) for _, path, _ in rows) if rows else 0
    return "\n".join(f"  {what:<13}{path:<{width}}  {note}".rstrip() for what, path, note in rows)


def _shortened(rows: list[Row]) -> list[Row]:
    """Joins many equal rows in sequence into one with their common path."""
    short: list[Row] = []
    for (what, noted), group in itertools.groupby(rows, lambda row: (row[0], bool(row[2]))):
        alike = list(group)
        if len(alike) <= MANY or noted:
            short += alike
        else:
            levels = zip(*(path.split("/") for _, path, _ in alike), strict=False)
            shared = itertools.takewhile(lambda names: len(set(names)) == 1, levels)
            place = "".join(f"{names[0]}/" for names in shared)
            short.append((what, f"{place}… ({len(alike)} weights)", ""))
    return short
