"""The file names of a run stand in `scena/storage/run_layout.py` and nowhere else."""

import ast
from collections.abc import Iterator

from scena.storage import run_layout
from tests.layout.sources import ROOT, place, python_files, syntax

NAMES = {value for name, value in vars(run_layout).items() if name.isupper() and isinstance(value, str)}
NAMES |= {run_layout.model_file(), run_layout.saved_model()}
FOLDERS = {name for name in NAMES if "." not in name.lstrip(".")}
"""Also ordinary words, which count only as a part of a path."""
ELSEWHERE = {".lock"}
"""Suffixes of other files."""


def path_parts(node: ast.AST) -> Iterator[ast.AST]:
    """What stands to the right of `/` or in a call that makes a path; not the ending of a name, as in f"{name}.lock"."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from ast.walk(node.right) if not isinstance(node.right, ast.JoinedStr) else ()
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Path", "joinpath", "with_name", "path.join")):
        for argument in node.args:
            yield from ast.walk(argument)


def test_the_names_of_files_are_spelled_once() -> None:
    found = []
    for path in python_files("scena"):
        if path == ROOT / "scena/storage/run_layout.py":
            continue
        for node in ast.walk(syntax(path)):
            strings = [node] if isinstance(node, ast.Constant) and node.value in NAMES - FOLDERS - ELSEWHERE else []
            strings += [part for part in path_parts(node) if isinstance(part, ast.Constant) and part.value in NAMES]
            found += [f"{place(path, part)}: {part.value!r}" for part in strings if isinstance(part, ast.Constant)]
    assert not found, "use the names of scena/storage/run_layout.py:\n" + "\n".join(sorted(set(found)))
