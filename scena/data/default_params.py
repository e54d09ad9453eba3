"""The parameters that a data class starts with: `DataBase.default_params`, if the class has one of its own.

A data class is found by its source first. It is imported only if it may have changed `default_params`, so that `--help` of other
scenarios needs no numpy.
"""

import ast
import functools
import sys
from typing import TypeVar

from scena.data.params import DataBaseParams
from scena.errors import ParamsError
from scena.storage.code_fingerprints import locate

P = TypeVar("P", bound=DataBaseParams)

METHOD = "default_params"
_OWN = "scena.data.database"
_HARMLESS = {"Generic", "Protocol", "ABC", "object"}


def default_data_params(cls: type[P]) -> P:
    """Fresh parameters of this class as its data class wants them.

    Raises:
        ParamsError: the data class returns parameters of another class.
    """
    if cls.__builds__ is None or not _may_override(cls.__builds__):
        return cls()
    implementation = cls.implementation()
    made = implementation.default_params()
    if type(made) is cls:
        return made
    if not issubclass(cls, type(made)):
        raise ParamsError(
            f"{implementation.__name__}.{METHOD}() must return {cls.__name__}, whose `builds` names it. "
            f"Received: {type(made).__name__}."
        )
    plain = type(
        made
    )()  # `cls` is a subclass of what the data class knows: what it changes counts, the rest is `cls`'s own
    names = type(made).__params__
    return cls(**{name: made.given(name) for name in names if made.given(name) != plain.given(name)})


def _may_override(builds: str) -> bool:
    module, _, name = builds.partition(":")
    if module.startswith("scena.") and not module.startswith("scena.examples."):
        return False
    if module in sys.modules:
        cls = getattr(sys.modules[module], name, None)
        return any(METHOD in vars(base) and base.__module__ != _OWN for base in getattr(cls, "__mro__", ()))
    return _source_may_override(module, name)


@functools.cache
def _source_may_override(module: str, name: str) -> bool:
    path, _ = locate(module)
    try:
        tree = ast.parse(path.read_bytes()) if path is not None else None
    except (OSError, SyntaxError, ValueError):
        tree = None
    return tree is None or _overrides(tree, name)


def _overrides(tree: ast.Module, name: str) -> bool:
    """Whether a class, or one of its bases, has a `default_params`; also True if the source does not tell."""
    found = next((item for item in tree.body if isinstance(item, ast.ClassDef) and item.name == name), None)
    if found is None or any(getattr(item, "name", None) == METHOD for item in found.body):
        return True
    imported = {
        alias.asname or alias.name
        for item in tree.body
        if isinstance(item, ast.ImportFrom) and not item.level and (item.module or "").partition(".")[0] == "scena"
        for alias in item.names
    }
    bases = [ast.unparse(base).partition("[")[0] for base in found.bases]
    return any(
        base not in imported | _HARMLESS and not base.startswith("scena.") and _overrides(tree, base) for base in bases
    )
