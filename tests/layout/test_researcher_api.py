"""What a researcher reads shows one way: imports from public packages, and the public names of hooks."""

import ast
import re
from pathlib import Path

import pytest

from scena import DataBase, ModelBase
from tests.layout.sources import ROOT, python_files

PUBLIC = {path.parent.relative_to(ROOT).as_posix().replace("/", ".") for path in (ROOT / "scena").rglob("__init__.pyi")}
ALSO = {"scena.plugins", "scena.testing", "scena.commands.main", "scena.model.layers.registered"}
OLD_NAMES = {*ModelBase.__two_names__.values(), *DataBase.__two_names__.values(), "_best_logging_settings"}
OLD_NAMES |= {"_print_prediction", "_print_evaluate", "evaluator_cls", "predictor_cls", "lav_cls", "trainer_cls"}
PAGES = [path for path in (ROOT / "docs").rglob("*.md") if not {"reference", "decisions"} & set(path.parts)]
READMES = [ROOT / "README.md", *(ROOT / "examples").rglob("README.md")]


def code_of(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return (
        [text] if path.suffix == ".py" else re.findall(r"^```python[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    )


def imported(code: str) -> set[str]:
    """The modules of Scena that some code imports from."""
    tree = ast.parse(code)
    found = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    found |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    return {module for module in found if module.split(".")[0] == "scena"}


@pytest.mark.parametrize("kind", ["examples", "pages"])
def test_examples_and_pages_import_public_packages(kind: str) -> None:
    paths = python_files("examples") if kind == "examples" else [*PAGES, *READMES]
    internal = {
        f"{path.relative_to(ROOT)}: {module}"
        for path in paths
        for code in code_of(path)
        for module in imported(code) - PUBLIC - ALSO
    }
    assert not internal


def test_the_names_of_tfaip_stand_on_one_page() -> None:
    pages = [*python_files("examples"), *PAGES, *READMES]
    word = re.compile(rf"(?<![\w.])(?:{'|'.join(OLD_NAMES)})\b")
    found = {str(path.relative_to(ROOT)): word.findall(path.read_text(encoding="utf-8")) for path in pages}
    found.pop("docs/coming-from/tfaip.md")
    assert not {path: names for path, names in found.items() if names}
