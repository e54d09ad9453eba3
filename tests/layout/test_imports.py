"""Imports point one way, so that each package can be read, tested and used without those after it."""

import ast
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.layout.sources import ROOT, module_name, place, python_files, runtime_nodes, syntax

# A package may import those before it. Packages on one line may import each other, but not in a circle.
ORDER = [
    ("display", "errors", "faults", "lazy", "logs", "overriding", "plots", "signals", "user_code"),
    ("plugins",),
    ("storage", "params", "pages"),
    ("data",),
    ("model",),
    ("backends",),
    ("training", "evaluation", "prediction"),
    ("scenario",),
    ("experiments",),
    ("commands",),
]
RANK = {package: rank for rank, packages in enumerate(ORDER) for package in packages}
# These stand on top of everything and are imported by no package.
TOP = {"__init__", "__main__", "testing"}


def imported_modules(path: Path) -> list[tuple[str, ast.AST]]:
    """The absolute name of each module a file imports at run time, wherever in the file."""
    package = module_name(path) if path.stem == "__init__" else module_name(path).rpartition(".")[0]
    found: list[tuple[str, ast.AST]] = []
    for node in runtime_nodes(syntax(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, node) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parent, base] if base else parent)
            # `from scena import data` names a package, `from scena.data import Sample` a thing inside one
            found += [(f"{base}.{alias.name}" if base == "scena" else base, node) for alias in node.names]
    return found


def package_of(path: Path) -> str:
    return path.relative_to(ROOT / "scena").with_suffix("").parts[0]


@pytest.fixture(scope="module")
def package_imports() -> dict[str, dict[str, str]]:
    """For each package of scena, the packages it imports and one place where it does."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for path in python_files("scena"):
        for module, node in imported_modules(path):
            if module.split(".")[0] == "scena" and package_of(path) not in TOP:
                imported = [*module.split("."), "__init__"][1]
                if imported == "__version__":
                    continue
                found[package_of(path)].setdefault(imported, place(path, node))
    return found


def test_every_package_has_a_place_in_the_order() -> None:
    packages = {package_of(path) for path in python_files("scena")}
    assert packages - TOP <= set(RANK), "new packages: add them to ORDER"


def test_imports_point_one_way(package_imports: dict[str, dict[str, str]]) -> None:
    wrong = [
        f"{where}: {package} imports scena.{imported}"
        for package, imports in package_imports.items()
        for imported, where in imports.items()
        if imported != package and RANK.get(imported, len(ORDER)) > RANK[package]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_two_packages_import_each_other(package_imports: dict[str, dict[str, str]]) -> None:
    graph = {package: set(imports) - {package} for package, imports in package_imports.items()}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = error.args[1][::-1]
        places = [package_imports[a][b] for a, b in pairwise(circle)]
        pytest.fail(f"packages import each other: {' -> '.join(circle)} ({', '.join(places)})")


def test_the_package_does_not_need_its_examples_or_tests() -> None:
    for path in python_files("scena"):
        for module, node in imported_modules(path):
            assert module.split(".")[0] not in ("examples", "tests", "benchmarks"), place(path, node)


def test_examples_import_each_other_relatively() -> None:
    """Inside the wheel they are `scena.examples`, so an absolute `examples.…` would not be found there."""
    for path in python_files("examples"):
        for node in ast.walk(syntax(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            assert not [name for name in names if name.split(".")[0] == "examples"], place(path, node)
