"""The context of a pipeline on its way to a worker: parameters as plain trees, and the modules whose classes they are.

A module name is never taken from a file: the parent has the classes, and sends the names of their modules.
"""

import dataclasses
import importlib
import sys
from pathlib import Path
from typing import Any

from scena.data.engines.workers.notebook import MAIN, NotImportableError, notebook_module
from scena.data.generator import is_shared
from scena.data.params import PipelineMode
from scena.data.spec import ArraySpec
from scena.data.stages.collate import Collator
from scena.data.stages.context import PipelineContext
from scena.logs import in_notebook
from scena.params.declare import Params
from scena.params.tree import build, to_raw

STAYS = {"generator", "skipped", "clock", "shard"}
"""The fields of a context that each process has for itself."""


def stored_context(context: PipelineContext) -> dict[str, Any]:
    """The fields of a context as plain values.

    Raises:
        NotImportableError: a worker cannot import a class that it needs.
    """
    fields = [field.name for field in dataclasses.fields(context) if field.name not in STAYS]
    return {name: _stored(getattr(context, name)) for name in fields if name != "source" or not context.main_source}


def restored_context(stored: dict[str, Any]) -> PipelineContext:
    """The context that `stored_context` described. What it skips is collected for the parent."""
    mode = PipelineMode(stored["mode"])
    fields = {name: _restored(value, mode) for name, value in stored.items()}
    context = PipelineContext(**{"source": None, **fields, "mode": mode})
    context.collect_skipped()
    return context


def _stored(value: Any) -> Any:
    if isinstance(value, Params):
        return {"params": stored_params(value)}
    if isinstance(value, Collator):
        return {"collator": stored_collator(value)}
    if is_shared(value):
        return {"cache": [value.descriptor, None if value.path is None else str(value.path)]}
    return value


def _restored(value: Any, mode: PipelineMode) -> Any:
    match value:
        case {"params": stored}:
            return restored_params(stored)
        case {"collator": stored}:
            return restored_collator(stored, mode)
        case {"cache": [descriptor, path]}:
            from scena.data.stages.sample_cache import StoredSamples  # most workers do not need it

            return StoredSamples(descriptor, mode, None if path is None else Path(path))
    return value


def stored_params(params: Params) -> list[Any]:
    """[module, class, tree, further modules] of some params."""
    modules: dict[str, None] = {}
    of_notebook: list[str] = []
    for part in _parts(params):
        cls = type(part)
        needed = [(cls.__module__, cls.__qualname__)]
        if cls.__builds__:
            module, _, name = cls.__builds__.partition(":")
            needed.append((module, name))
        for module, name in needed:
            _check(module, name)
            of_notebook += [name] if module == MAIN else []
        modules[cls.__module__] = None
    made = notebook_module(of_notebook) if of_notebook else MAIN
    raw = to_raw(params)
    raw.pop("class", None)  # the class of the root is given exactly
    root, *names = (made if module == MAIN else module for module in (type(params).__module__, *modules))
    return [root, type(params).__qualname__, raw, names]


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
    if module == MAIN and not in_notebook():
        raise NotImportableError(
            f"{name} is defined in the main script, which worker processes do not run again. "
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
