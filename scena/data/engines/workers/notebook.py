"""Classes that were defined in a notebook, as a module that worker processes can import.

The module holds the definitions that a worker needs, as the notebook's cells have them, the imports they use, and plain values.
Nothing else of the notebook runs again.
"""

import ast
import atexit
import functools
import hashlib
import shutil
import symtable
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

from scena.errors import DataError

MAIN = "__main__"


class NotImportableError(DataError):
    """A class that a worker process cannot import, or something that it uses."""


def notebook_path() -> list[str]:
    """The folder of modules made from the notebook, for the path of a worker; empty if there are none."""
    return [str(_folder())] if _folder.cache_info().currsize else []


def notebook_module(names: list[str]) -> str:
    """Writes a module that defines these classes of the notebook, and returns its name.

    Raises:
        NotImportableError: a class uses something that a worker cannot have; the message names it.
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
