"""The files the rules of the house are checked on."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def repository_files() -> list[Path]:
    """Every file that is, or would be, committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = (ROOT / name for name in sorted(listed.stdout.decode().split("\0")) if name)
    return [path for path in paths if path.is_file()]


def python_files(*folders: str) -> list[Path]:
    """The Python files of some folders of the repository, or all of them."""
    files = [path for path in repository_files() if path.suffix == ".py"]
    return [path for path in files if not folders or path.relative_to(ROOT).parts[0] in folders]


def module_name(path: Path) -> str:
    """`scena/data/sample.py` -> `scena.data.sample`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def syntax(path: Path) -> ast.Module:
    """The syntax tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def place(path: Path, node: ast.AST) -> str:
    """`scena/data/sample.py:12`, as an editor opens it."""
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below `node`, without what only a type checker sees."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from runtime_nodes(other)
            continue
        yield child
        yield from runtime_nodes(child)
