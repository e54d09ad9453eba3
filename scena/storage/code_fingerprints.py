"""Fingerprints of a user's code: has it changed since a model was stored?

Sources are parsed and hashed, never imported or run. They are compared as syntax trees, definition by definition, so comments,
formatting and docstrings do not count; nor do installed packages, the standard library and Scena, whose versions are stored.
"""

import ast
import functools
import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

Fingerprints = dict[str, dict[str, str]]
"""Module → definition → hash. Modules of the scenario's package are named relative to it, so that the package can be moved."""

MAIN = "."
"""The module that defines the scenario."""
MOST_NAMES = 5

_REFERENCE = re.compile(r"(\.*[\w.]*):\w+")
_INSTALLED = {"site-packages", "dist-packages"}
_STANDARD = Path(os.__file__).parent
_by_option: list[str] = []


class CodeChange(NamedTuple):
    """A source file that is not what it was."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


def note_import(name: str) -> None:
    """Remembers a module that `--import` named: it belongs to whatever this process stores."""
    _by_option.append(name)


def noted_imports() -> list[str]:
    """The modules that `--import` named, once each."""
    return list(dict.fromkeys(_by_option))


def fingerprint(main: str, others: Iterable[str] = ()) -> Fingerprints:
    """The fingerprints of the module `main`, of `others`, and of everything of the user's that they import, at once or later."""
    code = _Code(main)
    loaded = [name for name in list(sys.modules) if f"{name}.".startswith(f"{code.top}.")]
    found = code.reachable([main, *others, *_by_option, *loaded])
    return {code.key(name): source.definitions for name, source in sorted(found.items()) if source.definitions}


def stored_fingerprints(value: Any) -> Fingerprints | None:
    """Fingerprints as they were read from a file; None if there are none."""
    if not isinstance(value, dict) or not all(isinstance(one, dict) for one in value.values()):
        return None
    return {str(key): {str(name): str(own) for name, own in one.items()} for key, one in value.items()}


def changed_code(before: Fingerprints, main: str) -> list[CodeChange]:
    """What differs between stored fingerprints and the sources of today, file by file.

    It does not matter what this process has imported: a stored module is looked up, and a new one is one that the sources import.
    """
    code = _Code(main)
    now = {code.key(name): source for name, source in code.reachable([main]).items()}
    changes = []
    for key in sorted({*before, *now}):
        name = code.name(key)
        source = now.get(key) or code.source(name)
        if source is None:
            changes.append(CodeChange(code.file(name), "the file is gone"))
        elif key not in before and source.definitions:
            changes.append(CodeChange(code.file(name), "a new file"))
        elif key in before and (what := _differences(before[key], source.definitions)):
            changes.append(CodeChange(code.file(name), what))
    return changes


def _differences(before: dict[str, str], after: dict[str, str]) -> str:
    names = {
        "changed": [name for name in before if name in after and before[name] != after[name]],
        "added": [name for name in after if name not in before],
        "removed": [name for name in before if name not in after],
    }
    return ", ".join(f"{_listing(found)} {how}" for how, found in names.items() if found)


def _listing(names: list[str]) -> str:
    more = len(names) - MOST_NAMES
    shown = [*names[:MOST_NAMES], *([f"{more} more"] if more > 0 else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


class _Source(NamedTuple):
    definitions: dict[str, str]
    imports: list[str]


class _Code:
    """Finds the sources of a scenario: which modules are the user's own, and where their files are."""

    def __init__(self, main: str) -> None:
        self.main = main
        module = sys.modules.get(main)
        package = getattr(module, "__package__", None)
        self.package = main.rpartition(".")[0] if package is None else package
        self.top = (self.package or main).partition(".")[0]

    def key(self, name: str) -> str:
        """The name of a module in fingerprints."""
        if name == self.main:
            return MAIN
        if name == self.package:
            return ".__init__"
        if self.package and name.startswith(f"{self.package}."):
            return name[len(self.package) :]
        return name.removeprefix("scena.")  # the examples are `scena.examples` in the wheel

    def name(self, key: str) -> str:
        """The module of a key."""
        if key == MAIN:
            return self.main
        if key == ".__init__":
            return self.package
        if key.startswith("."):
            return f"{self.package}{key}"
        return f"scena.{key}" if key.startswith("examples.") and self.top == "scena" else key

    def file(self, name: str) -> str:
        """The path of a module as a user knows it: from the current folder, if it is below."""
        path = self.path(name)
        if path is None:
            return f"{name.replace('.', '/')}.py" if name != "__main__" else "the notebook"
        here = Path.cwd()
        if path.is_relative_to(here):
            return str(path.relative_to(here))
        parts = name.count(".") + (2 if path.name == "__init__.py" else 1)
        return str(Path(*path.parts[-parts:]))

    def reachable(self, names: Iterable[str]) -> "dict[str, _Source]":
        """The sources of these modules, and of all that they import, directly or not."""
        found: dict[str, _Source | None] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                source = found[name] = self.source(name)
                waiting += source.imports if source is not None else ()
        return {name: source for name, source in found.items() if source is not None}

    def source(self, name: str) -> _Source | None:
        """The definitions and imports of a module; None if it is not the user's, or is not there."""
        path = self.path(name)
        if path is None:
            module = sys.modules.get(name)
            no_file = module is not None and getattr(module, "__file__", None) is None
            return _of_cells(module) if no_file and name == self.main else None
        try:
            found = path.stat()
            definitions, imports = _parsed(path, found.st_mtime_ns, found.st_size)
        except (OSError, SyntaxError, ValueError, RecursionError):
            return None
        package = self.package if name == self.main else name if path.name == "__init__.py" else name.rpartition(".")[0]
        return _Source(definitions, [one for reference in imports for one in _absolute(reference, package)])

    def path(self, name: str) -> Path | None:
        """The source file of a module that is the user's own."""
        top = name.partition(".")[0]
        if not name or (top == "scena" and not name.startswith("scena.examples.")):
            return None
        if top in sys.stdlib_module_names or not all(part.isidentifier() for part in name.split(".")):
            return None
        origin, _ = locate(name)
        if origin is None or origin.suffix != ".py":
            return None
        installed = _INSTALLED.intersection(origin.parts) or origin.is_relative_to(_STANDARD)
        return None if installed and top != self.top else origin


def locate(name: str) -> tuple[Path | None, list[str]]:
    """A module's file, and where its submodules are, without importing anything."""
    module = sys.modules.get(name)
    if module is not None:
        file = getattr(module, "__file__", None)
        return (Path(file) if file else None), list(getattr(module, "__path__", None) or [])
    parent, _, own = name.rpartition(".")
    try:
        # under its own name only: a folder without __init__.py asks for its parent in sys.modules, which is not imported here
        spec = PathFinder.find_spec(own, locate(parent)[1]) if parent else find_spec(name)
    except (ImportError, ValueError, KeyError, AttributeError):  # finders of other packages fail in many ways
        return None, []
    if spec is None:
        return None, []
    origin = Path(spec.origin) if spec.has_location and spec.origin else None
    return origin, list(spec.submodule_search_locations or [])


@functools.lru_cache(maxsize=4096)
def _parsed(path: Path, modified: int, size: int) -> tuple[dict[str, str], list[str]]:
    del modified, size  # part of the cache's key: an edited file is read again
    tree = ast.parse(path.read_bytes())
    return definitions(tree), list(_references(tree))


def notebook_code(cls: type) -> dict[str, str] | None:
    """Hashes of a class that is in no file, and of all in its notebook that it uses, as they are in memory now.

    None if its source is not known.
    """
    module = sys.modules.get(cls.__module__)
    names, found = [cls.__qualname__.partition(".")[0]], dict[str, str]()
    for name in names:  # which grows
        value = getattr(module, name, None)
        cell = _cell(value, name)
        if cell is not None:
            found |= _named(cell, name)
            used = (node.id for node in ast.walk(_definition(cell, name)) if isinstance(node, ast.Name))
            names += [other for other in used if hasattr(module, other) and other not in names]
        elif isinstance(value, bool | int | float | str | tuple):
            found[name] = repr(value)
    return found if names[0] in found else None


def _of_cells(module: Any) -> _Source | None:
    """The definitions of a notebook, whose cells are no files: each class and function as it is in memory now."""
    found: dict[str, str] = {}
    references: list[str] = []
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", None) == module.__name__ and (cell := _cell(value, name)) is not None:
            found |= _named(cell, name)
            references += _references(cell)
    return _Source(found, [one for reference in references for one in _absolute(reference, "")]) if found else None


def _cell(value: Any, name: str) -> ast.Module | None:
    """The cell of a notebook in which a class or function was defined; IPython keeps its source for tracebacks."""
    import linecache

    if getattr(value, "__name__", None) != name:
        return None
    functions = [value, *vars(value).values()] if isinstance(value, type) else [value]
    file = next((item.__code__.co_filename for item in functions if hasattr(item, "__code__")), None)
    try:
        return ast.parse("".join(linecache.getlines(file))) if file is not None else None
    except (SyntaxError, ValueError):
        return None


def _named(cell: ast.Module, name: str) -> dict[str, str]:
    return {key: own for key, own in definitions(cell).items() if key.partition(".")[0] == name}


def _definition(cell: ast.Module, name: str) -> ast.AST:
    found = [item for item in cell.body if getattr(item, "name", None) == name]
    return found[-1] if found else ast.Module([], [])


def definitions(tree: ast.Module) -> dict[str, str]:
    """A hash for each definition of a module: functions, methods, classes without their methods, assigned names, and the rest."""
    import hashlib  # slow to import

    found: dict[str, list[str]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            methods = [item for item in statement.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
            for method in methods:
                found.setdefault(f"{statement.name}.{method.name}", []).append(_shape(method))
            rest = [item for item in statement.body if item not in methods]
            head = [statement.bases, statement.keywords, statement.decorator_list]
            found.setdefault(statement.name, []).append(_shape([*head, getattr(statement, "type_params", []), rest]))
        elif not _is_text(statement):
            found.setdefault(_name(statement), []).append(_shape(statement))
    return {name: hashlib.sha256("\n".join(shapes).encode()).hexdigest()[:12] for name, shapes in found.items()}


def _name(statement: ast.stmt) -> str:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return statement.name
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return "imports"
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return names[0] if names else "module level"


def _shape(node: Any) -> str:
    """A syntax tree as text, without empty fields, which other versions of Python may add."""
    if isinstance(node, list):
        return f"[{','.join(_shape(item) for item in node if not _is_text(item))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    given = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []) and name != "kind")
    fields = [f"{name}={_shape(value)}" for name, value in given]
    if isinstance(node, ast.Constant):
        fields = [f"{type(node.value).__name__} {node.value!r}"]
    return f"{type(node).__name__}({','.join(fields)})"


def _is_text(node: Any) -> bool:
    """Whether a statement is a docstring, or another text that nothing uses."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _references(tree: ast.Module) -> Iterator[str]:
    """What a module may import: its import statements, wherever they stand, and texts such as ".model:MyModel"."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            separator = "." if node.module else ""
            yield from (f"{base}{separator}{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _REFERENCE.fullmatch(node.value):
            yield node.value.partition(":")[0]


def _absolute(reference: str, package: str) -> list[str]:
    """The modules that an import of this name loads: itself and the packages around it."""
    relative = reference.lstrip(".")
    if level := len(reference) - len(relative):
        parts = package.split(".") if package else []
        above = parts[: len(parts) - level + 1]
        relative = ".".join([*above, relative]) if relative else ".".join(above)
    parts = relative.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))]
