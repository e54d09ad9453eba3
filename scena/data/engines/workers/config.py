"""What a worker is told: parameters as plain trees, and the modules whose classes they are. It comes from the parent only.

A module name is never taken from a file: the parent has the classes, and sends the names of their modules.
"""

import importlib
import sys
from typing import Any

from scena.data.errors import DataError
from scena.data.params import PipelineMode
from scena.data.spec import ArraySpec
from scena.data.stages.collate import Collator
from scena.params.declare import Params
from scena.params.tree import build, to_raw


class NotImportableError(DataError):
    """A class that a worker process cannot import."""


def stored_params(params: Params) -> list[Any]:
    """[module, class, tree, further modules] of some params."""
    modules: dict[str, None] = {}
    for part in _parts(params):
        cls = type(part)
        _check(cls.__module__, cls.__qualname__)
        if cls.__builds__:
            module, _, name = cls.__builds__.partition(":")
            _check(module, name)
        modules[cls.__module__] = None
    raw = to_raw(params)
    raw.pop("class", None)  # the class of the root is given exactly
    return [type(params).__module__, type(params).__qualname__, raw, list(modules)]


def restored_params(stored: list[Any]) -> Any:
    """The params that `stored_params` described."""
    module, name, raw, modules = stored
    for needed in modules:
        importlib.import_module(needed)
    cls: Any = sys.modules[module]
    for part in name.split("."):
        cls = getattr(cls, part)
    return build(raw, cls)


def _parts(tree: Any) -> Any:
    if isinstance(tree, Params):
        yield tree
        for name in type(tree).__params__:
            yield from _parts(getattr(tree, name))
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from _parts(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _parts(value)


def _check(module: str, name: str) -> None:
    if module == "__main__":
        raise NotImportableError(
            f"{name} is defined in the main script or notebook, which worker processes do not run again. "
            "Put it into a module of its own and import it, or set num_processes=0."
        )
    if "<locals>" in name:
        raise NotImportableError(
            f"{name} is defined inside a function, where worker processes cannot find it. "
            "Move it to the top of its module, or set num_processes=0."
        )


def stored_collator(collator: Collator) -> dict[str, Any]:
    """Specs and padding values as plain values."""
    return {
        "inputs": {name: spec.to_json() for name, spec in collator.inputs.items()},
        "targets": {name: spec.to_json() for name, spec in collator.targets.items()},
        "padding": {name: _plain(value) for name, value in collator.padding.items()},
        "whole_batches": collator.whole_batches,
    }


def restored_collator(stored: dict[str, Any], mode: PipelineMode) -> Collator:
    """The collator that `stored_collator` described."""
    return Collator(
        {name: ArraySpec.from_json(spec) for name, spec in stored["inputs"].items()},
        {name: ArraySpec.from_json(spec) for name, spec in stored["targets"].items()},
        stored["padding"],
        mode,
        stored["whole_batches"],
    )


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
