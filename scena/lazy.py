"""Public names that are imported when first used. A package lists them once, in its `__init__.pyi`, which type checkers read as well."""

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LINE = re.compile(r"^from ([\w.]+) import (\w+) as \2$", re.MULTILINE)


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from the lines `from home import Name as Name` of its stub."""
    homes = {name: home for home, name in _LINE.findall(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    names = sorted(homes)
    return get, lambda: names, names
