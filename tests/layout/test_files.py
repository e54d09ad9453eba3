"""What may stand in a file: its size, its name, nothing of one machine, nothing that runs code from data."""

import ast
import re
import statistics
from collections import Counter
from pathlib import Path

from tests.layout.sources import ROOT, place, python_files, repository_files, syntax

MOST_LINES = 500
MOST_MODULES = 16
"""In a folder; the zoo has one for each network."""
EMPTY_NAMES = {"utils", "util", "misc", "helpers", "helper", "common"}

# Written in pieces, so that this file does not hold what it forbids.
REGISTRIES = ["pypi" + ".org", "python" + "hosted", "registry." + "npmjs", "conda." + "anaconda"]
MACHINE_PATH = re.compile(r"(?<![\w.~$}/*-])/(?:root|home|work|opt|Users|private)/\w")

NAMED_MODULE = re.compile(r"`((?:scena|tests|scripts|benchmarks)/[\w/]+\.py)`")

RUNS_CODE = {"eval", "exec", "pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
UNSAFE_CALLS = {"yaml.load", "yaml.full_load", "yaml.unsafe_load", "allow_pickle=True", "safe_mode=False"}


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    long = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}
    assert not {name: lines for name, lines in long.items() if lines > MOST_LINES}


def test_folders_are_small_and_modules_are_not() -> None:
    """Where a reader looks something up: in a folder of a few modules that each hold a whole idea."""
    modules = [path for path in python_files("scena") if path.name != "__init__.py" and path.parent.name != "zoo"]
    folders = Counter(str(path.parent.relative_to(ROOT)) for path in modules)
    assert not {name: count for name, count in folders.items() if count > MOST_MODULES}
    assert statistics.median(len(path.read_text(encoding="utf-8").splitlines()) for path in modules) >= 120


def test_names_say_what_is_inside() -> None:
    assert not [str(path.relative_to(ROOT)) for path in python_files() if EMPTY_NAMES & {path.stem, path.parent.name}]


def test_every_folder_of_modules_is_a_package() -> None:
    """Without an `__init__.py` the reference would miss it."""
    folders = {path.parent for path in python_files("scena", "examples")}
    assert not [str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").is_file()]


def test_every_module_says_what_lives_in_it() -> None:
    silent = [path for path in python_files() if path.read_text(encoding="utf-8").strip() and not docstring(path)]
    assert not [str(path.relative_to(ROOT)) for path in silent]


def docstring(path: Path) -> str | None:
    return ast.get_docstring(syntax(path))


def test_modules_that_the_documentation_names_exist() -> None:
    pages = [path for path in repository_files() if path.suffix == ".md"]
    named = {(page, name) for page in pages for name in NAMED_MODULE.findall(page.read_text(encoding="utf-8"))}
    assert len(named) > 20
    assert not [f"{page.relative_to(ROOT)}: {name}" for page, name in sorted(named) if not (ROOT / name).is_file()]


def test_nothing_of_one_machine_is_committed() -> None:
    found = []
    for path in repository_files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # a picture
        for number, line in enumerate(lines, 1):
            if MACHINE_PATH.search(line) or any(host in line for host in REGISTRIES):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)


def test_nothing_runs_code_from_a_file() -> None:
    """No pickle, no eval: loading a model or a parameter file must never run what is in it."""
    found = []
    for path in python_files("scena"):
        for node in ast.walk(syntax(path)):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name.split(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [(node.module or "").split(".")[0]]
            elif isinstance(node, ast.Call):
                names = [ast.unparse(node.func), *(f"{key.arg}={ast.unparse(key.value)}" for key in node.keywords)]
            found += [f"{place(path, node)}: {name}" for name in names if name in RUNS_CODE | UNSAFE_CALLS]
    assert not found, "\n".join(found)
