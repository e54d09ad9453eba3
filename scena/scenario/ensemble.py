"""Several exports of one scenario that share one input pipeline: they must prepare a sample in the same way."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scena.data.params import PipelineMode
from scena.data.resource import Resource
from scena.params import Params
from scena.scenario.errors import ScenarioError
from scena.scenario.loading import LoadedExport


def check_same_inputs(exports: Sequence[LoadedExport], mode: PipelineMode) -> None:
    """Raises if two exports would prepare the same sample differently.

    Args:
        exports: the models, of one scenario.
        mode: only processors of this mode count; another augmentation in training does not matter.
    """
    first, *others = exports
    expected = _preparation(first.scenario.params.data, mode)
    for other in others:
        if _preparation(other.scenario.params.data, mode) != expected:
            raise ScenarioError(
                f"{first.directory} and {other.directory} prepare their inputs differently (--data of the two runs), so they cannot "
                "work on the same batches. `scena params DIR` shows how each was trained."
            )


def _preparation(data: Any, mode: PipelineMode) -> Any:
    """Everything about the data's parameters that decides what the model gets; files count by their content."""
    steps = [processor for processor in data.pre_proc if mode in processor.modes]
    own = {name: getattr(data, name) for name in type(data).__params__ if name not in ("pre_proc", "post_proc")}
    return [_content(own), [[type(step).__name__, _content(step)] for step in steps]]


def _content(value: Any) -> Any:
    if isinstance(value, Resource):
        return _digest(value.path)
    if isinstance(value, Params):
        return {name: _content(getattr(value, name)) for name in type(value).__params__ if name != "modes"}
    if isinstance(value, dict):
        return {name: _content(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_content(item) for item in (sorted(value, key=str) if isinstance(value, set) else value)]
    return str(value)


def _digest(path: Path) -> str:
    if path.is_dir():
        return hashlib.sha256(
            "".join(_digest(file) for file in sorted(path.rglob("*")) if file.is_file()).encode()
        ).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest()
