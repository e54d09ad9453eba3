"""The context of a pipeline on its way to a worker: parameters as plain trees, and the modules whose classes they are.

A module name is never taken from a file: the parent has the classes, and sends the names of their modules. Classes of a notebook
are written to a module that holds the definitions a worker needs, as the notebook's cells have them, the imports they use, and
plain values. Nothing else of the notebook runs again.
"""

import ast
import atexit
import dataclasses
import functools
import hashlib
import importlib
import operator
import shutil
import symtable
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

from scena.data.generator import is_shared
from scena.data.params import PipelineMode
from scena.data.spec import ArraySpec
from scena.data.stages.collate import Collator
from scena.data.stages.context import PipelineContext
from scena.errors import DataError
from scena.logs import in_notebook
from scena.params.declare import Params
from scena.params.tree import build, to_raw, values_in

MAIN = "__main__"
STAYS = {"generator", "skipped", "clock", "shard"}
"""The fields of a context that each process has for itself."""


class NotImportableError(DataError):
    """A class that a worker process cannot import, or something that it uses."""


def stored_context(context: PipelineContext) -> dict[str, Any]:
    """The fields of a context as plain values; raises NotImportableError if a worker cannot import a class that it needs."""
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
        return {"params": _stored_params(value)}
    if isinstance(value, Collator):
        specs = [{name: spec.to_json() for name, spec in part.items()} for part in (value.inputs, value.targets)]
        padding = {name: pad.tolist() if hasattr(pad, "tolist") else pad for name, pad in value.padding.items()}
        return {"collator": [*specs, padding, value.whole_batches]}
    if is_shared(value):
        return {"cache": [value.descriptor, None if value.path is None else str(value.path)]}
    return value


def _restored(value: Any, mode: PipelineMode) -> Any:
    match value:
        case {"params": stored}:
            return _restored_params(*stored)
        case {"collator": [inputs, targets, padding, whole_batches]}:
            one, other = (
                {name: ArraySpec.from_json(spec) for name, spec in part.items()} for part in (inputs, targets)
            )
            return Collator(one, other, padding, mode, whole_batches)
        case {"cache": [descriptor, path]}:
            from scena.data.stages.sample_cache import StoredSamples  # most workers do not need it

            return StoredSamples(descriptor, mode, None if path is None else Path(path))
    return value


def _stored_params(params: Params) -> list[Any]:
    """[module, class, tree, further modules] of some params."""
    modules: dict[str, None] = {}
    of_notebook: list[str] = []
    for _, part in values_in(params):
        if isinstance(part, Params):
            cls = type(part)
            modules[cls.__module__] = None
            built = [cls.__builds__.split(":")] if cls.__builds__ else []
            for module, name in [(cls.__module__, cls.__qualname__), *built]:
                _check(module, name)
                of_notebook += [name] if module == MAIN else []
    made = notebook_module(of_notebook) if of_notebook else MAIN
    raw = to_raw(params)
    raw.pop("class", None)  # the class of the root is given exactly
    root, *names = (made if module == MAIN else module for module in (type(params).__module__, *modules))
    return [root, type(params).__qualname__, raw, names]


def _restored_params(module: str, name: str, raw: dict[str, Any], modules: list[str]) -> Any:
    for needed in modules:
        importlib.import_module(needed)
    return build(raw, operator.attrgetter(name)(sys.modules[module]))


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


def notebook_path() -> list[str]:
    """The folder of modules made from the notebook, for the path of a worker; empty if there are none."""
    return [str(_folder())] if _folder.cache_info().currsize else []


def notebook_module(names: list[str]) -> str:
    """Writes a module that defines these classes of the notebook, and returns its name.

    Raises NotImportableError if a class uses something that a worker cannot have.
    """
    lines: dict[str, str] = {}  # name -> an import or a plain value
    found: dict[str, tuple[int, int, str]] = {}  # name -> cell, line, source
    waiting = list(names)
    space = vars(sys.modules[MAIN])
    while waiting:
        name = waiting.pop()
        if name in found or name in lines or name not in space:  # not there: a builtin, or an error of the user's
            continue
        value = space[name]
        if getattr(value, "__module__", None) == MAIN and isinstance(value, type | types.FunctionType):
            found[name] = _definition(name, value)
            waiting += _globals_of(found[name][2])
        else:
            lines[name] = _line(name, value)
    definitions = [source for _, _, source in sorted(found.values())]
    text = "\n".join([*sorted(lines.values()), *definitions, ""])
    module = f"notebook_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    (_folder() / f"{module}.py").write_text(text, encoding="utf-8")
    return module


@functools.cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="scena-notebook-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _definition(name: str, value: Any) -> tuple[int, int, str]:
    """Cell, line and source of the last definition of a class or function."""
    cells = sys.modules["IPython"].get_ipython().history_manager.input_hist_parsed
    for number, cell in reversed(list(enumerate(cells))):
        try:
            statements = ast.parse(cell).body
        except SyntaxError:  # a cell that never ran
            continue
        for statement in reversed(statements):
            if isinstance(statement, ast.ClassDef | ast.FunctionDef) and statement.name == name:
                first = min([statement.lineno, *(part.lineno for part in statement.decorator_list)])
                return number, first, "\n".join(cell.splitlines()[first - 1 : statement.end_lineno])
    raise NotImportableError(
        f"{name} is defined in the notebook, but no cell defines it at its top level, so worker processes cannot have it. "
        f"Define it as `{'class' if isinstance(value, type) else 'def'} {name}…` in a cell, or set num_processes=0."
    )


def _globals_of(source: str) -> set[str]:
    """The global names that a definition uses, when it is executed or later."""
    names: set[str] = set()
    waiting = [symtable.symtable(source, "cell", "exec")]
    while waiting:
        table = waiting.pop()
        top = table.get_type() == "module"
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() or top}
        waiting += table.get_children()
    return names


def _line(name: str, value: Any) -> str:
    """The line of the module that gives a name its value."""
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__} as {name}"
    home = getattr(value, "__module__", None)
    for known in (getattr(value, "__name__", None), getattr(value, "_name", None), name):
        if isinstance(home, str) and home != MAIN and known and getattr(sys.modules.get(home), known, None) is value:
            return f"from {home} import {known} as {name}"
    try:
        if ast.literal_eval(repr(value)) == value:
            return f"{name} = {value!r}"
    except (ValueError, SyntaxError):
        pass
    raise NotImportableError(
        f"A class of the notebook uses {name}, a {type(value).__name__} of the notebook, which worker processes do not have. "
        "Make it a parameter, create it in the class, put it into a module of its own, or set num_processes=0."
    )
